//! The network as a picture: boxes in boxes, the fuller the darker, with a coloured mark for each
//! gang in its domain. A viewer needs no fonts or scripts to show it.

mod boxes;
mod layout;

use std::collections::BTreeSet;
use std::fmt::Write;

use muster_engine::explain::grouped;
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;

use super::Chart;
use crate::render::map::{Holder, Map};
use crate::render::screen::Screen;
use crate::render::svg::{self, INK, LINE, MUTED, text_width};
use crate::render::text::cut_middle;
use layout::{Frame, Layout, SCALES, Scale};

/// How full a domain is, from empty to full.
pub const TINTS: [&str; 5] = ["#ffffff", "#edf3fb", "#dbe7f6", "#c3d7ef", "#a6c3e6"];
const ALARM: &str = "#b91c1c";
const OTHERS: &str = "#b4bcc8";

/// Up to this many nodes are drawn with their names, and up to this many at all.
const NAMED: usize = 64;
const DRAWN: usize = 2_000;
const MARGIN: i32 = 28;
/// The space above the tree, for the title.
const TOP: i32 = 92;
/// A small picture is still this wide.
const NARROWEST: i32 = 560;
/// The width of an entry of the legend.
const ENTRY: i32 = 200;
const ROW: i32 = 22;
const LEFT_ROW: i32 = 18;

#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Detail {
    Named,
    Drawn,
    /// Domains only.
    Dense,
}

struct Picture<'a, 'c> {
    chart: &'a Chart<'c>,
    map: &'a Map<'c>,
    detail: Detail,
    scale: Scale,
    out: String,
}

pub fn svg(cluster: &Cluster) -> String {
    let (chart, map) = (Chart::new(cluster), Map::new(cluster));
    let detail = match chart.nodes(ROOT).len() {
        nodes if nodes <= NAMED => Detail::Named,
        nodes if nodes <= DRAWN => Detail::Drawn,
        _ => Detail::Dense,
    };
    let scale = SCALES.iter().find(|(of, _)| *of == detail).expect("there is one for each").1;
    let tree = Layout { chart: &chart, map: &map, detail, scale }.domain(chart.top());
    let mut picture = Picture { chart: &chart, map: &map, detail, scale, out: String::new() };
    picture.page(&tree).expect("writing to a string can't fail");
    picture.out
}

impl Picture<'_, '_> {
    fn page(&mut self, tree: &Frame) -> std::fmt::Result {
        let width = tree.width.max(NARROWEST) + 2 * MARGIN;
        let entries = self.entries();
        let columns = ((width - 2 * MARGIN) / ENTRY).max(1);
        let rows = (entries.len() as i32 + columns - 1) / columns;
        let letters = (width - 2 * MARGIN) / text_width("n", 12);
        let (left, screen) = (self.chart.left().into_iter(), Screen::columns(letters as usize));
        let left: Vec<String> =
            left.flat_map(|(name, reason)| screen.wrap(&format!("{name}: {reason}"))).collect();
        let below = TOP + tree.height + 24;
        let left_rows = if left.is_empty() { 0 } else { left.len() as i32 + 1 };
        let height = below + rows * ROW + left_rows * LEFT_ROW + MARGIN;
        svg::open(&mut self.out, width, height)?;
        self.text((MARGIN, 44), 22, INK, "font-weight=\"bold\"", "Network topology")?;
        self.text((MARGIN, 68), 14, MUTED, "", &self.chart.summary())?;
        self.tints(width - MARGIN)?;
        self.frame(MARGIN, TOP, tree)?;
        self.legend(&entries, columns, below)?;
        self.left_out(&left, below + rows * ROW + LEFT_ROW)?;
        writeln!(self.out, "</svg>")
    }

    fn text(
        &mut self,
        at: (i32, i32),
        size: i32,
        fill: &str,
        more: &str,
        text: &str,
    ) -> std::fmt::Result {
        svg::text(&mut self.out, at, size, fill, more, text)
    }

    fn rect(&mut self, x: i32, y: i32, width: i32, height: i32, more: &str) -> std::fmt::Result {
        svg::rect(&mut self.out, (x, y), (width, height), more)
    }

    /// The colours of domains, at the right.
    fn tints(&mut self, right: i32) -> std::fmt::Result {
        let left = right - TINTS.len() as i32 * 26 - 28;
        self.text((left - 8, 67), 12, MUTED, "text-anchor=\"end\"", "empty")?;
        for (at, tint) in (0..).zip(TINTS) {
            self.rect(left + at * 26, 56, 26, 14, &format!("fill=\"{tint}\" stroke=\"{LINE}\""))?;
        }
        self.text((right, 67), 12, MUTED, "text-anchor=\"end\"", "full")
    }

    /// Letters and colours of gangs, and the other signs in the picture.
    fn entries(&self) -> Vec<(String, String, String)> {
        let legend = &self.map.legend;
        let named = legend.gangs.iter().map(|&(gang, letter)| {
            let name = cut_middle(self.chart.gang_name(gang), 24);
            (legend.hex(gang).unwrap_or_default(), letter.to_string(), name)
        });
        let mut entries: Vec<(String, String, String)> = named.collect();
        if legend.sharing > 0 {
            let more = format!("{} more gangs", grouped(legend.sharing as u64));
            entries.push((OTHERS.to_owned(), String::new(), more));
        }
        let others = [
            (Holder::Foreign, "other schedulers"),
            (Holder::Leaving, "leaving"),
            (Holder::Nominated, "nominated"),
            (Holder::Closed, "closed"),
        ];
        let nodes = self.chart.nodes(ROOT).iter();
        let seen: BTreeSet<Holder> = nodes.flat_map(|&node| self.map.cells(node)).collect();
        for (holder, what) in others.into_iter().filter(|(holder, _)| seen.contains(holder)) {
            entries.push((self.fill(holder), self.map.mark(holder).0.to_string(), what.to_owned()));
        }
        entries
    }

    fn legend(
        &mut self,
        entries: &[(String, String, String)],
        columns: i32,
        top: i32,
    ) -> std::fmt::Result {
        for (at, (fill, letter, name)) in (0..).zip(entries) {
            let (x, y) = (MARGIN + at % columns * ENTRY, top + at / columns * ROW);
            self.rect(
                x,
                y,
                16,
                16,
                &format!("rx=\"3\" fill=\"{fill}\" stroke=\"{LINE}\" stroke-width=\"0.6\""),
            )?;
            self.text((x + 8, y + 12), 11, INK, "text-anchor=\"middle\"", letter)?;
            self.text((x + 22, y + 13), 12, INK, "", name)?;
        }
        Ok(())
    }

    /// HyperNodes that are not in the tree, with the reasons.
    fn left_out(&mut self, lines: &[String], top: i32) -> std::fmt::Result {
        if !lines.is_empty() {
            self.text((MARGIN, top), 13, ALARM, "font-weight=\"bold\"", "Not in the tree")?;
        }
        for (at, line) in (1..).zip(lines) {
            self.text((MARGIN, top + at * LEFT_ROW), 12, INK, "", line)?;
        }
        Ok(())
    }
}
