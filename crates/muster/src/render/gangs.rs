//! The table of gangs, with what each waits for under its row.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use muster_engine::explain::{counted, grouped};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT_NAME;
use muster_facts::GangLine;

use super::table::{Row, Table};
use super::text::{BAD, BOLD, DIM, GOOD, Names, OVER, WAITS, cut_end, styled, wrap};

/// More rows than these are counted instead.
const ROWS: usize = 60;
/// A reason takes so many lines at most; one where there are more gangs than a screen has lines.
const REASON_LINES: usize = 4;
const SCREEN: usize = 24;

pub fn lines(
    cluster: &Cluster,
    gangs: &[GangLine],
    names: &Names,
    wide: bool,
    most: usize,
) -> Vec<String> {
    if gangs.is_empty() {
        return Vec::new();
    }
    let mut headers = vec!["NAME", "QUEUE", "PHASE", "PRIORITY", "MIN", "RUNNING", "PENDING"];
    let domains = cluster.domains.are_real();
    if domains {
        headers.push("DOMAIN");
    }
    if wide {
        headers.extend(["NOMINATED", "SUCCEEDED", "FAILED", "NODES"]);
    }
    let nodes = if wide { nodes_used(cluster) } else { BTreeMap::new() };
    let mut table = Table::new(&headers);
    // Who waits is what people look for.
    let mut order: Vec<&GangLine> = gangs.iter().collect();
    if order.len() > ROWS {
        order.sort_by_key(|gang| gang.reasons.is_empty());
    }
    for gang in order.iter().take(ROWS) {
        let mut row = Row::default()
            .cell(names.short(&gang.name))
            .cell(&gang.queue)
            .styled(&gang.phase, phase_style(&gang.phase))
            .cell(gang.priority)
            .cell(gang.min_member)
            .cell(gang.running)
            .cell(gang.pending);
        if domains {
            row = row.cell(domain(gang));
        }
        if wide {
            let nodes = nodes.get(gang.name.as_str()).map_or(0, BTreeSet::len);
            row = row.cell(gang.nominated).cell(gang.succeeded).cell(gang.failed).cell(nodes);
        }
        table.push(row.below(reason_lines(
            gang,
            if gangs.len() > SCREEN { 1 } else { REASON_LINES },
            most,
        )));
    }
    let mut lines = vec![styled(BOLD, "GANGS")];
    lines.extend(table.lines(most));
    if let Some(rest) = order.get(ROWS..).filter(|rest| !rest.is_empty()) {
        lines.push(styled(DIM, cut_end(&rest_line(rest), most)));
    }
    lines
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

/// What a gang waits for, each reason in so many lines at most.
pub fn reason_lines(gang: &GangLine, height: usize, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for reason in &gang.reasons {
        let text = wrap(&format!("{}: {}", reason.stage, reason.message), most - 4);
        for (at, line) in text.iter().take(height).enumerate() {
            let mark = if at == 0 { "└" } else { " " };
            let more = if at + 1 == height && text.len() > height { " …" } else { "" };
            let line = format!("  {mark} {}", cut_end(&format!("{line}{more}"), most - 4));
            lines.push(styled(DIM, line));
        }
    }
    lines
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
