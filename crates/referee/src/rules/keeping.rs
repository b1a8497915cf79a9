//! What one cycle gives, the next does not take away.

use std::collections::BTreeSet;

use crate::rules::Rule;
use crate::timeline::{Moment, Story, makes_room};

pub const NO_BIND_IN_VAIN: Rule = Rule {
    name: "no-bind-in-vain",
    says: "If nothing changed but by the scheduler's own writes, no pod that a cycle bound is \
           evicted to make room in the next.",
    broken: no_bind_in_vain,
};

pub const NOMINATED_ROOM: Rule = Rule {
    name: "nominated-room",
    says: "allocate and backfill give room that a nomination keeps to no other gang.",
    broken: nominated_room,
};

fn no_bind_in_vain(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for pair in story.moments.windows(2).filter(|pair| !pair[1].recreated) {
        let (before, after) = (&pair[0], &pair[1]);
        for eviction in after.evictions.iter().filter(|one| makes_room(&one.action)) {
            if before.binds.iter().any(|(pod, _)| *pod == eviction.pod) {
                // Pods that left in between were asked to by the scheduler: that is no excuse.
                let text = format!(
                    "{} was bound in the cycle before, {} pods left, and {} evicts it for {}",
                    eviction.pod,
                    before.evictions.len(),
                    eviction.action,
                    eviction.preemptor.as_deref().unwrap_or("none"),
                );
                broken.push((after.cycle, text));
            }
        }
    }
    broken
}

/// A nomination that stood is gone, and its room would still be there without pods that were bound
/// to the node without a nomination of their own.
fn nominated_room(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    if !binds_come_first(story) {
        return broken;
    }
    for pair in story.moments.windows(2) {
        let (before, moment) = (&pair[0], &pair[1]);
        for (pod, name) in &moment.held_before {
            let kept = moment.held.get(pod) == Some(name);
            let bound = moment.binds.iter().any(|(bound, _)| bound == pod);
            let Some(node) = story.cluster().node(name).filter(|_| !kept && !bound) else {
                continue;
            };
            let gang = story.gang_key(pod);
            let taken = takers(story, (before, moment), name, &gang);
            let others = moment.staying().chain(moment.kept());
            let used = story.used_on(name, others) + story.request(pod);
            let fits_without = |pods: &[String]| {
                let freed = pods.iter().map(|pod| story.request(pod)).sum();
                (used - freed).exceeds(&node.allocatable).is_none()
            };
            if used.exceeds(&node.allocatable).is_some()
                && fits_without(&taken)
                && !fits_without(&gains(story, moment, name))
            {
                let text = format!("{pod} loses its nomination to {name} to {}", taken.join(", "));
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}

/// Whether all binds of a cycle are decided before any action that may withdraw nominations.
pub fn binds_come_first(story: &Story) -> bool {
    let actions = &story.case.config.actions;
    let first = actions.iter().position(|action| makes_room(action)).unwrap_or(actions.len());
    let binds = |action: &&str| matches!(*action, "allocate" | "backfill");
    actions.iter().rposition(binds).is_none_or(|last| last < first)
}

/// What gangs for which pods leave get on a node: actions that evict may withdraw nominations.
fn gains(story: &Story, moment: &Moment, node: &str) -> Vec<String> {
    let served: BTreeSet<&str> = moment.made_room().map(|(_, gang)| gang).collect();
    let new = moment.nominations.iter().filter(|(_, at)| *at == node).map(|(pod, _)| pod.clone());
    let new = new.filter(|pod| served.contains(story.gang_key(pod).as_str()));
    let moved = moment.evictions.iter().filter(|one| one.moves_to.as_deref() == Some(node));
    new.chain(moved.map(|one| one.pod.clone())).collect()
}

/// Pods of other gangs that were bound to a node that was not kept for them, by a nomination or as
/// successors of moved pods.
fn takers(
    story: &Story,
    (before, moment): (&Moment, &Moment),
    node: &str,
    gang: &str,
) -> Vec<String> {
    let kept = [&moment.held_before, &before.awaited];
    let nominated =
        |pod: &String| kept.iter().any(|kept| kept.get(pod).is_some_and(|at| at == node));
    let binds = moment.binds.iter().filter(|(pod, at)| at == node && !nominated(pod));
    binds.map(|(pod, _)| pod.clone()).filter(|pod| story.gang_key(pod) != gang).collect()
}
