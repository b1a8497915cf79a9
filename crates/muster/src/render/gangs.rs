//! The table of gangs, with what each waits for below its row.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use muster_engine::explain::{counted, grouped};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT_NAME;
use muster_facts::GangLine;

use super::screen::Screen;
use super::table::{Row, Table};
use super::text::{BAD, BOLD, DIM, GOOD, Names, OVER, WAITS, styled};

/// Rows beyond these are only counted.
const ROWS: usize = 60;
/// On a terminal a reason takes at most this many lines; one if there are more gangs than a screen
/// has lines.
pub const REASON_LINES: usize = 4;
const SCREEN_LINES: usize = 24;

pub fn lines(
    cluster: &Cluster,
    gangs: &[GangLine],
    names: &Names,
    wide: bool,
    screen: Screen,
) -> Vec<String> {
    if gangs.is_empty() {
        return Vec::new();
    }
    let shown = Columns {
        domain: cluster.domains.are_real(),
        terminating: gangs.iter().any(|gang| gang.terminating > 0),
        nodes: wide.then(|| nodes_used(cluster)),
    };
    let mut table = Table::new(&shown.headers());
    // Waiting gangs come first, since these are what people look for.
    let mut order: Vec<&GangLine> = gangs.iter().collect();
    if order.len() > ROWS {
        order.sort_by_key(|gang| gang.reasons.is_empty());
    }
    let height = if gangs.len() > SCREEN_LINES { 1 } else { REASON_LINES };
    for gang in order.iter().take(ROWS) {
        table.push(shown.row(gang, names).below(reason_lines(gang, height, screen)));
    }
    let mut lines = vec![styled(BOLD, "GANGS")];
    lines.extend(table.lines(screen.end()));
    if let Some(rest) = order.get(ROWS..).filter(|rest| !rest.is_empty()) {
        lines.push(styled(DIM, screen.cut(&rest_line(rest))));
    }
    lines
}

/// The columns beside those that are always there.
struct Columns<'c> {
    domain: bool,
    terminating: bool,
    /// The nodes of each gang, for `-o wide`.
    nodes: Option<BTreeMap<&'c str, BTreeSet<u32>>>,
}

impl Columns<'_> {
    fn headers(&self) -> Vec<&'static str> {
        let mut headers = vec!["NAME", "QUEUE", "PHASE", "PRIORITY", "MIN", "RUNNING", "PENDING"];
        headers.extend(self.terminating.then_some("TERMINATING"));
        headers.extend(self.domain.then_some("DOMAIN"));
        if self.nodes.is_some() {
            headers.extend(["NOMINATED", "SUCCEEDED", "FAILED", "NODES"]);
        }
        headers
    }

    fn row(&self, gang: &GangLine, names: &Names) -> Row {
        let mut row = Row::default()
            .cell(names.short(&gang.name))
            .cell(&gang.queue)
            .styled(&gang.phase, phase_style(&gang.phase))
            .cell(gang.priority)
            .cell(gang.min_member)
            .cell(gang.running)
            .cell(gang.pending);
        if self.terminating {
            row = row.cell(gang.terminating);
        }
        if self.domain {
            row = row.cell(domain(gang));
        }
        if let Some(nodes) = &self.nodes {
            let nodes = nodes.get(gang.name.as_str()).map_or(0, BTreeSet::len);
            row = row.cell(gang.nominated).cell(gang.succeeded).cell(gang.failed).cell(nodes);
        }
        row
    }
}

fn domain(gang: &GangLine) -> &str {
    match gang.domain.as_deref() {
        None => "-",
        Some(ROOT_NAME) => "(cluster)",
        Some(name) => name,
    }
}

pub fn phase_style(phase: &str) -> Style {
    match phase {
        "Running" => GOOD,
        "Completed" => OVER,
        "Unknown" => BAD,
        _ => WAITS,
    }
}

/// What a gang waits for; on a terminal each reason takes at most this many lines.
pub fn reason_lines(gang: &GangLine, height: usize, screen: Screen) -> Vec<String> {
    let reasons = gang.reasons.iter().map(|reason| format!("{}: {}", reason.stage, reason.message));
    reasons.flat_map(|text| below_row(&text, height, screen)).collect()
}

/// A text under a row of a table, with a hook to the row before its first line.
pub fn below_row(text: &str, height: usize, screen: Screen) -> Vec<String> {
    let lines = screen.beside(4).wrap_within(text, height);
    let mark = |at: usize| if at == 0 { "└" } else { " " };
    let marked = lines.iter().enumerate();
    marked.map(|(at, line)| styled(DIM, format!("  {} {line}", mark(at)))).collect()
}

fn rest_line(rest: &[&GangLine]) -> String {
    let mut phases: BTreeMap<&str, u64> = BTreeMap::new();
    for gang in rest {
        *phases.entry(&gang.phase).or_default() += 1;
    }
    let phases: Vec<String> =
        phases.iter().map(|(phase, count)| format!("{} {phase}", grouped(*count))).collect();
    format!("… {} more: {}; use -o json", counted(rest.len() as u64, "gang"), phases.join(", "))
}

/// The nodes that each gang has pods on, by the name of the gang.
fn nodes_used(cluster: &Cluster) -> BTreeMap<&str, BTreeSet<u32>> {
    let mut nodes: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for pod in cluster.pods.live() {
        let state = cluster.pods.state[pod];
        if let (Some(gang), Some(node), true) =
            (cluster.pods.gang[pod], state.node(), state.occupies())
        {
            nodes.entry(&cluster.gangs[gang].key).or_default().insert(node.0);
        }
    }
    nodes
}
