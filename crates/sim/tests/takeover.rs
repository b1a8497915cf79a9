//! Evictions on random small clusters without news: evicted pods come back and wait, and every
//! cluster comes to rest. No queue gives back what it has just taken.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write};
use std::ops::Range;

use muster_api::Time;
use muster_api::keys::SCHEDULER_NAMES;
use muster_api::manifest::{Found, read};
use muster_engine::Engine;
use muster_engine::Mode;
use muster_engine::config::Config;
use muster_engine::shares::{Shares, divided};
use muster_sim::report::Eviction;
use muster_sim::{Options, STEP_MS, Simulation, Until, World};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CYCLES: u64 = 100;
/// By then everything that had to move has moved.
const REST_AFTER: u64 = 25;
const START: Time = Time(1_767_571_200_000);
const QUEUES: [&str; 3] = ["red", "blue", "green"];

fn config(mode: &str, quota: &str, queues: Queues) -> String {
    let hierarchy = queues == Queues::Tree;
    // A gang of a higher priority may be larger than its queue deserves, which others take back.
    let last = if queues == Queues::TwoResources { "" } else { ", preempt" };
    let actions = match mode {
        "scenario" => format!("allocate, consolidate, reclaim{last}, stalegangeviction"),
        _ => format!("enqueue, allocate, backfill, reclaim{last}"),
    };
    format!(
        "actions: \"{actions}\"\nconfigurations:\n- name: reclaim\n  arguments: {{mode: {mode}}}\n- name: \
         preempt\n  arguments: {{mode: {mode}}}\n- name: stalegangeviction\n  arguments: \
         {{defaultStalenessGracePeriod: 5s}}\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: \
         conformance\n- plugins:\n  - name: predicates\n  - name: {quota}\n    enableHierarchy: {hierarchy}\n  - name: nodeorder\n  - name: \
         binpack\n  - name: network-topology-aware\n"
    )
}

/// What queues are like.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Queues {
    Flat,
    Tree,
    /// They deserve CPUs and GPUs, and pods ask for both in different ratios.
    TwoResources,
}

/// Gangs run, others wait; priorities, shares and sizes are drawn.
fn cluster(seed: u64, kind: Queues) -> String {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::from(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 100\n---\napiVersion: \
         scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: mid}\nvalue: 10\n---\n",
    );
    // With GPUs many single pods on few nodes, so that most are in each other's way.
    let gpus = kind == Queues::TwoResources;
    let mut free = nodes(&mut text, &mut dice, gpus);
    network(&mut text, &mut dice, free.len());
    queues(&mut text, &mut dice, kind);
    for index in 0..dice.random_range(if gpus { 6..14 } else { 3..12 }) {
        gang(&mut text, &mut dice, gpus, index, &mut free);
    }
    text
}

/// CPUs and GPUs.
fn draw(dice: &mut ChaCha8Rng, gpus: bool, cpus: Range<i64>, gpu: Range<i64>) -> [i64; 2] {
    [dice.random_range(cpus), if gpus { dice.random_range(gpu) } else { 0 }]
}

/// What is free on each.
fn nodes(text: &mut String, dice: &mut ChaCha8Rng, gpus: bool) -> Vec<[i64; 2]> {
    let count = if gpus { 1..3 } else { 1..5 };
    let free: Vec<[i64; 2]> =
        (0..dice.random_range(count)).map(|_| draw(dice, gpus, 2..9, 2..9)).collect();
    for (node, &room) in free.iter().enumerate() {
        let room = amounts(room);
        write!(
            text,
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n{node}}}\nstatus: {{allocatable: {{{room}, memory: 64Gi, pods: 40}}}}\n---\n"
        )
        .expect("a string");
    }
    free
}

fn queues(text: &mut String, dice: &mut ChaCha8Rng, kind: Queues) {
    let gpus = kind == Queues::TwoResources;
    for queue in QUEUES {
        let mut spec = format!("weight: {}", dice.random_range(1..4));
        if gpus || dice.random_bool(0.8) {
            let deserved = draw(dice, gpus, 0..9, 1..9);
            write!(spec, ", deserved: {{{}}}", amounts(deserved)).expect("a string");
            let [deserved, _] = deserved;
            if !gpus && dice.random_bool(0.3) {
                write!(spec, ", guarantee: {{resource: {{cpu: {}}}}}", deserved / 2)
                    .expect("a string");
            }
            if !gpus && dice.random_bool(0.2) {
                write!(spec, ", capability: {{cpu: {}}}", deserved + 2).expect("a string");
            }
        }
        if kind == Queues::Tree && queue == "green" && dice.random_bool(0.7) {
            spec += ", parent: middle";
        }
        write!(text, "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {queue}}}\nspec: {{{spec}}}\n---\n")
            .expect("a string");
    }
    if kind == Queues::Tree {
        *text += "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: middle}\nspec: {deserved: {cpu: 4}}\n---\n";
    }
}

/// A gang that runs on what is free, or waits.
fn gang(text: &mut String, dice: &mut ChaCha8Rng, gpus: bool, index: i32, free: &mut [[i64; 2]]) {
    let queue = QUEUES[dice.random_range(0..3)];
    let size = dice.random_range(if gpus { 1..2 } else { 1..5 });
    let minimum = dice.random_range(1..=size);
    let asked = draw(dice, gpus, if gpus { 1..6 } else { 1..4 }, 0..6);
    let class =
        ["", ", priorityClassName: mid", ", priorityClassName: high"][dice.random_range(0..3)];
    let never = if dice.random_bool(if gpus { 0.0 } else { 0.1 }) {
        ", volcano.sh/preemptable: \"false\""
    } else {
        ""
    };
    let company = if gpus { String::new() } else { company(dice, size, minimum) };
    write!(
        text,
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: g{index}, namespace: default, creationTimestamp: \
         \"{START}\"}}\nspec: {{minMember: {minimum}, queue: {queue}{class}{company}}}\n---\n"
    )
    .expect("a string");
    let runs = dice.random_bool(0.6);
    for pod in 0..size {
        let place = free.iter().position(|free| runs && (0..2).all(|at| free[at] >= asked[at]));
        let (place, phase) = match place {
            Some(node) => {
                (0..2).for_each(|at| free[node][at] -= asked[at]);
                (format!(", nodeName: n{node}"), "Running")
            }
            None => (String::new(), "Pending"),
        };
        let asked = amounts(asked);
        let (role, part) = (if pod == 0 { "lead" } else { "work" }, pod / 2);
        write!(
            text,
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: g{index}-{pod}, namespace: default, creationTimestamp: \"{START}\", labels: \
             {{volcano.sh/task-spec: {role}, part: '{part}'}}, annotations: {{scheduling.k8s.io/group-name: g{index}{never}}}}}\nspec: {{schedulerName: volcano{place}, containers: [{{name: main, image: \
             busybox, resources: {{requests: {{{asked}}}}}}}]}}\nstatus: {{phase: {phase}}}\n---\n"
        )
        .expect("a string");
    }
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
    let member = |kind: &str, name: &str| {
        format!("{{type: {kind}, selector: {{exactMatch: {{name: {name}}}}}}}")
    };
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
        let mode = [
            "{mode: soft}",
            "{mode: hard, highestTierAllowed: 1}",
            "{mode: hard, highestTierAllowed: 2}",
        ];
        write!(spec, ", networkTopology: {}", mode[dice.random_range(0..3)]).expect("a string");
    }
    if size > 1 && dice.random_bool(0.25) {
        let near =
            ["", ", networkTopology: {mode: hard, highestTierAllowed: 1}"][dice.random_range(0..2)];
        let parts = dice.random_range(0..=minimum / 2);
        write!(
            spec,
            ", subGroupPolicy: [{{name: part, matchLabelKeys: [part], subGroupSize: 2, minSubGroups: {parts}{near}}}]"
        )
        .expect("a string");
    }
    spec
}

fn amounts([cpu, gpu]: [i64; 2]) -> String {
    let gpus = if gpu > 0 { format!(", nvidia.com/gpu: {gpu}") } else { String::new() };
    format!("cpu: {cpu}{gpus}")
}

/// Plays a cluster; the number of evictions, or what is wrong.
fn play(text: &str, config: &str, queues: Queues) -> Result<usize, Box<dyn Error>> {
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
    let options = Options {
        until: Until::Cycles(CYCLES),
        recreate: true,
        events: false,
        arrivals: false,
        check: true,
    };
    let mut simulation = Simulation::new(world, Engine::new(config, names), options);
    let mut takes = Vec::new();
    for cycle in 1..=CYCLES {
        simulation.step().map_err(|violation| format!("in cycle {cycle} {violation}"))?;
        takes.extend(takes_of(&simulation, &queue_of));
        simulation.pass(STEP_MS);
    }
    let evictions = &simulation.report.evictions;
    if let Some(late) = evictions.iter().find(|eviction| eviction.cycle > REST_AFTER) {
        let Eviction { cycle, pod, reason, .. } = late;
        return Err(format!("in cycle {cycle} {pod} still leaves: {reason}").into());
    }
    // Of several resources each may have too much of one. And a queue that has lost a stale gang
    // meanwhile has a right of its own.
    let stale = |then: &Take, first: &Take| {
        let between = first.what.cycle..=then.what.cycle;
        evictions.iter().any(|lost| {
            let loser = queue_of.get(&lost.gang);
            lost.action == "stalegangeviction"
                && between.contains(&lost.cycle)
                && loser == Some(&then.taker)
        })
    };
    let takes_back = |then: &Take, first: &Take| then.takes_back(first) && !stale(then, first);
    let back = |first: &Take| takes.iter().find(|then| takes_back(then, first)).cloned();
    let both = takes.iter().find_map(|first| Some((first, back(first)?)));
    match both.filter(|_| queues != Queues::TwoResources) {
        Some((first, then)) => Err(format!("{first}, and {then}").into()),
        None => Ok(evictions.len()),
    }
}

/// A pod that a queue lost to another by `reclaim`.
#[derive(Clone)]
struct Take {
    what: Eviction,
    taker: String,
    giver: String,
    /// What each of the two has afterwards, and what the first should have if queues are measured
    /// by fair shares.
    taker_has: Vec<i64>,
    taker_share: Vec<i64>,
    giver_has: Vec<i64>,
}

impl Take {
    /// Whether it takes from a queue what that one took from this one: the room goes from A to B
    /// and to A again. By fair shares a queue may use what is free beyond its share, and lose
    /// that; but what it took within its share it keeps.
    fn takes_back(&self, first: &Take) -> bool {
        if (&self.taker, &self.giver) != (&first.giver, &first.taker)
            || self.what.cycle < first.what.cycle
        {
            return false;
        }
        let kept =
            first.taker_has.iter().zip(&first.taker_share).map(|(has, share)| has.min(share));
        let at_once = self.what.cycle == first.what.cycle;
        at_once
            || first.taker_share.is_empty()
            || self.giver_has.iter().zip(kept).any(|(has, kept)| has < kept)
    }
}

impl fmt::Display for Take {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Take { what, taker, giver, .. } = self;
        let preemptor = what.preemptor.as_deref().unwrap_or_default();
        write!(f, "{taker} takes {} of {giver} for {preemptor} in cycle {}", what.pod, what.cycle)
    }
}

/// What was taken in this cycle. A pod that only moves is not taken from its queue.
fn takes_of(simulation: &Simulation, queue_of: &BTreeMap<String, String>) -> Vec<Take> {
    let cluster = simulation.engine.cluster();
    let shares = Shares::of(cluster, simulation.engine.policy().hierarchical(), 0);
    let by_share = simulation
        .engine
        .config()
        .eviction_settings("reclaim")
        .is_some_and(|settings| settings.mode == Mode::Scenario);
    let queue =
        |name: &str| cluster.queues.iter().find(|(_, row)| *row.name == *name).map(|(id, _)| id);
    let amounts = |name: &str, share: bool| -> Vec<i64> {
        let amount = |id| match queue(name) {
            Some(queue) if share => shares.fair(queue, id),
            Some(queue) => cluster.queues[queue].taken(id),
            None => 0,
        };
        divided(cluster).map(amount).collect()
    };
    let now = simulation.report.cycles.len() as u64;
    let taken = simulation.report.evictions.iter().filter(|eviction| eviction.cycle == now);
    let taken =
        taken.filter(|eviction| eviction.action == "reclaim" && eviction.moves_to.is_none());
    let take = |what: &Eviction| {
        let (taker, giver) =
            (queue_of[what.preemptor.as_ref()?].clone(), queue_of[&what.gang].clone());
        let share = amounts(&taker, true);
        let taker_share = if by_share { share } else { Vec::new() };
        let (taker_has, giver_has) = (amounts(&taker, false), amounts(&giver, false));
        Some(Take { what: what.clone(), taker, giver, taker_has, taker_share, giver_has })
    };
    taken.filter_map(take).collect()
}

fn comes_to_rest(mode: &str, quota: &str, queues: Queues) {
    let config = config(mode, quota, queues);
    let seeds =
        std::env::var("MUSTER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let mut evictions = 0;
    let mut wrong = Vec::new();
    for seed in 0..seeds {
        let text = cluster(seed, queues);
        match play(&text, &config, queues) {
            Ok(count) => evictions += count,
            Err(what) => wrong.push(format!("seed {seed}: {what}")),
        }
    }
    println!("{mode} {quota}: {evictions} evictions");
    assert!(
        wrong.is_empty(),
        "{} of {seeds}\n{}",
        wrong.len(),
        wrong[..wrong.len().min(10)].join("\n")
    );
    assert!(evictions > seeds as usize / 4, "only {evictions} evictions: nothing is tried here");
}

#[test]
fn taking_back_what_queues_deserve_comes_to_rest() {
    comes_to_rest("task", "capacity", Queues::Flat);
}

#[test]
fn taking_back_in_a_tree_comes_to_rest() {
    comes_to_rest("task", "capacity", Queues::Tree);
}

#[test]
fn taking_back_by_weight_comes_to_rest() {
    comes_to_rest("task", "proportion", Queues::Flat);
}

#[test]
fn taking_whole_gangs_comes_to_rest() {
    comes_to_rest("gang", "capacity", Queues::Flat);
    comes_to_rest("gang", "capacity", Queues::Tree);
    comes_to_rest("gang", "proportion", Queues::Flat);
}

#[test]
fn taking_back_several_resources_comes_to_rest() {
    comes_to_rest("task", "capacity", Queues::TwoResources);
    comes_to_rest("task", "proportion", Queues::TwoResources);
    comes_to_rest("gang", "capacity", Queues::TwoResources);
    comes_to_rest("gang", "proportion", Queues::TwoResources);
}

#[test]
fn taking_back_fair_shares_comes_to_rest() {
    comes_to_rest("scenario", "capacity", Queues::Flat);
}

#[test]
fn taking_back_fair_shares_in_a_tree_comes_to_rest() {
    comes_to_rest("scenario", "capacity", Queues::Tree);
}

#[test]
fn taking_back_fair_shares_of_several_resources_comes_to_rest() {
    comes_to_rest("scenario", "capacity", Queues::TwoResources);
}
