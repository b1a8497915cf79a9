//! What is bound, and where.

use std::collections::BTreeSet;

use crate::cluster::Pod;
use crate::fit;
use crate::gangs::{lacks, near_enough, subgroups};
use crate::rules::Rule;
use crate::timeline::{Moment, Story};

pub const MINIMUM: Rule = Rule {
    name: "minimum",
    says: "A gang of which pods are bound has its minimum then, its roles' and its subgroups'; a \
           gang that holds nominations will have it with them.",
    broken: minimum,
};

pub const TOPOLOGY: Rule = Rule {
    name: "topology",
    says: "All pods of a gang or subgroup with a hard limit are, and will be, in one domain that \
           it allows.",
    broken: topology,
};

pub const NODE_TAKES_POD: Rule = Rule {
    name: "node-takes-pod",
    says: "Node selectors and taints hold for binds and nominations, and pods with a scheduling \
           gate get neither.",
    broken: node_takes_pod,
};

pub const POD_RULES: Rule = Rule {
    name: "pod-rules",
    says: "Affinity, anti-affinity and DoNotSchedule spread hold at the time of binding, counted \
           over the pods that really are on nodes.",
    broken: pod_rules,
};

/// The gangs of which pods are bound in a cycle.
fn bound_gangs(story: &Story, moment: &Moment) -> BTreeSet<String> {
    moment.binds.iter().map(|(pod, _)| story.gang_key(pod)).collect()
}

fn minimum(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for key in bound_gangs(story, moment) {
            let gang = story.cluster().gang(&key);
            // What leaves in the same cycle was still there.
            let pods: Vec<&Pod> =
                story.pods_of(&key, moment.occupied()).into_iter().map(|(pod, _)| pod).collect();
            if let Some(lack) = lacks(gang, &pods) {
                broken.push((moment.cycle, format!("{key} is bound in part: it {lack}")));
            }
            let Some(size) = gang.and_then(|gang| Some(gang.subgroups.as_ref()?.size)) else {
                continue;
            };
            let binds = moment.binds.iter().filter_map(|(pod, _)| story.pod(pod));
            let bound: Vec<&Pod> = binds.filter(|pod| pod.gang_key() == key).collect();
            for part in subgroups(&bound).keys() {
                let have = subgroups(&pods)[part].len();
                if have < size {
                    let text = format!("{key}: subgroup {part} starts with {have} of {size} pods");
                    broken.push((moment.cycle, text));
                }
            }
        }
        let awaited = || moment.awaited.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
        let held: BTreeSet<String> = moment.held.keys().map(|pod| story.gang_key(pod)).collect();
        for key in held {
            let pairs = moment.staying().chain(moment.held.iter().map(|(p, n)| (&**p, &**n)));
            let waits = |(pod, _): &(&str, &str)| !moment.held.contains_key(*pod);
            let pairs = pairs.chain(awaited().filter(waits));
            let pods: Vec<&Pod> =
                story.pods_of(&key, pairs).into_iter().map(|(pod, _)| pod).collect();
            if let Some(lack) = lacks(story.cluster().gang(&key), &pods) {
                let text = format!("{key} holds nominations with which it {lack}");
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}

fn topology(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    let cluster = story.cluster();
    for moment in &story.moments {
        let mut keys = bound_gangs(story, moment);
        keys.extend(moment.held.keys().map(|pod| story.gang_key(pod)));
        for key in keys {
            let Some(gang) = cluster.gang(&key) else { continue };
            let pairs = story.pods_of(&key, moment.staying().chain(moment.kept()));
            let nodes: Vec<&str> = pairs.iter().map(|(_, node)| *node).collect();
            if gang.topology.is_some_and(|rule| !near_enough(cluster, rule, &nodes)) {
                broken.push((moment.cycle, format!("{key} is too far apart: {nodes:?}")));
            }
            let Some(rule) = gang.subgroups.as_ref().and_then(|part| part.topology) else {
                continue;
            };
            let pods: Vec<&Pod> = pairs.iter().map(|(pod, _)| *pod).collect();
            for part in subgroups(&pods).keys() {
                let own = |pod: &Pod| pod.labels.get("part").is_some_and(|label| label == part);
                let nodes: Vec<&str> =
                    pairs.iter().filter(|(pod, _)| own(pod)).map(|(_, node)| *node).collect();
                if !near_enough(cluster, rule, &nodes) {
                    let text = format!("{key}: subgroup {part} is too far apart: {nodes:?}");
                    broken.push((moment.cycle, text));
                }
            }
        }
    }
    broken
}

fn node_takes_pod(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        let binds = moment.binds.iter().map(|(pod, node)| (&**pod, &**node));
        for (key, name) in binds.chain(moment.kept()) {
            let (pod, node) = (story.pod(key), story.cluster().node(name));
            let why = match (pod, node) {
                (Some(pod), Some(_)) if pod.gated => Some(format!("{key} has a scheduling gate")),
                (Some(pod), Some(node)) => fit::node_refuses(node, pod),
                _ => Some(format!("{key} or {name} does not exist")),
            };
            broken.extend(why.map(|why| (moment.cycle, format!("{key} on {name}: {why}"))));
        }
    }
    broken
}

fn pod_rules(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    let cluster = story.cluster();
    for moment in &story.moments {
        let known = |(pod, node)| Some((story.pod(pod)?, node));
        let all: Vec<(&Pod, &str)> = moment.occupied().filter_map(known).collect();
        let start = all.len() - moment.binds.len();
        for (at, &(pod, node)) in all.iter().enumerate().skip(start) {
            // Those that leave in this cycle may have been asked before or after this bind.
            let before: Vec<(&Pod, &str)> = all[..at].to_vec();
            let stays = |(pod, _): &(&Pod, &str)| !moment.evicts(&pod.key());
            let staying: Vec<(&Pod, &str)> = before.iter().copied().filter(stays).collect();
            let why = fit::anti_affinity(cluster, pod, node, &all)
                .or_else(|| fit::affinity(cluster, pod, node, &all))
                .or_else(|| {
                    fit::spread(cluster, pod, node, &staying)
                        .and(fit::spread(cluster, pod, node, &before))
                });
            broken.extend(why.map(|why| (moment.cycle, format!("{} on {node}: {why}", pod.key()))));
        }
    }
    broken
}
