//! Time division: nodes that have another purpose for a part of the day and accept revocable work
//! for the rest of it.

use std::cmp::{Ordering, Reverse};

use muster_api::Time;

use crate::base::ids::{GangId, NodeId, PodId, ShapeId};
use crate::base::purpose::Purpose;
use crate::base::room::Room;
use crate::decision::cause::Cause;
use crate::decision::node_reason::Why;
use crate::model::Cluster;
use crate::model::gangs::Gang;
use crate::model::pods::PodState;
use crate::policy::plugin::{Entry, Plugin, Scope, Unwanted, Veto, answers};
use crate::policy::preemptor::Preemptor;
use crate::settings::args::Args;
use crate::settings::argument::Argument;

const ZONE: &str = "tdm.revocable-zone.";
const PERIOD: &str = "tdm.evict.period";
const OFFSET: &str = "tdm.time-zone";

pub static ENTRY: Entry = Entry {
    name: "tdm",
    summary: "nodes with the label volcano.sh/revocable-zone are for preemptable pods, while the \
              zone's window is open",
    arguments: &[
        Argument {
            name: "tdm.revocable-zone.<zone>",
            default: "",
            meaning: "when the zone is open, as in 22:00-06:00; an end before the start is on the \
                      next day",
        },
        Argument {
            name: PERIOD,
            default: "1m",
            meaning: "the action `shuffle` evicts pods from closed zones at most this often",
        },
        Argument {
            name: OFFSET,
            default: "UTC",
            meaning: "time zone of the windows: UTC, or an offset from it like +08:00",
        },
    ],
    differs: "A window that began yesterday is open until it ends. Hours are in a time zone that \
              is written down, not in the scheduler's own. Pods stay in zones that the \
              configuration doesn't name. It only protects pods; which of the others go first is \
              up to `priority` and `drf`.",
    build: |args, _| Box::new(Tdm::new(args)),
};

struct Tdm {
    /// By name.
    zones: Vec<(String, Window)>,
    period_ms: i64,
    /// How far the clock of the windows is ahead of UTC.
    offset_ms: i64,
}

/// Start and end in the day, in milliseconds. An end that is not after the start is on the next
/// day.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Window {
    start: i64,
    end: i64,
}

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
const POINTS: i64 = 100_000;

impl Window {
    fn parse(text: &str) -> Option<Window> {
        let (start, end) = text.split_once('-')?;
        Some(Window { start: time_of_day(start)?, end: time_of_day(end)? })
    }

    fn is_open(self, time_of_day: i64) -> bool {
        let (begun, over) = (time_of_day >= self.start, time_of_day >= self.end);
        if self.start < self.end { begun && !over } else { begun || !over }
    }

    /// How long until it opens or closes; a window that begins when it ends never does.
    fn until_change(self, time_of_day: i64) -> Option<i64> {
        let until = |edge: i64| (edge - time_of_day - 1).rem_euclid(DAY) + 1;
        (self.start != self.end).then(|| until(self.start).min(until(self.end)))
    }
}

/// Milliseconds from midnight to "HH:MM".
fn time_of_day(text: &str) -> Option<i64> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str, below: i64| {
        let digits =
            (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| digits && *number < below)
    };
    Some((number(hours, 24)? * 60 + number(minutes, 60)?) * MINUTE)
}

/// How many milliseconds "UTC" or "+08:00" is ahead of UTC.
fn offset(text: &str) -> Option<i64> {
    match text.split_at_checked(1)? {
        _ if text == "UTC" => Some(0),
        ("+", ahead) => time_of_day(ahead),
        ("-", behind) => time_of_day(behind).map(|behind| -behind),
        _ => None,
    }
}

impl Tdm {
    fn new(args: &mut Args) -> Tdm {
        let mut zones = Vec::new();
        for (zone, text) in args.prefixed_text(ZONE) {
            match Window::parse(&text) {
                Some(window) => zones.push((zone, window)),
                None => {
                    let message = format!("expected hours like 22:00-06:00, found {text:?}");
                    args.problem(&format!("{ZONE}{zone}"), message, String::new());
                }
            }
        }
        let written = args.words(OFFSET).join(" ");
        let offset_ms = if written.is_empty() { Some(0) } else { offset(&written) };
        if offset_ms.is_none() {
            let message = format!("expected UTC or an offset like +08:00, found {written:?}");
            let help =
                "names of time zones are not known here; write the offset from UTC".to_owned();
            args.problem(OFFSET, message, help);
        }
        let period_ms = args.duration_ms(PERIOD, Some(MINUTE)).unwrap_or(MINUTE);
        Tdm { zones, period_ms, offset_ms: offset_ms.unwrap_or(0) }
    }

    fn time_of_day(&self, now: Time) -> i64 {
        now.plus_ms(self.offset_ms).0.rem_euclid(DAY)
    }

    /// Whether a zone is open, if it is known.
    fn is_open(&self, zone: &str, now: Time) -> Option<bool> {
        let (_, window) = self.zones.iter().find(|(name, _)| name == zone)?;
        Some(window.is_open(self.time_of_day(now)))
    }

    fn admits(&self, zone: &str, revocable: bool, now: Time) -> Why {
        match self.is_open(zone, now) {
            _ if !revocable => Why::RevocableOnly,
            None => Why::ZoneUnknown,
            Some(false) => Why::ZoneClosed,
            Some(true) => Why::Fits,
        }
    }
}

fn is_revocable(cluster: &Cluster, pod: PodId) -> bool {
    cluster.shapes[cluster.pods.shape[pod]].revocable
}

/// Why no more pods of a gang may be evicted now, if so. A gang without annotations loses one pod
/// at a time.
fn holds_on(gang: &Gang) -> Option<&'static str> {
    let counts = &gang.counts;
    let all = i64::from(counts.all() - counts.succeeded - counts.failed);
    let up = i64::from(counts.running + counts.allocated);
    let says = gang.rare.as_deref();
    match (says.and_then(|says| says.min_available), says.and_then(|says| says.max_unavailable)) {
        (None, None) => (counts.releasing > 0).then_some("tdm (one pod of a gang at a time)"),
        (least, most) => {
            let short = least.is_some_and(|least| up <= least.of(all));
            let full = most.is_some_and(|most| all - up >= most.of(all));
            (short || full).then_some("its gang's jdb annotations")
        }
    }
}

#[answers]
impl Plugin for Tdm {
    /// Pods that can't be revoked go first, since fewer nodes accept them.
    fn gang_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        cluster.gangs[a].revocable.cmp(&cluster.gangs[b].revocable)
    }

    fn filter(
        &self,
        reach: Scope,
        cluster: &Cluster,
        (shape, _): (ShapeId, Room),
        nodes: &[NodeId],
        why: &mut [Why],
    ) {
        if reach != Scope::NodeFacts {
            return;
        }
        let revocable = cluster.shapes[shape].revocable;
        for (&node, why) in nodes.iter().zip(why).filter(|(_, why)| **why == Why::Fits) {
            if let Some(zone) = cluster.nodes.fact[node].zone() {
                *why = self.admits(zone, revocable, cluster.now);
            }
        }
    }

    fn score(
        &self,
        reach: Scope,
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) {
        if reach != Scope::NodeFacts || !cluster.shapes[shape].revocable {
            return;
        }
        for (&node, score) in nodes.iter().zip(scores) {
            *score += cluster.nodes.fact[node].zone().map_or(0, |_| POINTS);
        }
    }

    fn next_change(&self, now: Time) -> Option<Time> {
        let time_of_day = self.time_of_day(now);
        let changes = self.zones.iter().filter_map(|(_, window)| window.until_change(time_of_day));
        changes.min().map(|wait| now.plus_ms(wait))
    }

    fn vetoes(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> Option<Veto> {
        let rule = match preemptor.purpose {
            // Pods of one gang may evict each other.
            Purpose::Within | Purpose::Reclaim => return None,
            _ if is_revocable(cluster, preemptor.pod) => {
                "tdm (revocable pods take room from no other pod)"
            }
            _ if !is_revocable(cluster, victim) => "tdm (not marked as preemptable)",
            _ => return None,
        };
        Some(Veto { rule, until: None })
    }

    fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<&'static str> {
        holds_on(&cluster.gangs[cluster.pods.gang[victim]?])
            .filter(|_| preemptor.purpose == Purpose::Preempt)
    }

    /// Revocable pods on nodes whose zone is closed. Other pods are not evicted.
    fn pods_to_shuffle(&self, cluster: &Cluster) -> Unwanted {
        let closed = |node: NodeId| {
            let zone = cluster.nodes.fact[node].zone();
            zone.is_some_and(|zone| self.is_open(zone, cluster.now) == Some(false))
        };
        let leaves = |pod: &PodId| {
            matches!(cluster.pods.state[*pod], PodState::Running(_)) && is_revocable(cluster, *pod)
        };
        let nodes = cluster.nodes.by_rank.iter().copied().filter(|&node| closed(node));
        let mut pods: Vec<PodId> = nodes
            .flat_map(|node| cluster.nodes.pods_on[node].iter().copied().filter(leaves))
            .collect();
        let again = cluster.shuffled.map(|last| last.plus_ms(self.period_ms));
        if let Some(again) = again.filter(|&again| again > cluster.now && !pods.is_empty()) {
            return Unwanted { pods: Vec::new(), next: Some(again) };
        }
        pods.sort_by_cached_key(|&pod| {
            let fact = &cluster.pods.fact[pod];
            (fact.priority, Reverse(fact.started), fact.key.clone())
        });
        Unwanted {
            pods: pods.into_iter().map(|pod| (pod, Cause::ZoneClosed)).collect(),
            next: None,
        }
    }

    fn vetoes_shuffle(&self, cluster: &Cluster, pod: PodId) -> Option<&'static str> {
        holds_on(&cluster.gangs[cluster.pods.gang[pod]?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * MINUTE;

    #[test]
    fn a_window_over_midnight_is_open_on_both_sides_of_it() {
        let night = Window::parse("22:00-06:00").unwrap();
        let open = |hour: i64| night.is_open(hour * HOUR);
        assert_eq!(
            [0, 5, 6, 12, 21, 22, 23].map(open),
            [true, true, false, false, false, true, true]
        );
        let day = Window::parse("8:30 - 17:00").unwrap();
        assert!(!day.is_open(8 * HOUR) && day.is_open(9 * HOUR) && !day.is_open(17 * HOUR));
        let always = Window::parse("03:00-03:00").unwrap();
        assert!(always.is_open(0) && always.is_open(3 * HOUR) && always.is_open(23 * HOUR));
    }

    #[test]
    fn the_next_change_is_the_nearest_edge_after_now() {
        let night = Window::parse("22:00-06:00").unwrap();
        assert_eq!(night.until_change(0), Some(6 * HOUR));
        assert_eq!(night.until_change(6 * HOUR), Some(16 * HOUR));
        assert_eq!(night.until_change(22 * HOUR - 1), Some(1));
        assert_eq!(night.until_change(22 * HOUR), Some(8 * HOUR));
        assert_eq!(Window::parse("03:00-03:00").unwrap().until_change(0), None);
    }

    #[test]
    fn hours_and_offsets_are_read_and_nothing_else() {
        for text in [
            "",
            "22-06",
            "24:00-06:00",
            "22:60-06:00",
            "22:00",
            "22:00-",
            "a:b-c:d",
            "22:00:00-06:00",
        ] {
            assert_eq!(Window::parse(text), None, "{text}");
        }
        assert_eq!(offset("UTC"), Some(0));
        assert_eq!(offset("+08:00"), Some(8 * HOUR));
        assert_eq!(offset("-05:30"), Some(-5 * HOUR - 30 * MINUTE));
        for text in ["", "Europe/Berlin", "CET", "8", "08:00", "+8h", "é"] {
            assert_eq!(offset(text), None, "{text}");
        }
    }
}
