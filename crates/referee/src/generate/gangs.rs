//! Gangs and their pods: running, in part, nominated and waiting.

use crate::cluster::{
    Amounts, Budget, Cluster, Disruptions, Gang, Labels, Pod, Spread, Subgroups, Term, Topology,
};
use crate::draw::Draw;
use crate::fit;
use crate::gangs::{ROLE, near_enough};
use crate::generate::CRITICAL;
use crate::generate::nodes::{HOSTNAME, TAINTS};

pub fn add(cluster: &mut Cluster, draw: &mut Draw) {
    let count = draw.between(4, 10 + cluster.nodes.len());
    let busy = draw.between(30, 80);
    let rules = draw.pick(&[0, 25, 50]);
    for at in 0..count {
        let gang = gang(cluster, draw, at);
        let size = gang.min_member + draw.pick(&[0, 0, 0, 1, 2]);
        let mut pods = pods(draw, cluster, &gang, size, rules);
        let single = size == 1 && draw.chance(30);
        if single {
            let pod = &mut pods[0];
            pod.group = None;
            pod.queue = Some(gang.queue.clone());
            pod.labels.remove(ROLE);
            pod.labels.remove("part");
            pod.foreign = draw.chance(20);
        } else {
            cluster.gangs.push(gang.clone());
        }
        if draw.chance(busy) {
            start(cluster, draw, &gang, &mut pods);
        } else if draw.chance(12) && !single {
            nominate(cluster, draw, &gang, &mut pods);
        }
        if draw.chance(30) {
            cluster.budgets.push(budget(draw, &gang, size));
        }
        cluster.pods.extend(pods);
    }
}

fn gang(cluster: &Cluster, draw: &mut Draw, at: usize) -> Gang {
    let leaves: Vec<&str> = cluster
        .queues
        .iter()
        .map(|queue| queue.name.as_str())
        .filter(|q| q.starts_with('q'))
        .collect();
    let min_member = draw.pick(&[1, 1, 1, 2, 2, 3, 4, 6]);
    let system = draw.chance(3);
    let class =
        if system && draw.chance(50) { CRITICAL } else { draw.pick(&["low", "mid", "high"]) };
    let tiers = cluster.hypernodes.iter().map(|domain| domain.tier).max();
    let topology = |draw: &mut Draw| {
        let rule = |top: u32| Topology {
            hard: draw.chance(70),
            highest_tier: draw.between(1, top as usize) as u32,
        };
        tiers.map(rule)
    };
    let mut gang = Gang {
        namespace: if system && class != CRITICAL { "kube-system" } else { "default" }.to_owned(),
        name: format!("g{at}"),
        queue: draw.pick(&leaves).to_owned(),
        class: class.to_owned(),
        min_member,
        preemptable: draw.chance(12).then(|| draw.chance(30)),
        created: -(draw.between(60, 4000) as i64),
        admitted: draw.chance(60),
        ..Gang::default()
    };
    if draw.chance(35) {
        gang.topology = topology(draw);
    }
    if min_member >= 2 && draw.chance(12) {
        gang.roles = [("boss".to_owned(), 1), ("hand".to_owned(), min_member - 1)].into();
    } else if min_member.is_multiple_of(2) && draw.chance(15) {
        let topology = if draw.chance(50) { topology(draw) } else { None };
        gang.subgroups = Some(Subgroups { size: 2, minimum: min_member / 2, topology });
    }
    gang
}

fn pods(draw: &mut Draw, cluster: &Cluster, gang: &Gang, size: usize, rules: usize) -> Vec<Pod> {
    let gpus = cluster.nodes.iter().any(|node| node.allocatable.0[crate::cluster::GPU] > 0);
    let gpu = if gpus && draw.chance(60) { draw.pick(&[1, 1, 2, 4]) } else { 0 };
    let cpu = draw.pick(&[500, 1000, 1000, 2000, 4000, 8000]);
    let app = ("app".to_owned(), gang.name.clone());
    let mut first = Pod {
        namespace: gang.namespace.clone(),
        group: Some(gang.name.clone()),
        labels: Labels::from([app.clone()]),
        class: gang.class.clone(),
        request: Amounts([cpu, draw.pick(&[512, 2048, 8192]), gpu, 1]),
        tolerates: draw.chance(30).then(|| draw.pick(&TAINTS).to_owned()),
        never_preempts: draw.chance(5),
        created: gang.created,
        ..Pod::default()
    };
    if draw.chance(rules / 2) {
        first.node_selector.insert("disk".into(), draw.pick(&["ssd", "hdd"]).into());
    }
    if draw.chance(rules) {
        let key = draw.pick(&[HOSTNAME, "zone"]).to_owned();
        let loud = ("loud".to_owned(), "yes".to_owned());
        match draw.below(5) {
            0 => {
                first.labels.insert(loud.0.clone(), loud.1.clone());
                first.anti_affinity.push(Term { label: loud, key: HOSTNAME.to_owned() });
            }
            1 => first.anti_affinity.push(Term { label: app, key: HOSTNAME.to_owned() }),
            2 => first.affinity.push(Term { label: app, key: "zone".to_owned() }),
            _ => {
                let max_skew = draw.between(1, 2) as i64;
                first.spread = Some(Spread { max_skew, key, label: app });
            }
        }
    }
    (0..size)
        .map(|at| {
            let mut pod = first.clone();
            pod.name = format!("{}-{at}", gang.name);
            if !gang.roles.is_empty() {
                pod.labels.insert(ROLE.into(), if at == 0 { "boss" } else { "hand" }.into());
            }
            if gang.subgroups.is_some() {
                pod.labels.insert("part".into(), format!("{}", at / 2));
            }
            pod.preemptable = draw.chance(2).then_some(false);
            pod.gated = draw.chance(2);
            pod
        })
        .collect()
}

/// Places pods of a gang that runs since before the run: most of it, or all.
fn start(cluster: &Cluster, draw: &mut Draw, gang: &Gang, pods: &mut [Pod]) {
    let all = pods.len();
    let wanted = if draw.chance(85) { all } else { draw.between(1, all) };
    let since = -(draw.pick(&[20, 100, 250, 900, 3000]) as i64);
    for at in 0..wanted {
        let Some(node) = free_node(cluster, draw, gang, pods, at) else { return };
        let pod = &mut pods[at];
        pod.gated = false;
        // Long before or after any limit, so that none runs out while we watch.
        pod.runs = Some((node, since + draw.below(10) as i64));
        pod.created = pod.created.min(since - 10);
    }
}

/// Gives all pods of a gang a nomination by a scheduler that is gone.
fn nominate(cluster: &Cluster, draw: &mut Draw, gang: &Gang, pods: &mut [Pod]) {
    let evicted = draw.chance(30);
    for at in 0..pods.len() {
        let node = match draw.chance(90) {
            true => free_node(cluster, draw, gang, pods, at),
            false => Some(draw.pick(&cluster.nodes).name),
        };
        let Some(node) = node else { break };
        if !pods[at].gated {
            pods[at].nominated = Some((node, evicted));
        }
    }
}

/// A random node that takes a pod of a gang beside all that is there, and all that is nominated.
fn free_node(
    cluster: &Cluster,
    draw: &mut Draw,
    gang: &Gang,
    own: &[Pod],
    at: usize,
) -> Option<String> {
    let spot = |pod: &Pod| -> Option<String> {
        let nominated = pod.nominated.as_ref().map(|(node, _)| node.clone());
        pod.runs.as_ref().map(|(node, _)| node.clone()).or(nominated)
    };
    let there: Vec<(&Pod, String)> =
        cluster.pods.iter().chain(own).filter_map(|pod| Some((pod, spot(pod)?))).collect();
    let pairs: Vec<(&Pod, &str)> = there.iter().map(|(pod, node)| (*pod, &**node)).collect();
    let mine: Vec<&str> = pairs
        .iter()
        .filter(|(pod, _)| pod.gang_key() == gang.key())
        .map(|(_, node)| *node)
        .collect();
    let part = own[at].labels.get("part");
    let mates: Vec<&str> = pairs
        .iter()
        .filter(|(pod, _)| pod.gang_key() == gang.key() && pod.labels.get("part") == part)
        .map(|(_, node)| *node)
        .collect();
    let mut order: Vec<usize> = (0..cluster.nodes.len()).collect();
    if draw.chance(70) {
        draw.shuffle(&mut order);
    }
    let near = |rule: Option<Topology>, others: &[&str], node: &str| {
        let nodes: Vec<&str> = others.iter().copied().chain([node]).collect();
        rule.is_none_or(|rule| near_enough(cluster, rule, &nodes))
    };
    let pod = &own[at];
    let takes = |&at: &usize| {
        let node = &cluster.nodes[at];
        let used: Amounts =
            pairs.iter().filter(|(_, at)| *at == node.name).map(|(pod, _)| pod.request).sum();
        (used + pod.request).exceeds(&node.allocatable).is_none()
            && fit::node_refuses(node, pod).is_none()
            && fit::anti_affinity(cluster, pod, &node.name, &pairs).is_none()
            && fit::affinity(cluster, pod, &node.name, &pairs).is_none()
            && fit::spread(cluster, pod, &node.name, &pairs).is_none()
            && near(gang.topology, &mine, &node.name)
            && near(gang.subgroups.as_ref().and_then(|part| part.topology), &mates, &node.name)
    };
    order.into_iter().find(takes).map(|at| cluster.nodes[at].name.clone())
}

fn budget(draw: &mut Draw, gang: &Gang, size: usize) -> Budget {
    let count = draw.below(size + 1);
    let limit = match draw.chance(60) {
        true => Disruptions::MinAvailable(count),
        false => Disruptions::MaxUnavailable(count),
    };
    let (namespace, name) = (gang.namespace.clone(), gang.name.clone());
    Budget { namespace, app: name.clone(), name, limit }
}
