//! What evictions are for.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{Pod, Topology};
use crate::fit;
use crate::gangs::lacks;
use crate::output::Eviction;
use crate::rules::Rule;
use crate::rules::breaking::{Loss, losses};
use crate::rules::keeping::binds_come_first;
use crate::rules::quotas::over_capability;
use crate::timeline::{Moment, Story, makes_room};

pub const BENEFICIARY: Rule = Rule {
    name: "beneficiary",
    says: "Each eviction by preempt, reclaim or consolidate is for a gang with a new nomination \
           in that cycle (or a bind, if binds come later), and with its nominations that gang has \
           its minimum.",
    broken: beneficiary,
};

pub const NEEDED: Rule = Rule {
    name: "needed",
    says: "A nomination of the gang that pods leave for, or the new node of a pod that moves for \
           it, would fail if one of them stayed; the rest of a gang that is broken so may go too.",
    broken: needed,
};

/// What a gang gets in a cycle: new nominations, those that `allocate` could make good at once, and
/// the new nodes of pods that move for it.
fn served<'m>(story: &Story, moment: &'m Moment, preemptor: &str) -> Vec<(&'m str, &'m str)> {
    let own = |(pod, _): &(&str, &str)| story.gang_key(pod) == preemptor;
    let nominated = moment.nominations.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
    let bound = moment.binds.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
    let bound = bound.filter(|_| !binds_come_first(story));
    let moved = moment.made_room().filter(|(_, gang)| *gang == preemptor);
    let moved = moved.filter_map(|(one, _)| Some((one.pod.as_str(), one.moves_to.as_deref()?)));
    nominated.chain(bound).filter(own).chain(moved).collect()
}

fn beneficiary(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        let gangs: BTreeSet<&str> = moment.made_room().map(|(_, gang)| gang).collect();
        for gang in gangs {
            let evictions: Vec<&str> = moment
                .made_room()
                .filter(|(_, preemptor)| *preemptor == gang)
                .map(|(one, _)| one.pod.as_str())
                .collect();
            let own = |(pod, _): &(&str, &str)| story.gang_key(pod) == gang;
            if !served(story, moment, gang).iter().any(own) {
                let text = format!(
                    "{} leave for {gang}, which has no new nomination",
                    evictions.join(", ")
                );
                broken.push((moment.cycle, text));
                continue;
            }
            let pairs = moment.staying().chain(kept_room(moment));
            let pods: Vec<&Pod> =
                story.pods_of(gang, pairs).into_iter().map(|(pod, _)| pod).collect();
            if let Some(lack) = lacks(story.cluster().gang(gang), &pods) {
                broken.push((moment.cycle, format!("pods leave for {gang}, which {lack}")));
            }
        }
    }
    broken
}

fn needed(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for loss in losses(story, moment) {
            for one in &loss.evictions {
                let Eviction { pod, node, action, preemptor: Some(preemptor), .. } = one else {
                    continue;
                };
                let company = leaves_with(story, moment, &loss, pod);
                if !fails_beside(story, moment, preemptor, &[one])
                    && !fails_beside(story, moment, preemptor, &company)
                {
                    let text =
                        format!("{pod} leaves {node} ({action}) for {preemptor}, but could stay");
                    broken.push((moment.cycle, text));
                }
            }
        }
    }
    broken
}

/// The pods that would have to stay with one: a gang breaks as a whole, and so does a subgroup; and
/// what must stay close together moves as a whole.
fn leaves_with<'s>(
    story: &Story,
    moment: &Moment,
    loss: &Loss<'s>,
    pod: &str,
) -> Vec<&'s Eviction> {
    if loss.before.is_none() && loss.after.is_some() {
        return loss.evictions.clone();
    }
    let hard = |rule: Option<Topology>| rule.is_some_and(|rule| rule.hard);
    let close = story.gang_of(pod).is_some_and(|gang| {
        hard(gang.topology) || gang.subgroups.as_ref().is_some_and(|part| hard(part.topology))
    });
    if close && loss.evictions.iter().any(|one| one.pod == pod && one.moves_to.is_some()) {
        return loss.evictions.iter().copied().filter(|one| one.moves_to.is_some()).collect();
    }
    let size = story.gang_of(pod).and_then(|gang| Some(gang.subgroups.as_ref()?.size));
    let part = |pod: &str| story.pod(pod)?.labels.get("part");
    let own = |other: &str| story.gang_key(other) == loss.gang && part(other) == part(pod);
    let before = moment.occupied().filter(|(other, _)| own(other)).count();
    let after = moment.staying().filter(|(other, _)| own(other)).count();
    match size {
        Some(size) if part(pod).is_some() && before >= size && after < size => {
            loss.evictions.iter().copied().filter(|one| own(&one.pod)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether something would fail that a gang gets if these pods stayed where they are.
fn fails_beside(story: &Story, moment: &Moment, preemptor: &str, stay: &[&Eviction]) -> bool {
    let stays = |pod: &str| stay.iter().any(|one| one.pod == pod);
    let back = stay.iter().map(|one| (one.pod.as_str(), one.node.as_str()));
    // Their successors are not kept another place.
    let kept = kept_room(moment).into_iter().filter(|(pod, _)| !stays(pod));
    // Stale gangs leave after room was made.
    let stale = moment.evictions.iter().filter(|one| !makes_room(&one.action));
    let stale = stale.map(|one| (one.pod.as_str(), one.node.as_str()));
    let pairs: Vec<(&str, &str)> = moment.staying().chain(stale).chain(kept).chain(back).collect();
    let known: Vec<(&Pod, &str)> =
        pairs.iter().filter_map(|&(pod, node)| Some((story.pod(pod)?, node))).collect();
    let cluster = story.cluster();
    let served = served(story, moment, preemptor);
    served.iter().filter(|(pod, _)| !stays(pod)).any(|&(pod, name)| {
        let (Some(one), Some(node)) = (story.pod(pod), cluster.node(name)) else { return false };
        let used = story.used_on(name, pairs.iter().copied());
        let short = |at: usize| one.request.0[at] > 0 && used.0[at] > node.allocatable.0[at];
        let limited = || {
            story.case.config.capacity
                && stay.iter().any(|victim| shares_a_queue(story, pod, &victim.pod))
                && over_capability(story, pod, &pairs).is_some()
        };
        stay.iter().any(|victim| victim.node == name) && (0..used.0.len()).any(short)
            || limited()
            || fit::anti_affinity(cluster, one, name, &known).is_some()
            || fit::spread(cluster, one, name, &known).is_some()
    })
}

/// Nominations, and room that is kept for moved pods, also for those that earlier cycles moved.
fn kept_room(moment: &Moment) -> BTreeMap<&str, &str> {
    let awaited = moment.awaited.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
    awaited.chain(moment.kept()).collect()
}

/// Whether a limit holds for both pods.
fn shares_a_queue(story: &Story, pod: &str, victim: &str) -> bool {
    let own = crate::rules::quotas::limiting(story, pod);
    crate::rules::quotas::limiting(story, victim)
        .iter()
        .any(|queue| own.iter().any(|other| other.name == queue.name))
}
