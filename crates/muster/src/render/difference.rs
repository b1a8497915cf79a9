//! The effects of additional objects, as tables.

use std::collections::BTreeMap;

use muster_engine::explain::{counted, duration};
use muster_facts::QueueLine;
use muster_sim::Simulation;
use muster_sim::difference::{Change, Difference, Fate, GangChange, Moment, QueueChange};
use muster_sim::report::Eviction;

use super::gangs::{REASON_LINES, below_row, reason_lines};
use super::queues::{amounts_text, scarcity};
use super::screen::Screen;
use super::table::{Row, Table};
use super::text::{BAD, BOLD, DIM, GOOD, Names, WAITS, styled};
use super::timeline::{fitting, words};
use crate::failure::Failure;
use crate::terminal;

/// Rows beyond these are only counted.
const ROWS: usize = 40;

pub fn print(difference: &Difference, with: &Simulation) -> Result<(), Failure> {
    let gangs = difference.gangs.iter().map(|gang| gang.name.as_str());
    let names = Names::new(gangs.chain(with.report.gangs.iter().map(|gang| gang.name.as_str())));
    let known =
        |queue: &QueueChange| queue.name != "root" || with.world.queues.contains_key(&queue.name);
    let queues: Vec<&QueueChange> =
        difference.queues.iter().filter(|queue| known(queue) && has_other_work(queue)).collect();
    let teller = Teller { names, screen: Screen::of_output() };
    let parts = [
        teller.header(difference),
        teller.new_gangs(&difference.new_gangs),
        teller.evictions("EVICTED", &difference.evictions),
        teller.evictions("NO LONGER EVICTED", &difference.spared),
        teller.gangs(&difference.gangs),
        teller.queues(&queues),
        verdict(difference),
    ];
    let parts: Vec<Vec<String>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Ok(terminal::print(&parts.join(&String::new()).join("\n"))?)
}

/// Says so if the new objects affect nothing, or no other gang.
fn verdict(difference: &Difference) -> Vec<String> {
    let others = difference.evictions.len() + difference.spared.len() + difference.gangs.len();
    match difference {
        _ if others > 0 => Vec::new(),
        difference if difference.is_empty() => vec!["nothing would change".to_owned()],
        difference if difference.new_gangs.is_empty() => {
            vec!["no gang would be affected".to_owned()]
        }
        _ => vec!["no other gang would be affected".to_owned()],
    }
}

struct Teller {
    names: Names,
    screen: Screen,
}

impl Teller {
    /// "at 2026-11-15T00:00:00Z: what if 1 PodGroup and 4 Pods were added".
    fn header(&self, difference: &Difference) -> Vec<String> {
        let counts = difference.objects.iter();
        let counts: Vec<String> =
            counts.map(|(kind, count)| counted(*count as u64, kind)).collect();
        let counts = if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") };
        let mut lines =
            vec![format!("at {}: what if {counts} were added", styled(BOLD, &difference.now))];
        if !difference.replaced.is_empty() {
            let text = format!("replacing {}", difference.replaced.join(", "));
            lines.push(styled(DIM, self.screen.cut(&text)));
        }
        lines
    }

    fn new_gangs(&self, gangs: &[Fate]) -> Vec<String> {
        let mut table =
            Table::new(&["NAME", "QUEUE", "PRIORITY", "MIN", "STARTS", "WHERE"]).soft_end();
        for fate in gangs.iter().take(ROWS) {
            let (starts, style) = match (&fate.starts, fate.nominated.is_empty()) {
                (Some(moment), _) => (when(moment), GOOD),
                (None, false) => ("nominated".to_owned(), WAITS),
                (None, true) => ("no".to_owned(), BAD),
            };
            let row = Row::default()
                .cell(self.names.short(&fate.line.name))
                .cell(&fate.line.queue)
                .cell(fate.line.priority)
                .cell(fate.line.min_member)
                .styled(starts, style)
                .cell(self.places(fate));
            table.push(row.below(self.reasons(fate)));
        }
        self.titled("NEW GANGS", &table, gangs.len())
    }

    fn evictions(&self, title: &'static str, evictions: &[Eviction]) -> Vec<String> {
        let mut table = Table::new(&["POD", "GANG", "NODE", "CYCLE", "FOR"]);
        let rows: Vec<&Eviction> = evictions.iter().take(ROWS).collect();
        for (at, eviction) in rows.iter().enumerate() {
            let preemptor = eviction.preemptor.as_ref().map_or("-", |gang| self.names.short(gang));
            let row = Row::default()
                .cell(self.names.short(&eviction.pod))
                .cell(self.names.short(&eviction.gang))
                .cell(&eviction.node)
                .cell(eviction.cycle)
                .cell(preemptor);
            // A reason that several rows share is printed once, under the last of them.
            let said_again = rows.get(at + 1).is_some_and(|next| next.reason == eviction.reason);
            let text = format!("{}: {}", eviction.action, eviction.reason);
            let below = || below_row(&text, usize::MAX, self.screen);
            table.push(row.below(if said_again { Vec::new() } else { below() }));
        }
        self.titled(title, &table, evictions.len())
    }

    fn gangs(&self, gangs: &[GangChange]) -> Vec<String> {
        let mut table = Table::new(&["NAME", "QUEUE", "WITHOUT", "WITH"]);
        for gang in gangs.iter().take(ROWS) {
            let (without, with) = self.sides(gang);
            let style = match gang.change {
                Change::Waits | Change::Shrinks | Change::Later | Change::Gone => BAD,
                Change::Starts | Change::Earlier | Change::Grows => GOOD,
                Change::Moves | Change::Reason => WAITS,
            };
            let row = Row::default()
                .cell(self.names.short(&gang.name))
                .cell(&gang.without.line.queue)
                .cell(without)
                .styled(with, style);
            table.push(
                row.below(gang.with.as_ref().map_or_else(Vec::new, |fate| self.reasons(fate))),
            );
        }
        self.titled("OTHER GANGS", &table, gangs.len())
    }

    fn queues(&self, queues: &[&QueueChange]) -> Vec<String> {
        let lines = queues.iter().flat_map(|queue| queue.without.iter().chain([&queue.with]));
        let mut resources: Vec<&str> =
            lines.flat_map(|line| line.allocated.keys().map(String::as_str)).collect();
        resources.retain(|name| *name != "pods");
        resources.sort_by_key(|name| scarcity(name));
        resources.dedup();
        let table = |count: usize| {
            let mut table =
                Table::new(&["NAME", "SHARE", "ALLOCATED WITHOUT", "WITH", "GANGS RUNNING"]);
            queues
                .iter()
                .take(ROWS)
                .for_each(|queue| table.push(queue_row(queue, &resources[..count])));
            table
        };
        let fits = |count: &usize| table(*count).fits(self.screen.end());
        let count = (1..=resources.len()).rev().find(fits).unwrap_or(resources.len().min(1));
        self.titled("QUEUES", &table(count), queues.len())
    }

    fn reasons(&self, fate: &Fate) -> Vec<String> {
        reason_lines(&fate.line, REASON_LINES, self.screen)
    }

    /// "node-a ×2, node-b"
    fn places(&self, fate: &Fate) -> String {
        let places: Vec<(&str, u32)> = fate.places().into_iter().collect();
        let half = self.screen.beside(self.screen.text() / 2);
        if places.is_empty() { "-".to_owned() } else { fitting(&places, half) }
    }

    /// The state of a gang without the objects and with them, in the words that show the
    /// difference.
    fn sides(&self, gang: &GangChange) -> (String, String) {
        let Some(with) = &gang.with else {
            return (gang.without.line.phase.clone(), "gone".to_owned());
        };
        let say = |fate: &Fate| match gang.change {
            Change::Gone => fate.line.phase.clone(),
            Change::Waits | Change::Starts | Change::Later | Change::Earlier => {
                match &fate.starts {
                    Some(moment) => format!("starts {}", when(moment)),
                    None => "waits".to_owned(),
                }
            }
            Change::Shrinks | Change::Grows => {
                counted(u64::from(fate.line.running + fate.line.succeeded), "pod")
            }
            Change::Moves => self.places(fate),
            Change::Reason => match fate.line.reasons.first() {
                Some(reason) => format!("waits: {}", words(reason.reason)),
                None => fate.line.phase.clone(),
            },
        };
        (say(&gang.without), say(with))
    }

    fn titled(&self, title: &str, table: &Table, rows: usize) -> Vec<String> {
        if rows == 0 {
            return Vec::new();
        }
        let mut lines = vec![styled(BOLD, title)];
        lines.extend(table.lines(self.screen.end()));
        if rows > ROWS {
            lines.push(styled(DIM, format!("… {} more, use -o json", rows - ROWS)));
        }
        lines
    }
}

fn when(moment: &Moment) -> String {
    match moment.after_ms {
        0 => "now".to_owned(),
        after => format!("+{}", duration(after)),
    }
}

/// Whether anything but the number of waiting gangs differs; waiting gangs are listed one by one.
fn has_other_work(queue: &QueueChange) -> bool {
    let work = |line: &QueueLine| (line.share, line.allocated.clone(), line.running);
    queue.without.as_ref().map(work) != Some(work(&queue.with))
}

fn queue_row(queue: &QueueChange, resources: &[&str]) -> Row {
    let (old, new) = (queue.without.as_ref(), &queue.with);
    let nothing = BTreeMap::new();
    let running = match old {
        Some(old) => format!("{} → {}", old.running, new.running),
        None => new.running.to_string(),
    };
    Row::default()
        .cell(&queue.name)
        .cell(shares(old, new))
        .cell(amounts_text(old.map_or(&nothing, |old| &old.allocated), resources))
        .cell(amounts_text(&new.allocated, resources))
        .cell(running)
}

/// "50% → 100% of deserved"
fn shares(old: Option<&QueueLine>, new: &QueueLine) -> String {
    let percent = |line: &QueueLine| format!("{:.0}%", (line.share * 100.0).round());
    let measured = |line: &QueueLine| format!("{} of {}", percent(line), line.share_of.words());
    match old {
        Some(old) if old.share_of == new.share_of => {
            format!("{} → {}", percent(old), measured(new))
        }
        Some(old) => format!("{} → {}", measured(old), measured(new)),
        None => measured(new),
    }
}
