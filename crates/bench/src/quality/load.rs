//! A working day on one cluster, once for each eviction mode: the same gangs arrive at the same
//! times, and there are more of them than the cluster holds. An evicted gang is created again and
//! starts from the beginning.

use std::collections::BTreeMap;

use muster_api::core::Pod;
use muster_api::keys::{GROUP_NAME, SCHEDULER_NAMES};
use muster_api::manifest::{Found, read};
use muster_api::{Time, pod_requests};
use muster_engine::Engine;
use muster_engine::config::Config;
use serde::Serialize;

use super::history::{Gang, History};
use muster_sim::generate::{
    Amount, ClusterSpec, DEFAULT_START, Profile, Template, WorkloadSpec, cluster, workload,
};
use muster_sim::{Options, Progress, Simulation, Until, World};

/// From a second to a week, each about twice the previous one.
pub const WAITS_SECONDS: [u32; 19] = [
    1, 2, 5, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 18_000, 36_000, 86_400,
    172_800, 345_600, 604_800,
];

/// The modes of `preempt` and `reclaim` that are compared.
pub const MODES: [&str; 3] = ["task", "gang", "scenario"];

/// Monday morning: most gangs arrive during the day.
const START_SECONDS: i64 = DEFAULT_START + 8 * 3600;
const START: Time = Time(START_SECONDS * 1000);

const GPU: &str = "nvidia.com/gpu";
const GPUS_PER_NODE: u32 = 8;

/// The cluster and the load.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    pub nodes: u32,
    pub hours: u32,
    /// The requested work, relative to what the cluster can do in that time.
    pub percent: u32,
    pub seed: u64,
}

impl Default for LoadSpec {
    fn default() -> Self {
        LoadSpec { nodes: 64, hours: 12, percent: 150, seed: 1 }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    pub nodes: u32,
    pub gpus: u32,
    pub hours: u32,
    pub gangs: usize,
    pub modes: Vec<Played>,
}

/// The results in one mode.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Played {
    pub mode: &'static str,
    /// The share of all GPUs that ran a pod, on average over the time in which gangs arrived.
    pub utilisation: f64,
    /// The same for each part of that time; all parts are equally long.
    pub utilisation_over_time: Vec<f64>,
    /// From the arrival of a gang to its first start: of all, and of each priority, the highest
    /// first.
    pub waits: Vec<Waits>,
    /// The share of gangs that waited no longer than each of [`WAITS_SECONDS`].
    pub waited_at_most: Vec<f64>,
    /// Gangs that were done when the last one arrived.
    pub finished: usize,
    pub evicted_pods: usize,
    /// Victims whose successors had room reserved for them.
    pub moved_pods: usize,
    /// How often a running gang was left with less than its minimum.
    pub broken_gangs: usize,
    /// GPU hours that were lost, since evicted gangs start from the beginning.
    pub wasted_gpu_hours: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    /// The priority class; `None` for all.
    pub class: Option<String>,
    pub gangs: usize,
    pub median_seconds: f64,
    pub p90_seconds: f64,
    pub p99_seconds: f64,
}

/// Runs the same load in each mode. `told` is called with the progress.
pub fn load(spec: &LoadSpec, mut told: impl FnMut(&'static str, Progress)) -> Load {
    let gpus = spec.nodes * GPUS_PER_NODE;
    let manifests = manifests(spec, gpus);
    let mut gangs = 0;
    let mut modes = Vec::new();
    for mode in MODES {
        let world = world(&manifests);
        gangs = world.groups.len();
        modes.push(play(spec, gpus, mode, world, &mut |progress| told(mode, progress)));
    }
    Load { nodes: spec.nodes, gpus, hours: spec.hours, gangs, modes }
}

fn manifests(spec: &LoadSpec, gpus: u32) -> Vec<u8> {
    let LoadSpec { nodes, hours, percent, seed } = *spec;
    const QUEUES: u32 = 4;
    let machines = ClusterSpec {
        nodes_per_leaf: 16,
        queues: QUEUES,
        seed,
        start: START_SECONDS,
        ..ClusterSpec::new(Template::Classic, nodes)
    };
    let work = WorkloadSpec {
        hours,
        queues: QUEUES,
        // Half the size of a leaf.
        largest: Some(64),
        highest_tier: Some(1),
        seed,
        start: START_SECONDS,
        ..WorkloadSpec::new(Profile::Research, Amount::Load { percent, gpus })
    };
    let mut out = Vec::new();
    cluster(&machines, &mut out).expect("writing to a vector can't fail");
    workload(&work, &mut out).expect("writing to a vector can't fail");
    out
}

fn world(manifests: &[u8]) -> World {
    let mut world = World::at(START);
    read("load", manifests, &mut |found| match found {
        Found::Object { object, .. } => world.insert(object),
        Found::Error(error) => panic!("a manifest of ours is wrong: {error}"),
        Found::Skipped { kind, .. } => panic!("our own {kind} is unknown"),
    });
    world
}

/// A broken gang is deleted as a whole: it can't continue, and its controller would restart it.
fn config(mode: &str) -> Config {
    let whole = if mode == "gang" { ", evictBrokenGang: true" } else { "" };
    let moves = if mode == "scenario" { " consolidate," } else { "" };
    let text = format!(
        "actions: \"enqueue, allocate, backfill,{moves} reclaim, preempt\"\nconfigurations:\n- name: reclaim\n  arguments: {{mode: \
         {mode}{whole}}}\n- name: preempt\n  arguments: {{mode: {mode}{whole}}}\ntiers:\n- plugins:\n  - name: priority\n  - name: \
         gang\n  - name: conformance\n- plugins:\n  - name: predicates\n  - name: capacity\n  - name: nodeorder\n  - name: \
         binpack\n  - name: network-topology-aware\n"
    );
    Config::parse("load", &text).expect("a right configuration")
}

fn play(
    spec: &LoadSpec,
    gpus: u32,
    mode: &'static str,
    world: World,
    told: &mut dyn FnMut(Progress),
) -> Played {
    let gangs = gangs(&world);
    let members =
        world.pods.iter().map(|(key, pod)| (key.clone(), (gang_of(pod), gpus_of(pod)))).collect();
    let names = SCHEDULER_NAMES.iter().map(ToString::to_string).collect();
    let options = Options {
        until: Until::Stable,
        recreate: true,
        events: true,
        arrivals: true,
        check: false,
    };
    let mut simulation = Simulation::new(world, Engine::new(config(mode), names), options);
    simulation.run(told).expect("nothing is checked here");
    let end = START.plus_ms(i64::from(spec.hours) * 3_600_000);
    let history = History::read(&simulation.report, gangs, members);
    let utilisation_over_time = history.utilisation(START, end, i64::from(gpus));
    let whole = utilisation_over_time.iter().sum::<f64>() / utilisation_over_time.len() as f64;
    Played {
        mode,
        utilisation: whole,
        utilisation_over_time,
        waits: waits(&history),
        waited_at_most: waited_at_most(&history.waits(None)),
        finished: history.finished_by(end),
        evicted_pods: simulation.report.evictions.len(),
        moved_pods: simulation
            .report
            .evictions
            .iter()
            .filter(|eviction| eviction.moves_to.is_some())
            .count(),
        broken_gangs: history.broken,
        wasted_gpu_hours: history.wasted_gpu_ms as f64 / 3.6e6,
    }
}

fn gangs(world: &World) -> BTreeMap<String, Gang> {
    let gang = |key: &String| {
        let group = &world.groups[key];
        let arrived = group.metadata.creation_timestamp.unwrap_or(START);
        Gang::new(
            arrived,
            group.spec.min_member.max(1) as u32,
            group.spec.priority_class_name.clone(),
        )
    };
    world.groups.keys().map(|key| (key.clone(), gang(key))).collect()
}

fn gang_of(pod: &Pod) -> String {
    let name = pod.metadata.annotations.get(GROUP_NAME[0]).expect("every pod has a gang");
    format!("{}/{name}", pod.metadata.namespace)
}

fn gpus_of(pod: &Pod) -> i64 {
    pod_requests(&pod.spec).get(GPU).map_or(0, |amount| amount.value())
}

fn waits(history: &History) -> Vec<Waits> {
    let classes = ["high", "normal", "spot"].map(Some);
    let of = |class: Option<&str>| {
        let waits = history.waits(class);
        Waits {
            class: class.map(str::to_owned),
            gangs: waits.len(),
            median_seconds: at(&waits, 50),
            p90_seconds: at(&waits, 90),
            p99_seconds: at(&waits, 99),
        }
    };
    [None].into_iter().chain(classes).map(of).collect()
}

fn waited_at_most(sorted_ms: &[i64]) -> Vec<f64> {
    let within =
        |seconds: u32| sorted_ms.partition_point(|&wait| wait <= i64::from(seconds) * 1000);
    WAITS_SECONDS.map(|seconds| within(seconds) as f64 / sorted_ms.len().max(1) as f64).to_vec()
}

/// This percentage of the waits is at most this long, in seconds.
fn at(sorted_ms: &[i64], percent: usize) -> f64 {
    let rank = (sorted_ms.len() * percent).div_ceil(100).max(1) - 1;
    sorted_ms.get(rank).map_or(0.0, |&wait| wait as f64 / 1e3)
}
