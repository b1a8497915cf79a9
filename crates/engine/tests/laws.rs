//! Laws of the engine on random small clusters, written in the short form of `support/lines.rs`, so
//! that a failure reads like a scenario.

#[path = "support/lines.rs"]
mod lines;
#[path = "support/random.rs"]
mod random;
mod support;

use std::collections::BTreeMap;

use muster_api::kinds::Kind;
use muster_engine::config::Config;
use muster_engine::ids::{NodeId, PodId, ResourceId, ShapeId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::plan::Eviction;
use muster_engine::{Engine, Event, Plan, Policy, Room, Scope, Txn, Why};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use random::{CHANGES, START, bounded, events_apart, rewinds_leave_no_trace, shuffled};

const SEED: u64 = 20_261_115;

fn node(index: usize) -> impl Strategy<Value = String> {
    let taint = prop_oneof![6 => Just(""), 1 => Just(" taint=infra")];
    (1..6, 0..4, prop::sample::select(vec!["x", "y", "z"]), 2..8, taint).prop_map(
        move |(cpu, gpu, zone, pods, taint)| {
            format!("node n{index} cpu={cpu} gpu={gpu} pods={pods} label=zone:{zone}{taint}")
        },
    )
}

fn nodes(most: usize) -> impl Strategy<Value = Vec<String>> {
    (1..=most).prop_flat_map(|count| (0..count).map(node).collect::<Vec<_>>())
}

const RULES: [&str; 6] = [
    " select=zone:x",
    " tolerate=infra",
    " apart=app:a/host",
    " with=app:a/zone",
    " spread=app:a/zone",
    " port=80",
];

fn rule() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just(""), 6 => prop::sample::select(RULES.to_vec())]
}

fn request() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        9 => (1..4, 0..3).prop_map(|(cpu, gpu)| if gpu == 0 { format!(" cpu={cpu}") } else { format!(" cpu={cpu} gpu={gpu}") }),
    ]
}

fn gang(index: usize) -> impl Strategy<Value = String> {
    let queue = prop_oneof![4 => Just(""), 2 => Just(" queue=red"), 2 => Just(" queue=line"), 1 => Just(" queue=shut")];
    let label = prop_oneof![Just(" label=app:a"), Just(" label=app:b")];
    let minimum = prop_oneof![4 => Just(None), 3 => (0..4u32).prop_map(Some)];
    let rank = prop_oneof![
        Just(""),
        Just(" prio=1"),
        Just(" class=high"),
        Just(" class=none"),
        Just(" ns=lab")
    ];
    (1..5, minimum, request(), rule(), queue, label, rank).prop_map(
        move |(size, minimum, request, rule, queue, label, rank)| {
            let minimum = minimum.map_or(String::new(), |minimum| format!(" min={minimum}"));
            format!("gang g{index} x{size}{minimum}{request}{rule}{queue}{label}{rank} minres.cpu={size}")
        },
    )
}

/// Gangs with pods of two roles and sizes.
fn mixed(index: usize) -> impl Strategy<Value = Vec<String>> {
    (request(), request(), rule(), 1..4usize, 0..3u32).prop_map(
        move |(lead, work, rule, workers, minimum)| {
            let mut lines = vec![
                format!("gang m{index} min={} role=lead:1 role=work:{minimum}", minimum + 1),
                format!("pod m{index}-lead gang=m{index} role=lead{lead} label=app:a"),
            ];
            for worker in 0..workers {
                lines.push(format!(
                    "pod m{index}-work{worker} gang=m{index} role=work{work}{rule} label=app:b"
                ));
            }
            lines
        },
    )
}

/// Pods that are on nodes already, some of them on their way out, some another scheduler's.
fn bound_pod(index: usize, nodes: usize, leaving: bool) -> impl Strategy<Value = String> {
    let leaves = prop_oneof![3 => Just(""), 1 => Just(if leaving { " terminating" } else { "" })];
    let scheduler = prop_oneof![3 => Just(""), 1 => Just(" scheduler=default-scheduler")];
    (0..nodes, request(), leaves, scheduler).prop_map(move |(node, request, leaves, scheduler)| {
        format!("pod s{index} on=n{node}{request}{leaves}{scheduler} label=app:a")
    })
}

fn setting(leaving: bool, fifo: bool) -> impl Strategy<Value = Vec<String>> {
    let gangs = prop::collection::vec(0..1u8, 0..5)
        .prop_flat_map(|list| (0..list.len()).map(gang).collect::<Vec<_>>());
    let mixed = prop::collection::vec(0..1u8, 0..3)
        .prop_flat_map(|list| (0..list.len()).map(mixed).collect::<Vec<_>>());
    let bound = (0..4usize).prop_flat_map(move |count| {
        (0..count).map(|index| bound_pod(index, 3, leaving)).collect::<Vec<_>>()
    });
    (nodes(5), gangs, mixed, bound).prop_map(move |(nodes, gangs, mixed, bound)| {
        let line = if fifo { "queue line fifo" } else { "queue line" };
        let queues =
            ["queue red cap.cpu=4 deserved.cpu=2", line, "queue shut closed"].map(str::to_owned);
        let all = queues
            .into_iter()
            .chain(nodes)
            .chain(gangs)
            .chain(mixed.into_iter().flatten())
            .chain(bound);
        all.collect()
    })
}

/// A gang, where room has to be taken from others.
#[derive(Clone, Debug)]
struct Wanting {
    queue: &'static str,
    pods: usize,
    minimum: usize,
    gpus: i64,
    rest: String,
    runs: bool,
}

fn wanting() -> impl Strategy<Value = Wanting> {
    let rank = prop::sample::select(vec!["", " prio=1", " prio=2", " preemptable=false"]);
    let near = prop_oneof![5 => Just(""), 1 => Just(" close=hard:1")];
    let queue = prop::sample::select(vec!["red", "blue", "green"]);
    (queue, 1..5usize, 1..5usize, 1..4i64, rank, near, prop::bool::weighted(0.6)).prop_map(
        |(queue, pods, minimum, gpus, rank, near, runs)| Wanting {
            queue,
            pods,
            minimum: minimum.min(pods),
            gpus,
            rest: format!("{rank}{near}"),
            runs,
        },
    )
}

/// A full cluster in pieces: gangs of several queues and priorities, some of which run, wherever
/// there is room.
fn crowd() -> impl Strategy<Value = Vec<String>> {
    let quota = || (0..7i64, 1..4, 0..2);
    let queues = (quota(), quota(), quota());
    let nodes = prop::collection::vec(2..7i64, 2..5);
    (nodes, queues, prop::collection::vec((wanting(), 0..4usize), 3..10)).prop_map(
        |(mut free, (red, blue, green), gangs)| {
            let mut lines = Vec::new();
            for (name, (deserved, weight, priority)) in [("red", red), ("blue", blue), ("green", green)] {
                let parent = if name == "red" { "" } else { " parent=both" };
                lines.push(format!(
                    "queue {name} deserved.gpu={deserved} weight={weight} priority={priority}{parent}"
                ));
            }
            lines.push("queue both deserved.gpu=5".to_owned());
            lines.extend(
                free.iter().enumerate().map(|(at, gpus)| format!("node n{at} cpu=64 gpu={gpus} pods=40")),
            );
            let (near, far) = free.split_at(free.len() / 2);
            for (name, from, nodes) in [("rack0", 0, near), ("rack1", near.len(), far)] {
                let nodes =
                    (from..from + nodes.len()).map(|at| format!("n{at}")).collect::<Vec<_>>().join(",");
                lines.push(format!("domain {name} tier=1 nodes={nodes}"));
            }
            lines.push("domain whole tier=2 domains=rack0,rack1".to_owned());
            for (at, (gang, first)) in gangs.into_iter().enumerate() {
                let Wanting { queue, pods, minimum, gpus, rest, runs } = gang;
                lines.push(format!("gang g{at} min={minimum} queue={queue}{rest}"));
                let count = free.len();
                for pod in 0..pods {
                    let mut nodes = (0..count).map(|node| (node + first + pod) % count);
                    let place = nodes.find(|&node| runs && free[node] >= gpus);
                    let place = place.map(|node| {
                        free[node] -= gpus;
                        format!(" on=n{node}")
                    });
                    let place = place.unwrap_or_default();
                    lines.push(format!("pod g{at}-{pod} gang=g{at} gpu={gpus}{rest}{place}"));
                }
            }
            lines
        },
    )
}

/// What `docs/scenarios.md` recommends, as far as it matters to small clusters.
fn scenarios(tree: bool) -> Config {
    let text = format!(
        "actions: \"allocate, consolidate, reclaim, preempt, stalegangeviction\"\nconfigurations:\n- name: reclaim\n  arguments: \
         {{mode: scenario}}\n- name: preempt\n  arguments: {{mode: scenario}}\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  \
         - name: conformance\n  - name: pdb\n- plugins:\n  - name: predicates\n  - name: capacity\n    enableHierarchy: {tree}\n  - name: \
         nodeorder\n  - name: binpack\n  - name: network-topology-aware\n"
    );
    Config::parse("scenarios", &text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn events(lines: &[String]) -> Vec<Event> {
    events_apart(lines, 1000)
}

fn engine_of(config: Config, events: &[Event]) -> Engine {
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    for event in events {
        engine.apply(event.clone());
    }
    engine
}

fn builtin(events: &[Event]) -> Engine {
    engine_of(Config::builtin(), events)
}

/// Everything that a cycle decided and said, by names.
fn decided(engine: &Engine, plan: &Plan) -> Vec<String> {
    let cluster = engine.cluster();
    let mut lines = Vec::new();
    for (arrow, list) in [("->", &plan.binds), ("~>", &plan.nominations)] {
        lines.extend(list.iter().map(|bind| format!("{} {arrow} {}", bind.pod, bind.node)));
    }
    lines.extend(plan.evictions.iter().map(|eviction| {
        let Eviction { place, preemptor, cause, .. } = eviction;
        format!("{} leaves {} for {preemptor:?}: {cause}", place.pod, place.node)
    }));
    lines.extend(plan.withdrawn.iter().map(|pod| format!("{pod} is nominated no more")));
    lines
        .extend(plan.notes.iter().map(|note| format!("{} says {:?}", note.gang, note.annotations)));
    lines.extend(
        plan.updates
            .iter()
            .map(|update| format!("{} {:?} {:?}", update.gang, update.phase, update.condition)),
    );
    let mut waiting: Vec<String> = cluster
        .gangs
        .iter()
        .map(|(id, gang)| format!("{} {:?}", gang.key, engine.reasons(id)))
        .collect();
    waiting.sort();
    lines.extend(waiting);
    lines.push(format!("{:?}", plan.wake));
    lines
}

/// Two engines that hear of the same in another order decide and say the same, at each of these
/// seconds.
fn order_does_not_matter(
    config: impl Fn() -> Config,
    listed: &[Event],
    order: u64,
    seconds: &[i64],
) -> TestCaseResult {
    let mut one = engine_of(config(), listed);
    let mut other = engine_of(config(), &shuffled(listed, order));
    for seconds in seconds {
        let now = START.plus_ms(seconds * 1000);
        let (first, second) = (one.cycle(now), other.cycle(now));
        prop_assert_eq!(decided(&one, &first), decided(&other, &second), "after {} s", seconds);
    }
    Ok(())
}

proptest! {
    #![proptest_config(bounded(400, SEED))]

    #[test]
    fn a_rewound_transaction_leaves_no_trace(
        lines in setting(true, true),
        moves in prop::collection::vec((0..=CHANGES, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40),
    ) {
        let mut cluster = builtin(&events(&lines)).cluster().clone();
        prop_assume!(cluster.pods.live().next().is_some());
        rewinds_leave_no_trace(&mut cluster, moves)?;
    }

    #[test]
    fn a_committed_transaction_can_be_replayed(
        lines in setting(true, true),
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
    ) {
        let mut cluster = builtin(&events(&lines)).cluster().clone();
        let (pods, nodes): (Vec<PodId>, Vec<NodeId>) = (cluster.pods.live().collect(), cluster.nodes.live().collect());
        prop_assume!(!pods.is_empty());
        let mut txn = Txn::begin(&mut cluster);
        let start = txn.mark();
        for (pod, node) in moves {
            txn.allocate(*pod.get(&pods), *node.get(&nodes));
        }
        let made = txn.since(start);
        let done = txn.sums();
        txn.rewind(start);
        txn.replay(&made);
        prop_assert_eq!(&txn.sums(), &done);
        let net = txn.commit();
        prop_assert_eq!(cluster.sums(), done);
        prop_assert!(net.iter().all(|step| step.from != step.to && cluster.pods.state[step.pod] == step.to));
    }

    #[test]
    fn the_order_of_arrival_does_not_matter(lines in setting(true, true), order in any::<u64>()) {
        order_does_not_matter(Config::builtin, &events(&lines), order, &[0, 1, 700])?;
    }

    #[test]
    fn the_order_of_arrival_does_not_matter_to_shares(lines in setting(true, true), order in any::<u64>()) {
        let text = "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: gang\n  - name: drf\n  \
                    - name: predicates\n  - name: proportion\n  - name: nodeorder\n";
        let config = || Config::parse("shares", text).unwrap_or_else(|errors| panic!("{errors:?}"));
        order_does_not_matter(config, &events(&lines), order, &[0])?;
    }

    #[test]
    fn the_order_of_arrival_does_not_matter_to_scenarios(
        lines in crowd(),
        tree in any::<bool>(),
        pause in prop::sample::select(vec![0, 1000]),
        order in any::<u64>(),
    ) {
        order_does_not_matter(|| scenarios(tree), &events_apart(&lines, pause), order, &[0, 1, 70])?;
    }

    #[test]
    fn kept_sums_are_what_a_recount_finds(
        lines in setting(true, true),
        more in setting(true, true),
        order in any::<u64>(),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        // The same names come twice with other contents, and some of them go.
        let mut all: Vec<Event> = events(&lines).into_iter().chain(events(&more)).collect();
        for index in gone {
            all.extend(goodbye(index.get(&all)));
        }
        let mut engine = builtin(&[]);
        for (place, event) in shuffled(&all, order).into_iter().enumerate() {
            engine.apply(event);
            prop_assert_eq!(engine.cluster().audit(), Ok(()));
            if place % 7 == 0 {
                engine.cycle(START.plus_ms(place as i64 * 1000));
                prop_assert_eq!(engine.cluster().audit(), Ok(()));
            }
        }
    }

    #[test]
    fn cycles_without_events_come_to_rest(lines in setting(true, true)) {
        let mut engine = builtin(&events(&lines));
        let cycles = (0..100).take_while(|_| !engine.cycle(START).is_empty()).count();
        prop_assert!(cycles < 100, "still planning");
    }

    #[test]
    fn no_node_is_over_and_no_gang_is_half_placed(lines in setting(true, true)) {
        let mut engine = builtin(&events(&lines));
        engine.cycle(START);
        let (cluster, plan) = (engine.cluster(), engine.decisions());
        prop_assert_eq!(cluster.audit(), Ok(()));
        for bind in &plan.binds {
            for (resource, _) in cluster.shapes[cluster.pods.shape[bind.pod]].request.iter() {
                prop_assert!(cluster.nodes.idle[resource][bind.node] >= 0, "{} is over", cluster.nodes.name[bind.node]);
            }
            let gang = &cluster.gangs[cluster.pods.gang[bind.pod].expect("ours")];
            prop_assert_eq!(gang.missing(true).total, 0, "{} is half placed", gang.key);
            if gang.enforces_roles() {
                for role in &gang.roles {
                    prop_assert!(role.counts.ready() >= role.minimum, "a role of {} is half placed", gang.key);
                }
            }
        }
        for bind in &plan.nominations {
            for (resource, _) in cluster.shapes[cluster.pods.shape[bind.pod]].request.iter() {
                prop_assert!(cluster.nodes.future_idle(resource, bind.node) >= 0);
            }
        }
    }

    /// The slow, obvious version of the ranking: ask every node about every pod.
    #[test]
    fn the_chosen_node_is_the_best_of_all(lines in setting(false, false)) {
        let mut engine = builtin(&events(&lines));
        let mut cluster = engine.cluster().clone();
        engine.cycle(START);
        for bind in &engine.decisions().binds {
            let best = best_by_scan(&cluster, engine.policy(), cluster.pods.shape[bind.pod]);
            let name = |node: NodeId| cluster.nodes.name[node].to_string();
            prop_assert_eq!(best.map(name), Some(name(bind.node)), "for {}", cluster.pods.name(bind.pod));
            let mut txn = Txn::begin(&mut cluster);
            txn.allocate(bind.pod, bind.node);
            txn.commit();
        }
    }

    #[test]
    fn a_gang_of_one_shape_is_placed_whenever_it_can_be(
        nodes in nodes(4),
        size in 1..7usize,
        request in request(),
        rule in prop::sample::select(vec!["", " select=zone:x", " tolerate=infra", " port=80"]),
        bound in prop::collection::vec(0..1u8, 0..3).prop_flat_map(|list| (0..list.len()).map(|at| bound_pod(at, 1, false)).collect::<Vec<_>>()),
    ) {
        let gang = format!("gang g x{size}{request}{rule}");
        let lines: Vec<String> = nodes.into_iter().chain(bound).chain([gang]).collect();
        let (found, exists) = found_and_exists(&lines);
        prop_assert_eq!(found, exists);
    }
}

/// How often a gang of several shapes, or with rules between its pods, is placed when some
/// placement exists.
#[test]
fn most_mixed_gangs_that_can_be_placed_are() {
    let strategy = (nodes(4), mixed(0), prop::collection::vec(gang_pod(), 0..3));
    let mut runner = proptest::test_runner::TestRunner::new(bounded(600, SEED));
    let (mut found, mut exist) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    runner
        .run(&strategy, |(nodes, mixed, more)| {
            let extra = more
                .into_iter()
                .enumerate()
                .map(|(at, rest)| format!("pod m0-more{at} gang=m0 role=work{rest}"));
            let mut lines: Vec<String> = nodes.into_iter().chain(mixed).chain(extra).collect();
            let members = lines.iter().filter(|line| line.contains("gang=m0")).count();
            for line in lines.iter_mut().filter(|line| line.starts_with("gang m0")) {
                *line = format!("gang m0 min={members}");
            }
            let (placed, exists) = found_and_exists(&lines);
            prop_assert!(exists || !placed, "placed where no placement exists");
            exist.set(exist.get() + u32::from(exists));
            found.set(found.get() + u32::from(placed));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let (found, exist) = (*found.get_mut(), *exist.get_mut());
    println!("{found} of {exist} mixed gangs that could be placed were placed");
    assert!(found * 10 >= exist * 8, "only {found} of {exist} were placed");
}

fn gang_pod() -> impl Strategy<Value = String> {
    (request(), rule()).prop_map(|(request, rule)| format!("{request}{rule} label=app:a"))
}

fn goodbye(event: &Event) -> Option<Event> {
    let Event::Object(object) = event else { return None };
    let kind = object.kind();
    let leaves = matches!(kind, Kind::Node | Kind::Pod | Kind::PodGroup | Kind::Queue);
    leaves.then(|| Event::gone(kind, object.key()))
}

/// Whether a pod of the shape may go to the node now: facts, room, ports, rules between pods.
fn admits(cluster: &Cluster, policy: &Policy, shape: ShapeId, node: NodeId) -> bool {
    let mut why = [Why::Fits];
    policy.filter(Scope::NodeFacts, cluster, (shape, Room::Idle), &[node], &mut why);
    policy.filter(Scope::NodePods, cluster, (shape, Room::Idle), &[node], &mut why);
    policy.filter(Scope::OtherNodes, cluster, (shape, Room::Idle), &[node], &mut why);
    let room = |(resource, want): (ResourceId, i64)| cluster.nodes.idle[resource][node] >= want;
    why[0] == Why::Fits
        && cluster.nodes.fact[node].lets_go()
        && cluster.shapes[shape].request.iter().all(room)
}

fn best_by_scan(cluster: &Cluster, policy: &Policy, shape: ShapeId) -> Option<NodeId> {
    let nodes: Vec<NodeId> =
        cluster.nodes.live().filter(|&node| admits(cluster, policy, shape, node)).collect();
    let mut scores = vec![0; nodes.len()];
    for reach in [Scope::NodeFacts, Scope::NodePods] {
        policy.score(reach, cluster, shape, &nodes, &mut scores);
    }
    if cluster.terms.depends_on_other_nodes(&cluster.shapes[shape].bonds) {
        policy.score(Scope::OtherNodes, cluster, shape, &nodes, &mut scores);
    }
    let ranked = nodes.into_iter().zip(scores);
    ranked
        .min_by_key(|&(node, score)| (std::cmp::Reverse(score), cluster.nodes.name[node].clone()))
        .map(|(node, _)| node)
}

/// Whether the engine places the one gang that waits, and whether a search through all placements
/// finds one.
fn found_and_exists(lines: &[String]) -> (bool, bool) {
    let mut engine = builtin(&events(lines));
    let mut cluster = engine.cluster().clone();
    let pods: Vec<PodId> =
        cluster.pods.live().filter(|&pod| cluster.pods.state[pod] == PodState::Pending).collect();
    let mut by_shape: BTreeMap<ShapeId, Vec<PodId>> = BTreeMap::new();
    for &pod in &pods {
        by_shape.entry(cluster.pods.shape[pod]).or_default().push(pod);
    }
    let exists = {
        let mut txn = Txn::begin(&mut cluster);
        search(&mut txn, engine.policy(), &mut by_shape)
    };
    let placed = engine.cycle(START).binds.len() == pods.len();
    (placed, exists)
}

fn search(txn: &mut Txn, policy: &Policy, left: &mut BTreeMap<ShapeId, Vec<PodId>>) -> bool {
    let shapes: Vec<ShapeId> =
        left.iter().filter(|(_, pods)| !pods.is_empty()).map(|(&shape, _)| shape).collect();
    if shapes.is_empty() {
        return true;
    }
    let nodes: Vec<NodeId> = txn.nodes.live().collect();
    for shape in shapes {
        for &node in &nodes {
            if admits(txn, policy, shape, node) {
                let pod = left.get_mut(&shape).and_then(Vec::pop).expect("not empty");
                let mark = txn.mark();
                txn.allocate(pod, node);
                let found = search(txn, policy, left);
                txn.rewind(mark);
                left.entry(shape).or_default().push(pod);
                if found {
                    return true;
                }
            }
        }
    }
    false
}
