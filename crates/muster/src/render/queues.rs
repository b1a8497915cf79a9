//! The table of queues: who has how much of what. Queues below others are indented.

use std::collections::BTreeMap;

use muster_facts::QueueLine;

use super::table::{Row, Table};
use super::text::{BAD, BOLD, GOOD, bar, styled};

const BAR: usize = 8;

pub fn lines(queues: &[QueueLine], known: impl Fn(&QueueLine) -> bool, most: usize) -> Vec<String> {
    let shown: Vec<(usize, &QueueLine)> =
        tree(queues).into_iter().filter(|(_, queue)| known(queue)).collect();
    if shown.is_empty() {
        return Vec::new();
    }
    let resources = resources(&shown);
    let table = |count: usize| {
        let mut heads = vec!["NAME", "SHARE", "ALLOCATED", "DESERVED"];
        heads.extend(
            shown.iter().any(|(_, queue)| queue.fair_share.is_some()).then_some("FAIR SHARE"),
        );
        heads.push("CAPABILITY");
        let mut table = Table::new(&heads);
        shown.iter().for_each(|(depth, queue)| table.push(row(*depth, queue, &resources[..count])));
        table
    };
    // As many resources as fit, main ones first.
    let fits = |count: &usize| table(*count).width() <= most;
    let count = (1..=resources.len()).rev().find(fits).unwrap_or(resources.len().min(1));
    let mut lines = vec![styled(BOLD, "QUEUES")];
    lines.extend(table(count).lines(most));
    lines
}

fn row(depth: usize, queue: &QueueLine, resources: &[&str]) -> Row {
    let percent = (queue.share * 100.0).round();
    let share = format!("{} {percent:.0}%", bar(percent as u64, 100, BAR));
    let style = if queue.share > 1.0 { BAD } else { GOOD };
    let show = |amounts: &BTreeMap<String, String>| amounts_text(amounts, resources);
    let mut row = Row::default()
        .cell(format!("{}{}", "  ".repeat(depth), queue.name))
        .styled(share, style)
        .cell(show(&queue.allocated))
        .cell(show(&queue.deserved));
    if let Some(fair) = &queue.fair_share {
        row = row.cell(show(fair));
    }
    row.cell(show(&queue.capability))
}

/// "8 gpu, 64 cpu", with the short name where it says enough.
pub fn amounts_text(amounts: &BTreeMap<String, String>, resources: &[&str]) -> String {
    let named = resources.iter().filter_map(|name| Some((name, amounts.get(*name)?)));
    let parts: Vec<String> = named.map(|(name, amount)| shown(name, amount)).collect();
    match (parts.is_empty(), amounts.is_empty()) {
        (true, true) => "-".to_owned(),
        // It has something, but nothing of what is shown.
        (true, false) => "…".to_owned(),
        _ => parts.join(", "),
    }
}

/// "8 gpu"; an amount of bytes says itself what it is.
fn shown(resource: &str, amount: &str) -> String {
    match resource {
        "memory" => amount.to_owned(),
        _ => format!("{amount} {}", resource.rsplit('/').next().unwrap_or(resource)),
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
