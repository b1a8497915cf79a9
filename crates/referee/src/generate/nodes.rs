//! Nodes, and the network between them.

use crate::cluster::{Amounts, Cluster, HyperNode, Labels, Node};
use crate::draw::Draw;

pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const TAINTS: [&str; 2] = ["a", "b"];

pub fn add(cluster: &mut Cluster, draw: &mut Draw) {
    let zones = draw.between(1, 3);
    let tainted = draw.pick(&[0, 0, 15]);
    let gpus = draw.pick(&[0, 50, 100]);
    for at in 0..draw.between(3, 14) {
        let cpu = draw.pick(&[4, 8, 8, 16]);
        let labels = [
            (HOSTNAME, format!("n{at}")),
            ("zone", format!("z{}", draw.below(zones))),
            ("disk", draw.pick(&["ssd", "hdd"]).to_owned()),
        ];
        let gpu = if draw.chance(gpus) { draw.pick(&[4, 8]) } else { 0 };
        let pods = draw.pick(&[110, 110, 110, 5]);
        cluster.nodes.push(Node {
            name: format!("n{at}"),
            labels: labels
                .map(|(key, value)| (key.to_owned(), value))
                .into_iter()
                .collect::<Labels>(),
            taint: draw.chance(tainted).then(|| draw.pick(&TAINTS).to_owned()),
            allocatable: Amounts([cpu * 1000, 32_768, gpu, pods]),
        });
    }
    if draw.chance(60) {
        network(cluster, draw);
    }
}

/// Racks of neighbours, spines above them, and perhaps a core above all.
fn network(cluster: &mut Cluster, draw: &mut Draw) {
    let mut level: Vec<String> = cluster.nodes.iter().map(|node| node.name.clone()).collect();
    if draw.chance(15) {
        // Some nodes belong to no rack.
        level.pop();
    }
    for tier in 1..=draw.between(1, 3) as u32 {
        let mut next = Vec::new();
        let mut rest = &level[..];
        while !rest.is_empty() {
            let all = tier == 3;
            let count = if all { rest.len() } else { draw.between(1, 4).min(rest.len()) };
            let (members, others) = rest.split_at(count);
            let name = format!("t{tier}-{}", next.len());
            next.push(name.clone());
            cluster.hypernodes.push(HyperNode { name, tier, members: members.to_vec() });
            rest = others;
        }
        level = next;
    }
}
