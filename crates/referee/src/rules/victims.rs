//! Which pods each gang may evict.

use crate::cluster::{Pod, RESOURCES};
use crate::config::Mode;
use crate::rules::Rule;
use crate::rules::quotas::held_by;
use crate::timeline::{Moment, Story, makes_room};

pub const PROTECTED: Rule = Rule {
    name: "protected",
    says: "Pods that say they are not preemptable, system pods and pods of other schedulers are \
           never evicted, and only actions that are configured evict.",
    broken: protected,
};

pub const PREEMPT: Rule = Rule {
    name: "preempt",
    says: "preempt evicts gangs of strictly lower priority in the same queue, and nothing for a \
           gang that never preempts.",
    broken: preempt,
};

pub const RECLAIM: Rule = Rule {
    name: "reclaim",
    says: "reclaim evicts from other queues that may be reclaimed; in modes task and gang from \
           those with more than they deserve of something that the gang requests.",
    broken: reclaim,
};

pub const GUARANTEE: Rule = Rule {
    name: "guarantee",
    says: "reclaim leaves each queue what it is guaranteed, in what its victims request.",
    broken: guarantee,
};

fn keeps(story: &Story, pod: &Pod) -> Option<&'static str> {
    let gang = story.cluster().gang_of(pod);
    if pod.foreign {
        Some("it belongs to another scheduler")
    } else if pod.preemptable == Some(false)
        || gang.is_some_and(|gang| gang.preemptable == Some(false))
    {
        Some("it is not preemptable")
    } else if pod.namespace == "kube-system" || pod.class.starts_with("system-") {
        Some("it is a system pod")
    } else {
        None
    }
}

fn protected(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for eviction in &moment.evictions {
            let why = story.pod(&eviction.pod).and_then(|pod| keeps(story, pod));
            broken.extend(why.map(|why| (moment.cycle, format!("{}: {why}", eviction.pod))));
            if !story.case.config.acts(&eviction.action) {
                let text = format!("{}: {} is not configured", eviction.pod, eviction.action);
                broken.push((moment.cycle, text));
            }
            if makes_room(&eviction.action) == eviction.preemptor.is_none() {
                let text = format!(
                    "{}: {} evicts for {:?}",
                    eviction.pod, eviction.action, eviction.preemptor
                );
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}

fn preempt(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    let cluster = story.cluster();
    for moment in &story.moments {
        for (eviction, preemptor) in moment.made_room().filter(|(one, _)| one.action == "preempt") {
            let victim = story.gang_key(&eviction.pod);
            if victim == preemptor {
                continue;
            }
            let mut wrong = |why: String| {
                let text = format!("{} is evicted for {preemptor}: {why}", eviction.pod);
                broken.push((moment.cycle, text));
            };
            let (from, to) = (story.queue_of(&eviction.pod), story.queue_of_gang(preemptor));
            if from != to {
                wrong(format!("queues {from} and {to}"));
            }
            let (low, high) = (cluster.priority(&victim), cluster.priority(preemptor));
            if low >= high {
                wrong(format!("priority {low} against {high}"));
            }
            let nominated = moment.nominations.keys().filter_map(|pod| story.pod(pod));
            let mut own = nominated.filter(|pod| pod.gang_key() == preemptor).peekable();
            if own.peek().is_some() && own.all(|pod| pod.never_preempts) {
                wrong("it never preempts".to_owned());
            }
        }
    }
    broken
}

fn reclaim(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    let cluster = story.cluster();
    for moment in &story.moments {
        for (eviction, preemptor) in moment.made_room().filter(|(one, _)| one.action == "reclaim") {
            let mut wrong = |why: String| {
                let text = format!("{} is evicted for {preemptor}: {why}", eviction.pod);
                broken.push((moment.cycle, text));
            };
            let (from, to) = (story.queue_of(&eviction.pod), story.queue_of_gang(preemptor));
            if from == to {
                wrong(format!("both are in queue {from}"));
            }
            if cluster.queue(from).is_some_and(|queue| queue.reclaimable == Some(false)) {
                wrong(format!("queue {from} is not reclaimable"));
            }
            let config = &story.case.config;
            if config.reclaim != Mode::Scenario && !has_too_much(story, moment, from, preemptor) {
                wrong(format!("queue {from} has no more than it deserves of what it requests"));
            }
        }
    }
    broken
}

/// Whether a queue had, at any time in the cycle, more than it deserves of something that a gang
/// requests.
fn has_too_much(story: &Story, moment: &Moment, queue: &str, preemptor: &str) -> bool {
    let Some(row) = story.cluster().queue(queue) else { return false };
    let before = moment.held_before.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
    let pairs: Vec<(&str, &str)> = moment.occupied().chain(before).chain(moment.kept()).collect();
    (0..RESOURCES.len() - 1).any(|resource| {
        let mut own = story.cluster().pods.iter().filter(|pod| pod.gang_key() == preemptor);
        let held = held_by(story, queue, resource, pairs.iter().copied());
        own.any(|pod| pod.request.0[resource] > 0) && held > row.deserved[resource].unwrap_or(0)
    })
}

fn guarantee(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for (eviction, _) in moment.made_room().filter(|(one, _)| one.action == "reclaim") {
            let queue = story.queue_of(&eviction.pod);
            let Some(row) = story.cluster().queue(queue) else { continue };
            for (resource, name) in RESOURCES.iter().enumerate().take(3) {
                let least = row.guarantee[resource].unwrap_or(0);
                let left = held_by(story, queue, resource, moment.staying().chain(moment.kept()));
                if story.request(&eviction.pod).0[resource] > 0 && left < least {
                    let text = format!("{queue} is left {left} of {least} {name}");
                    broken.push((moment.cycle, text));
                }
            }
        }
    }
    broken
}
