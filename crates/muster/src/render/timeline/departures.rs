//! When pods leave that take longer than a second.

use std::collections::BTreeMap;

use muster_api::Time;
use muster_engine::explain::{counted, duration};
use muster_sim::report::Leaves;

use super::Teller;
use crate::render::text::{DIM, OVER};

/// Pods of a gang by node, and when they leave.
type Group<'s> = (&'s str, &'s Leaves);

/// Something that happened to pods of a gang: cycle, gang, and what.
type Happened<'s> = (u64, &'s str, String);

impl Teller<'_> {
    /// " (leaves at +30s, grace 30s)", or nothing for a pod that leaves within a second.
    pub(super) fn leaves_at(&self, leaves: Option<&Leaves>) -> String {
        let Some(Leaves { terminated, gone, grace_seconds }) = leaves else {
            return String::new();
        };
        let grace = grace_seconds
            .map(|seconds| format!("grace {}", duration(seconds.saturating_mul(1000))));
        let finalizer =
            gone.as_ref().map(|gone| format!("kept by a finalizer until {}", self.passed(gone)));
        let at = Some(format!("leaves at {}", self.passed(terminated)));
        let parts: Vec<String> = [at, grace, finalizer].into_iter().flatten().collect();
        format!(" ({})", parts.join(", "))
    }

    /// "+30s": a time after the first cycle.
    fn passed(&self, time: &str) -> String {
        let time = Time::parse(time).unwrap_or_default();
        format!("+{}", duration(time.0.saturating_sub(self.clock.start.0)))
    }

    /// Pods that were being deleted before the first cycle.
    pub(super) fn terminating(&self) -> Vec<(u64, Vec<String>)> {
        let mut groups: BTreeMap<(&str, String), BTreeMap<&str, u32>> = BTreeMap::new();
        for pod in &self.simulation.report.terminating {
            let key = (&*pod.gang, self.leaves_at(Some(&pod.leaves)));
            *groups.entry(key).or_default().entry(&pod.node).or_default() += 1;
        }
        let first = self.clock.cycles.first().map_or(1, |(cycle, _)| *cycle);
        let line = |((gang, when), nodes): ((&str, String), BTreeMap<&str, u32>)| {
            let count = nodes.values().sum::<u32>();
            let what = format!("{} terminating{when}", counted(count.into(), "pod"));
            let places: Vec<(&str, u32)> = nodes.into_iter().collect();
            (first, vec![self.placed(gang, &what, DIM, &places)])
        };
        groups.into_iter().map(line).collect()
    }

    /// Pods that have left within the run, and objects that finalizers have let go.
    pub(super) fn departures(&self) -> Vec<(u64, Vec<String>)> {
        let report = &self.simulation.report;
        let evicted = report.evictions.iter().filter(|eviction| eviction.refused.is_none());
        let evicted = evicted
            .filter_map(|one| Some(((&*one.gang, one.leaves.as_ref()?), &*one.node)))
            .collect::<Vec<(Group, &str)>>();
        let deleted = report.terminating.iter().map(|one| ((&*one.gang, &one.leaves), &*one.node));
        let mut happened: BTreeMap<Happened, BTreeMap<&str, u32>> = BTreeMap::new();
        let mut note = |gang, node, time: &str, what: &str| {
            let time = Time::parse(time).unwrap_or_default();
            if let Some(cycle) = self.clock.cycle_at(time) {
                let nodes = happened.entry((cycle, gang, what.to_owned())).or_default();
                *nodes.entry(node).or_default() += 1;
            }
        };
        for ((gang, leaves), node) in evicted.into_iter().chain(deleted) {
            match &leaves.gone {
                None => note(gang, node, &leaves.terminated, "left"),
                Some(gone) => {
                    note(gang, node, &leaves.terminated, "terminated");
                    note(gang, node, gone, "gone");
                }
            }
        }
        let line = |((cycle, gang, what), nodes): (Happened, BTreeMap<&str, u32>)| {
            let count = nodes.values().sum::<u32>();
            let what = format!("{} {what}", counted(count.into(), "pod"));
            let places: Vec<(&str, u32)> = nodes.into_iter().collect();
            (cycle, vec![self.placed(gang, &what, OVER, &places)])
        };
        happened.into_iter().map(line).collect()
    }
}
