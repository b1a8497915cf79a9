//! The kinds of nodes that clusters are built from.

use super::manifest::Amounts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    Classic,
    Nvl72,
    Openb,
    Spot2026,
    Cpu,
}

/// One kind of node.
#[derive(Debug)]
pub struct Shape {
    /// How many there are of it, in proportion to the other shapes of the template.
    pub count: u64,
    pub gpus: u64,
    /// The label `nvidia.com/gpu.product`; empty without GPUs.
    pub model: &'static str,
    pub cores: u64,
    pub memory_gib: u64,
}

impl Template {
    pub const ALL: [Template; 5] =
        [Template::Classic, Template::Nvl72, Template::Openb, Template::Spot2026, Template::Cpu];

    pub fn name(self) -> &'static str {
        match self {
            Template::Classic => "classic",
            Template::Nvl72 => "nvl72",
            Template::Openb => "openb",
            Template::Spot2026 => "spot2026",
            Template::Cpu => "cpu",
        }
    }

    pub fn summary(self) -> &'static str {
        match self {
            Template::Classic => "nodes of 8 GPUs, 32 to a leaf switch, 16 leaves to a spine",
            Template::Nvl72 => "nodes of 4 GPUs, 18 to an NVLink rack, 16 racks to a spine",
            Template::Openb => "the mix of Alibaba's 2023 trace: six models, 0 to 8 GPUs a node",
            Template::Spot2026 => "the mix of Alibaba's 2026 trace: many nodes of 1 GPU, some of 8",
            Template::Cpu => "nodes without GPUs",
        }
    }

    /// How many nodes share a switch of the lowest tier, or an NVLink rack.
    pub fn nodes_per_leaf(self) -> u32 {
        if self == Template::Nvl72 { 18 } else { 32 }
    }

    /// Clusters are built with 16 to 32; the lower end gives more spines to tell apart.
    pub fn leaves_per_spine(self) -> u32 {
        16
    }

    /// Whether all GPU nodes have the same number of GPUs.
    pub fn is_uniform(self) -> bool {
        matches!(self, Template::Classic | Template::Nvl72)
    }

    pub fn shapes(self) -> &'static [Shape] {
        match self {
            Template::Classic => CLASSIC,
            Template::Nvl72 => NVL72,
            Template::Openb => OPENB,
            Template::Spot2026 => SPOT2026,
            Template::Cpu => CPU,
        }
    }

    /// The GPU models that a pod of this size can ask for, weighted by how many GPUs there are of
    /// each.
    pub fn models_for(self, pod: Amounts) -> Vec<(u64, &'static str)> {
        let holding = |shape: &&Shape| shape.gpus > 0 && pod.fits_in(shape.allocatable());
        self.shapes()
            .iter()
            .filter(holding)
            .map(|shape| (shape.count * shape.gpus, shape.model))
            .collect()
    }
}

impl Shape {
    pub fn capacity(&self) -> Amounts {
        Amounts {
            gpus: self.gpus,
            cpu_milli: self.cores * 1000,
            memory_mib: self.memory_gib * 1024,
        }
    }

    /// What the kubelet and the system leave: all but one core and one part in 32 of the memory.
    pub fn allocatable(&self) -> Amounts {
        let Amounts { gpus, cpu_milli, memory_mib } = self.capacity();
        Amounts { gpus, cpu_milli: cpu_milli - 1000, memory_mib: memory_mib - memory_mib / 32 }
    }
}

const fn shape(count: u64, gpus: u64, model: &'static str, cores: u64, memory_gib: u64) -> Shape {
    Shape { count, gpus, model, cores, memory_gib }
}

const H100: &str = "NVIDIA-H100-80GB-HBM3";
const CLASSIC: &[Shape] =
    &[shape(2, 8, H100, 96, 1024), shape(1, 8, H100, 112, 1536), shape(1, 8, H100, 128, 2048)];

const NVL72: &[Shape] = &[shape(1, 4, "NVIDIA-GB200", 144, 960)];

/// The node list of gpu-v2023. GPU nodes are as counted, but for eight odd ones that are taken to
/// have one P100; of the 122 CPU nodes beyond the two largest kinds, the proportions are those of a
/// part of the list. G2 and G3 are how the trace hides newer models.
const OPENB: &[Shape] = &[
    shape(549, 8, "G2", 96, 384),
    shape(387, 2, "Tesla-T4", 104, 512),
    shape(107, 2, "Tesla-P100-PCIE-16GB", 16, 120),
    shape(39, 8, "G3", 128, 768),
    shape(28, 4, "Tesla-V100-SXM2-16GB", 32, 128),
    shape(22, 2, "Tesla-P100-PCIE-16GB", 64, 256),
    shape(21, 8, "Tesla-V100-SXM2-32GB", 96, 768),
    shape(19, 1, "Tesla-V100-SXM2-16GB", 8, 32),
    shape(17, 4, "Tesla-T4", 96, 384),
    shape(9, 4, "Tesla-V100-SXM2-32GB", 48, 368),
    shape(8, 1, "Tesla-P100-PCIE-16GB", 8, 60),
    shape(7, 8, "Tesla-V100-SXM2-16GB", 64, 256),
    shape(129, 0, "", 32, 256),
    shape(60, 0, "", 32, 128),
    shape(59, 0, "", 96, 512),
    shape(40, 0, "", 104, 512),
    shape(22, 0, "", 104, 768),
];

/// The node list of v2026-spot-gpu. It does not tell memory; 4 GiB a core for one GPU and 8 for
/// eight are usual.
const SPOT2026: &[Shape] = &[
    shape(2492, 1, "NVIDIA-A10", 128, 512),
    shape(901, 1, "S1", 192, 768),
    shape(432, 8, "NVIDIA-A100-SXM4-80GB", 128, 1024),
    shape(219, 8, "NVIDIA-H800", 192, 1536),
    shape(122, 8, "S2", 192, 1536),
    shape(77, 8, "S1", 192, 1536),
    shape(22, 8, "NVIDIA-A800-SXM4-80GB", 128, 1024),
    shape(10, 4, "S1", 192, 1536),
];

/// The two largest kinds of CPU nodes of gpu-v2023.
const CPU: &[Shape] = &[shape(129, 0, "", 32, 256), shape(59, 0, "", 96, 512)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_the_size_of_their_traces() {
        let nodes =
            |template: Template| template.shapes().iter().map(|shape| shape.count).sum::<u64>();
        let gpus = |template: Template| {
            template.shapes().iter().map(|shape| shape.count * shape.gpus).sum::<u64>()
        };
        // The traces have 1523 nodes with 6212 GPUs, and 4278 with 10 412.
        assert_eq!((nodes(Template::Openb), gpus(Template::Openb)), (1523, 6203));
        assert_eq!((nodes(Template::Spot2026), gpus(Template::Spot2026)), (4275, 10_409));
    }

    #[test]
    fn a_pod_only_asks_for_models_that_can_hold_it() {
        let eight = Amounts { gpus: 8, cpu_milli: 88_000, memory_mib: 320 * 1024 };
        let models: Vec<&str> =
            Template::Openb.models_for(eight).into_iter().map(|(_, model)| model).collect();
        assert_eq!(models, ["G2", "G3", "Tesla-V100-SXM2-32GB"]);
        assert!(Template::Cpu.models_for(eight).is_empty());
    }
}
