//! Made-up objects, written as the manifests that a user would write.

use std::fmt::Write;

use muster_api::Time;
use muster_api::core::{Node, Pod};
use muster_api::manifest::{Found, Object, read};
use muster_api::{PodGroup, Queue};

use super::dice::Dice;
use super::network;
use crate::World;

pub const QUEUES: [&str; 5] = ["default", "red", "blue", "small", "nowhere"];
const NAMESPACES: [&str; 2] = ["default", "team"];

/// The objects of a manifest that is known to be right.
pub fn objects(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    read("chaos", text.as_bytes(), &mut |found| match found {
        Found::Object { object, problems, .. } => {
            assert!(problems.is_empty(), "{problems:?} in\n{text}");
            objects.push(object);
        }
        Found::Error(error) => panic!("{error} in\n{text}"),
        Found::Skipped { kind, .. } => panic!("{kind} in\n{text}"),
    });
    objects
}

/// A small cluster, for a history that brings none.
pub fn furnish(world: &mut World, dice: &mut Dice) {
    for index in 0..7 {
        world.insert(Object::from(node(index, dice)));
    }
    for name in QUEUES.iter().filter(|name| !["default", "nowhere"].contains(name)) {
        world.insert(Object::from(queue(name, dice)));
    }
    let classes = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 100
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: -5
---
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {team: a}}
";
    objects(classes).into_iter().for_each(|object| world.insert(object));
    network::furnish(world, dice);
}

pub fn node(index: u64, dice: &mut Dice) -> Node {
    let zone = dice.pick(&[(1, "a"), (1, "b"), (1, "c")]);
    let gpus = dice.pick(&[(3, 0), (2, 4), (1, 8)]);
    let cpu = dice.pick(&[(1, 2), (2, 4), (2, 8)]);
    let (cards, memory) = (dice.pick(&[(3, 0), (2, 1), (2, 3)]), dice.pick(&[(2, 8), (1, 12)]));
    let card = |card| format!("n{index}-{card},3,{memory},NVIDIA-T4,{},hami-core:", card < 2);
    let register: String = (0..cards).map(card).collect();
    let taint =
        if dice.chance(15) { "\nspec: {taints: [{key: infra, effect: NoSchedule}]}" } else { "" };
    let text = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: n{index}, labels: {{zone: {zone}, \
         kubernetes.io/hostname: n{index}}}, annotations: {{volcano.sh/node-vgpu-register: '{register}'}}}}{taint}\nstatus: \
         {{allocatable: {{cpu: {cpu}, memory: 16Gi, pods: 8, nvidia.com/gpu: {gpus}, volcano.sh/gpu-number: {cards}, \
         volcano.sh/gpu-memory: {}}}}}\n",
        cards * memory
    );
    match objects(&text).pop() {
        Some(Object::Node(node)) => *node,
        other => panic!("expected a node, found {other:?}"),
    }
}

pub fn queue(name: &str, dice: &mut Dice) -> Queue {
    let mut spec = format!("weight: {}, ", 1 + dice.below(4));
    match dice.below(4) {
        0 => spec += "capability: {cpu: 6}, ",
        1 => spec += "capability: {cpu: 12, nvidia.com/gpu: 6}, deserved: {cpu: 4}, ",
        2 => spec += "deserved: {cpu: 3, nvidia.com/gpu: 2}, guarantee: {resource: {cpu: 1}}, ",
        _ => {}
    }
    let strategy = if dice.chance(40) { "fifo" } else { "traverse" };
    let parent = if name == "small" && dice.chance(50) { ", parent: red" } else { "" };
    let state = if dice.chance(10) { "Closed" } else { "Open" };
    let priority = dice.below(2);
    let text = format!(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{{spec}priority: \
         {priority}, dequeueStrategy: {strategy}{parent}}}\nstatus: {{state: {state}}}\n"
    );
    match objects(&text).pop() {
        Some(Object::Queue(queue)) => *queue,
        other => panic!("expected a queue, found {other:?}"),
    }
}

pub struct Arrival {
    pub group: Option<PodGroup>,
    pub pods: Vec<Pod>,
}

/// A gang of one of many kinds: whole or elastic, with roles, parts, a wish to be close, gates,
/// estimates or rules between its pods, or one pod alone, ours or another scheduler's.
pub fn gang(index: u64, now: Time, crowded: bool, dice: &mut Dice) -> Arrival {
    let namespace = *dice.one_of(&NAMESPACES).expect("two");
    let name = format!("g{index}");
    let alone = dice.chance(15);
    let size = if alone { 1 } else { 1 + dice.below(5) };
    let minimum = match crowded {
        true => dice.pick(&[(3, size), (4, 1), (2, size.div_ceil(2))]),
        false => dice.pick(&[(5, size), (2, size.div_ceil(2)), (1, 0), (1, size + 1)]),
    };
    let mut text = String::new();
    if !alone {
        let [default, red, blue, small, nowhere] = QUEUES;
        let queue = match crowded {
            true => dice.pick(&[(4, default), (2, red), (2, blue)]),
            false => dice.pick(&[(4, default), (3, red), (3, blue), (2, small), (1, nowhere)]),
        };
        let mut spec = format!("minMember: {minimum}, queue: {queue}");
        if dice.chance(if crowded { 80 } else { 30 }) {
            spec += ", priorityClassName: ";
            spec += dice.pick(&[(3, "high"), (3, "low"), (1, "missing")]);
        }
        if dice.chance(50) {
            write!(spec, ", minResources: {{cpu: {}}}", minimum.max(1)).expect("a string");
        }
        if size > 1 && dice.chance(if crowded { 10 } else { 30 }) {
            write!(spec, ", minTaskMember: {{lead: 1, work: {}}}", minimum.saturating_sub(1))
                .expect("a string");
        }
        if !crowded || dice.chance(25) {
            spec += &network::tier_limit(dice);
        }
        let annotations =
            if dice.chance(30) { ", annotations: {volcano.sh/running-estimate: 40s}" } else { "" };
        writeln!(
            text,
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}, namespace: \
             {namespace}, creationTimestamp: \"{now}\"{annotations}}}\nspec: {{{spec}}}\n---"
        )
        .expect("a string");
    }
    let mut kind = PodKind::any(dice);
    let mut other = PodKind::any(dice);
    if crowded {
        // No pod ends by itself.
        (kind.duration, other.duration) = (None, None);
    }
    for member in 0..size {
        let kind = if member > 0 && dice.chance(15) { &other } else { &kind };
        text += &pod(&name, namespace, member, alone, now, kind, dice);
    }
    let mut arrival = Arrival { group: None, pods: Vec::new() };
    for object in objects(&text) {
        match object {
            Object::PodGroup(group) => arrival.group = Some(*group),
            Object::Pod(pod) => arrival.pods.push(*pod),
            other => panic!("expected a gang, found {other:?}"),
        }
    }
    arrival
}

struct PodKind {
    requests: String,
    rules: &'static str,
    gated: bool,
    duration: Option<u64>,
}

impl PodKind {
    fn any(dice: &mut Dice) -> PodKind {
        let cpu = dice.pick(&[(2, "500m"), (3, "1"), (2, "2"), (1, "5")]);
        let requests = match dice.below(10) {
            0 => String::new(),
            1..=3 => format!("nvidia.com/gpu: {}, cpu: {cpu}", 1 + dice.below(4)),
            4 => format!("volcano.sh/gpu-memory: {}", 2 + dice.below(7)),
            5 => {
                let (cards, cores) = (1 + dice.below(2), dice.pick(&[(2, 0), (2, 40), (1, 100)]));
                let memory = 2 + dice.below(6);
                format!(
                    "volcano.sh/vgpu-number: {cards}, volcano.sh/vgpu-memory: {memory}, volcano.sh/vgpu-cores: {cores}"
                )
            }
            _ => format!("cpu: {cpu}, memory: 1Gi"),
        };
        let rules = dice.pick(&[
            (12, ""),
            (1, ", nodeSelector: {zone: a}"),
            (1, ", tolerations: [{key: infra, operator: Exists}]"),
            (1, ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}]}}"),
            (1, ", affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}"),
            (1, ", affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 10, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: y}}}}]}}"),
            (1, ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]"),
        ]);
        let duration = dice.chance(70).then(|| 5 + dice.below(60));
        PodKind { requests, rules, gated: dice.chance(8), duration }
    }
}

fn pod(
    gang: &str,
    namespace: &str,
    member: u64,
    alone: bool,
    now: Time,
    kind: &PodKind,
    dice: &mut Dice,
) -> String {
    let mut annotations = String::new();
    if let Some(seconds) = kind.duration {
        write!(annotations, "muster.sh/simulated-duration: {seconds}s, ").expect("a string");
    }
    if !alone {
        write!(annotations, "scheduling.k8s.io/group-name: {gang}").expect("a string");
    } else if dice.chance(50) {
        annotations += "scheduling.volcano.sh/queue-name: blue";
    }
    let role = if member == 0 { "lead" } else { "work" };
    let part = member / 2;
    let app = dice.pick(&[(2, "x"), (1, "y")]);
    let gates = if kind.gated { ", schedulingGates: [{name: hold}]" } else { "" };
    let ports = if dice.chance(6) { ", ports: [{containerPort: 80, hostPort: 8080}]" } else { "" };
    let scheduler = if alone && dice.chance(30) { "default-scheduler" } else { "volcano" };
    let PodKind { requests, rules, .. } = kind;
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {gang}-{member}, namespace: {namespace}, creationTimestamp: \
         \"{now}\", labels: {{app: {app}, part: '{part}', volcano.sh/task-spec: {role}}}, annotations: {{{annotations}}}}}\n\
         spec: {{schedulerName: {scheduler}{rules}{gates}, containers: [{{name: main, image: busybox{ports}, \
         resources: {{requests: {{{requests}}}}}}}]}}\nstatus: {{phase: Pending}}\n---\n"
    )
}
