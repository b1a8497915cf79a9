//! The shares as a picture: for each resource a bar for each queue, with what it uses, should have,
//! deserves and may have.

use std::fmt::{Result, Write};

use muster_engine::Dimensions;
use muster_facts::{FairShares, QueueShare, ResourceShares, Standing};

use super::{Shown, concerned, standing};
use crate::render::screen::Screen;
use crate::render::svg::{self, INK, LINE, MUTED, text_width};
use crate::render::text::cut_middle;

/// Colours of Okabe and Ito, which people with any colour vision can distinguish.
const FAIR: &str = "#a9d6f2";
const USED: &str = "#0072B2";
const OVER: &str = "#D55E00";
const DESERVED: &str = "#E69F00";
const GRID: &str = "#e2e8f0";

const WIDTH: i32 = 960;
const MARGIN: i32 = 28;
/// Where names end and bars begin, and where bars end and numbers begin.
const BARS: i32 = 210;
const NUMBERS: i32 = 720;
const ROW: i32 = 36;
/// Above the first row of a resource, for its name and scale.
const HEAD: i32 = 58;
const TOP: i32 = 116;
const INDENT: i32 = 14;
const NAME: usize = 24;
const END: &str = "text-anchor=\"end\"";
const MIDDLE: &str = "text-anchor=\"middle\"";

pub fn svg(shares: &FairShares, dimensions: &Dimensions) -> String {
    let mut out = String::new();
    draw(shares, dimensions, &mut out).expect("writing to a string can't fail");
    out
}

fn draw(shares: &FairShares, dimensions: &Dimensions, out: &mut String) -> Result {
    let rows = |resource: &ResourceShares| resource.queues.iter().filter(concerned).count() as i32;
    let height = |resource: &ResourceShares| HEAD + ROW * rows(resource) + 24;
    let total: i32 = shares.resources.iter().map(height).sum();
    svg::open(out, WIDTH, TOP + total.max(ROW) + 8)?;
    svg::text(out, (MARGIN, 42), 22, INK, "font-weight=\"bold\"", "What each queue should have")?;
    let how = match shares.tree {
        true => "child queues divide the share of their parent",
        false => "all queues divide the cluster",
    };
    svg::text(out, (MARGIN, 66), 14, MUTED, "", how)?;
    legend(out)?;
    let mut top = TOP;
    for resource in &shares.resources {
        let shown = Shown { dimensions, resource: resource.id, screen: Screen::PIPE };
        Panel { shown, shares: resource, top }.draw(out)?;
        top += height(resource);
    }
    if shares.resources.is_empty() {
        svg::text(out, (MARGIN, TOP + 20), 14, INK, "", "no queue wants anything")?;
    }
    writeln!(out, "</svg>")
}

/// Below the title, from left to right.
fn legend(out: &mut String) -> Result {
    let (mut left, y) = (MARGIN, 92);
    for name in ["fair share", "uses", "uses beyond its share", "deserves", "may have at most"] {
        let bar = |colour: &str| format!("fill=\"{colour}\"");
        match name {
            "fair share" => svg::rect(out, (left, y - 9), (22, 18), &bar(FAIR))?,
            "uses" => svg::rect(out, (left, y - 4), (22, 8), &bar(USED))?,
            "deserves" => deserved_mark(out, left + 14, (y - 10, y + 10))?,
            "may have at most" => limit_mark(out, left + 16, (y - 10, y + 10))?,
            _ => svg::rect(out, (left, y - 4), (22, 8), &bar(OVER))?,
        }
        svg::text(out, (left + 30, y + 4), 13, INK, "", name)?;
        left += 30 + text_width(name, 13) + 16;
    }
    Ok(())
}

fn deserved_mark(out: &mut String, x: i32, (top, bottom): (i32, i32)) -> Result {
    writeln!(
        out,
        "<line x1=\"{x}\" y1=\"{top}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"{DESERVED}\" stroke-width=\"4\"/>"
    )
}

fn limit_mark(out: &mut String, x: i32, (top, bottom): (i32, i32)) -> Result {
    writeln!(
        out,
        "<path d=\"M{} {top} H{x} V{bottom} H{}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"2\"/>",
        x - 5,
        x - 5
    )
}

/// All queues in one resource.
struct Panel<'a> {
    shown: Shown<'a>,
    shares: &'a ResourceShares,
    top: i32,
}

impl Panel<'_> {
    /// The maximum of the scale: all there is, or more if some queue uses or deserves more.
    fn most(&self) -> i64 {
        let queues = self.shares.queues.iter();
        let amounts = queues.flat_map(|queue| [queue.used, queue.fair_share, queue.deserved]);
        amounts.max().unwrap_or(0).max(self.shares.total).max(1)
    }

    /// The position of an amount, at most the end of the scale.
    fn x(&self, amount: i64) -> i32 {
        let across =
            i128::from(amount.max(0)) * i128::from(NUMBERS - BARS) / i128::from(self.most());
        BARS + across.min(i128::from(NUMBERS - BARS)) as i32
    }

    fn draw(&self, out: &mut String) -> Result {
        let name = self.shown.name();
        svg::text(out, (MARGIN, self.top + 24), 15, INK, "font-weight=\"bold\"", name)?;
        let divided = format!("{} to divide", self.shown.amount(self.shares.total));
        svg::text(out, (WIDTH - MARGIN, self.top + 24), 13, MUTED, END, &divided)?;
        svg::text(out, (NUMBERS + 104, self.top + HEAD - 10), 11, MUTED, END, "uses of share")?;
        let shown: Vec<&QueueShare> = self.shares.queues.iter().filter(concerned).collect();
        let bottom = self.top + HEAD + ROW * shown.len() as i32;
        self.grid(bottom, out)?;
        for (place, queue) in (0..).zip(shown) {
            self.row(queue, self.top + HEAD + ROW * place, out)?;
        }
        Ok(())
    }

    fn grid(&self, bottom: i32, out: &mut String) -> Result {
        let top = self.top + HEAD - 4;
        for quarter in 0..=4 {
            let amount = (i128::from(self.most()) * quarter / 4) as i64;
            let x = self.x(amount);
            let stroke = if quarter == 0 { LINE } else { GRID };
            writeln!(
                out,
                "<line x1=\"{x}\" y1=\"{top}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"{stroke}\"/>"
            )?;
            svg::text(out, (x, top - 6), 11, MUTED, MIDDLE, &self.shown.amount(amount))?;
        }
        Ok(())
    }

    fn row(&self, queue: &QueueShare, top: i32, out: &mut String) -> Result {
        let middle = top + ROW / 2;
        let indent = INDENT * queue.depth as i32;
        let name = cut_middle(&queue.name, NAME.saturating_sub(2 * queue.depth).max(8));
        svg::text(out, (MARGIN + indent, middle + 4), 13, INK, "", &name)?;
        let fair = self.x(queue.fair_share) - BARS;
        svg::rect(out, (BARS, middle - 11), (fair, 22), &format!("fill=\"{FAIR}\""))?;
        let used = self.x(queue.used) - BARS;
        svg::rect(out, (BARS, middle - 5), (used.min(fair), 10), &format!("fill=\"{USED}\""))?;
        if used > fair {
            svg::rect(
                out,
                (BARS + fair, middle - 5),
                (used - fair, 10),
                &format!("fill=\"{OVER}\""),
            )?;
        }
        if queue.deserved > 0 {
            deserved_mark(out, self.x(queue.deserved), (middle - 14, middle + 14))?;
        }
        // A limit above all there is has no effect.
        if let Some(most) = queue.capability.filter(|&most| most <= self.most()) {
            limit_mark(out, self.x(most), (middle - 15, middle + 15))?;
        }
        let show = |amount| self.shown.amount(amount);
        let share = format!("{} of {}", show(queue.used), show(queue.fair_share));
        svg::text(out, (NUMBERS + 104, middle + 4), 13, INK, END, &share)?;
        let fill = match queue.standing {
            Standing::Over => OVER,
            Standing::Within => MUTED,
            Standing::Below => USED,
        };
        svg::text(out, (WIDTH - MARGIN, middle + 4), 13, fill, END, &standing(queue, show))
    }
}
