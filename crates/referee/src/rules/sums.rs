//! What can be counted: the output agrees with itself, and no node has more than it can hold.

use crate::rules::Rule;
use crate::timeline::Story;

pub const ADDS_UP: Rule = Rule {
    name: "adds-up",
    says: "Pods are bound once, evicted where they run, and the counts are those of the lists.",
    broken: adds_up,
};

pub const NODES: Rule = Rule {
    name: "nodes",
    says: "No node holds more than it can, with the pods that are asked to leave.",
    broken: nodes,
};

pub const NOMINATIONS_FIT: Rule = Rule {
    name: "nominations-fit",
    says: "What stays on a node and what is kept for nominations and moved pods fits it.",
    broken: nominations_fit,
};

fn adds_up(story: &Story) -> Vec<(usize, String)> {
    let mut broken = story.impossible.clone();
    for (line, moment) in story.output.cycles.iter().zip(&story.moments) {
        let told = (line.binds, line.evictions, line.nominations);
        let listed = (moment.binds.len(), moment.evictions.len(), moment.nominations.len());
        if told != listed {
            let text = format!("binds, evictions, nominations: told {told:?}, listed {listed:?}");
            broken.push((line.cycle, text));
        }
    }
    let Some(last) = story.moments.last() else { return broken };
    for gang in &story.output.gangs {
        let running = story.pods_of(&gang.name, last.staying()).len();
        if running != gang.running {
            let text = format!("{} has {running} pods on nodes, told {}", gang.name, gang.running);
            broken.push((last.cycle, text));
        }
        let held = last.held.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
        let nominated = story.pods_of(&gang.name, held).len();
        if nominated != gang.nominated {
            let text =
                format!("{} has {nominated} nominations, told {}", gang.name, gang.nominated);
            broken.push((last.cycle, text));
        }
    }
    broken
}

fn nodes(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for node in &story.cluster().nodes {
            let used = story.used_on(&node.name, moment.occupied());
            if used.exceeds(&node.allocatable).is_some() {
                let text = format!("{} holds {used:?} of {:?}", node.name, node.allocatable);
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}

fn nominations_fit(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for node in &story.cluster().nodes {
            let used = story.used_on(&node.name, moment.staying().chain(moment.kept()));
            if used.exceeds(&node.allocatable).is_some() {
                let text = format!("{} would hold {used:?} of {:?}", node.name, node.allocatable);
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}
