//! Cards in transactions: a pod that goes back goes back to its card.

#[path = "support/lines.rs"]
mod lines;
mod support;

use lines::Line;
use muster_api::Time;
use muster_api::kinds::Kind;
use muster_engine::config::Config;
use muster_engine::ids::{NodeId, PodId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::{Engine, Event, Room, Txn};

const NOW: Time = Time(1_767_571_200_000);

fn config(arguments: &str) -> Config {
    let text = format!(
        "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  \
         - name: deviceshare\n    arguments: {{{arguments}}}\n"
    );
    Config::parse("test", &text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

const MEMORY: &str = "deviceshare.GPUSharingEnable: true";
const VIRTUAL: &str = "deviceshare.VGPUEnable: true";

fn engine(arguments: &str, lines: &str) -> Engine {
    let mut engine = Engine::new(config(arguments), vec!["volcano".into()]);
    for event in events(lines) {
        engine.apply(event);
    }
    engine
}

fn events(lines: &str) -> Vec<Event> {
    let texts = lines
        .lines()
        .filter_map(Line::parse)
        .zip(1..)
        .map(|(line, serial)| line.manifests(&NOW.to_string(), serial));
    texts.flat_map(|text| support::objects(&text)).map(Event::from).collect()
}

fn pod(cluster: &Cluster, name: &str) -> PodId {
    cluster.pods.find(&format!("default/{name}")).expect("a pod of this name")
}

fn node(cluster: &Cluster, name: &str) -> NodeId {
    cluster.nodes.find(name).expect("a node of this name")
}

/// The numbers of a pod's cards.
fn cards(cluster: &Cluster, name: &str) -> Vec<u32> {
    let held = cluster.devices.held(pod(cluster, name));
    held.map(|held| held.slots.iter().map(|slot| slot.card).collect()).unwrap_or_default()
}

fn fits(cluster: &Cluster, name: &str, room: Room) -> bool {
    let demand = cluster.demand(cluster.pods.shape[pod(cluster, name)]).expect("it shares cards");
    cluster.devices.admit(demand, node(cluster, "n"), room)
}

/// The two GPUs of 8 GB in the third story of design 001. The cards are such that packing would put
/// A beside B.
#[test]
fn removing_a_pod_and_giving_it_back_is_the_same_card() {
    let story = "node n cpu=8 cards=2x8000\npod a gpumem=4000 on=n card=0\npod b gpumem=4000 on=n card=1\npod c gpumem=8000";
    let mut cluster = engine(MEMORY, story).cluster().clone();
    let (a, b, c, n) =
        (pod(&cluster, "a"), pod(&cluster, "b"), pod(&cluster, "c"), node(&cluster, "n"));
    let before = cluster.sums();
    let mut txn = Txn::begin(&mut cluster);
    assert!(!fits(&txn, "c", Room::Idle) && !fits(&txn, "c", Room::FutureIdle));

    let start = txn.mark();
    txn.evict(a);
    assert_eq!((fits(&txn, "c", Room::Idle), fits(&txn, "c", Room::FutureIdle)), (false, true));
    assert_eq!(cards(&txn, "a"), [0], "it is on its card until it is gone");

    // A given back: C doesn't fit, so that A is needed as a victim.
    txn.rewind(start);
    assert_eq!((fits(&txn, "c", Room::FutureIdle), cards(&txn, "a")), (false, vec![0]));
    assert_eq!(txn.sums(), before);

    txn.evict(a);
    txn.nominate(c, n);
    assert_eq!(cards(&txn, "c"), [0], "the card that A leaves");
    assert!(!fits(&txn, "c", Room::FutureIdle), "there is no second card for another like it");
    assert_eq!(txn.audit(), Ok(()));

    // B instead of A gives the other card.
    txn.rewind(start);
    txn.evict(b);
    txn.nominate(c, n);
    assert_eq!((cards(&txn, "a"), cards(&txn, "c")), (vec![0], vec![1]));

    drop(txn);
    assert_eq!(cluster.sums(), before);
    assert_eq!(cluster.pods.state[a], PodState::Running(n));
}

#[test]
fn a_pod_that_comes_back_to_a_node_gets_its_card_again_while_it_is_free() {
    let lines = "node n cpu=8 cards=2x8000\npod a gpumem=4000 on=n card=1 terminating\npod c gpumem=4000\npod d gpumem=8000";
    let mut cluster = engine(MEMORY, lines).cluster().clone();
    let (c, d, n) = (pod(&cluster, "c"), pod(&cluster, "d"), node(&cluster, "n"));
    let mut txn = Txn::begin(&mut cluster);
    txn.nominate(d, n);
    txn.nominate(c, n);
    assert_eq!((cards(&txn, "d"), cards(&txn, "c")), (vec![0], vec![1]));
    // Packing would now put C on the card that D has left for a moment.
    txn.release(d);
    txn.release(c);
    txn.nominate(c, n);
    txn.nominate(d, n);
    assert_eq!((cards(&txn, "d"), cards(&txn, "c")), (vec![0], vec![1]));
}

#[test]
fn a_nominated_card_is_taken_only_if_no_other_does() {
    let lines = "node n cpu=8 cards=2x8000\npod a gpumem=4000 on=n card=1 terminating\npod d gpumem=8000\npod e gpumem=2000 on=n \
                 card=0\ngang c x2 gpumem=4000";
    let mut cluster = engine(MEMORY, lines).cluster().clone();
    let (d, n) = (pod(&cluster, "d"), node(&cluster, "n"));
    let mut txn = Txn::begin(&mut cluster);
    txn.nominate(d, n);
    assert_eq!(cards(&txn, "d"), [1]);
    for name in ["c-0", "c-1"] {
        txn.allocate(pod(&txn, name), n);
    }
    // Packing alone would begin with the fuller card.
    assert_eq!((cards(&txn, "c-0"), cards(&txn, "c-1")), (vec![0], vec![1]));
}

#[test]
fn what_was_bound_keeps_its_card_until_its_object_says_otherwise() {
    let mut engine = engine(
        MEMORY,
        "node n cpu=8 cards=2x8000\npod a gpumem=4000 on=n card=1\npod c gpumem=6000",
    );
    let plan = engine.cycle(NOW);
    let note = plan.card_note("default/c");
    assert_eq!(note[0], ("volcano.sh/gpu-index", "0".to_owned()));
    assert_eq!(note[1], ("volcano.sh/predicate-time", format!("{}000000", NOW.0)));
    let uid = engine.pod("default/c").expect("it is known").uid.to_string();
    engine.apply(Event::Bound { key: "default/c".into(), uid, node: "n".into() });
    assert_eq!(cards(engine.cluster(), "c"), [0]);
    assert_eq!(engine.cluster().audit(), Ok(()));
}

#[test]
fn pods_find_their_cards_whenever_their_node_comes() {
    let lines = "pod a gpumem=4000 on=n card=1\npod b gpumem=4000 on=n\nnode n cpu=8 cards=2x8000";
    let mut engine = engine(MEMORY, lines);
    let cluster = engine.cluster();
    assert_eq!((cards(cluster, "a"), cards(cluster, "b")), (vec![1], vec![]));
    for more in ["node n cpu=8 cards=1x8000", "node n cpu=8 cards=3x8000 broken=1"] {
        events(more).into_iter().for_each(|event| engine.apply(event));
        assert_eq!(engine.cluster().audit(), Ok(()));
    }
    assert_eq!(cards(engine.cluster(), "a"), [1]);
    engine.apply(Event::gone(Kind::Node, "n"));
    assert_eq!(engine.cluster().audit(), Ok(()));
}

#[test]
fn another_way_to_share_finds_the_cards_anew() {
    let lines = "node n cpu=8 cards=2x8000 vcards=2x4000x4\npod a gpumem=4000 on=n card=1\n\
                 pod v vgpu=1 vmem=1000 on=n vcard=n-1,NVIDIA,1000,0:";
    let mut engine = engine(MEMORY, lines);
    let of_both = |engine: &Engine| (cards(engine.cluster(), "a"), cards(engine.cluster(), "v"));
    assert_eq!(of_both(&engine), (vec![1], vec![]));
    engine.configure(config(VIRTUAL));
    assert_eq!(of_both(&engine), (vec![], vec![1]));
    assert_eq!(engine.cluster().audit(), Ok(()));
    let restored = Engine::restore(config(VIRTUAL), engine.checkpoint());
    assert_eq!(of_both(&restored), (vec![], vec![1]));
    engine.configure(Config::builtin());
    assert_eq!(of_both(&engine), (vec![], vec![]));
    assert_eq!(engine.cluster().audit(), Ok(()));
}

#[test]
fn ways_to_share_exclude_each_other() {
    let text = "actions: allocate\ntiers:\n- plugins:\n  - name: deviceshare\n    arguments: {deviceshare.GPUSharingEnable: true, \
                deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: pack}\n";
    let Err(errors) = Config::parse("test", text) else { panic!("it was taken") };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
}
