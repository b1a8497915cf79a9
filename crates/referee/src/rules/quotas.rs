//! What queues may have.

use std::collections::BTreeSet;

use crate::cluster::{Queue, RESOURCES};
use crate::rules::Rule;
use crate::timeline::{Moment, Story};

pub const CAPABILITY: Rule = Rule {
    name: "capability",
    says: "With the plugin capacity no bind or nomination takes a queue above its capability in \
           what the pod requests, nor, in a hierarchy, a queue above it.",
    broken: capability,
};

/// What a queue, and with a hierarchy those below it, has of a resource among these pairs.
pub fn held_by<'p>(
    story: &Story,
    queue: &str,
    resource: usize,
    pairs: impl Iterator<Item = (&'p str, &'p str)>,
) -> i64 {
    let counts = |pod: &str| {
        let own = story.queue_of(pod);
        let below = || story.cluster().lineage(own).iter().any(|up| up.name == queue);
        story.pod(pod).is_some_and(|pod| !pod.foreign)
            && (own == queue || story.case.config.hierarchy && below())
    };
    pairs.filter(|(pod, _)| counts(pod)).map(|(pod, _)| story.request(pod).0[resource]).sum()
}

/// The queues whose limits hold for a pod.
pub fn limiting<'c>(story: &Story<'c>, pod: &str) -> Vec<&'c Queue> {
    let mut up = story.cluster().lineage(story.queue_of(pod));
    if !story.case.config.hierarchy {
        up.truncate(1);
    }
    up
}

/// The first limit that these pairs break in what a pod requests.
pub fn over_capability<'p>(
    story: &Story,
    pod: &str,
    pairs: &[(&'p str, &'p str)],
) -> Option<String> {
    for queue in limiting(story, pod) {
        for (resource, name) in RESOURCES.iter().enumerate().take(3) {
            let Some(limit) = queue.capability[resource] else { continue };
            let held = held_by(story, &queue.name, resource, pairs.iter().copied());
            if story.request(pod).0[resource] > 0 && held > limit {
                return Some(format!("queue {} has {held} of {limit} {name}", queue.name));
            }
        }
    }
    None
}

fn capability(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    if !story.case.config.capacity {
        return broken;
    }
    for moment in &story.moments {
        let bound: BTreeSet<&str> = moment.binds.iter().map(|(pod, _)| pod.as_str()).collect();
        let staying: Vec<(&str, &str)> = moment.staying().collect();
        let held = moment.held.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
        let all: Vec<(&str, &str)> = staying.iter().copied().chain(held).collect();
        let with = |pod: &str, pairs: &[(&str, &str)]| {
            over_capability(story, pod, pairs).map(|why| (moment.cycle, format!("{pod}: {why}")))
        };
        broken.extend(bound.iter().filter_map(|pod| with(pod, &staying)));
        broken.extend(nominated(moment).filter_map(|pod| with(pod, &all)));
    }
    broken
}

fn nominated(moment: &Moment) -> impl Iterator<Item = &str> {
    moment.held.keys().map(String::as_str)
}
