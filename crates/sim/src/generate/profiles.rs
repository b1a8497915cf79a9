//! The tables behind the profiles: what classes of gangs there are, how large, and what their pods
//! ask for.

use super::draw::Draw;
use super::durations::{self, Quantiles};
use super::manifest::Amounts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Llm,
    Research,
    Pai,
    Serving,
    Cpu,
}

impl Profile {
    pub const ALL: [Profile; 5] =
        [Profile::Llm, Profile::Research, Profile::Pai, Profile::Serving, Profile::Cpu];

    pub fn name(self) -> &'static str {
        match self {
            Profile::Llm => "llm",
            Profile::Research => "research",
            Profile::Pai => "pai",
            Profile::Serving => "serving",
            Profile::Cpu => "cpu",
        }
    }

    pub fn summary(self) -> &'static str {
        match self {
            Profile::Llm => "many short evaluations, few pretraining runs of 64 to 1024 GPUs",
            Profile::Research => "mostly single GPUs, gangs up to 256; 5.7 GPUs on average",
            Profile::Pai => "parameter servers and workers of one GPU, up to 600 pods",
            Profile::Serving => "replicas of 2 to 16 pods that stay in one leaf, up to 32 replicas",
            Profile::Cpu => "pods without GPUs, up to 64 together",
        }
    }

    pub(super) fn classes(self) -> &'static [Class] {
        match self {
            Profile::Llm => LLM,
            Profile::Research => RESEARCH,
            Profile::Pai => PAI,
            Profile::Serving => SERVING,
            Profile::Cpu => CPU,
        }
    }
}

/// Gangs of one kind within a profile.
pub struct Class {
    pub name: &'static str,
    /// How many there are of it, in proportion to the other classes of the profile.
    pub share: u64,
    /// Weights and sizes. What is counted differs: see the tables.
    pub sizes: &'static [(u64, u64)],
    pub durations: &'static Quantiles,
}

const fn class(
    name: &'static str,
    share: u64,
    sizes: &'static [(u64, u64)],
    durations: &'static Quantiles,
) -> Class {
    Class { name, share, sizes, durations }
}

/// GPUs. By count this is Acme's Kalos: 929 evaluations, 39 others, 32 pretraining runs in a
/// thousand. Sizes within a class are our choice and give 24 GPUs on average, where Kalos has 26.8.
const LLM: &[Class] = &[
    class("eval", 929, &[(60, 1), (10, 2), (10, 4), (20, 8)], &durations::EVALUATION),
    class("debug", 39, &[(30, 1), (20, 2), (20, 4), (20, 8), (10, 16)], &durations::PHILLY),
    class(
        "pretrain",
        32,
        &[(5, 64), (10, 128), (15, 256), (20, 512), (50, 1024)],
        &durations::PRETRAINING,
    ),
];

/// GPUs. Chosen to meet the mean of Seren, 5.7, with the median of 1 that all traces share; 128 and
/// 256 stand for everything from 128 up, 140 on average. The two classes differ in how long they
/// run.
const RESEARCH: &[Class] = &[
    class("train", 750, &[(550, 1), (100, 2), (100, 4)], &durations::WHOLE_GPU),
    class(
        "train",
        250,
        &[(1700, 8), (400, 16), (200, 32), (120, 64), (72, 128), (8, 256)],
        &durations::EIGHT_GPUS,
    ),
];

/// Workers of one GPU. 85 to 90 % of the pods are in gangs and about 20 % in gangs of more than
/// 100, as reported. Parts of a GPU, which are frequent there, are rounded up to one: no resource
/// for them is common to all clusters.
const PAI: &[Class] = &[class(
    "task",
    1,
    &[
        (624, 1),
        (120, 2),
        (100, 4),
        (70, 8),
        (40, 16),
        (25, 32),
        (15, 64),
        (4, 128),
        (1, 256),
        (1, 480),
    ],
    &durations::PHILLY,
)];

/// Replicas.
const SERVING: &[Class] = &[class(
    "serve",
    1,
    &[(30, 1), (25, 2), (20, 4), (15, 8), (7, 16), (3, 32)],
    &durations::SERVING,
)];

/// Pods. Our choice; the traces tell of pods without GPUs, but not what belongs together.
const CPU: &[Class] = &[class(
    "batch",
    1,
    &[(60, 1), (10, 2), (10, 4), (10, 8), (5, 16), (3, 32), (2, 64)],
    &durations::NO_GPU,
)];

/// Cores (milli) and memory (MiB) per GPU of openb's pods with one GPU.
const PER_GPU_SMALL: [(u64, (u64, u64)); 6] = [
    (22, (11_300, 48 * 1024)),
    (14, (11_400, 47 * 1024)),
    (12, (3_150, 5_632)),
    (7, (18_700, 63 * 1024)),
    (5, (9_800, 41 * 1024)),
    (4, (12_000, 24 * 1024)),
];

/// The same of pods with eight. The third most frequent asks for 120 cores and is left out: where
/// all nodes have 96, it would wait forever.
const PER_GPU_LARGE: [(u64, (u64, u64)); 2] = [(41, (11_000, 40 * 1024)), (41, (8_025, 32 * 1024))];

/// openb's pods without a GPU.
const NO_GPU: [(u64, (u64, u64)); 4] = [
    (33, (12_500, 56 * 1024)),
    (26, (32_000, 48 * 1024)),
    (15, (8_000, 30 * 1024)),
    (11, (15_400, 50 * 1024)),
];

/// What a pod with so many GPUs asks for.
pub fn request(gpus: u64, draw: &mut Draw) -> Amounts {
    let (cpu_milli, memory_mib) = match gpus {
        0 => draw.pick(&NO_GPU),
        1 | 2 => draw.pick(&PER_GPU_SMALL),
        _ => draw.pick(&PER_GPU_LARGE),
    };
    let each = gpus.max(1);
    Amounts { gpus, cpu_milli: cpu_milli * each, memory_mib: memory_mib * each }
}
