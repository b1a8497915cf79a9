//! A working day in each mode, as a picture: utilisation over time, waiting times, and the cost of
//! evictions.

use std::fmt::{Result, Write};

use muster_bench::quality::{Load, Played, WAITS_SECONDS};
use muster_engine::explain::grouped;

use super::quality::{duration, summary};
use super::svg::{self, INK, LINE, MUTED, text_width};

/// For each mode a colour and a line style. People with any colour vision can distinguish these
/// colours of Okabe and Ito.
const STYLES: [(&str, &str); 3] = [("#0072B2", "none"), ("#E69F00", "8 4"), ("#009E73", "2 4")];
const GRID: &str = "#e2e8f0";

const WIDTH: i32 = 960;
const HEIGHT: i32 = 720;
const MARGIN: i32 = 28;
const END: &str = "text-anchor=\"end\"";
const MIDDLE: &str = "text-anchor=\"middle\"";

/// Where a diagram is drawn.
#[derive(Copy, Clone)]
struct Area {
    left: i32,
    top: i32,
    width: i32,
    height: i32,
}

impl Area {
    /// The position of a point whose coordinates go from 0 to 1; in tenths.
    fn at(self, x: f64, y: f64) -> (f64, f64) {
        let across = f64::from(self.left) + x * f64::from(self.width);
        (across, f64::from(self.top) + (1.0 - y) * f64::from(self.height))
    }

    fn bottom(self) -> i32 {
        self.top + self.height
    }
}

pub fn load(load: &Load) -> String {
    let mut out = String::new();
    draw(load, &mut out).expect("writing to a string can't fail");
    out
}

fn draw(load: &Load, out: &mut String) -> Result {
    svg::open(out, WIDTH, HEIGHT)?;
    svg::text(out, (MARGIN, 42), 22, INK, "font-weight=\"bold\"", "A working day in each mode")?;
    svg::text(out, (MARGIN, 66), 14, MUTED, "", &summary(load))?;
    legend(load, out)?;
    let width = WIDTH - 2 * MARGIN;
    utilisation(load, Area { left: MARGIN + 48, top: 124, width: width - 48, height: 200 }, out)?;
    waits(load, Area { left: MARGIN + 48, top: 424, width: 400, height: 220 }, out)?;
    costs(load, Area { left: 532, top: 424, width: WIDTH - MARGIN - 532, height: 220 }, out)?;
    writeln!(out, "</svg>")
}

fn style(mode: usize) -> (&'static str, &'static str) {
    STYLES[mode % STYLES.len()]
}

/// At the right of the title.
fn legend(load: &Load, out: &mut String) -> Result {
    let mut right = WIDTH - MARGIN;
    for (at, mode) in load.modes.iter().enumerate().rev() {
        let (colour, dashes) = style(at);
        svg::text(out, (right, 42), 14, INK, END, mode.mode)?;
        right -= text_width(mode.mode, 14) + 8;
        writeln!(
            out,
            "<line x1=\"{}\" y1=\"37\" x2=\"{right}\" y2=\"37\" stroke=\"{colour}\" stroke-width=\"4\" stroke-dasharray=\"{dashes}\"/>",
            right - 40
        )?;
        right -= 64;
    }
    Ok(())
}

/// What the horizontal axis means.
fn caption(area: Area, text: &str, out: &mut String) -> Result {
    let below = (area.left + area.width / 2, area.bottom() + 38);
    svg::text(out, below, 12, MUTED, MIDDLE, text)
}

fn utilisation(load: &Load, area: Area, out: &mut String) -> Result {
    title(area, "GPUs that run something, in percent of all", out)?;
    percents(area, out)?;
    let hours = i32::try_from(load.hours).unwrap_or(i32::MAX).max(1);
    let step = (hours / 12).max(1);
    for hour in (0..=hours).step_by(step as usize) {
        let x = area.left + area.width * hour / hours;
        svg::text(out, (x, area.bottom() + 18), 12, MUTED, MIDDLE, &hour.to_string())?;
    }
    caption(area, "hours since the first gang could come", out)?;
    for (at, mode) in load.modes.iter().enumerate() {
        let parts = mode.utilisation_over_time.len().max(1) as f64;
        let points = mode.utilisation_over_time.iter().enumerate();
        line(area, at, points.map(|(part, &share)| ((part as f64 + 0.5) / parts, share)), out)?;
    }
    Ok(())
}

fn waits(load: &Load, area: Area, out: &mut String) -> Result {
    title(area, "Gangs that had started after this time, in percent", out)?;
    percents(area, out)?;
    let last = WAITS_SECONDS.len() - 1;
    // The names of all would not fit.
    for at in (0..=last).step_by(2) {
        let x = area.left + area.width * at as i32 / last as i32;
        let name = duration(f64::from(WAITS_SECONDS[at]));
        svg::text(out, (x, area.bottom() + 18), 12, MUTED, MIDDLE, &name)?;
    }
    caption(area, "from its arrival to its first start", out)?;
    for (at, mode) in load.modes.iter().enumerate() {
        let points = mode.waited_at_most.iter().enumerate();
        line(area, at, points.map(|(place, &share)| (place as f64 / last as f64, share)), out)?;
    }
    Ok(())
}

/// Bars in groups. Each group has its own scale, since the figures are of different kinds.
fn costs(load: &Load, area: Area, out: &mut String) -> Result {
    title(area, "What evictions cost", out)?;
    type Figure = fn(&Played) -> f64;
    let groups: [(&str, Figure); 3] = [
        ("pods evicted", |mode| mode.evicted_pods as f64),
        ("gangs broken", |mode| mode.broken_gangs as f64),
        ("GPU hours wasted", |mode| mode.wasted_gpu_hours),
    ];
    let width = area.width / groups.len() as i32;
    let bar = (width - 16) / load.modes.len().max(1) as i32;
    for (place, (name, figure)) in (0..).zip(groups) {
        let left = area.left + place * width;
        let most = load.modes.iter().map(figure).fold(0.0, f64::max);
        for (at, mode) in load.modes.iter().enumerate() {
            let value = figure(mode);
            // Leaves room for the number above the highest bar.
            let share = if most > 0.0 { value / most } else { 0.0 };
            let height = (share * f64::from(area.height - 24)).round() as i32;
            let x = left + 8 + at as i32 * bar;
            let colour = format!("fill=\"{}\"", style(at).0);
            svg::rect(out, (x + 2, area.bottom() - height), (bar - 4, height), &colour)?;
            let (middle, above) = (x + bar / 2, area.bottom() - height - 6);
            let number = grouped(value.round() as u64);
            svg::text(out, (middle, above), size_within(&number, bar), INK, MIDDLE, &number)?;
        }
        svg::text(out, (left + width / 2, area.bottom() + 18), 12, MUTED, MIDDLE, name)?;
    }
    baseline(area, out)?;
    let middle = area.left + area.width / 2;
    svg::text(out, (middle, area.bottom() + 38), 12, MUTED, MIDDLE, "each with a scale of its own")
}

/// The font size in which a number fits above its bar without touching the next.
fn size_within(number: &str, width: i32) -> i32 {
    (8..12)
        .rev()
        .fold(12, |size, smaller| if text_width(number, size) > width { smaller } else { size })
}

fn title(area: Area, text: &str, out: &mut String) -> Result {
    svg::text(out, (area.left, area.top - 14), 14, INK, "font-weight=\"bold\"", text)
}

fn baseline(area: Area, out: &mut String) -> Result {
    let (left, right, y) = (area.left, area.left + area.width, area.bottom());
    writeln!(out, "<line x1=\"{left}\" y1=\"{y}\" x2=\"{right}\" y2=\"{y}\" stroke=\"{LINE}\"/>")
}

/// Lines across and their names, from 0 to 100.
fn percents(area: Area, out: &mut String) -> Result {
    for percent in [25, 50, 75, 100] {
        let y = area.bottom() - area.height * percent / 100;
        let right = area.left + area.width;
        writeln!(
            out,
            "<line x1=\"{}\" y1=\"{y}\" x2=\"{right}\" y2=\"{y}\" stroke=\"{GRID}\"/>",
            area.left
        )?;
        svg::text(out, (area.left - 8, y + 4), 12, MUTED, END, &percent.to_string())?;
    }
    svg::text(out, (area.left - 8, area.bottom() + 4), 12, MUTED, END, "0")?;
    baseline(area, out)
}

fn line(
    area: Area,
    mode: usize,
    points: impl Iterator<Item = (f64, f64)>,
    out: &mut String,
) -> Result {
    let (colour, dashes) = style(mode);
    write!(
        out,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-linejoin=\"round\" stroke-dasharray=\"{dashes}\" points=\""
    )?;
    for (x, y) in points {
        let (x, y) = area.at(x, y);
        write!(out, "{x:.1},{y:.1} ")?;
    }
    writeln!(out, "\"/>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(mode: &'static str, evicted_pods: usize) -> Played {
        Played {
            mode,
            utilisation: 0.5,
            utilisation_over_time: vec![0.25, 0.75],
            waits: Vec::new(),
            waited_at_most: WAITS_SECONDS.map(|_| 1.0).to_vec(),
            finished: 1,
            evicted_pods,
            moved_pods: 0,
            broken_gangs: 0,
            wasted_gpu_hours: 0.0,
        }
    }

    #[test]
    fn every_mode_has_its_own_line_and_bars() {
        let modes = vec![played("task", 1_200), played("gang", 600), played("scenario", 300)];
        let picture = load(&Load { nodes: 2, gpus: 16, hours: 12, gangs: 3, modes });
        for (colour, dashes) in STYLES {
            let line = format!("stroke=\"{colour}\" stroke-width=\"2.5\"");
            assert_eq!(picture.matches(&line).count(), 2, "one for utilisation, one for waits");
            assert!(picture.contains(&format!("stroke-dasharray=\"{dashes}\"")));
            assert_eq!(
                picture.matches(&format!("fill=\"{colour}\"")).count(),
                3,
                "one in each group"
            );
        }
        for name in [">task<", ">gang<", ">scenario<", ">1,200<", ">600<", ">300<"] {
            assert!(picture.contains(name), "no {name} in\n{picture}");
        }
        // No gang broke in any mode; avoid a division by zero.
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }

    #[test]
    fn numbers_stay_above_their_bars() {
        for number in ["7", "2,741", "12,345", "123,456"] {
            let size = size_within(number, 38);
            assert!(text_width(number, size) <= 38, "{number} is too wide at {size}");
        }
        assert_eq!(size_within("741", 38), 12);
    }
}
