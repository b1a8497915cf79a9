//! What happened, cycle by cycle. Cycles in which nothing happened are folded, and of a long run
//! the beginning and the end are shown.

mod departures;

use std::collections::{BTreeMap, HashMap};

use anstyle::Style;
use muster_api::Time;
use muster_api::simulated::ending;
use muster_engine::explain::{counted, duration, grouped};
use muster_engine::model::Cluster;
use muster_sim::Simulation;
use muster_sim::report::{EventLine, Placement};

use super::screen::Screen;
use super::text::{BAD, BOLD, DIM, GOOD, Names, OVER, WAITS, cut_middle, styled, width};

/// How many eventful cycles of a long run are shown from its start and from its end.
const FIRST: usize = 16;
const LAST: usize = 8;
/// How many lines are shown of a cycle, and of `--events`.
const TOLD: usize = 16;
const EVENTS: usize = 24;
/// On a terminal a sentence takes at most this many lines.
const HEIGHT: usize = 2;
/// Fewer cycles in which nothing happened are not mentioned.
const QUIET: u64 = 3;

pub fn lines(simulation: &Simulation, names: &Names, screen: Screen) -> Vec<String> {
    let clock = Clock::new(simulation);
    let screen = screen.beside(clock.margin());
    let teller =
        Teller { simulation, cluster: simulation.engine.cluster(), names, clock: &clock, screen };
    let parts = [
        ("terminating", teller.terminating()),
        ("left", teller.departures()),
        ("ended", teller.ends()),
        ("changes of jobs", teller.job_changes()),
        ("evicted", teller.evictions()),
        ("bound", teller.binds()),
        ("nominated", teller.nominations()),
        ("lost a nomination", teller.lost_nominations()),
        ("waiting", teller.waits()),
    ];
    let mut happened: BTreeMap<u64, Vec<Told>> = BTreeMap::new();
    for (what, told) in parts {
        for (cycle, lines) in told {
            happened.entry(cycle).or_default().push((what, lines));
        }
    }
    let mut told: BTreeMap<u64, Vec<String>> =
        happened.into_iter().map(|(cycle, lines)| (cycle, folded(lines))).collect();
    for (cycle, mut lines) in teller.events() {
        if lines.len() > EVENTS {
            let more = counted((lines.len() - EVENTS + 1) as u64, "event");
            lines.truncate(EVENTS - 1);
            lines.push(styled(DIM, format!("… {more} more, use -o json")));
        }
        told.entry(cycle).or_default().extend(lines);
    }
    clock.lay_out(told)
}

/// The kind of a thing that happened, and the lines about it.
type Told<'w> = (&'w str, Vec<String>);

/// What happened first, and how much more of each kind there is.
fn folded(mut told: Vec<Told>) -> Vec<String> {
    let mut more: BTreeMap<&str, u64> = BTreeMap::new();
    if told.len() > TOLD {
        for (what, _) in told.drain(TOLD - 1..) {
            *more.entry(what).or_default() += 1;
        }
    }
    let mut shown: Vec<String> = told.into_iter().flat_map(|(_, lines)| lines).collect();
    if !more.is_empty() {
        let counts: Vec<String> =
            more.iter().map(|(what, count)| format!("{} {what}", grouped(*count))).collect();
        shown.push(styled(DIM, format!("… {} more, use -o json", counts.join(", "))));
    }
    shown
}

/// The time of each cycle, and the column in which it is printed.
struct Clock {
    start: Time,
    /// Cycle and time, in order.
    cycles: Vec<(u64, Time)>,
    label: usize,
}

impl Clock {
    fn new(simulation: &Simulation) -> Clock {
        let time = |text: &str| Time::parse(text).unwrap_or_default();
        let report = &simulation.report;
        let cycles: Vec<(u64, Time)> =
            report.cycles.iter().map(|line| (line.cycle, time(&line.now))).collect();
        let mut clock = Clock { start: time(&report.now), cycles, label: 0 };
        let labels = clock.cycles.iter().map(|&(cycle, _)| width(&clock.label_of(cycle)));
        clock.label = labels.max().unwrap_or(0);
        clock
    }

    fn margin(&self) -> usize {
        self.label + 2
    }

    /// "cycle 12  +1h30m"
    fn label_of(&self, cycle: u64) -> String {
        let place = self.cycles.partition_point(|(known, _)| *known < cycle);
        let passed = self.cycles.get(place).map_or(0, |(_, time)| time.0 - self.start.0);
        let digits = width(&self.cycles.len().to_string());
        format!("cycle {cycle:<digits$}  +{}", duration(passed))
    }

    /// The first cycle that can have seen what happened at a time.
    fn cycle_at(&self, time: Time) -> Option<u64> {
        let place = self.cycles.partition_point(|(_, known)| *known < time);
        self.cycles.get(place).map(|(cycle, _)| *cycle)
    }

    fn lay_out(&self, told: BTreeMap<u64, Vec<String>>) -> Vec<String> {
        let eventful: Vec<u64> = told.keys().copied().collect();
        let hidden = if eventful.len() > FIRST + LAST {
            &eventful[FIRST..eventful.len() - LAST]
        } else {
            &[]
        };
        let mut lines = Vec::new();
        let mut next = self.cycles.first().map_or(1, |(cycle, _)| *cycle);
        let quiet = |lines: &mut Vec<String>, from: u64, to: u64| {
            if to.saturating_sub(from) >= QUIET {
                lines.push(styled(DIM, format!("cycles {from}–{}: nothing", to - 1)));
            }
        };
        for (&cycle, told) in &told {
            if hidden.contains(&cycle) {
                continue;
            }
            if let (Some(&first), Some(&last)) = (hidden.first(), hidden.last())
                && next <= last
                && cycle > last
            {
                quiet(&mut lines, next, first);
                let more = counted(last - first + 1, "cycle");
                lines.push(styled(DIM, format!("… {more} more, use -o json")));
                next = last + 1;
            }
            quiet(&mut lines, next, cycle);
            for (at, text) in told.iter().enumerate() {
                let label = format!("{:<1$}", self.label_of(cycle), self.margin());
                let margin = if at == 0 { styled(DIM, label) } else { " ".repeat(self.margin()) };
                lines.push(format!("{margin}{text}"));
            }
            next = cycle + 1;
        }
        let end = self.cycles.last().map_or(0, |(cycle, _)| *cycle) + 1;
        quiet(&mut lines, next, end);
        lines
    }
}

/// In one cycle, pods of a gang went to nodes: this many to each.
type Moved<'p> = (u64, &'p str, Vec<(&'p str, u32)>);

struct Teller<'s> {
    simulation: &'s Simulation,
    cluster: &'s Cluster,
    names: &'s Names,
    clock: &'s Clock,
    /// The screen to the right of the clock.
    screen: Screen,
}

impl Teller<'_> {
    /// "ring 4/4 bound: node-a ×2, node-b ×2"
    fn binds(&self) -> Vec<(u64, Vec<String>)> {
        let mut bound: HashMap<&str, u32> = HashMap::new();
        let mut lines = Vec::new();
        for (cycle, gang, places) in self.by_gang(&self.simulation.report.binds) {
            let count: u32 = places.iter().map(|(_, count)| count).sum();
            let sum = bound.entry(gang).and_modify(|sum| *sum += count).or_insert(count);
            let all = self.size_of(gang).unwrap_or(*sum).max(*sum);
            let more = if *sum > count { format!("+{count}, ") } else { String::new() };
            let what =
                if all == 1 { "bound".to_owned() } else { format!("{more}{sum}/{all} bound") };
            lines.push((cycle, vec![self.placed(gang, &what, GOOD, &places)]));
        }
        lines
    }

    /// "urgent 2 pods nominated: b-0, b-1"
    fn nominations(&self) -> Vec<(u64, Vec<String>)> {
        let nominated = self.by_gang(&self.simulation.report.nominations).into_iter();
        nominated
            .map(|(cycle, gang, places)| {
                let count: u32 = places.iter().map(|(_, count)| count).sum();
                let what = format!("{} nominated", counted(u64::from(count), "pod"));
                (cycle, vec![self.placed(gang, &what, WAITS, &places)])
            })
            .collect()
    }

    /// "low 1 nomination released for urgent, which has priority 10"
    fn lost_nominations(&self) -> Vec<(u64, Vec<String>)> {
        let told = |lost: &EventLine| {
            let name = self.name(&lost.object);
            let mut lines = self.sentence(&format!("{name} {}", lost.event));
            if let Some(rest) = lines[0].strip_prefix(&name) {
                lines[0] = format!("{}{rest}", styled(BOLD, name));
            }
            (lost.cycle, lines)
        };
        self.simulation.report.lost_nominations.iter().map(told).collect()
    }

    fn placed(&self, gang: &str, what: &str, style: Style, places: &[(&str, u32)]) -> String {
        let name = self.name(gang);
        let places = fitting(places, self.screen.beside(width(&name) + width(what) + 3));
        format!("{} {}: {places}", styled(BOLD, name), styled(style, what))
    }

    fn name(&self, object: &str) -> String {
        cut_middle(self.names.short(object), self.screen.name())
    }

    /// Placements cycle by cycle, gang by gang in order of the first, with the nodes and the number
    /// of pods on each.
    fn by_gang<'p>(&'p self, placements: &'p [Placement]) -> Vec<Moved<'p>> {
        let mut grouped: Vec<Moved> = Vec::new();
        for same in placements.chunk_by(|a, b| a.cycle == b.cycle) {
            let mut at: HashMap<&str, usize> = HashMap::new();
            for placement in same {
                let gang = self.simulation.gang_of(&placement.pod);
                let index = *at.entry(gang).or_insert_with(|| {
                    grouped.push((placement.cycle, gang, Vec::new()));
                    grouped.len() - 1
                });
                let places = &mut grouped[index].2;
                match places.iter_mut().find(|(node, _)| *node == placement.node) {
                    Some((_, count)) => *count += 1,
                    None => places.push((&placement.node, 1)),
                }
            }
        }
        for (_, _, places) in &mut grouped {
            places.sort_unstable();
        }
        grouped
    }

    fn size_of(&self, gang: &str) -> Option<u32> {
        let id = self.cluster.gangs.find(gang)?;
        Some(self.cluster.gangs[id].counts.all())
    }

    /// Pods that ended during the run: the kubelet of the embedded cluster ends them by their
    /// duration or deadline.
    fn ends(&self) -> Vec<(u64, Vec<String>)> {
        let mut ended: BTreeMap<(u64, &str), (u64, u64)> = BTreeMap::new();
        for (key, pod) in &self.simulation.world.pods {
            let failed = pod.status.phase == "Failed";
            // A pod that is being deleted has left; it did not end by itself.
            let is_over = failed || pod.status.phase == "Succeeded";
            if !is_over || pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let Some(end) = ending(pod).map(|ending| ending.at) else { continue };
            if let Some(cycle) = self.clock.cycle_at(end).filter(|_| end > self.clock.start) {
                let counts = ended.entry((cycle, self.simulation.gang_of(key))).or_default();
                *(if failed { &mut counts.1 } else { &mut counts.0 }) += 1;
            }
        }
        let line = |(&(cycle, gang), &(succeeded, failed)): (&(u64, &str), &(u64, u64))| {
            let name = styled(BOLD, self.name(gang));
            let mut parts = Vec::new();
            if succeeded > 0 {
                parts.push(styled(OVER, format!("{} succeeded", grouped(succeeded))));
            }
            if failed > 0 {
                parts.push(styled(BAD, format!("{} failed", grouped(failed))));
            }
            (cycle, vec![format!("{name} ended: {}", parts.join(", "))])
        };
        ended.iter().map(line).collect()
    }

    /// "job train Restarting: RestartJob: pod train-worker-3 failed with exit code 137"
    fn job_changes(&self) -> Vec<(u64, Vec<String>)> {
        let lines = |change: &muster_sim::report::JobChange| {
            let name = self.name(&change.job);
            let plain = format!("job {name} {}", change.phase);
            // What led to a phase is said once.
            let again = change.phase == "Pending" || change.phase == "Aborted";
            let why = match change.message.as_str() {
                "" => String::new(),
                _ if again && !self.is_trouble(change) => String::new(),
                message => format!(": {message}"),
            };
            let mut lines = self.sentence(&format!("{plain}{why}"));
            if let Some(rest) = lines[0].strip_prefix(&plain) {
                let phase = styled(super::jobs::style(change.phase), change.phase);
                lines[0] = format!("job {} {phase}{rest}", styled(BOLD, &name));
            }
            (change.cycle, lines)
        };
        self.simulation.report.job_changes.iter().map(lines).collect()
    }

    /// Whether the message is new, and not what led to the phase before.
    fn is_trouble(&self, change: &muster_sim::report::JobChange) -> bool {
        let changes = &self.simulation.report.job_changes;
        let before = changes.iter().take_while(|other| !std::ptr::eq(*other, change));
        let last = before.filter(|other| other.job == change.job).last();
        last.is_none_or(|last| last.message != change.message)
    }

    /// "ring-3 evicted for urgent: gang ring is evicted as a whole"
    fn evictions(&self) -> Vec<(u64, Vec<String>)> {
        let lines = |eviction: &muster_sim::report::Eviction| {
            let pod = self.name(&eviction.pod);
            let (preemptor, reason) = match &eviction.preemptor {
                Some(gang) => {
                    let purpose = format!("makes room for {gang}: ");
                    let reason = eviction.reason.strip_prefix(&purpose).unwrap_or(&eviction.reason);
                    (format!(" for {}", self.names.short(gang)), reason)
                }
                None => (String::new(), eviction.reason.as_str()),
            };
            let (what, reason) = match &eviction.refused {
                Some(refusal) => ("not evicted", refusal.as_str()),
                None => ("evicted", reason),
            };
            let leaves = self.leaves_at(eviction.leaves.as_ref());
            let plain = format!("{pod} {what}");
            let mut lines = self.sentence(&format!("{plain}{preemptor}{leaves}: {reason}"));
            if let Some(rest) = lines[0].strip_prefix(&plain) {
                lines[0] = format!("{} {}{rest}", styled(BOLD, pod), styled(BAD, what));
            }
            (eviction.cycle, lines)
        };
        self.simulation.report.evictions.iter().map(lines).collect()
    }

    /// A text in one line, or in several lines of which all but the first are indented.
    fn sentence(&self, text: &str) -> Vec<String> {
        if width(text) <= self.screen.text() {
            return vec![text.to_owned()];
        }
        let mut lines = self.screen.beside(2).wrap_within(text, HEIGHT);
        lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "  "));
        lines
    }

    /// When gangs began to wait, and for what; `--events` adds the sentences.
    fn waits(&self) -> Vec<(u64, Vec<String>)> {
        // A nomination is shown as such.
        let waits =
            self.simulation.report.waits.iter().filter(|wait| wait.event != "WaitingForRoom");
        waits
            .map(|wait| {
                let name = styled(BOLD, self.name(&wait.object));
                let line = format!("{name} {}: {}", styled(WAITS, "waits"), words(&wait.event));
                (wait.cycle, vec![line])
            })
            .collect()
    }

    fn events(&self) -> BTreeMap<u64, Vec<String>> {
        let mut told: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for event in &self.simulation.report.events {
            let text = format!("· {} {}", self.name(&event.object), event.event);
            let lines = self.sentence(&text).into_iter().map(|line| styled(DIM, line));
            told.entry(event.cycle).or_default().extend(lines);
        }
        told
    }
}

/// As many of the nodes as fit on a line, and how many more there are.
pub fn fitting(places: &[(&str, u32)], screen: Screen) -> String {
    if let [(node, count)] = places {
        let times = if *count == 1 { String::new() } else { format!(" ×{count}") };
        return cut_middle(node, screen.beside(width(&times)).end()) + &times;
    }
    let mut text = String::new();
    for (at, (node, count)) in places.iter().enumerate() {
        let rest = places.len() - at;
        let comma = if at == 0 { "" } else { ", " };
        let times = if *count == 1 { String::new() } else { format!(" ×{count}") };
        let next = format!("{comma}{node}{times}");
        // Keep space for the number of omitted nodes, unless this is the last one.
        let reserve = if rest > 1 { width(", 9,999 nodes more") } else { 0 };
        if width(&text) + width(&next) + reserve > screen.text() {
            let more = counted(rest as u64, "node");
            return if at == 0 { more } else { format!("{text}, {more} more") };
        }
        text += &next;
    }
    text
}

/// "NotEnoughResources" → "not enough resources".
pub fn words(word: &str) -> String {
    // The code of this reason is a contract, but it is not plain English.
    if word == "NobodyMovesForIt" {
        return "no pods are moved for it".to_owned();
    }
    let mut text = String::new();
    for letter in word.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_do_not_fit_are_counted() {
        let places: Vec<(&str, u32)> = vec![("node-a", 2), ("node-b", 1), ("node-c", 4)];
        assert_eq!(fitting(&places, Screen::PIPE), "node-a ×2, node-b, node-c ×4");
        let narrow = Screen::columns(60).beside(32);
        assert_eq!(fitting(&places, narrow), "node-a ×2, 2 nodes more");
        assert_eq!(words("PodGroupNotFound"), "pod group not found");
    }
}
