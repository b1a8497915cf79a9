//! What was tried in vain is tried again when something happens that could help, and not before:
//! event by event.

#[path = "support/lines.rs"]
mod lines;
mod support;

use lines::Line;
use muster_api::Time;
use muster_api::kinds::Kind;
use muster_engine::config::Config;
use muster_engine::{Engine, Event};

/// 2026-01-05T00:00:00Z
const START: Time = Time(1_767_571_200_000);
const BORN: &str = "2026-01-04T00:00:00Z";

const CONFIG: &str = "actions: allocate, reclaim, preempt
configurations:
- {name: ACTION, arguments: {mode: scenario}}
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: predicates}, {name: capacity}]";

/// Nothing helps `want`, which is too large for any node. The first cycle binds `news` and asks
/// `cheap` to leave for `urgent`.
const CLUSTER: &str = "
queue a deserved.gpu=4
queue b deserved.gpu=4
queue c d
class high value=10
space default
quota default cpu=100
volume v node=n
claim c volume=v
budget k label=app:web min=1 allowed=0
node n o gpu=8
node p gpu=1 label=only:p
domain r tier=1 nodes=n
gang low min=1 queue=b
pod low-0 gang=low gpu=4 on=n label=app:web unstarted
pod low-1 gang=low gpu=4 on=o
pod foreign scheduler=other gpu=1 on=o
pod cheap gpu=1 on=p prio=-1
pod urgent gpu=1 select=only:p prio=5
pod news gpu=1
pod idle gpu=50 queue=d
gang waits min=1 queue=a
pod waits-0 gang=waits gpu=50
gang want min=1 class=high queue=a
pod want-0 gang=want gpu=100 prio=10";

const HELPS: &[&str] = &[
    // Room, and where it is.
    "node m gpu=8",
    "node n gpu=9",
    "node n gpu=7",
    "node n gpu=8 label=zone:x",
    "node n gpu=8 taint=infra",
    "node n gpu=8 cordoned",
    "node n gpu=8 notready",
    "nodegone o",
    "domain r tier=1 nodes=n,o",
    "domaingone r",
    "volume v node=o",
    "volumegone v",
    "claim c volume=w",
    "claimgone c",
    // Pods on nodes.
    "pod low-2 gang=low gpu=1 on=n",
    "pod low-2 gang=low gpu=1",
    "pod low-1 gang=low gpu=4 on=o terminating",
    "pod low-1 gang=low gpu=4 on=o succeeded",
    "pod low-1 gang=low gpu=4 on=o label=app:web",
    "pod low-1 gang=low gpu=4 on=o prio=3",
    "pod low-1 gang=low gpu=4 on=o role=lead",
    "pod low-1 gang=low gpu=4 on=o preemptable=false",
    "pod low-1 gang=low gpu=4 on=o cooldown=10m",
    "pod low-1 gang=low gpu=3 on=o",
    "pod foreign scheduler=other gpu=2 on=o",
    "podgone low-1",
    "podgone foreign",
    "bound news o",
    "unbound news",
    "unpromised urgent",
    "stays cheap",
    // What is said of them.
    "gang low min=2 queue=b",
    "gang low min=1 queue=a",
    "gang low min=1 queue=b class=high",
    "gang low min=1 queue=b role=lead:1",
    "gang low min=1 queue=b close=hard:1",
    "gang low min=1 queue=b preemptable=false",
    "gang low min=1 queue=b cooldown=10m",
    "gang low min=1 queue=b jdbmax=1",
    "gang low min=1 queue=b saved=2026-01-04T23:59:00Z",
    "ganggone low",
    "class high value=11",
    "class low value=-1",
    "classgone high",
    "queue a deserved.gpu=5",
    "queue b deserved.gpu=4 cap.gpu=9",
    "queue b deserved.gpu=4 guarantee.gpu=1",
    "queue b deserved.gpu=4 weight=2",
    "queue b deserved.gpu=4 priority=2",
    "queue b deserved.gpu=4 preemptmin=1m",
    "queue b deserved.gpu=4 closed",
    "queuegone b",
    "quota default cpu=200",
    "quotagone quota",
    "budget k label=app:web min=1 allowed=1",
    "budget l label=app:none min=1",
    "budgetgone k",
];

const DOES_NOT_HELP: &[&str] = &[
    // The same again, as heartbeats are, and our own status coming back.
    "node n gpu=8",
    "domain r tier=1 nodes=n",
    "volume v node=n",
    "claim c volume=v",
    "queue b deserved.gpu=4",
    "gang low min=1 queue=b",
    "gang low min=1 queue=b stale=2026-01-04T23:59:00Z",
    "class high value=10",
    "space default",
    "quota default cpu=100",
    "budget k label=app:web min=1 allowed=0",
    "pod low-1 gang=low gpu=4 on=o",
    // The kubelet says that it has started.
    "pod low-0 gang=low gpu=4 on=n label=app:web",
    // What only waits, or is not there.
    "gang waits min=1 queue=a jdbmax=1",
    "pod waits-0 gang=waits gpu=50",
    "gang more min=1 queue=a",
    "pod more-0 gang=more gpu=50",
    "podgone waits-0",
    "ganggone waits",
    "podgone none",
    "nodegone none",
    "classgone none",
    "budgetgone none",
    "volumegone none",
    "bound news n",
];

#[test]
fn what_could_help_is_tried_again_and_nothing_else() {
    let rows =
        HELPS.iter().map(|row| (row, true)).chain(DOES_NOT_HELP.iter().map(|row| (row, false)));
    let wrong: Vec<_> = rows.filter(|(row, helps)| tries_again("preempt", row) != *helps).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn work_that_waits_helps_where_it_changes_shares() {
    for (row, helps) in [
        ("pod more gpu=1 queue=c", true),
        ("podgone idle", true),
        ("podgone waits-0", false),
        ("pod waits-0 gang=waits gpu=50", false),
        // Its queue gets no more however much it wants.
        ("pod waits-1 gang=waits gpu=9", false),
    ] {
        assert_eq!(tries_again("reclaim", row), helps, "{row}");
    }
}

/// Whether an event makes an action try again what it has tried in vain.
fn tries_again(action: &str, event: &str) -> bool {
    let config = CONFIG.replace("ACTION", action);
    let config = Config::parse("memo", &config).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    CLUSTER.lines().for_each(|line| apply(&mut engine, line));
    let tries = |engine: &mut Engine| {
        engine.cycle(START);
        let want = engine.cluster().gangs.find("default/want").expect("the gang");
        engine
            .decisions()
            .searches
            .iter()
            .any(|search| search.gang == want && search.action == action)
    };
    assert!(tries(&mut engine), "it is tried at first");
    tries(&mut engine);
    assert!(!tries(&mut engine), "and not again");
    apply(&mut engine, event);
    tries(&mut engine)
}

fn apply(engine: &mut Engine, text: &str) {
    let Some(line) = Line::parse(text) else { return };
    let name = line.names[0];
    let key = format!("default/{name}");
    let uid = || {
        let pod = engine.cluster().pods.find(&key);
        pod.map_or(String::new(), |pod| engine.cluster().pods.fact[pod].uid.to_string())
    };
    let cause = "refused".to_owned();
    let event = match line.kind {
        "nodegone" => Event::gone(Kind::Node, name),
        "domaingone" => Event::gone(Kind::HyperNode, name),
        "volumegone" => Event::gone(Kind::PersistentVolume, name),
        "claimgone" => Event::gone(Kind::PersistentVolumeClaim, key),
        "podgone" => Event::Gone { kind: Kind::Pod, uid: uid(), key },
        "ganggone" => Event::gone(Kind::PodGroup, key),
        "classgone" => Event::gone(Kind::PriorityClass, name),
        "queuegone" => Event::gone(Kind::Queue, name),
        "quotagone" => Event::gone(Kind::ResourceQuota, key),
        "budgetgone" => Event::gone(Kind::PodDisruptionBudget, key),
        "bound" => Event::Bound { uid: uid(), key, node: line.names[1].into() },
        "unbound" => Event::BindFailed { uid: uid(), key, cause, at: START },
        "unpromised" => Event::NominationRefused { uid: uid(), key, cause, at: START },
        "stays" => Event::EvictionRefused { uid: uid(), key, cause, at: START },
        _ => {
            let manifests = line.manifests(BORN, 1);
            support::objects(&manifests)
                .into_iter()
                .for_each(|object| engine.apply(Event::from(object)));
            return;
        }
    };
    engine.apply(event);
}
