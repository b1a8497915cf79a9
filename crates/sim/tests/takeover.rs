//! Room that is taken from others, on random small clusters without news: whoever is evicted comes back and waits, and every
//! cluster comes to rest. Nobody gives what he has just taken.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use muster_api::Time;
use muster_api::keys::SCHEDULER_NAMES;
use muster_api::manifest::{Found, read};
use muster_engine::Engine;
use muster_engine::config::Config;
use muster_sim::{Options, Simulation, Until, World};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CYCLES: u64 = 50;
/// By then everything that had to move has moved.
const REST_AFTER: u64 = 25;
const START: Time = Time(1_767_571_200_000);

fn config(mode: &str, quota: &str, hierarchy: bool) -> String {
    format!(
        "actions: \"enqueue, allocate, backfill, reclaim, preempt\"\nconfigurations:\n- name: reclaim\n  arguments: {{mode: {mode}}}\n- name: \
         preempt\n  arguments: {{mode: {mode}}}\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: \
         conformance\n- plugins:\n  - name: predicates\n  - name: {quota}\n    enableHierarchy: {hierarchy}\n  - name: nodeorder\n  - name: \
         binpack\n  - name: network-topology-aware\n"
    )
}

/// Gangs run, others wait; priorities, shares and sizes are drawn.
fn cluster(seed: u64, tree: bool) -> String {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::from(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 100\n---\napiVersion: \
         scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: mid}\nvalue: 10\n---\n",
    );
    let mut free: Vec<i64> = (0..dice.random_range(1..5)).map(|_| dice.random_range(2..9)).collect();
    for (node, cpu) in free.iter().enumerate() {
        write!(
            text,
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n{node}}}\nstatus: {{allocatable: {{cpu: {cpu}, memory: 64Gi, pods: 40}}}}\n---\n"
        )
        .expect("a string");
    }
    network(&mut text, &mut dice, free.len());
    let queues = ["red", "blue", "green"];
    for queue in queues {
        let mut spec = format!("weight: {}", dice.random_range(1..4));
        if dice.random_bool(0.8) {
            let deserved = dice.random_range(0..9);
            write!(spec, ", deserved: {{cpu: {deserved}}}").expect("a string");
            if dice.random_bool(0.3) {
                write!(spec, ", guarantee: {{resource: {{cpu: {}}}}}", deserved / 2).expect("a string");
            }
            if dice.random_bool(0.2) {
                write!(spec, ", capability: {{cpu: {}}}", deserved + 2).expect("a string");
            }
        }
        if tree && queue == "green" && dice.random_bool(0.7) {
            spec += ", parent: middle";
        }
        write!(text, "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {queue}}}\nspec: {{{spec}}}\n---\n")
            .expect("a string");
    }
    if tree {
        text += "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: middle}\nspec: {deserved: {cpu: 4}}\n---\n";
    }
    for gang in 0..dice.random_range(3..12) {
        let queue = queues[dice.random_range(0..3)];
        let size = dice.random_range(1..5);
        let minimum = dice.random_range(1..=size);
        let cpu = dice.random_range(1..4);
        let class = ["", ", priorityClassName: mid", ", priorityClassName: high"][dice.random_range(0..3)];
        let never = if dice.random_bool(0.1) { ", volcano.sh/preemptable: \"false\"" } else { "" };
        let company = company(&mut dice, size, minimum);
        write!(
            text,
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: g{gang}, namespace: default, creationTimestamp: \
             \"{START}\"}}\nspec: {{minMember: {minimum}, queue: {queue}{class}{company}}}\n---\n"
        )
        .expect("a string");
        let runs = dice.random_bool(0.6);
        for pod in 0..size {
            let place = free.iter().position(|&free| runs && free >= cpu);
            let (place, phase) = match place {
                Some(node) => {
                    free[node] -= cpu;
                    (format!(", nodeName: n{node}"), "Running")
                }
                None => (String::new(), "Pending"),
            };
            let (role, part) = (if pod == 0 { "lead" } else { "work" }, pod / 2);
            write!(
                text,
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: g{gang}-{pod}, namespace: default, creationTimestamp: \"{START}\", labels: \
                 {{volcano.sh/task-spec: {role}, part: '{part}'}}, annotations: {{scheduling.k8s.io/group-name: g{gang}{never}}}}}\nspec: {{schedulerName: volcano{place}, containers: [{{name: main, image: \
                 busybox, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\nstatus: {{phase: {phase}}}\n---\n"
            )
            .expect("a string");
        }
    }
    text
}

/// Two racks and what holds both, on some days.
fn network(text: &mut String, dice: &mut ChaCha8Rng, nodes: usize) {
    if !dice.random_bool(0.6) {
        return;
    }
    let racks = [("rack0", 0..nodes.div_ceil(2)), ("rack1", nodes.div_ceil(2)..nodes)];
    let mut members = Vec::new();
    let mut domain = |name: &str, tier: u32, members: &[String]| {
        write!(
            text,
            "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\nspec: {{tier: {tier}, members: [{}]}}\n---\n",
            members.join(", ")
        )
        .expect("a string");
    };
    let member =
        |kind: &str, name: &str| format!("{{type: {kind}, selector: {{exactMatch: {{name: {name}}}}}}}");
    for (name, nodes) in racks.into_iter().filter(|(_, nodes)| !nodes.is_empty()) {
        let nodes: Vec<String> = nodes.map(|node| member("Node", &format!("n{node}"))).collect();
        domain(name, 1, &nodes);
        members.push(member("HyperNode", name));
    }
    domain("whole", 2, &members);
}

/// What a gang wants of its pods' company: roles, parts that start together, to be near.
fn company(dice: &mut ChaCha8Rng, size: i32, minimum: i32) -> String {
    let mut spec = String::new();
    if size > 1 && dice.random_bool(0.25) {
        write!(spec, ", minTaskMember: {{lead: 1, work: {}}}", minimum - 1).expect("a string");
    }
    if dice.random_bool(0.25) {
        let mode =
            ["{mode: soft}", "{mode: hard, highestTierAllowed: 1}", "{mode: hard, highestTierAllowed: 2}"];
        write!(spec, ", networkTopology: {}", mode[dice.random_range(0..3)]).expect("a string");
    }
    if size > 1 && dice.random_bool(0.25) {
        let near = ["", ", networkTopology: {mode: hard, highestTierAllowed: 1}"][dice.random_range(0..2)];
        let parts = dice.random_range(0..=minimum / 2);
        write!(
            spec,
            ", subGroupPolicy: [{{name: part, matchLabelKeys: [part], subGroupSize: 2, minSubGroups: {parts}{near}}}]"
        )
        .expect("a string");
    }
    spec
}

/// Plays a cluster; the number of evictions, or what is wrong.
fn play(text: &str, config: &str) -> Result<usize, String> {
    let mut world = World::at(START);
    let mut queue_of: BTreeMap<String, String> = BTreeMap::new();
    read("takeover", text.as_bytes(), &mut |found| match found {
        Found::Object { object, problems, .. } => {
            assert!(problems.is_empty(), "{problems:?}");
            if let muster_api::manifest::Object::PodGroup(group) = &object {
                queue_of.insert(object.key(), group.spec.queue.clone());
            }
            world.insert(object);
        }
        Found::Error(error) => panic!("{error} in\n{text}"),
        Found::Skipped { kind, .. } => panic!("{kind}"),
    });
    let config = Config::parse("takeover", config).unwrap_or_else(|errors| panic!("{errors:?}"));
    let names = SCHEDULER_NAMES.iter().map(ToString::to_string).collect();
    let options =
        Options { until: Until::Cycles(CYCLES), recreate: true, events: false, arrivals: false, check: true };
    let mut simulation = Simulation::new(world, Engine::new(config, names), options);
    simulation.run(|_| {})?;
    let evictions = &simulation.report.evictions;
    if let Some(late) = evictions.iter().find(|eviction| eviction.cycle > REST_AFTER) {
        return Err(format!("in cycle {} {} still leaves: {}", late.cycle, late.pod, late.reason));
    }
    let gang = |pod: &str| pod.rsplit_once('-').map_or(pod, |(gang, _)| gang).to_owned();
    let takes: BTreeSet<(&String, &String)> = evictions
        .iter()
        .filter(|eviction| eviction.action == "reclaim")
        .filter_map(|eviction| {
            Some((&queue_of[eviction.claimant.as_ref()?], &queue_of[&gang(&eviction.pod)]))
        })
        .collect();
    match takes.iter().find(|(taker, giver)| takes.contains(&(giver, taker))) {
        Some((one, other)) => Err(format!("{one} and {other} take from each other")),
        None => Ok(evictions.len()),
    }
}

fn comes_to_rest(mode: &str, quota: &str, tree: bool) {
    let config = config(mode, quota, tree);
    let seeds = std::env::var("MUSTER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let mut evictions = 0;
    let mut wrong = Vec::new();
    for seed in 0..seeds {
        let text = cluster(seed, tree);
        match play(&text, &config) {
            Ok(count) => evictions += count,
            Err(what) => wrong.push(format!("seed {seed}: {what}")),
        }
    }
    println!("{mode} {quota}: {evictions} evictions");
    assert!(wrong.is_empty(), "{} of {seeds}\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    assert!(evictions > seeds as usize / 4, "only {evictions} evictions: nothing is tried here");
}

#[test]
fn taking_back_what_queues_deserve_comes_to_rest() {
    comes_to_rest("task", "capacity", false);
}

#[test]
fn taking_back_in_a_tree_comes_to_rest() {
    comes_to_rest("task", "capacity", true);
}

#[test]
fn taking_back_by_weight_comes_to_rest() {
    comes_to_rest("task", "proportion", false);
}

#[test]
fn taking_whole_gangs_comes_to_rest() {
    comes_to_rest("gang", "capacity", false);
    comes_to_rest("gang", "capacity", true);
    comes_to_rest("gang", "proportion", false);
}
