//! Makes a case that breaks a rule small, so that a person can see why.

use crate::case::Case;
use crate::cluster::Cluster;
use crate::config::Config;

/// The case without whatever it breaks the rule without as well.
pub fn shrink(case: &Case, mut still_broken: impl FnMut(&Case) -> bool) -> Case {
    let mut small = case.clone();
    loop {
        let before = small.clone();
        for gang in keys(&small.cluster) {
            try_without(&mut small, &mut still_broken, |cluster| remove_gang(cluster, &gang));
        }
        for key in small.cluster.pods.iter().map(|pod| pod.key()).collect::<Vec<_>>() {
            try_without(&mut small, &mut still_broken, |cluster| {
                cluster.pods.retain(|pod| pod.key() != key);
            });
        }
        for name in small.cluster.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>() {
            try_without(&mut small, &mut still_broken, |cluster| remove_node(cluster, &name));
        }
        try_without(&mut small, &mut still_broken, |cluster| cluster.hypernodes.clear());
        for at in (0..small.cluster.budgets.len()).rev() {
            try_without(&mut small, &mut still_broken, |cluster| drop(cluster.budgets.remove(at)));
        }
        for at in 0..small.cluster.pods.len() {
            try_without(&mut small, &mut still_broken, |cluster| plain_pod(cluster, at));
        }
        for at in 0..small.cluster.queues.len() {
            try_without(&mut small, &mut still_broken, |cluster| plain_queue(cluster, at));
        }
        plain_config(&mut small, &mut still_broken);
        let size =
            |case: &Case| (format!("{:?}", case.cluster).len(), format!("{:?}", case.config).len());
        if size(&small) == size(&before) {
            return small;
        }
    }
}

fn try_without(
    case: &mut Case,
    still_broken: &mut impl FnMut(&Case) -> bool,
    change: impl FnOnce(&mut Cluster),
) {
    let mut smaller = case.clone();
    change(&mut smaller.cluster);
    if still_broken(&smaller) {
        *case = smaller;
    }
}

fn keys(cluster: &Cluster) -> Vec<String> {
    let mut keys: Vec<String> = cluster.pods.iter().map(|pod| pod.gang_key()).collect();
    keys.dedup();
    keys
}

fn remove_gang(cluster: &mut Cluster, key: &str) {
    cluster.pods.retain(|pod| pod.gang_key() != key);
    cluster.gangs.retain(|gang| gang.key() != key);
    cluster.budgets.retain(|budget| format!("{}/{}", budget.namespace, budget.app) != key);
}

fn remove_node(cluster: &mut Cluster, name: &str) {
    let there = |at: Option<&String>| at.is_some_and(|at| at == name);
    cluster.nodes.retain(|node| node.name != name);
    cluster.pods.retain(|pod| {
        !there(pod.runs.as_ref().map(|(node, _)| node))
            && !there(pod.nominated.as_ref().map(|(node, _)| node))
    });
    for domain in &mut cluster.hypernodes {
        domain.members.retain(|member| member != name);
    }
}

fn plain_pod(cluster: &mut Cluster, at: usize) {
    let Some(pod) = cluster.pods.get_mut(at) else { return };
    pod.node_selector.clear();
    pod.tolerates = None;
    pod.affinity.clear();
    pod.anti_affinity.clear();
    pod.never_preempts = false;
}

fn plain_queue(cluster: &mut Cluster, at: usize) {
    let queue = &mut cluster.queues[at];
    queue.guarantee = [None; 3];
    queue.reclaimable = None;
    queue.fifo = false;
    queue.capability = [None; 3];
}

fn plain_config(case: &mut Case, still_broken: &mut impl FnMut(&Case) -> bool) {
    let mut attempt = |change: &dyn Fn(&mut Config)| {
        let mut plainer = case.clone();
        change(&mut plainer.config);
        if still_broken(&plainer) {
            *case = plainer;
        }
    };
    attempt(&|config| config.flavours.clear());
    attempt(&|config| config.capacity = false);
    attempt(&|config| config.hierarchy = false);
    attempt(&|config| config.min_runtimes = None);
    attempt(&|config| config.pdb = false);
    attempt(&|config| config.traverse_head_wait = None);
    attempt(&|config| config.max_domains = None);
    attempt(&|config| config.priority_first = false);
    attempt(&|config| config.evict_broken_gangs = false);
    attempt(&|config| config.whole_bundles = true);
    for action in case.config.actions.clone() {
        let mut fewer = case.clone();
        fewer.config.actions.retain(|other| *other != action);
        if still_broken(&fewer) {
            *case = fewer;
        }
    }
}
