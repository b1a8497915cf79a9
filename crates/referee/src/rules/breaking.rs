//! When gangs may be broken, and what leaves with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{Pod, Seconds};
use crate::config::Mode;
use crate::gangs::{complete_since, lacks};
use crate::output::Eviction;
use crate::rules::Rule;
use crate::timeline::{Moment, Story, makes_room};

pub const WHOLE: Rule = Rule {
    name: "whole",
    says: "Mode task breaks no gang but those of one pod, nor does any mode without whole \
           bundles; and of a gang that is broken nothing stays on the nodes where the others left.",
    broken: whole,
};

pub const RUN_TIME: Rule = Rule {
    name: "run-time",
    says: "A gang that has its minimum keeps it until its minimum run time is over, whatever \
           leaves or moves in the same plan.",
    broken: run_time,
};

pub const STALE: Rule = Rule {
    name: "stale",
    says: "stalegangeviction evicts a gang that lacks its minimum, or a subgroup that lacks its \
           size, after the grace period; and nothing for ever where that is negative.",
    broken: stale,
};

/// Evictions of one gang in one cycle by actions that make room.
pub struct Loss<'s> {
    pub gang: String,
    pub evictions: Vec<&'s Eviction>,
    /// What the gang lacked before, and what it lacks without those that leave.
    pub before: Option<String>,
    pub after: Option<String>,
    /// Its pods that stay, and their nodes.
    pub staying: Vec<(&'s Pod, &'s str)>,
}

/// The gangs that lose pods in a cycle.
pub fn losses<'s>(story: &'s Story, moment: &'s Moment) -> Vec<Loss<'s>> {
    let mut of: BTreeMap<String, Vec<&Eviction>> = BTreeMap::new();
    for eviction in moment.evictions.iter().filter(|one| makes_room(&one.action)) {
        of.entry(story.gang_key(&eviction.pod)).or_default().push(eviction);
    }
    let loss = |(gang, evictions): (String, Vec<&'s Eviction>)| {
        let group = story.cluster().gang(&gang);
        let lack = |pairs: &[(&'s Pod, &'s str)]| {
            lacks(group, &pairs.iter().map(|(pod, _)| *pod).collect::<Vec<&Pod>>())
        };
        // A gang counts as if it ran where it is nominated.
        let nominated = moment.held_before.iter().map(|(pod, node)| (&**pod, &**node));
        let bound = |pod: &str| moment.binds.iter().any(|(bound, _)| bound == pod);
        let nominated = nominated.filter(|(pod, _)| !bound(pod));
        let before = lack(&story.pods_of(&gang, moment.occupied().chain(nominated)));
        let staying = story.pods_of(&gang, moment.staying());
        Loss { before, after: lack(&staying), gang, evictions, staying }
    };
    of.into_iter().map(loss).collect()
}

fn whole(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    let config = &story.case.config;
    for moment in &story.moments {
        for loss in losses(story, moment) {
            // A gang runs on with the pods that it has elsewhere.
            let moved = moment
                .evictions
                .iter()
                .filter_map(|one| Some((one.pod.as_str(), one.moves_to.as_deref()?)));
            let pods = story.pods_of(&loss.gang, moment.staying().chain(moved));
            let pods: Vec<&Pod> = pods.into_iter().map(|(pod, _)| pod).collect();
            let lack = lacks(story.cluster().gang(&loss.gang), &pods);
            let Some(lack) = lack.filter(|_| loss.before.is_none()) else { continue };
            let by = |eviction: &&Eviction| eviction.preemptor.as_ref() != Some(&loss.gang);
            let others = || loss.evictions.iter().copied().filter(by);
            let pods = |pairs: &mut dyn Iterator<Item = &Eviction>| {
                pairs.map(|one| one.pod.as_str()).collect::<Vec<&str>>().join(", ")
            };
            let single = loss.staying.is_empty() && loss.evictions.len() == 1;
            let task = others().all(|one| config.mode_of(&one.action) == Mode::Task);
            let unmoved = others().any(|one| one.moves_to.is_none());
            if others().next().is_some() && !single && (task || !config.whole_bundles && unmoved) {
                let text = format!("{} {lack} without {}", loss.gang, pods(&mut others()));
                broken.push((moment.cycle, text));
            }
            // With `evictBrokenGang` pods elsewhere go too, as far as budgets let them.
            let cleared: BTreeSet<&str> = others()
                .filter(|one| config.mode_of(&one.action) != Mode::Task && one.moves_to.is_none())
                .filter(|one| !config.evict_broken_gangs || is_served(story, moment, one))
                .map(|one| one.node.as_str())
                .collect();
            for (pod, node) in loss.staying.iter().filter(|(_, node)| cleared.contains(node)) {
                let text = format!("{} {lack}, and {} stays on {node}", loss.gang, pod.key());
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}

/// Whether the gang that a pod leaves for is nominated to its node.
fn is_served(story: &Story, moment: &Moment, eviction: &Eviction) -> bool {
    let own = |pod: &str| Some(story.gang_key(pod)) == eviction.preemptor;
    moment.nominations.iter().any(|(pod, node)| *node == eviction.node && own(pod))
}

fn run_time(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for loss in losses(story, moment) {
            let (None, Some(lack)) = (&loss.before, &loss.after) else { continue };
            let group = story.cluster().gang(&loss.gang);
            let running = moment.placed.iter().filter_map(|(pod, spot)| {
                let pod = story.pod(pod)?;
                (pod.gang_key() == loss.gang).then_some((pod, spot.since))
            });
            let Some(since) = complete_since(group, running.collect()) else { continue };
            let ran = moment.now() - since;
            let least: Vec<Seconds> = loss
                .evictions
                .iter()
                .filter(|one| one.preemptor.as_ref() != Some(&loss.gang))
                .map(|one| min_runtime(story, one))
                .collect();
            // One that may break it may have come after one that may not.
            if let Some(least) = least.iter().min().filter(|least| **least > ran) {
                let text = format!("{} {lack} after {ran}s of {least}s", loss.gang);
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}

/// How long the gang of a victim keeps its minimum from the gang that it leaves for.
fn min_runtime(story: &Story, eviction: &Eviction) -> Seconds {
    let Some((preempt, reclaim)) = story.case.config.min_runtimes else { return 0 };
    let cluster = story.cluster();
    let up = cluster.lineage(story.queue_of(&eviction.pod));
    if eviction.action != "reclaim" {
        return up.iter().find_map(|queue| queue.preempt_min_runtime).unwrap_or(preempt);
    }
    let preemptor = eviction.preemptor.as_deref().unwrap_or_default();
    let other = cluster.lineage(story.queue_of_gang(preemptor));
    let shared = |name: &str| other.iter().any(|queue| queue.name == name);
    // From the last queue before the two ways up meet; those without a parent meet at the root.
    let meet = up.iter().position(|queue| shared(&queue.name)).unwrap_or(up.len());
    let from = meet.saturating_sub(1);
    up[from..].iter().find_map(|queue| queue.reclaim_min_runtime).unwrap_or(reclaim)
}

fn stale(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    let grace = story.case.config.staleness_grace;
    for moment in &story.moments {
        let stale = moment.evictions.iter().filter(|one| one.action == "stalegangeviction");
        for eviction in stale.clone() {
            let key = story.gang_key(&eviction.pod);
            let group = story.cluster().gang(&key);
            // Other actions may have broken it before, in the same cycle.
            let stale = stale.clone().map(|one| (one.pod.as_str(), one.node.as_str()));
            let pairs = story.pods_of(&key, moment.staying().chain(stale));
            let pods: Vec<&Pod> = pairs.into_iter().map(|(pod, _)| pod).collect();
            let part = group.and_then(|gang| gang.subgroups.as_ref());
            let small = part.is_some_and(|rule| {
                let parts = crate::gangs::subgroups(&pods);
                let label = story.pod(&eviction.pod).and_then(|pod| pod.labels.get("part"));
                label.is_some_and(|label| parts[label.as_str()].len() < rule.size)
            });
            if lacks(group, &pods).is_none() && !small {
                broken.push((
                    moment.cycle,
                    format!("{} is evicted, but {key} lacks nothing", eviction.pod),
                ));
            }
            if grace < 0 || moment.now() < grace {
                let text =
                    format!("{} is evicted after {}s of {grace}s", eviction.pod, moment.now());
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}
