//! Use, fair share and past usage of queues over the time of a run.

use std::fmt::{Result, Write};

use muster_api::Time;
use muster_engine::explain::duration;
use muster_engine::ids::QueueId;
use muster_engine::model::Cluster;
use muster_sim::curves::{Curves, QueueSample, Sample};

use super::svg::{self, INK, LINE, MUTED, text_width};
use super::text::{cut_middle, readable};

/// Colours of Okabe and Ito, which people with any colour vision can distinguish, and line styles
/// for readers who see no colours.
const STYLES: [(&str, &str); 6] = [
    ("#0072B2", "none"),
    ("#D55E00", "9 4"),
    ("#009E73", "3 3"),
    ("#CC79A7", "12 3 3 3"),
    ("#E69F00", "6 2"),
    ("#56B4E9", "1 3"),
];
const GRID: &str = "#e2e8f0";

const WIDTH: i32 = 960;
const LEFT: i32 = 92;
const RIGHT: i32 = WIDTH - 28;
const HEIGHT: i32 = 150;
const GAP: i32 = 56;
const TOP: i32 = 132;
const NAME: usize = 20;
const END: &str = "text-anchor=\"end\"";
const MIDDLE: &str = "text-anchor=\"middle\"";

pub fn svg(curves: &Curves, cluster: &Cluster) -> String {
    let mut out = String::new();
    Picture { curves, cluster, queues: shown(curves, cluster) }
        .draw(&mut out)
        .expect("writing to a string can't fail");
    out
}

/// Queues that ever had or should have had something, the largest first; no more than can be
/// distinguished.
fn shown(curves: &Curves, cluster: &Cluster) -> Vec<QueueId> {
    let most = |queue: QueueId| {
        let of = |sample: &Sample| {
            let found = sample.queues.iter().find(|line| line.queue == queue);
            found.map_or(0, |line| line.used.max(line.fair).max(i64::from(line.usage_ppm > 0)))
        };
        curves.samples.iter().map(of).max().unwrap_or(0)
    };
    let all = curves.samples.iter().flat_map(|sample| &sample.queues);
    let mut queues: Vec<QueueId> = all.map(|line| line.queue).collect();
    queues.sort_unstable();
    queues.dedup();
    queues.retain(|&queue| most(queue) > 0);
    queues.sort_by(|&a, &b| {
        most(b).cmp(&most(a)).then_with(|| cluster.queues[a].name.cmp(&cluster.queues[b].name))
    });
    queues.truncate(STYLES.len());
    queues
}

struct Picture<'a> {
    curves: &'a Curves,
    cluster: &'a Cluster,
    queues: Vec<QueueId>,
}

type Figure = fn(&QueueSample) -> i64;

impl Picture<'_> {
    fn draw(&self, out: &mut String) -> Result {
        svg::open(out, WIDTH, TOP + 3 * (HEIGHT + GAP))?;
        let name = self.cluster.dimensions.name(self.curves.resource);
        let title = format!("{name} of queues over time");
        svg::text(out, (28, 42), 22, INK, "font-weight=\"bold\"", &title)?;
        self.legend(out)?;
        let show =
            |amount: i64| readable(&self.cluster.dimensions.show(self.curves.resource, amount));
        let total = self.curves.samples.iter().map(|sample| sample.total).max().unwrap_or(0).max(1);
        let used =
            self.curves.samples.iter().flat_map(|sample| &sample.queues).map(|line| line.used);
        let total = used.fold(total, i64::max);
        self.panel(out, 0, ("uses", total, &show), |line| line.used)?;
        self.panel(out, 1, ("should have", total, &show), |line| line.fair)?;
        let percent = |ppm: i64| format!("{} %", ppm / 10_000);
        let title = "past usage, of the whole cluster";
        self.panel(out, 2, (title, 1_000_000, &percent), |line| line.usage_ppm)?;
        writeln!(out, "</svg>")
    }

    fn legend(&self, out: &mut String) -> Result {
        let mut left = 28;
        for (place, &queue) in self.queues.iter().enumerate() {
            let (colour, dashes) = STYLES[place];
            let name = cut_middle(&self.cluster.queues[queue].name, NAME);
            writeln!(
                out,
                "<line x1=\"{left}\" y1=\"72\" x2=\"{}\" y2=\"72\" stroke=\"{colour}\" stroke-width=\"3\" stroke-dasharray=\"{dashes}\"/>",
                left + 36
            )?;
            svg::text(out, (left + 44, 76), 13, INK, "", &name)?;
            left += 44 + text_width(&name, 13) + 20;
        }
        Ok(())
    }

    fn panel(
        &self,
        out: &mut String,
        place: i32,
        (title, most, show): (&str, i64, &dyn Fn(i64) -> String),
        figure: Figure,
    ) -> Result {
        let top = TOP + place * (HEIGHT + GAP);
        svg::text(out, (28, top - 14), 14, INK, "font-weight=\"bold\"", title)?;
        for quarter in 0..=4 {
            let y = top + HEIGHT - HEIGHT * quarter / 4;
            let stroke = if quarter == 0 { LINE } else { GRID };
            writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{RIGHT}\" y2=\"{y}\" stroke=\"{stroke}\"/>"
            )?;
            let amount = (i128::from(most) * i128::from(quarter) / 4) as i64;
            svg::text(out, (LEFT - 8, y + 4), 12, MUTED, END, &show(amount))?;
        }
        let whole = self.curves.end.0 - self.curves.begin.0;
        for part in 0..=6 {
            let passed = whole * i64::from(part) / 6;
            let x = LEFT + (RIGHT - LEFT) * part / 6;
            // Labels are whole seconds.
            let label = duration(passed - passed % 1000);
            svg::text(
                out,
                (x, top + HEIGHT + 18),
                12,
                MUTED,
                if part == 6 { END } else { MIDDLE },
                &label,
            )?;
        }
        self.queues.iter().enumerate().try_for_each(|(place, &queue)| {
            self.line(out, STYLES[place], |sample| {
                let found = sample.queues.iter().find(|line| line.queue == queue);
                let value = i128::from(found.map_or(0, figure).clamp(0, most));
                top + HEIGHT - (value * i128::from(HEIGHT) / i128::from(most)) as i32
            })
        })
    }

    /// An amount stays until it changes, so a line has steps.
    fn line(
        &self,
        out: &mut String,
        (colour, dashes): (&str, &str),
        y: impl Fn(&Sample) -> i32,
    ) -> Result {
        write!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-linejoin=\"round\" stroke-dasharray=\"{dashes}\" points=\""
        )?;
        let mut height = None;
        for sample in &self.curves.samples {
            let (x, new) = (self.x(sample.now), y(sample));
            if let Some(height) = height.filter(|height| *height != new) {
                write!(out, "{x},{height} ")?;
            }
            if height != Some(new) {
                write!(out, "{x},{new} ")?;
            }
            height = Some(new);
        }
        if let Some(height) = height {
            write!(out, "{RIGHT},{height}")?;
        }
        writeln!(out, "\"/>")
    }

    fn x(&self, now: Time) -> i32 {
        let whole = (self.curves.end.0 - self.curves.begin.0).max(1);
        let passed = i128::from(now.0 - self.curves.begin.0) * i128::from(RIGHT - LEFT);
        LEFT + (passed / i128::from(whole)) as i32
    }
}
