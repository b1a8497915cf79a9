//! The table of queues: how much each uses of each resource. Child queues are indented.

use std::collections::BTreeMap;

use muster_facts::QueueLine;

use super::screen::Screen;
use super::table::{Row, Table};
use super::text::{BAD, BOLD, GOOD, bar, rounded, styled};

const BAR: usize = 8;

pub fn lines(
    queues: &[QueueLine],
    known: impl Fn(&QueueLine) -> bool,
    screen: Screen,
) -> Vec<String> {
    let shown: Vec<(usize, &QueueLine)> =
        tree(queues).into_iter().filter(|(_, queue)| known(queue)).collect();
    if shown.is_empty() {
        return Vec::new();
    }
    let resources = resources(&shown);
    let any = |has: fn(&QueueLine) -> bool| shown.iter().any(|(_, queue)| has(queue));
    let all = Columns {
        bar: true,
        nominated: any(|queue| !queue.nominated.is_empty()),
        deserved: true,
        fair_share: any(|queue| queue.fair_share.is_some()),
        capability: true,
    };
    let without_empty = Columns {
        deserved: any(|queue| !queue.deserved.is_empty()),
        capability: any(|queue| !queue.capability.is_empty()),
        ..all
    };
    let table = |columns: &Columns, count: usize| {
        let mut table = Table::new(&columns.headers());
        for (depth, queue) in &shown {
            table.push(columns.row(*depth, queue, &resources[..count]));
        }
        table
    };
    // The widest form of one resource that fits, and then as many resources as fit, the main ones
    // first.
    let one = resources.len().min(1);
    let narrow = Columns { bar: false, ..without_empty };
    let layouts = [&all, &without_empty, &narrow];
    let columns = layouts.into_iter().find(|columns| table(columns, one).fits(screen.end()));
    let columns = columns.unwrap_or(&narrow);
    let fits = |count: &usize| table(columns, *count).fits(screen.end());
    let count = (1..=resources.len()).rev().find(fits).unwrap_or(one);
    let mut lines = vec![styled(BOLD, "QUEUES")];
    lines.extend(table(columns, count).lines(screen.end()));
    lines
}

/// The columns beside name, share and allocation.
#[derive(Copy, Clone)]
struct Columns {
    /// The columns before the share.
    bar: bool,
    nominated: bool,
    deserved: bool,
    fair_share: bool,
    capability: bool,
}

impl Columns {
    fn headers(self) -> Vec<&'static str> {
        let mut headers = vec!["NAME", "SHARE", "ALLOCATED"];
        headers.extend(self.nominated.then_some("OF IT NOMINATED"));
        headers.extend(self.deserved.then_some("DESERVED"));
        headers.extend(self.fair_share.then_some("FAIR SHARE"));
        headers.extend(self.capability.then_some("CAPABILITY"));
        headers
    }

    fn row(self, depth: usize, queue: &QueueLine, resources: &[&str]) -> Row {
        let percent = (queue.share * 100.0).round();
        let filled = if self.bar { bar(percent as u64, 100, BAR) + " " } else { String::new() };
        let style = if queue.share > 1.0 { BAD } else { GOOD };
        let none = BTreeMap::new();
        let fair_share = queue.fair_share.as_ref().unwrap_or(&none);
        let amounts = [
            (self.nominated, &queue.nominated),
            (self.deserved, &queue.deserved),
            (self.fair_share, fair_share),
            (self.capability, &queue.capability),
        ];
        let row = Row::default()
            .cell(format!("{}{}", "  ".repeat(depth), queue.name))
            .styled(format!("{filled}{percent:.0}% of {}", queue.share_of.words()), style)
            .cell(amounts_text(&queue.allocated, resources));
        let shown = amounts.into_iter().filter(|(shown, _)| *shown);
        shown.fold(row, |row, (_, amounts)| row.cell(amounts_text(amounts, resources)))
    }
}

/// "8 gpu, 64 cpu", with short names where they are unambiguous.
pub fn amounts_text(amounts: &BTreeMap<String, String>, resources: &[&str]) -> String {
    let named = resources.iter().filter_map(|name| Some((name, amounts.get(*name)?)));
    let parts: Vec<String> = named.map(|(name, amount)| shown(name, amount)).collect();
    match (parts.is_empty(), amounts.is_empty()) {
        (true, true) => "-".to_owned(),
        // It uses something, but none of the resources that are shown.
        (true, false) => "…".to_owned(),
        _ => parts.join(", "),
    }
}

/// "8 gpu"; an amount of bytes needs no name.
fn shown(resource: &str, amount: &str) -> String {
    match resource {
        "memory" => amount.to_owned(),
        _ => format!("{} {}", rounded(amount), resource.rsplit('/').next().unwrap_or(resource)),
    }
}

/// The resources that appear anywhere: extended ones first, then cpu, then memory.
fn resources<'q>(shown: &[(usize, &'q QueueLine)]) -> Vec<&'q str> {
    let all = shown.iter().flat_map(|(_, queue)| {
        let amounts = [&queue.allocated, &queue.deserved, &queue.capability];
        amounts.into_iter().chain(&queue.fair_share)
    });
    let mut names: Vec<&str> = all.flat_map(|amounts| amounts.keys().map(String::as_str)).collect();
    names.retain(|name| *name != "pods");
    names.sort_by_key(|name| scarcity(name));
    names.dedup();
    names
}

/// The order in which people read resources: extended ones, cpu, memory, the rest.
pub fn scarcity(name: &str) -> (u8, &str) {
    let place = match name {
        "cpu" => 1,
        "memory" => 2,
        _ if name.contains('/') => 0,
        _ => 3,
    };
    (place, name)
}

/// Parents before their children, with the depth of each.
fn tree(queues: &[QueueLine]) -> Vec<(usize, &QueueLine)> {
    let under_root =
        |parent: &Option<String>| parent.as_deref().is_none_or(|parent| parent == "root");
    let mut ordered = Vec::new();
    let mut stack: Vec<(usize, &QueueLine)> = queues
        .iter()
        .rev()
        .filter(|queue| under_root(&queue.parent))
        .map(|queue| (0, queue))
        .collect();
    while let Some((depth, queue)) = stack.pop() {
        ordered.push((depth, queue));
        let children =
            queues.iter().rev().filter(|child| child.parent.as_ref() == Some(&queue.name));
        stack.extend(children.filter(|_| queue.name != "root").map(|child| (depth + 1, child)));
    }
    ordered
}
