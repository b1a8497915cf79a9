//! The network as a tree of three tiers: leaf switches (or NVLink racks), spines, the whole.
//!
//! Leaves find their nodes by label, so a leaf of 32 nodes is one member; higher tiers name their
//! members, as the HyperNode type asks of them.

use std::io::{self, Write};

use super::manifest::{stamp, uid};
use super::shapes::Template;

const SPINE_LABEL: &str = "network.topology.nvidia.com/spine";

/// Where every node sits. Nodes are numbered in the order of the network.
pub struct Network {
    nodes: usize,
    nodes_per_leaf: usize,
    leaves_per_spine: usize,
    leaf_word: &'static str,
    leaf_label: &'static str,
}

impl Network {
    pub fn new(template: Template, nodes: u32, nodes_per_leaf: u32, leaves_per_spine: u32) -> Self {
        let (leaf_word, leaf_label) = match template {
            Template::Nvl72 => ("rack", "network.topology.nvidia.com/accelerator"),
            _ => ("leaf", "network.topology.nvidia.com/leaf"),
        };
        Network {
            nodes: nodes as usize,
            nodes_per_leaf: nodes_per_leaf.max(1) as usize,
            leaves_per_spine: leaves_per_spine.max(1) as usize,
            leaf_word,
            leaf_label,
        }
    }

    pub fn leaf_of(&self, node: usize) -> usize {
        node / self.nodes_per_leaf
    }

    /// The topology labels of a node, as lines of its metadata.
    pub fn write_labels(&self, node: usize, out: &mut dyn Write) -> io::Result<()> {
        let leaf = self.leaf_of(node);
        let spine = leaf / self.leaves_per_spine;
        // Spines take turns in three zones: what spreads over zones then has something to choose
        // from.
        let zone = ["a", "b", "c"][spine % 3];
        writeln!(out, "    topology.kubernetes.io/zone: zone-{zone}")?;
        writeln!(out, "    {}: {}", self.leaf_label, self.leaf_name(leaf))?;
        writeln!(out, "    {SPINE_LABEL}: {}", spine_name(spine))
    }

    pub fn write_domains(&self, start: i64, out: &mut dyn Write) -> io::Result<()> {
        let leaves = self.nodes.div_ceil(self.nodes_per_leaf);
        let spines = leaves.div_ceil(self.leaves_per_spine);
        for leaf in 0..leaves {
            let name = self.leaf_name(leaf);
            write_header(&name, 1, self.leaf_word, start, out)?;
            writeln!(out, "    - type: Node")?;
            writeln!(
                out,
                "      selector: {{labelMatch: {{matchLabels: {{{}: {name}}}}}}}",
                self.leaf_label
            )?;
        }
        for spine in 0..spines {
            write_header(&spine_name(spine), 2, "spine", start, out)?;
            let first = spine * self.leaves_per_spine;
            for leaf in first..leaves.min(first + self.leaves_per_spine) {
                write_member(&self.leaf_name(leaf), out)?;
            }
        }
        if spines > 0 {
            write_header("cluster", 3, "cluster", start, out)?;
        }
        (0..spines).try_for_each(|spine| write_member(&spine_name(spine), out))
    }

    fn leaf_name(&self, leaf: usize) -> String {
        format!("{}-{leaf:04}", self.leaf_word)
    }
}

fn spine_name(spine: usize) -> String {
    format!("spine-{spine:03}")
}

fn write_header(
    name: &str,
    tier: u8,
    tier_name: &str,
    start: i64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let uid = uid(&["HyperNode", name]);
    let stamp = stamp(start);
    write!(
        out,
        "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n  name: {name}\n  uid: {uid}\n  \
         creationTimestamp: \"{stamp}\"\nspec:\n  tier: {tier}\n  tierName: {tier_name}\n  members:\n"
    )
}

fn write_member(name: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "    - type: HyperNode\n      selector: {{exactMatch: {{name: {name}}}}}")
}
