//! Boxes in boxes: how large each is and where it stands, in pixels.

use muster_engine::ids::{DomainId, NodeId};
use muster_engine::model::domains::ROOT;

use super::super::Chart;
use super::{Detail, text_width};
use crate::render::map::Map;

/// The shape that is aimed at, width by height: a slide with a title and a legend.
const ASPECT: (i64, i64) = (2, 1);

pub enum What {
    Domain(DomainId),
    /// The nodes of the domain that no domain below it holds, where there are both.
    Loose(DomainId),
    /// Boxes without a frame.
    Plain,
    Node(NodeId),
}

pub struct Frame {
    pub what: What,
    pub width: i32,
    pub height: i32,
    /// Each with its corner inside this one.
    pub parts: Vec<(i32, i32, Frame)>,
}

/// Lengths that depend on how much is drawn.
#[derive(Copy, Clone)]
pub struct Scale {
    pub pad: i32,
    pub font: i32,
    /// From the top of a domain to what is in it, without marks of gangs.
    pub head: i32,
    /// The height of the bar of who has how much.
    pub bar: i32,
    /// The height of a row of marks of gangs.
    pub marks: i32,
    pub mark_font: i32,
    pub node_gap: i32,
}

pub const SCALES: [(Detail, Scale); 3] = [
    (Detail::Named, Scale { pad: 12, font: 14, head: 42, bar: 9, marks: 24, mark_font: 12, node_gap: 8 }),
    (Detail::Drawn, Scale { pad: 7, font: 11, head: 34, bar: 6, marks: 20, mark_font: 10, node_gap: 2 }),
    (Detail::Dense, Scale { pad: 7, font: 11, head: 34, bar: 6, marks: 20, mark_font: 10, node_gap: 2 }),
];

/// The size of one unit of a node, of a node without a name, and of a domain without nodes.
pub const UNIT: i32 = 14;
pub const SMALL_NODE: (i32, i32) = (16, 13);
pub const SMALL_DOMAIN: (i32, i32) = (76, 34);

pub struct Layout<'a, 'c> {
    pub chart: &'a Chart<'c>,
    pub map: &'a Map<'c>,
    pub detail: Detail,
    pub scale: Scale,
}

impl Layout<'_, '_> {
    pub fn domain(&self, domain: DomainId) -> Frame {
        let children: Vec<DomainId> = self.chart.cluster.domains.children(domain).collect();
        if self.detail == Detail::Dense && children.is_empty() && domain != ROOT {
            return small(What::Domain(domain));
        }
        let mut parts: Vec<Frame> = children.iter().map(|&child| self.domain(child)).collect();
        let own = self.chart.own_nodes(domain);
        match (own.is_empty(), children.is_empty()) {
            (true, _) => {}
            (false, true) => parts.push(self.seats(own)),
            (false, false) => parts.push(self.loose(domain, own)),
        }
        let marks = if self.chart.gangs(domain).is_empty() { 0 } else { self.scale.marks };
        self.framed(What::Domain(domain), parts, self.head_width(domain), self.scale.head + marks)
    }

    fn loose(&self, domain: DomainId, nodes: &[NodeId]) -> Frame {
        if self.detail == Detail::Dense {
            return small(What::Loose(domain));
        }
        let least = text_width("in no HyperNode", self.scale.font) + self.amount_width(nodes);
        self.framed(What::Loose(domain), vec![self.seats(nodes)], least, self.scale.head)
    }

    fn framed(&self, what: What, parts: Vec<Frame>, least: i32, head: i32) -> Frame {
        let pad = self.scale.pad;
        let (width, height, mut parts) = pack(parts, pad, (2 * pad, head + pad));
        parts.iter_mut().for_each(|(x, y, _)| (*x, *y) = (*x + pad, *y + head));
        let foot = if parts.is_empty() { 0 } else { pad };
        Frame { what, width: width.max(least) + 2 * pad, height: head + height + foot, parts }
    }

    fn seats(&self, nodes: &[NodeId]) -> Frame {
        let boxes = nodes.iter().map(|&node| {
            let (width, height) = match self.detail {
                Detail::Named => {
                    let units = self.map.cells(node).len() as i32 * UNIT;
                    let name = text_width(&self.chart.cluster.nodes.name[node], 11);
                    (units.max(name) + 12, 42)
                }
                _ => SMALL_NODE,
            };
            Frame { what: What::Node(node), width, height, parts: Vec::new() }
        });
        let frame = (2 * self.scale.pad, self.scale.head + self.scale.pad);
        let (width, height, parts) = pack(boxes.collect(), self.scale.node_gap, frame);
        Frame { what: What::Plain, width, height, parts }
    }

    /// A domain is at least as wide as its title.
    fn head_width(&self, domain: DomainId) -> i32 {
        let name = text_width(self.chart.name(domain), self.scale.font);
        let tier = text_width(&self.chart.tier_short(domain, self.detail), self.scale.font - 2);
        name + tier + self.amount_width(self.chart.nodes(domain)) + 24
    }

    fn amount_width(&self, nodes: &[NodeId]) -> i32 {
        text_width(&self.chart.room_short(nodes, self.detail), self.scale.font - 2)
    }
}

fn small(what: What) -> Frame {
    let (width, height) = SMALL_DOMAIN;
    Frame { what, width, height, parts: Vec::new() }
}

/// Puts boxes into a grid, with so many columns that the whole comes nearest to the shape of a slide when a frame of this
/// size is around it. Each box fills its place in the grid.
fn pack(frames: Vec<Frame>, gap: i32, around: (i32, i32)) -> (i32, i32, Vec<(i32, i32, Frame)>) {
    let misfit = |&columns: &usize| {
        let (widths, heights) = grid(&frames, columns);
        let (width, height) = (length(&widths, gap) + around.0, length(&heights, gap) + around.1);
        let (wide, high) = (i64::from(width) * ASPECT.1, i64::from(height) * ASPECT.0);
        // Full rows first: gaps look as if something were missing.
        let ragged = !frames.len().is_multiple_of(columns);
        wide.max(high) * if ragged { 1_400 } else { 1_000 } / wide.min(high).max(1)
    };
    let Some(columns) = (1..=frames.len()).min_by_key(misfit) else { return (0, 0, Vec::new()) };
    let (widths, heights) = grid(&frames, columns);
    let corner = |lengths: &[i32], at: usize| lengths[..at].iter().map(|length| length + gap).sum::<i32>();
    let place = |(at, frame): (usize, Frame)| {
        let (column, row) = (at % columns, at / columns);
        let frame = Frame { width: widths[column], height: heights[row], ..frame };
        (corner(&widths, column), corner(&heights, row), frame)
    };
    let placed = frames.into_iter().enumerate().map(place).collect();
    (length(&widths, gap), length(&heights, gap), placed)
}

/// The widths of the columns and the heights of the rows.
fn grid(frames: &[Frame], columns: usize) -> (Vec<i32>, Vec<i32>) {
    let mut widths = vec![0; columns];
    let mut heights = Vec::new();
    for row in frames.chunks(columns) {
        heights.push(row.iter().map(|frame| frame.height).max().unwrap_or(0));
        widths.iter_mut().zip(row).for_each(|(width, frame)| *width = frame.width.max(*width));
    }
    (widths, heights)
}

fn length(parts: &[i32], gap: i32) -> i32 {
    parts.iter().sum::<i32>() + gap * (parts.len() as i32 - 1).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_don_t_touch_and_stay_inside() {
        for count in 0..40 {
            let sizes = (0..count).map(|at| (30 + 7 * (at % 3), 20 + 5 * (at % 2)));
            let frames =
                sizes.map(|(width, height)| Frame { what: What::Plain, width, height, parts: Vec::new() });
            let (width, height, placed) = pack(frames.collect(), 4, (20, 40));
            for (at, (x, y, frame)) in placed.iter().enumerate() {
                assert!(x + frame.width <= width && y + frame.height <= height, "{count}: outside");
                for (left, top, other) in &placed[..at] {
                    let apart = left + other.width < *x
                        || x + frame.width < *left
                        || top + other.height < *y
                        || y + frame.height < *top;
                    assert!(apart, "{count}: touch");
                }
            }
        }
    }
}
