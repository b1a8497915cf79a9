//! The network as a tree in a terminal. Nodes are drawn unit by unit while there are few and as one
//! character when there are many; of the largest clusters only the domains are shown, and if even
//! these are too many, one character for each of the lowest.

use muster_engine::explain::{counted, grouped};
use muster_engine::ids::{DomainId, GangId, NodeId};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;

use super::Chart;
use crate::render::map::{DRAWN_NODES, Map, NAMED_NODES, SHADES};
use crate::render::screen::Screen;
use crate::render::table::{Row, Table};
use crate::render::text::{BAD, BOLD, DIM, GOOD, bar, styled, width};

const BAR: usize = 8;
/// How many characters of a line the names of gangs may take.
const GANGS: usize = 24;
const GANGS_OF: usize = 80;
/// Domains beyond these are not shown line by line, since more screens than that are not read.
const LINES: usize = 240;

struct Tree<'c> {
    chart: Chart<'c>,
    map: Map<'c>,
    detail: Detail,
    screen: Screen,
    table: Table,
}

/// In how much detail nodes are drawn.
#[derive(Copy, Clone, PartialEq)]
enum Detail {
    /// One line each, with all details.
    Full,
    /// Names and units, several nodes per line.
    Named,
    /// One character each.
    Drawn,
    /// Only their number.
    Counted,
    /// Not even the lowest domains: one character for each of these.
    Shaded,
}

/// The tree; `wide` leaves nothing out.
pub fn lines(cluster: &Cluster, wide: bool, screen: Screen) -> Vec<String> {
    let chart = Chart::new(cluster);
    let detail = match (chart.nodes(ROOT).len(), cluster.domains.len()) {
        _ if wide => Detail::Full,
        (nodes, _) if nodes <= NAMED_NODES => Detail::Named,
        (nodes, domains) if nodes <= DRAWN_NODES && domains <= LINES => Detail::Drawn,
        (_, domains) if domains <= LINES => Detail::Counted,
        _ => Detail::Shaded,
    };
    let title = format!("{}   {}", styled(BOLD, "TOPOLOGY"), styled(DIM, chart.summary()));
    let table = Table::new(&["HYPERNODE", "TIER", "NODES", "IN USE", "FREE", "GANGS"]).soft_end();
    let mut tree = Tree { map: Map::new(cluster), chart, detail, screen, table };
    tree.branch(tree.chart.top(), "", "");
    let mut lines = vec![title];
    lines.extend(tree.table.lines(screen.end()));
    lines.extend(tree.legend());
    lines.extend(tree.left_out());
    lines
}

impl Tree<'_> {
    /// Adds a domain and everything below it. `lead` is printed before its name, `rest` before what
    /// is below.
    fn branch(&mut self, domain: DomainId, lead: &str, rest: &str) {
        let mut children: Vec<DomainId> = self.chart.cluster.domains.children(domain).collect();
        let own = self.chart.own_nodes(domain).to_vec();
        let stray = domain == ROOT && !own.is_empty() && !children.is_empty();
        let mut below = Vec::new();
        let lowest =
            |&child: &DomainId| self.chart.cluster.domains.children(child).next().is_none();
        if self.detail == Detail::Shaded && children.len() > 1 && children.iter().all(lowest) {
            below = self.shades(&children, &format!("{rest}   "));
            children.clear();
        }
        if !stray {
            let stem = if children.is_empty() { "   " } else { "│  " };
            below.extend(self.node_lines(&own, &format!("{rest}{stem}")));
        }
        let row = self.row(
            self.chart.name(domain),
            self.chart.tier(domain),
            self.chart.nodes(domain),
            lead,
        );
        let (gangs, names) = self.gangs(self.chart.gangs(domain), &format!("{rest}   "));
        self.table.push(row.cell(gangs).below([names, below].concat()));
        for (at, &child) in children.iter().enumerate() {
            let last = at + 1 == children.len() && !stray;
            let (turn, stem) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.branch(child, &format!("{rest}{turn}"), &format!("{rest}{stem}"));
        }
        if stray {
            let row = self.row("(no HyperNode)", String::new(), &own, &format!("{rest}└─ "));
            self.table.push(row.cell("").below(self.node_lines(&own, &format!("{rest}      "))));
        }
    }

    fn row(&self, name: &str, tier: String, nodes: &[NodeId], lead: &str) -> Row {
        let chart = &self.chart;
        let room = chart.room(nodes);
        let (used, size) = (chart.amount(room.used), chart.amount(room.size));
        let filled = bar(room.used.max(0) as u64, room.size.max(0) as u64, BAR);
        let (in_use, free) = match room.size {
            0 => ("-".to_owned(), "-".to_owned()),
            _ => (format!("{filled} {used}/{size}"), chart.amount(room.free())),
        };
        Row::default()
            .cell(format!("{lead}{name}"))
            .cell(tier)
            .cell(grouped(nodes.len() as u64))
            .styled(in_use, GOOD)
            .cell(free)
    }

    /// "ring, wave", or their number; where nothing may be left out, all names in lines of their
    /// own.
    fn gangs(&self, gangs: &[GangId], stem: &str) -> (String, Vec<String>) {
        let names: Vec<&str> = gangs.iter().map(|&gang| self.chart.gang_name(gang)).collect();
        let all = names.join(", ");
        let room = (self.screen.text() + GANGS).saturating_sub(GANGS_OF).max(GANGS);
        if width(&all) <= room || names.len() == 1 {
            return (all, Vec::new());
        }
        let wrapped = match self.detail {
            Detail::Full => self.screen.beside(width(stem)).wrap(&all),
            _ => Vec::new(),
        };
        let lines = wrapped.iter().map(|line| format!("{stem}{}", styled(DIM, line)));
        (counted(names.len() as u64, "gang"), lines.collect())
    }

    fn node_lines(&self, nodes: &[NodeId], stem: &str) -> Vec<String> {
        let screen = self.screen.beside(width(stem));
        let drawn: Vec<String> = match self.detail {
            _ if nodes.is_empty() => Vec::new(),
            Detail::Full => nodes.iter().map(|&node| self.full(node, screen)).collect(),
            Detail::Named => self.map.named(nodes, screen),
            Detail::Drawn => {
                nodes.chunks(screen.text()).map(|nodes| self.map.marks(nodes)).collect()
            }
            Detail::Counted | Detail::Shaded => Vec::new(),
        };
        drawn.into_iter().map(|line| format!("{stem}{line}")).collect()
    }

    /// "node0 rrrr....  4/8  ring ×1".
    fn full(&self, node: NodeId, screen: Screen) -> String {
        let chart = &self.chart;
        let (cells, room) = (self.map.cells(node), chart.room(&[node]));
        let gangs = chart.pods_on(node);
        let gangs = gangs.iter().map(|(key, pods)| format!("{} ×{pods}", chart.names.short(key)));
        let name = &chart.cluster.nodes.name[node];
        let rest = format!("{}/{}", chart.amount(room.used), chart.amount(room.size));
        let taken = width(name) + 1 + cells.len() + 2 + width(&rest) + 2;
        let gangs = screen.beside(taken).cut(&gangs.collect::<Vec<_>>().join(", "));
        let line = format!("{name} {}  {rest}  {gangs}", self.map.paint(&cells));
        line.trim_end().to_owned()
    }

    /// "64 HyperNodes ▓▓█░·…", one character each.
    fn shades(&self, domains: &[DomainId], stem: &str) -> Vec<String> {
        let shade = |&domain: &DomainId| match self.chart.nodes(domain) {
            [] => 'x',
            nodes => self.map.shade(nodes),
        };
        let shades: Vec<char> = domains.iter().map(shade).collect();
        let label = format!("{stem}{} ", counted(domains.len() as u64, "HyperNode"));
        let room = self.screen.beside(width(&label)).text();
        let lines = shades.chunks(room).enumerate().map(|(at, shades)| {
            let label = if at == 0 { label.clone() } else { " ".repeat(width(&label)) };
            format!("{label}{}", shades.iter().collect::<String>())
        });
        lines.collect()
    }

    fn legend(&self) -> Vec<String> {
        match self.detail {
            Detail::Full | Detail::Named | Detail::Drawn => {
                self.map.legend_lines(&self.chart.names, self.screen)
            }
            Detail::Counted => vec![styled(DIM, "nodes and all gangs: -o wide")],
            Detail::Shaded => {
                let [empty, .., full] = SHADES;
                vec![styled(
                    DIM,
                    format!("{empty} empty … {full} full; each HyperNode and node: -o wide"),
                )]
            }
        }
    }

    fn left_out(&self) -> Vec<String> {
        let left = self.chart.left();
        if left.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![String::new(), styled(BAD, "not in the tree")];
        for (name, reason) in left {
            let text = format!("{name}: {reason}");
            for (at, line) in self.screen.beside(4).wrap(&text).iter().enumerate() {
                lines.push(format!("{}{line}", if at == 0 { "  " } else { "    " }));
            }
        }
        lines
    }
}
