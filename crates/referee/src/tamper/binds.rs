//! False binds and counts.

use crate::cluster::Pod;
use crate::fit;
use crate::gangs::{lacks, near_enough};
use crate::output::{Output, Placement};
use crate::tamper::{Tampering, bind_elsewhere, changed};
use crate::timeline::{Moment, Story};

pub const KINDS: &[Tampering] = &[
    Tampering { name: "bind to a full node", seen_by: "nodes", change: full_node },
    Tampering {
        name: "bind to a node that refuses",
        seen_by: "node-takes-pod",
        change: refusing_node,
    },
    Tampering { name: "bind of a gated pod", seen_by: "node-takes-pod", change: gated },
    Tampering {
        name: "bind to a node that does not exist",
        seen_by: "node-takes-pod",
        change: no_node,
    },
    Tampering { name: "bind too far away", seen_by: "topology", change: too_far },
    Tampering { name: "bind beside a pod that refuses it", seen_by: "pod-rules", change: refused },
    Tampering { name: "bind that breaks a spread", seen_by: "pod-rules", change: uneven },
    Tampering { name: "bind left out of a minimum", seen_by: "minimum", change: in_part },
    Tampering { name: "bind told twice", seen_by: "adds-up", change: twice },
    Tampering { name: "bind above a capability", seen_by: "capability", change: over_limit },
    Tampering { name: "bind not told", seen_by: "adds-up", change: untold },
    Tampering { name: "wrong count of running pods", seen_by: "adds-up", change: miscounted },
];

/// The first bind and other node for which something holds.
fn elsewhere(
    story: &Story,
    wrong: impl Fn(&Moment, &Pod, &str, &[(&Pod, &str)]) -> bool,
) -> Option<Output> {
    story.output.binds.iter().find_map(|bind| {
        let moment = &story.moments[bind.cycle - 1];
        let pod = story.pod(&bind.pod)?;
        let others = moment.occupied().filter(|(other, _)| *other != bind.pod);
        let others: Vec<(&Pod, &str)> =
            others.filter_map(|(pod, node)| Some((story.pod(pod)?, node))).collect();
        let nodes = story.cluster().nodes.iter().map(|node| node.name.as_str());
        let mut nodes = nodes.filter(|node| *node != bind.node);
        let node = nodes.find(|node| wrong(moment, pod, node, &others))?;
        bind_elsewhere(story, bind, node)
    })
}

fn full_node(story: &Story) -> Option<Output> {
    elsewhere(story, |moment, pod, node, _| {
        let used = story.used_on(node, moment.occupied()) + pod.request;
        story.cluster().node(node).is_some_and(|node| used.exceeds(&node.allocatable).is_some())
    })
}

fn refusing_node(story: &Story) -> Option<Output> {
    elsewhere(story, |_, pod, node, _| {
        story.cluster().node(node).is_some_and(|node| fit::node_refuses(node, pod).is_some())
    })
}

fn gated(story: &Story) -> Option<Output> {
    let moment = story.moments.last()?;
    let pod = moment.waiting.iter().find(|pod| story.pod(pod).is_some_and(|pod| pod.gated))?;
    let bind = Placement {
        pod: pod.clone(),
        node: story.cluster().nodes[0].name.clone(),
        cycle: moment.cycle,
    };
    changed(story, |output| output.binds.push(bind))
}

fn no_node(story: &Story) -> Option<Output> {
    bind_elsewhere(story, story.output.binds.first()?, "nowhere")
}

fn too_far(story: &Story) -> Option<Output> {
    elsewhere(story, |moment, pod, node, _| {
        let Some(rule) = story.cluster().gang_of(pod).and_then(|gang| gang.topology) else {
            return false;
        };
        let mates = story.pods_of(&pod.gang_key(), moment.staying());
        let mut nodes: Vec<&str> = mates
            .into_iter()
            .filter(|(mate, _)| mate.key() != pod.key())
            .map(|(_, node)| node)
            .collect();
        nodes.push(node);
        !near_enough(story.cluster(), rule, &nodes)
    })
}

fn refused(story: &Story) -> Option<Output> {
    elsewhere(story, |_, pod, node, others| {
        fit::anti_affinity(story.cluster(), pod, node, others).is_some()
    })
}

fn uneven(story: &Story) -> Option<Output> {
    elsewhere(story, |moment, pod, node, others| {
        // Those that stay, and were there before: the rule counts no more than them.
        let kept = others.iter().copied().filter(|(other, _)| {
            moment.placed.contains_key(&other.key()) && !moment.evicts(&other.key())
        });
        let before: Vec<(&Pod, &str)> = kept.collect();
        let first = moment.binds.first().is_some_and(|(bound, _)| *bound == pod.key());
        let steady = moment.evictions.is_empty();
        first && steady && fit::spread(story.cluster(), pod, node, &before).is_some()
    })
}

fn in_part(story: &Story) -> Option<Output> {
    let left_out = story.output.binds.iter().find(|bind| {
        let moment = &story.moments[bind.cycle - 1];
        let gang = story.gang_key(&bind.pod);
        let others = moment.occupied().filter(|(pod, _)| *pod != bind.pod);
        let pods: Vec<&Pod> =
            story.pods_of(&gang, others).into_iter().map(|(pod, _)| pod).collect();
        let more =
            moment.binds.iter().any(|(pod, _)| *pod != bind.pod && story.gang_key(pod) == gang);
        more && lacks(story.cluster().gang(&gang), &pods).is_some()
    })?;
    changed(story, |output| output.binds.retain(|bind| bind != left_out))
}

fn twice(story: &Story) -> Option<Output> {
    let bind = story.output.binds.first()?.clone();
    changed(story, |output| output.binds.push(bind))
}

fn untold(story: &Story) -> Option<Output> {
    let bind = story.output.binds.last()?;
    changed(story, |output| output.binds.retain(|other| other != bind))
}

fn over_limit(story: &Story) -> Option<Output> {
    let moment = story.moments.last().filter(|_| story.case.config.capacity)?;
    let pods =
        moment.waiting.iter().filter(|pod| !moment.binds.iter().any(|(bound, _)| bound == *pod));
    let pod = pods.into_iter().find(|pod| {
        story.pod(pod).is_some_and(|pod| !pod.foreign) && {
            let with = [(pod.as_str(), "any")];
            let pairs: Vec<(&str, &str)> = moment.staying().chain(with).collect();
            crate::rules::quotas::over_capability(story, pod, &pairs).is_some()
        }
    })?;
    let node = story.cluster().nodes[0].name.clone();
    let bind = Placement { pod: pod.clone(), node, cycle: moment.cycle };
    changed(story, |output| output.binds.push(bind))
}

fn miscounted(story: &Story) -> Option<Output> {
    changed(story, |output| {
        for gang in output.gangs.iter_mut().take(1) {
            gang.running += 1;
        }
    })
    .filter(|output| !output.gangs.is_empty())
}
