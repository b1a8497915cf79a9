//! A cluster as manifests: priority classes, queues, the network, nodes.

use std::io::{self, Write};

use super::DEFAULT_START;
use super::draw::{Draw, Stream, apportion};
use super::manifest::{Amounts, stamp, uid};
use super::network::Network;
use super::shapes::{Shape, Template};
use super::tenants;

#[derive(Clone, Debug)]
pub struct ClusterSpec {
    pub template: Template,
    pub nodes: u32,
    pub nodes_per_leaf: u32,
    pub leaves_per_spine: u32,
    /// Replaces the number of GPUs of every node that has any.
    pub gpus_per_node: Option<u32>,
    /// How many queues share the cluster; with none, all work goes to the queue `default`.
    pub queues: u32,
    /// Whether to write HyperNodes. Nodes carry their topology labels either way.
    pub network: bool,
    pub seed: u64,
    /// Epoch seconds at which everything exists. Nodes are older.
    pub start: i64,
}

impl ClusterSpec {
    /// A cluster as its template has it.
    pub fn new(template: Template, nodes: u32) -> Self {
        ClusterSpec {
            template,
            nodes,
            nodes_per_leaf: template.nodes_per_leaf(),
            leaves_per_spine: template.leaves_per_spine(),
            gpus_per_node: None,
            queues: 20,
            network: true,
            seed: 1,
            start: DEFAULT_START,
        }
    }
}

pub fn cluster(spec: &ClusterSpec, out: &mut dyn Write) -> io::Result<()> {
    let mut draw = Draw::new(spec.seed, Stream::Nodes);
    let network =
        Network::new(spec.template, spec.nodes, spec.nodes_per_leaf, spec.leaves_per_spine);
    let nodes = place_shapes(spec, &mut draw);
    let total = nodes
        .iter()
        .fold(Amounts::default(), |sum, shape| sum.plus(with_gpus(spec, shape.allocatable())));

    tenants::write_priorities(spec.start, out)?;
    tenants::write_queues(spec.queues as usize, total, spec.start, out)?;
    if spec.network {
        network.write_domains(spec.start, out)?;
    }
    let mut installed = spec.start;
    for (index, shape) in nodes.into_iter().enumerate() {
        // A leaf is installed in one day some time in the last 400, its nodes one after the other.
        if index == 0 || network.leaf_of(index) != network.leaf_of(index - 1) {
            installed = spec.start - (1 + draw.below(400) as i64) * 86_400;
        }
        installed += 60 + draw.below(60) as i64;
        write_node(spec, &network, index, shape, installed.min(spec.start), out)?;
    }
    Ok(())
}

/// Which shape each node has. Equal nodes stand together as they do in racks, and the leaves are
/// then shuffled, so that no spine holds one kind only.
fn place_shapes(spec: &ClusterSpec, draw: &mut Draw) -> Vec<&'static Shape> {
    let shapes = spec.template.shapes();
    let weights: Vec<u64> = shapes.iter().map(|shape| shape.count).collect();
    let counts = apportion(u64::from(spec.nodes), &weights);
    let nodes: Vec<&Shape> = shapes
        .iter()
        .zip(counts)
        .flat_map(|(shape, count)| std::iter::repeat_n(shape, count as usize))
        .collect();
    let leaves = nodes.chunks_exact(spec.nodes_per_leaf.max(1) as usize);
    // The last leaf may be short; it stays last, or all leaves after it would be cut in two.
    let rest = leaves.remainder();
    let mut leaves: Vec<&[&Shape]> = leaves.collect();
    draw.shuffle(&mut leaves);
    leaves.into_iter().flatten().chain(rest).copied().collect()
}

fn with_gpus(spec: &ClusterSpec, amounts: Amounts) -> Amounts {
    match spec.gpus_per_node {
        Some(gpus) if amounts.gpus > 0 => Amounts { gpus: u64::from(gpus), ..amounts },
        _ => amounts,
    }
}

fn write_node(
    spec: &ClusterSpec,
    network: &Network,
    index: usize,
    shape: &Shape,
    created: i64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = format!("node-{index:05}");
    let uid = uid(&["Node", &name]);
    let stamp = stamp(created);
    let (capacity, allocatable) =
        (with_gpus(spec, shape.capacity()), with_gpus(spec, shape.allocatable()));
    write!(
        out,
        "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  uid: {uid}\n  creationTimestamp: \"{stamp}\"\n  \
         labels:\n    kubernetes.io/hostname: {name}\n"
    )?;
    network.write_labels(index, out)?;
    if capacity.gpus > 0 {
        write!(
            out,
            "    nvidia.com/gpu.product: {}\n    nvidia.com/gpu.count: \"{}\"\n",
            shape.model, capacity.gpus
        )?;
    }
    // 110 pods is what a kubelet allows unless told otherwise.
    write!(
        out,
        "status:\n  capacity: {{{capacity}, pods: \"110\"}}\n  allocatable: {{{allocatable}, pods: \"110\"}}\n  \
         conditions:\n    - {{type: Ready, status: \"True\", reason: KubeletReady, lastTransitionTime: \"{stamp}\"}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(spec: &ClusterSpec) -> String {
        let mut out = Vec::new();
        cluster(spec, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("manifests are text")
    }

    fn count(text: &str, needle: &str) -> usize {
        text.matches(needle).count()
    }

    #[test]
    fn one_seed_gives_the_same_bytes_and_another_does_not() {
        for template in Template::ALL {
            let spec = ClusterSpec::new(template, 100);
            assert_eq!(text(&spec), text(&spec.clone()));
            assert_ne!(text(&spec), text(&ClusterSpec { seed: 2, ..spec }));
        }
    }

    #[test]
    fn every_template_has_the_nodes_that_were_asked_for() {
        for template in Template::ALL {
            for nodes in [0, 1, 2, 31, 32, 33, 1000] {
                let text = text(&ClusterSpec::new(template, nodes));
                assert_eq!(count(&text, "\nkind: Node\n"), nodes as usize);
                assert_eq!(count(&text, "type: Ready, status: \"True\""), nodes as usize);
                assert_eq!(count(&text, "pods: \"110\""), 2 * nodes as usize);
            }
        }
    }

    #[test]
    fn leaves_are_full_but_for_the_last() {
        let classic = text(&ClusterSpec::new(Template::Classic, 1000));
        assert_eq!(count(&classic, "network.topology.nvidia.com/leaf: leaf-0000\n"), 32);
        assert_eq!(count(&classic, "network.topology.nvidia.com/leaf: leaf-0031\n"), 8);
        assert_eq!(count(&classic, "tier: 1\n"), 32);
        assert_eq!(count(&classic, "tier: 2\n"), 2);
        assert_eq!(count(&classic, "tier: 3\n"), 1);
        assert_eq!(count(&classic, "exactMatch: {name: leaf-"), 32);
        assert_eq!(count(&classic, "exactMatch: {name: spine-"), 2);

        let nvl72 = text(&ClusterSpec::new(Template::Nvl72, 36));
        assert_eq!(count(&nvl72, "network.topology.nvidia.com/accelerator: rack-0001\n"), 18);
        assert_eq!(count(&nvl72, "nvidia.com/gpu.count: \"4\""), 36);
    }

    #[test]
    fn without_a_network_there_are_labels_but_no_domains() {
        let text = text(&ClusterSpec { network: false, ..ClusterSpec::new(Template::Classic, 4) });
        assert_eq!(count(&text, "HyperNode"), 0);
        assert_eq!(count(&text, "network.topology.nvidia.com/leaf"), 4);
    }

    #[test]
    fn queues_deserve_together_what_the_cluster_has() {
        let text = text(&ClusterSpec { queues: 7, ..ClusterSpec::new(Template::Classic, 10) });
        let gpus = |queue: &str| -> u64 {
            let line = queue.lines().find_map(|line| line.trim().strip_prefix("nvidia.com/gpu: "));
            line.expect("a queue deserves GPUs").trim_matches('"').parse().expect("a whole number")
        };
        let queues = text.split("---\n").filter(|document| document.contains("kind: Queue"));
        assert_eq!(queues.clone().count(), 7);
        assert_eq!(queues.map(gpus).sum::<u64>(), 80);
    }

    #[test]
    fn a_given_number_of_gpus_replaces_that_of_the_shape() {
        let spec = ClusterSpec {
            gpus_per_node: Some(4),
            queues: 1,
            ..ClusterSpec::new(Template::Classic, 3)
        };
        let text = text(&spec);
        assert_eq!(count(&text, "nvidia.com/gpu: \"4\""), 6);
        assert_eq!(count(&text, "nvidia.com/gpu: \"12\""), 1);
    }
}
