//! Boxes in boxes: the size and position of each, in pixels.

use muster_engine::ids::{DomainId, NodeId};
use muster_engine::model::domains::ROOT;

use super::super::Chart;
use super::Detail;
use crate::render::map::Map;
use crate::render::svg::text_width;

/// The proportions to aim at, width by height: a slide with a title and a legend.
const ASPECT: (i64, i64) = (2, 1);

pub enum What {
    Domain(DomainId),
    /// The nodes that are in the domain but in none below it, if it has both.
    Loose(DomainId),
    /// Boxes without a frame.
    Plain,
    Node(NodeId),
}

pub struct Frame {
    pub what: What,
    pub width: i32,
    pub height: i32,
    /// Its height without marks of gangs: boxes with the same nodes are laid out alike, whatever
    /// runs there.
    bare: i32,
    /// Each with its corner inside this one.
    pub parts: Vec<(i32, i32, Frame)>,
    /// How far its parts may move down, so that they are level with those of a neighbour that has
    /// marks of gangs above them.
    slack: i32,
}

/// Lengths that depend on how much is drawn.
#[derive(Copy, Clone)]
pub struct Scale {
    pub pad: i32,
    pub font: i32,
    /// From the top of a domain to its contents, without marks of gangs.
    pub head: i32,
    /// The height of the bar that shows its use.
    pub bar: i32,
    /// The height of a row of marks of gangs.
    pub marks: i32,
    pub mark_font: i32,
    pub node_gap: i32,
}

pub const SCALES: [(Detail, Scale); 3] = [
    (
        Detail::Named,
        Scale { pad: 12, font: 14, head: 42, bar: 9, marks: 24, mark_font: 12, node_gap: 8 },
    ),
    (
        Detail::Drawn,
        Scale { pad: 7, font: 11, head: 34, bar: 6, marks: 20, mark_font: 10, node_gap: 2 },
    ),
    (
        Detail::Dense,
        Scale { pad: 7, font: 11, head: 34, bar: 6, marks: 20, mark_font: 10, node_gap: 2 },
    ),
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
            (false, true) => parts.push(self.node_boxes(own)),
            (false, false) => parts.push(self.loose(domain, own)),
        }
        let free = self.chart.gangs(domain).is_empty();
        let (marks, slack) = if free { (0, self.scale.marks) } else { (self.scale.marks, 0) };
        Frame { slack, ..self.framed(What::Domain(domain), parts, self.head_width(domain), marks) }
    }

    fn loose(&self, domain: DomainId, nodes: &[NodeId]) -> Frame {
        if self.detail == Detail::Dense {
            return small(What::Loose(domain));
        }
        let least = text_width("in no HyperNode", self.scale.font) + self.amount_width(nodes);
        self.framed(What::Loose(domain), vec![self.node_boxes(nodes)], least, 0)
    }

    fn framed(&self, what: What, parts: Vec<Frame>, least: i32, marks: i32) -> Frame {
        let Scale { pad, head, .. } = self.scale;
        let Packed { width, height, bare, mut parts } = pack(parts, pad, (2 * pad, head + pad));
        let top = head + marks;
        parts.iter_mut().for_each(|(x, y, _)| (*x, *y) = (*x + pad, *y + top));
        let foot = if parts.is_empty() { 0 } else { pad };
        let (width, bare) = (width.max(least) + 2 * pad, head + bare + foot);
        Frame { what, width, height: top + height + foot, bare, parts, slack: 0 }
    }

    fn node_boxes(&self, nodes: &[NodeId]) -> Frame {
        let boxes = nodes.iter().map(|&node| {
            let (width, height) = match self.detail {
                Detail::Named => {
                    let units = self.map.cells(node).len() as i32 * UNIT;
                    let name = text_width(&self.chart.cluster.nodes.name[node], 11);
                    (units.max(name) + 12, 42)
                }
                _ => SMALL_NODE,
            };
            Frame {
                what: What::Node(node),
                width,
                height,
                bare: height,
                parts: Vec::new(),
                slack: 0,
            }
        });
        let frame = (2 * self.scale.pad, self.scale.head + self.scale.pad);
        let Packed { width, height, bare, parts } =
            pack(boxes.collect(), self.scale.node_gap, frame);
        Frame { what: What::Plain, width, height, bare, parts, slack: 0 }
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
    Frame { what, width, height, bare: height, parts: Vec::new(), slack: 0 }
}

/// Boxes in a grid: its size, its height without marks of gangs, and the position of each box.
struct Packed {
    width: i32,
    height: i32,
    bare: i32,
    parts: Vec<(i32, i32, Frame)>,
}

/// Puts boxes into a grid, with the number of columns for which a frame of this size around it
/// comes closest to the proportions of a slide. Each box fills its cell of the grid.
fn pack(frames: Vec<Frame>, gap: i32, around: (i32, i32)) -> Packed {
    let bare = |columns: usize| length(&rows(&frames, columns, |frame| frame.bare), gap);
    let misfit = |&count: &usize| {
        let width = length(&columns(&frames, count), gap) + around.0;
        let (wide, high) =
            (i64::from(width) * ASPECT.1, i64::from(bare(count) + around.1) * ASPECT.0);
        // Full rows first: gaps look as if something were missing. Eight nodes of a rack fill one
        // row rather than seven places of one and one of the next.
        let ragged = !frames.len().is_multiple_of(count);
        wide.max(high) * if ragged { 1_600 } else { 1_000 } / wide.min(high).max(1)
    };
    let Some(count) = (1..=frames.len()).min_by_key(misfit) else {
        return Packed { width: 0, height: 0, bare: 0, parts: Vec::new() };
    };
    let bare = bare(count);
    let (widths, heights) = (columns(&frames, count), rows(&frames, count, |frame| frame.height));
    let corner =
        |lengths: &[i32], at: usize| lengths[..at].iter().map(|length| length + gap).sum::<i32>();
    let place = |(at, mut frame): (usize, Frame)| {
        let (column, row) = (at % count, at / count);
        let down = frame.slack.min(heights[row] - frame.height);
        frame.parts.iter_mut().for_each(|(_, y, _)| *y += down);
        let frame = Frame { width: widths[column], height: heights[row], ..frame };
        (corner(&widths, column), corner(&heights, row), frame)
    };
    let parts = frames.into_iter().enumerate().map(place).collect();
    Packed { width: length(&widths, gap), height: length(&heights, gap), bare, parts }
}

/// The widths of this many columns.
fn columns(frames: &[Frame], count: usize) -> Vec<i32> {
    let mut widths = vec![0; count];
    for row in frames.chunks(count) {
        widths.iter_mut().zip(row).for_each(|(width, frame)| *width = frame.width.max(*width));
    }
    widths
}

/// The heights of the rows of this many columns.
fn rows(frames: &[Frame], columns: usize, height: impl Fn(&Frame) -> i32) -> Vec<i32> {
    frames.chunks(columns).map(|row| row.iter().map(&height).max().unwrap_or(0)).collect()
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
            let frame = |(width, height)| Frame {
                what: What::Plain,
                width,
                height,
                bare: height,
                parts: Vec::new(),
                slack: 0,
            };
            let Packed { width, height, parts: placed, .. } =
                pack(sizes.map(frame).collect(), 4, (20, 40));
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
