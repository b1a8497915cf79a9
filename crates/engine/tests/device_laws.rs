//! Laws of shared cards on random small clusters, compared with slow, obvious versions.

#[path = "support/lines.rs"]
mod lines;
#[path = "support/random.rs"]
mod random;
mod support;

use muster_engine::config::Config;
use muster_engine::ids::{NodeId, PodId, ShapeId};
use muster_engine::model::Cluster;
use muster_engine::model::devices::cards::Taken;
use muster_engine::model::pods::PodState;
use muster_engine::plan::Placement;
use muster_engine::{Engine, Event, Plan, Room, Txn};
use proptest::prelude::*;
use random::{CHANGES, START, bounded, change, events_apart, rewinds_leave_no_trace, shuffled};

const ROOMS: [Room; 3] = [Room::Idle, Room::FutureIdle, Room::Backfill];
const SEED: u64 = 20_261_116;

/// A way to share, nodes with cards, pods that are on them, and pods that wait.
#[derive(Clone, Debug)]
struct Setting {
    arguments: String,
    lines: Vec<String>,
}

fn node(index: usize) -> impl Strategy<Value = String> {
    let broken = prop_oneof![5 => Just(""), 1 => Just(" broken=0")];
    (1..4, 2..9, 1..4, broken, 2..9).prop_map(move |(cards, memory, pods, broken, most)| {
        format!("node n{index} pods={most} cards={cards}x{memory} vcards={cards}x{memory}x{pods}{broken}")
    })
}

fn request(way: &'static str) -> BoxedStrategy<String> {
    let memory = (1..9).prop_map(|memory| format!("gpumem={memory}")).boxed();
    let number = (1..3).prop_map(|cards| format!("gpunum={cards}")).boxed();
    let cores = prop::sample::select(vec![0, 0, 30, 50, 100]);
    let virtually = (
        1..3,
        prop_oneof![
            (1..7).prop_map(|memory| format!("vmem={memory}")),
            Just("vpercent=50".to_owned()),
            Just(String::new())
        ],
        cores,
    )
        .prop_map(|(cards, memory, cores)| format!("vgpu={cards} {memory} vcores={cores}"))
        .boxed();
    match way {
        "GPUSharingEnable" => memory,
        "GPUNumberEnable" => number,
        _ => virtually,
    }
}

/// On a card of its node, wherever that is; two of them may be too much for it.
fn bound_pod(index: usize, way: &'static str) -> impl Strategy<Value = String> {
    let leaves = prop_oneof![2 => Just(""), 1 => Just(" terminating")];
    let cores = prop::sample::select(vec![0, 20]);
    let place = (0..3usize, 0..3, 1..5, cores);
    (request(way), place, leaves).prop_map(move |(request, (node, card, memory, cores), leaves)| {
        let note = format!("card={card} vcard=n{node}-{card},NVIDIA,{memory},{cores}:");
        format!("pod s{index} on=n{node} {request} {note}{leaves}")
    })
}

fn setting() -> impl Strategy<Value = Setting> {
    let ways = prop::sample::select(vec!["GPUSharingEnable", "GPUNumberEnable", "VGPUEnable"]);
    let policy = prop::sample::select(vec!["binpack", "spread"]);
    (ways, policy).prop_flat_map(|(way, policy)| {
        let nodes = (1..4usize).prop_flat_map(|count| (0..count).map(node).collect::<Vec<_>>());
        let bound = (0..5usize).prop_flat_map(move |count| {
            (0..count).map(|at| bound_pod(at, way)).collect::<Vec<_>>()
        });
        let waits = prop::collection::vec((request(way), 1..4usize), 1..4);
        (nodes, bound, waits).prop_map(move |(nodes, bound, waits)| {
            let gangs = waits.into_iter().enumerate();
            let gangs =
                gangs.map(|(index, (request, size))| format!("gang g{index} x{size} {request}"));
            Setting {
                arguments: format!("deviceshare.{way}: true, deviceshare.SchedulePolicy: {policy}"),
                lines: nodes.into_iter().chain(bound).chain(gangs).collect(),
            }
        })
    })
}

impl Setting {
    fn events(&self) -> Vec<Event> {
        events_apart(&self.lines, 1000)
    }

    fn engine(&self, events: &[Event]) -> Engine {
        let text = format!(
            "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  \
             - name: deviceshare\n    arguments: {{{}}}\n",
            self.arguments
        );
        let config = Config::parse("law", &text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let mut engine = Engine::new(config, vec!["volcano".into()]);
        events.iter().for_each(|event| engine.apply(event));
        engine
    }
}

/// What is taken of each card of a node, counted from the pods: now, and when all that leaves has
/// left.
fn counted(cluster: &Cluster, node: NodeId) -> Vec<[Taken; 2]> {
    let cards = cluster.devices.cards(node).map_or(0, |cards| cards.iter().count());
    let mut taken = vec![[Taken::default(); 2]; cards];
    for pod in cluster.pods.live().filter(|&pod| cluster.pods.state[pod].node() == Some(node)) {
        let state = cluster.pods.state[pod];
        for slot in cluster.devices.held(pod).into_iter().flat_map(|held| held.slots.iter()) {
            let [now, later] = &mut taken[slot.card as usize];
            if state.occupies() {
                now.add(slot.takes, 1);
            }
            if !matches!(state, PodState::Releasing(_)) {
                later.add(slot.takes, 1);
            }
        }
    }
    taken
}

/// The slow version: is there any set of cards that would do?
fn some_set_fits(cluster: &Cluster, shape: ShapeId, node: NodeId, room: Room) -> bool {
    let (Some(demand), Some(cards)) = (cluster.demand(shape), cluster.devices.cards(node)) else {
        return false;
    };
    let ask = demand.asks[0];
    let taken = counted(cluster, node);
    let does = |place: usize| {
        let fact = &cards.iter().nth(place).expect("a card").fact;
        let [now, later] = taken[place];
        let beside = match room {
            Room::Idle => vec![now, later],
            Room::FutureIdle => vec![later],
            Room::Backfill => vec![now],
        };
        fact.healthy
            && beside.iter().all(|taken| {
                let shared = if ask.cores == 100 {
                    taken.pods == 0
                } else {
                    taken.cores + ask.cores <= 100 && taken.cores < 100
                };
                shared
                    && taken.memory + ask.memory.of(fact.memory) <= fact.memory
                    && taken.pods < fact.pods
            })
    };
    (0u32..1 << taken.len())
        .filter(|set| set.count_ones() == ask.cards)
        .any(|set| (0..taken.len()).filter(|place| set & (1 << place) != 0).all(does))
}

fn waiting(cluster: &Cluster) -> Vec<PodId> {
    cluster.pods.live().filter(|&pod| cluster.pods.state[pod] == PodState::Pending).collect()
}

/// Everything that a cycle decided, by names.
fn decided(engine: &Engine, plan: &Plan) -> Vec<String> {
    let cluster = engine.cluster();
    let name = |place: &Placement| format!("{} on {}", place.pod, place.node);
    let binds =
        plan.binds.iter().map(|bind| format!("{} {:?}", name(bind), plan.card_note(&bind.pod)));
    let nominations = plan.nominations.iter().map(name);
    let mut waits: Vec<String> = cluster
        .gangs
        .iter()
        .map(|(id, gang)| format!("{} {:?}", gang.key, engine.reasons(id)))
        .collect();
    waits.sort();
    binds.chain(nominations).chain(waits).collect()
}

proptest! {
    #![proptest_config(bounded(500, SEED))]

    #[test]
    fn a_pod_fits_where_some_set_of_cards_does(setting in setting()) {
        let engine = setting.engine(&setting.events());
        let cluster = engine.cluster();
        for pod in waiting(cluster) {
            let shape = cluster.pods.shape[pod];
            let demand = cluster.demand(shape).expect("all of them share cards");
            for (node, room) in cluster.nodes.live().flat_map(|node| ROOMS.map(|room| (node, room))) {
                let fits = cluster.devices.admit(demand, node, room);
                prop_assert_eq!(fits, some_set_fits(cluster, shape, node, room), "{:?}", room);
            }
        }
    }

    #[test]
    fn as_many_fit_as_can_be_placed_one_by_one(setting in setting()) {
        let mut cluster = setting.engine(&setting.events()).cluster().clone();
        let nodes: Vec<NodeId> = cluster.nodes.live().collect();
        // Any pods will do as copies of the one that is counted; there are more than fit.
        let copies = "gang copies x40 cpu=0";
        let more = Setting { lines: vec![copies.to_owned()], ..setting.clone() };
        more.events().iter().for_each(|event| cluster.apply(event));
        let all = waiting(&cluster);
        let of_gang = |pod: &&PodId| cluster.pods.name(**pod).contains("copies");
        let (copies, kinds): (Vec<&PodId>, Vec<&PodId>) = all.iter().partition(of_gang);
        for shape in kinds.into_iter().map(|&pod| cluster.pods.shape[pod]).collect::<Vec<_>>() {
            copies.iter().for_each(|&&pod| cluster.pods.shape[pod] = shape);
            for (&node, room) in nodes.iter().flat_map(|node| ROOMS.map(|room| (node, room))) {
                let demand = cluster.demand(shape).expect("all of them share cards").clone();
                let holds = cluster.devices.holds(&demand, node, room);
                let mut txn = Txn::begin(&mut cluster);
                let mut placed = 0;
                for &&pod in &copies {
                    if !txn.devices.admit(&demand, node, room) {
                        break;
                    }
                    match room {
                        Room::FutureIdle => txn.nominate(pod, node),
                        _ => txn.allocate(pod, node),
                    }
                    prop_assert!(txn.devices.held(pod).is_some(), "it was let in, but there is no card");
                    placed += 1;
                }
                prop_assert_eq!(holds, placed, "{:?}", room);
            }
        }
    }

    /// The ranking sees what the cards say: the slow version asks every node for every pod.
    #[test]
    fn a_gang_is_bound_if_its_pods_find_cards_one_by_one(setting in setting(), size in 1..8usize) {
        let mut setting = setting;
        setting.lines.retain(|line| !line.starts_with("gang g") || line.starts_with("gang g0"));
        let last = setting.lines.pop().expect("a gang");
        let request = last.splitn(4, ' ').last().expect("a request").to_owned();
        setting.lines.push(format!("gang g0 x{size} {request}"));
        let mut engine = setting.engine(&setting.events());
        let mut cluster = engine.cluster().clone();
        let (pods, nodes) = (waiting(&cluster), cluster.nodes.live().collect::<Vec<_>>());
        let mut txn = Txn::begin(&mut cluster);
        let mut placed = 0;
        for &pod in &pods {
            let shape = txn.pods.shape[pod];
            let has_room = |node: NodeId| {
                let mut request = txn.shapes[shape].request.iter();
                request.all(|(resource, want)| txn.nodes.idle[resource][node] >= want)
            };
            let fits = |node: &&NodeId| has_room(**node) && some_set_fits(&txn, shape, **node, Room::Idle);
            let Some(&node) = nodes.iter().find(fits) else { break };
            txn.allocate(pod, node);
            placed += 1;
        }
        drop(txn);
        let bound = engine.cycle(START).binds.len();
        prop_assert_eq!(bound, if placed == size { size } else { 0 });
    }

    #[test]
    fn a_rewound_transaction_leaves_every_card_as_it_was(
        setting in setting(),
        moves in prop::collection::vec((0..=CHANGES, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40),
    ) {
        let mut cluster = setting.engine(&setting.events()).cluster().clone();
        rewinds_leave_no_trace(&mut cluster, moves)?;
    }

    #[test]
    fn moves_that_are_made_again_take_the_same_cards(
        setting in setting(),
        moves in prop::collection::vec((0..CHANGES, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
    ) {
        let mut cluster = setting.engine(&setting.events()).cluster().clone();
        let (pods, nodes): (Vec<PodId>, Vec<NodeId>) = (cluster.pods.live().collect(), cluster.nodes.live().collect());
        let mut txn = Txn::begin(&mut cluster);
        let start = txn.mark();
        for (what, pod, node) in moves {
            change(&mut txn, what, *pod.get(&pods), *node.get(&nodes));
        }
        let (made, done) = (txn.since(start), txn.sums());
        txn.rewind(start);
        txn.replay(&made);
        prop_assert_eq!(&txn.sums(), &done);
    }

    #[test]
    fn no_card_that_a_plan_uses_is_over_and_the_order_of_arrival_does_not_matter(setting in setting(), order in any::<u64>()) {
        let listed = setting.events();
        let (mut one, mut other) = (setting.engine(&listed), setting.engine(&shuffled(&listed, order)));
        for seconds in [0, 1, 700] {
            let now = START.plus_ms(seconds * 1000);
            let (first, second) = (one.cycle(now), other.cycle(now));
            prop_assert_eq!(decided(&one, &first), decided(&other, &second), "after {} s", seconds);
            let cluster = one.cluster();
            prop_assert_eq!(cluster.audit(), Ok(()));
            let decided = one.decisions();
            for bind in decided.binds.iter().chain(&decided.nominations) {
                let held = cluster.devices.held(bind.pod).expect("a card");
                for slot in &held.slots {
                    let fact = &cluster.devices.cards(bind.node).and_then(|cards| cards.get(slot.card)).expect("a card").fact;
                    let [now, later] = counted(cluster, bind.node)[slot.card as usize];
                    let taken = if cluster.pods.state[bind.pod].occupies() { now } else { later };
                    prop_assert!(taken.memory <= fact.memory && taken.cores <= 100 && taken.pods <= fact.pods);
                }
            }
        }
    }
}
