//! The cluster as a picture: which gang uses which node. A node is drawn unit by unit while there
//! are few, as one character when there are many, and as a part of a block when there are too many
//! to draw.

mod measure;

use std::collections::BTreeMap;

use anstyle::Style;
use muster_engine::explain::grouped;
use muster_engine::ids::{GangId, NodeId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;

use super::legend::{Legend, SHARED};
use super::screen::Screen;
use super::text::{BOLD, DIM, Names, cut_middle, styled, width};

use measure::counted;
pub use measure::scarce;

/// Up to this many nodes are drawn with their names.
pub const NAMED_NODES: usize = 200;
/// Up to this many nodes have a character of their own.
pub const DRAWN_NODES: usize = 2_000;
/// How many characters one node has at most, and how many if its room is not counted in units.
const UNITS: i64 = 16;
const BAR: i64 = 8;
/// How full a block is, from empty to full.
pub const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// What uses a piece of a node. Ordered as drawn.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// By place in the legend, so that a gang looks the same on every node.
    Gang(usize, GangId),
    Foreign,
    /// Terminating, and kept for no other pod.
    Leaving,
    /// Kept for a nominated pod, or reserved for the successor of one that was moved.
    Nominated,
    Free,
    Closed,
}

pub struct Map<'c> {
    cluster: &'c Cluster,
    pub legend: Legend,
    /// Resources that are counted in units, best to draw first.
    counted: Vec<ResourceId>,
    nodes: Vec<NodeId>,
}

/// The map with its legend.
pub fn lines(cluster: &Cluster, names: &Names, screen: Screen) -> Vec<String> {
    let map = Map::new(cluster);
    if map.nodes.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![map.title(screen)];
    lines.extend(match map.nodes.len() {
        count if count <= NAMED_NODES => map.named(&map.nodes, screen),
        count if count <= DRAWN_NODES => map.drawn(screen),
        _ => map.blocks(screen),
    });
    if map.nodes.len() <= DRAWN_NODES {
        lines.extend(map.legend_lines(names, screen));
    }
    lines
}

impl Map<'_> {
    pub fn new(cluster: &Cluster) -> Map<'_> {
        let nodes: Vec<NodeId> = cluster
            .nodes
            .by_rank
            .iter()
            .copied()
            .filter(|&node| cluster.nodes.fact[node].live)
            .collect();
        let counted = counted(cluster, &nodes);
        let mut map = Map { cluster, legend: Legend::new(cluster, Vec::new()), counted, nodes };
        let mut held: BTreeMap<GangId, i64> = BTreeMap::new();
        for &node in &map.nodes {
            for (holder, _) in map.holders(node, map.drawn_resource(node)) {
                if let Holder::Gang(_, gang) = holder {
                    *held.entry(gang).or_default() += 1;
                }
            }
        }
        map.legend = Legend::new(cluster, held.into_iter().collect());
        map
    }

    /// The resource by which a node is drawn: the one that is counted in units, else the fuller of
    /// cpu and memory.
    fn drawn_resource(&self, node: NodeId) -> ResourceId {
        let nodes = &self.cluster.nodes;
        let counted =
            self.counted.iter().copied().find(|&resource| nodes.allocatable[resource][node] > 0);
        let fuller = || {
            let [cpu, memory] = ["cpu", "memory"].map(|name| {
                self.cluster.dimensions.find(name).expect("every cluster has cpu and memory")
            });
            let used = |resource| i128::from(nodes.used(resource, node));
            let size = |resource: ResourceId| i128::from(nodes.allocatable[resource][node]);
            if used(memory) * size(cpu) > used(cpu) * size(memory) { memory } else { cpu }
        };
        counted.unwrap_or_else(fuller)
    }

    /// How much of the resource each holder uses, as drawn from left to right; the sum is the size
    /// of the node.
    fn holders(&self, node: NodeId, resource: ResourceId) -> BTreeMap<Holder, i64> {
        let cluster = self.cluster;
        let mut holders: BTreeMap<Holder, i64> = BTreeMap::new();
        for &pod in &cluster.nodes.pods_on[node] {
            let amount = cluster.shapes[cluster.pods.shape[pod]].request.get(resource).unwrap_or(0);
            let holder = match (cluster.pods.state[pod], cluster.pods.gang[pod]) {
                // Counted below, with all that is kept for other pods.
                (PodState::Nominated(_), _) => continue,
                (PodState::Releasing(_), _) => Holder::Leaving,
                (_, Some(gang)) => {
                    let place = self.legend.gangs.iter().position(|(known, _)| *known == gang);
                    Holder::Gang(place.unwrap_or(usize::MAX), gang)
                }
                _ => Holder::Foreign,
            };
            if amount > 0 {
                *holders.entry(holder).or_default() += amount;
            }
        }
        // Nominated pods get the room of terminating ones first.
        let nominated = cluster.nodes.nominated[resource][node];
        if nominated > 0 {
            holders.insert(Holder::Nominated, nominated);
        }
        if let Some(leaving) =
            holders.remove(&Holder::Leaving).filter(|leaving| *leaving > nominated)
        {
            holders.insert(Holder::Leaving, leaving - nominated);
        }
        let left = cluster.nodes.allocatable[resource][node] - holders.values().sum::<i64>();
        let fact = &cluster.nodes.fact[node];
        let rest = if fact.ready && !fact.cordoned { Holder::Free } else { Holder::Closed };
        if left > 0 {
            holders.insert(rest, left);
        }
        holders
    }

    /// Which holder has each unit, or each of equal parts, of a node.
    pub fn cells(&self, node: NodeId) -> Vec<Holder> {
        let resource = self.drawn_resource(node);
        let size = self.cluster.nodes.allocatable[resource][node];
        let length = if self.counted.contains(&resource) { size.min(UNITS) } else { BAR };
        let mut cells = Vec::new();
        let mut sum: i128 = 0;
        for (holder, amount) in self.holders(node, resource) {
            sum += i128::from(amount);
            let upto =
                (2 * sum * i128::from(length) + i128::from(size)) / (2 * i128::from(size.max(1)));
            // A holder is visible even if it has next to nothing, as long as there is space to draw
            // it.
            let seen = if matches!(holder, Holder::Free | Holder::Closed) { 0 } else { 1 };
            let upto = (upto as usize).max(cells.len() + seen).min(length as usize);
            cells.resize(upto, holder);
        }
        if cells.is_empty() {
            // A node without a known size.
            cells.resize(length.max(1) as usize, Holder::Closed);
        }
        cells
    }

    pub fn mark(&self, holder: Holder) -> (char, Style) {
        match holder {
            Holder::Gang(_, gang) => self.legend.of(gang),
            Holder::Foreign => ('#', DIM),
            Holder::Leaving => ('-', DIM),
            Holder::Nominated => ('+', BOLD),
            Holder::Free => ('.', DIM),
            Holder::Closed => ('x', DIM),
        }
    }

    pub fn paint(&self, cells: &[Holder]) -> String {
        let runs = cells.chunk_by(|a, b| a == b);
        runs.map(|run| {
            let (letter, style) = self.mark(run[0]);
            styled(style, letter.to_string().repeat(run.len()))
        })
        .collect()
    }

    /// Name and units, several nodes a line.
    pub fn named(&self, nodes: &[NodeId], screen: Screen) -> Vec<String> {
        let cells: Vec<Vec<Holder>> = nodes.iter().map(|&node| self.cells(node)).collect();
        let labels: Vec<String> = nodes.iter().map(|&node| self.label(node, screen)).collect();
        let label = labels.iter().map(|label| width(label)).max().unwrap_or(0);
        let cell = cells.iter().map(Vec::len).max().unwrap_or(0);
        let column = label + 1 + cell;
        let columns = ((screen.text() + 3) / (column + 3)).max(1);
        let drawn: Vec<(String, usize)> = labels
            .iter()
            .zip(&cells)
            .map(|(name, cells)| {
                (format!("{name:<label$} {}", self.paint(cells)), cell - cells.len())
            })
            .collect();
        let line = |row: &[(String, usize)]| {
            let mut line = String::new();
            for (at, (text, rest)) in row.iter().enumerate() {
                line += text;
                if at + 1 < row.len() {
                    line += &" ".repeat(rest + 3);
                }
            }
            line
        };
        drawn.chunks(columns).map(line).collect()
    }

    fn label(&self, node: NodeId, screen: Screen) -> String {
        cut_middle(&self.cluster.nodes.name[node], screen.label())
    }

    /// The longest label, and how many characters fit beside it, a multiple of ten so that they are
    /// easy to count.
    fn margin(&self, screen: Screen) -> (usize, usize) {
        let labels = self.nodes.iter().map(|&node| width(&self.cluster.nodes.name[node]));
        let label = labels.max().unwrap_or(0).min(screen.label());
        (label, (screen.text().saturating_sub(label + 1) / 10 * 10).max(10))
    }

    /// The character of a node: the letter of the gang that uses most of it if it is more than half
    /// full, ':' if less, '.' if nothing.
    fn drawn(&self, screen: Screen) -> Vec<String> {
        let (label, per_line) = self.margin(screen);
        let lines = self
            .nodes
            .chunks(per_line)
            .map(|nodes| format!("{:<label$} {}", self.label(nodes[0], screen), self.marks(nodes)));
        lines.collect()
    }

    /// One character a node.
    pub fn marks(&self, nodes: &[NodeId]) -> String {
        let marks = nodes.iter().map(|&node| {
            let (letter, style) = self.whole_mark(node);
            styled(style, letter)
        });
        marks.collect()
    }

    pub fn whole_mark(&self, node: NodeId) -> (char, Style) {
        let resource = self.drawn_resource(node);
        let size = self.cluster.nodes.allocatable[resource][node];
        let holders = self.holders(node, resource);
        let rest =
            [Holder::Free, Holder::Closed].into_iter().find(|rest| holders.contains_key(rest));
        let left = rest.map_or(0, |rest| holders[&rest]);
        let most = holders
            .iter()
            .filter(|(holder, _)| Some(**holder) != rest)
            .max_by_key(|(_, amount)| **amount);
        match most {
            None => self.mark(rest.unwrap_or(Holder::Closed)),
            Some(_) if rest == Some(Holder::Closed) => self.mark(Holder::Closed),
            Some(_) if left * 2 >= size => (':', Style::new()),
            Some((&holder, _)) => self.mark(holder),
        }
    }

    /// How many nodes one character stands for, so that the map is not longer than a screen.
    fn block(&self, screen: Screen) -> usize {
        self.nodes.len().div_ceil(self.margin(screen).1 * 20)
    }

    /// One character per block of nodes, the fuller the darker.
    fn blocks(&self, screen: Screen) -> Vec<String> {
        let (label, per_line) = self.margin(screen);
        let block = self.block(screen);
        let lines = self.nodes.chunks(per_line * block).map(|nodes| {
            let shades: String = nodes.chunks(block).map(|nodes| self.shade(nodes)).collect();
            format!("{:<label$} {shades}", self.label(nodes[0], screen))
        });
        let mut lines: Vec<String> = lines.collect();
        let [empty, .., full] = SHADES;
        lines.push(styled(DIM, format!("{empty} empty … {full} full")));
        lines
    }

    /// How full nodes are; there is at least one.
    pub fn shade(&self, nodes: &[NodeId]) -> char {
        let mut fullness = 0;
        for &node in nodes {
            let resource = self.drawn_resource(node);
            let size = self.cluster.nodes.allocatable[resource][node].max(1);
            let used = self.cluster.nodes.used(resource, node).clamp(0, size);
            fullness += i128::from(used) * 1000 / i128::from(size);
        }
        let mean = fullness / nodes.len() as i128;
        match mean {
            0 => SHADES[0],
            1000.. => SHADES[4],
            _ => SHADES[1 + (mean * 3 / 1000) as usize],
        }
    }

    pub fn legend_lines(&self, names: &Names, screen: Screen) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut used = screen.text();
        for (letter, style, name) in self.legend_entries(names, screen) {
            let entry = format!("{} {}", styled(style, letter), styled(DIM, &name));
            let length = 2 + width(&name);
            if used + 3 + length > screen.text() {
                lines.push(entry);
                used = length;
            } else {
                let line = lines.last_mut().expect("the first entry starts a line");
                line.push_str("   ");
                line.push_str(&entry);
                used += 3 + length;
            }
        }
        lines
    }

    fn legend_entries(&self, names: &Names, screen: Screen) -> Vec<(char, Style, String)> {
        let mut entries: Vec<(char, Style, String)> = Vec::new();
        for &(gang, letter) in &self.legend.gangs {
            let name = cut_middle(names.short(&self.cluster.gangs[gang].key), screen.name());
            entries.push((letter, self.legend.of(gang).1, name));
        }
        if self.legend.sharing > 0 {
            let name = format!("{} more gangs", grouped(self.legend.sharing as u64));
            entries.push((SHARED, Style::new(), name));
        }
        let seen: Vec<Holder> = self.nodes.iter().flat_map(|&node| self.cells(node)).collect();
        let others = [
            (Holder::Foreign, "other schedulers"),
            (Holder::Leaving, "terminating"),
            (Holder::Nominated, "nominated"),
            (Holder::Free, "free"),
            (Holder::Closed, "closed"),
        ];
        for (holder, what) in others.into_iter().filter(|(holder, _)| seen.contains(holder)) {
            let (letter, style) = self.mark(holder);
            entries.push((letter, style, what.to_owned()));
        }
        if self.nodes.len() > NAMED_NODES {
            entries.push((':', Style::new(), "up to half full".to_owned()));
        }
        entries
    }
}
