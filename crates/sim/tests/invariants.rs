//! Each invariant sees a plan that breaks it. A scheduler that does not know a rule, because the
//! plugin is missing or the objects do not say it yet, makes a plan; then the rule is there. So the
//! invariants find what they would find if the engine forgot the rule.

#[path = "../../engine/tests/support/lines.rs"]
mod lines;

use lines::Line;
use muster_api::Time;
use muster_api::manifest::{Found, Object, read};
use muster_engine::config::Config;
use muster_engine::{Cause, Decisions, Engine, Event, Eviction, Method};
use muster_sim::Invariant::{self, *};
use muster_sim::invariants;
use muster_sim::invariants::keeping::LastBinds;

const BORN: &str = "2026-01-05T00:00:00Z";
/// A minute later.
const NOW: Time = Time(1_767_571_260_000);
const CLASSES: &str = "class low value=1\nclass high value=10";

fn config(actions: &str, plugins: &str) -> Config {
    let plugins: Vec<String> =
        plugins.split("; ").map(|plugin| format!("  - {{name: {plugin}}}\n")).collect();
    let text = format!("actions: \"{actions}\"\ntiers:\n- plugins:\n{}", plugins.concat());
    Config::parse("test", &text).unwrap_or_else(|errors| panic!("{errors:?} in\n{text}"))
}

fn objects(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    for line in text.lines().filter_map(Line::parse) {
        read("test", line.manifests(BORN, 0).as_bytes(), &mut |found| match found {
            Found::Object { object, .. } => objects.push(object),
            _ => panic!("{text} is right"),
        });
    }
    objects
}

/// A plan, and the scheduler that has just made it.
struct Decided {
    engine: Engine,
    plan: Decisions,
    actions: &'static str,
}

impl Decided {
    /// What these plugins decide in a cluster, which breaks nothing that they know of.
    fn by(actions: &'static str, plugins: &str, cluster: &str) -> Decided {
        let mut engine = Engine::new(config(actions, plugins), vec!["volcano".into()]);
        let objects = objects(&format!("{CLASSES}\n{cluster}"));
        objects.into_iter().for_each(|object| engine.apply(Event::from(object)));
        engine.cycle(NOW);
        let plan = engine.decisions().clone();
        assert!(!(plan.binds.is_empty() && plan.evictions.is_empty()), "nothing is decided");
        invariants::check(&engine, &plan).expect("the plan is right without the rule");
        Decided { engine, plan, actions }
    }

    /// Looks at the plan with other plugins.
    fn seen_with(self, plugins: &str) -> (Invariant, String) {
        let config = config(self.actions, plugins);
        violated(&Engine::restore(config, self.engine.checkpoint()), &self.plan)
    }

    /// Looks at the plan after objects have changed; of gangs their PodGroups alone.
    fn seen_after(mut self, changes: &str) -> (Invariant, String) {
        let gangs = changes.starts_with("gang");
        let changed = objects(changes).into_iter();
        changed
            .filter(|object| !gangs || matches!(object, Object::PodGroup(_)))
            .for_each(|object| self.engine.apply(Event::from(object)));
        violated(&self.engine, &self.plan)
    }
}

fn violated(engine: &Engine, plan: &Decisions) -> (Invariant, String) {
    let violation = invariants::check(engine, plan).expect_err("the plan breaks the rule");
    (violation.invariant, violation.what)
}

#[track_caller]
fn sees((invariant, what): (Invariant, String), expected: Invariant, words: &str) {
    assert_eq!(invariant, expected, "{what}");
    assert!(what.contains(words), "{what:?} says {words:?}");
}

// Which node accepts which pod.

#[test]
fn a_node_is_seen_to_refuse_a_pod() {
    for (cluster, words) in [
        ("node a cpu=1 taint=infra\npod p cpu=1", "has a taint"),
        ("node a cpu=1 cordoned\npod p cpu=1", "is cordoned"),
        ("node a cpu=1 label=zone:x\npod p cpu=1 select=zone:y", "selected labels"),
        ("node a cpu=1\npod p cpu=1 claim=missing", "lacks a volume claim"),
        (
            "node a cpu=1\nvolume v node=b\nclaim c volume=v\npod p cpu=1 claim=c",
            "does not reach a volume",
        ),
    ] {
        let decided = Decided::by("allocate", "gang", cluster);
        sees(decided.seen_with("gang; predicates"), NodeAccepts, words);
    }
}

#[test]
fn a_node_is_seen_to_accept_a_pod_where_the_configuration_says_so() {
    let cluster = "node a cpu=1 taint=infra\npod p cpu=1";
    let taints = "{predicate.TaintTolerationEnable: false}";
    let without_taints = format!("predicates, arguments: {taints}");
    let decided = Decided::by("allocate", &without_taints, cluster);
    sees(decided.seen_with("predicates"), NodeAccepts, "has a taint");
    Decided::by("allocate", "predicates", &cluster.replace("pod p", "pod p tolerate=infra"));
}

#[test]
fn nodes_of_groups_and_zones_are_seen_to_be_for_others() {
    let groups =
        "node a cpu=1 label=volcano.sh/nodegroup-name:gpu\nqueue q group=cpu\npod p cpu=1 queue=q";
    let decided = Decided::by("allocate", "gang", groups);
    sees(decided.seen_with("gang; nodegroup"), NodeAccepts, "group of nodes");
    let zone = "node a cpu=1 label=volcano.sh/revocable-zone:z\npod p cpu=1";
    let window = "tdm, arguments: {tdm.revocable-zone.z: \"06:00-08:00\"}";
    let decided = Decided::by("allocate", "gang", zone);
    sees(decided.seen_with(window), NodeAccepts, "revocable pods only");
    let revocable = zone.replace("pod p", "pod p revocable=*");
    let decided = Decided::by("allocate", "gang", &revocable);
    sees(decided.seen_with(window), NodeAccepts, "window is closed");
    let open = window.replace("06:00-08:00", "23:00-08:00");
    Decided::by("allocate", &open, &revocable);
}

#[test]
fn pods_are_seen_to_keep_others_away() {
    let ports = "node a cpu=2\npod there cpu=1 on=a port=80\npod p cpu=1 port=80";
    let decided = Decided::by("allocate", "gang", ports);
    sees(decided.seen_with("gang; predicates"), PodsAgree, "same host port");
    for (there, comes) in [("", "apart=app:x/host"), ("apart=app:y/host", "")] {
        let cluster = format!(
            "node a cpu=2\npod there cpu=1 on=a label=app:x {there}\npod p cpu=1 label=app:y {comes}"
        );
        let decided = Decided::by("allocate", "gang", &cluster);
        sees(decided.seen_with("gang; predicates"), PodsAgree, "anti-affinity");
    }
}

#[test]
fn a_node_is_seen_to_have_too_little_room() {
    let decided = Decided::by("allocate", "gang", "node a cpu=2\npod p q cpu=1");
    sees(decided.seen_after("node a cpu=1"), NodeRoom, "cpu");
}

// Which pods may leave.

/// A pod of a higher priority needs the room of another.
const PREEMPTION: &str = "node a cpu=1\npod victim cpu=1 prio=1 on=a\npod urgent cpu=1 prio=10";

#[test]
fn a_pod_is_seen_to_be_kept_by_a_rule() {
    let system = PREEMPTION.replace("prio=1 on", "prio=1 ns=kube-system on");
    let critical = PREEMPTION.replace("prio=1 on", "prio=1 class=system-node-critical on");
    let budget = format!("budget b label=app:x min=1\n{PREEMPTION}");
    let budget = budget.replace("prio=1 on", "prio=1 label=app:x on");
    let allowed = budget.replace("min=1", "allowed=0");
    let cools = PREEMPTION.replace("prio=1 on", "prio=1 cooldown=10m on");
    for (cluster, plugin, words) in [
        (&*system, "conformance", "kube-system"),
        (&critical, "conformance", "system-critical"),
        (&budget, "pdb", "PodDisruptionBudget"),
        (&allowed, "pdb", "PodDisruptionBudget"),
        (&cools, "cdp", "cooldown"),
        (PREEMPTION, "minruntime, arguments: {defaultPreemptMinRuntime: 10m}", "minimum run time"),
        (PREEMPTION, "tdm", "time division"),
    ] {
        let with = format!("priority; gang; predicates; {plugin}");
        let decided = Decided::by("allocate, preempt", "priority; gang; predicates", cluster);
        sees(decided.seen_with(&with), Veto, words);
    }
}

#[test]
fn a_budget_is_seen_to_be_spent_by_the_first_of_two_pods() {
    let cluster = "node a b cpu=1\nbudget b label=app:x min=1\npod v cpu=1 prio=1 label=app:x on=a
        pod w cpu=1 prio=1 label=app:x on=b\ngang urgent x2 cpu=1 class=high";
    let decided = Decided::by("allocate, preempt", "priority; gang; predicates", cluster);
    assert_eq!(decided.plan.evictions.len(), 2);
    sees(decided.seen_with("priority; gang; predicates; pdb"), Veto, "PodDisruptionBudget");
}

#[test]
fn a_pod_is_seen_to_be_of_no_lower_priority() {
    let cluster =
        "node a cpu=1\ngang victim x1 cpu=1 class=low\npod victim-0 gang=victim cpu=1 on=a
        gang urgent x1 cpu=1 class=high";
    let decided = || Decided::by("allocate, preempt", "priority; gang; predicates", cluster);
    let higher = "gang victim x1 cpu=1 class=high";
    sees(decided().seen_after(higher), Veto, "priority");
    sees(decided().seen_after("gang victim x1 cpu=1 class=low preemptable=false"), Veto, "false");
    let elsewhere = "gang victim x1 cpu=1 class=low queue=other";
    sees(decided().seen_after(elsewhere), Veto, "another queue");
}

#[test]
fn a_queue_is_seen_to_keep_what_it_deserves() {
    let cluster = "node a cpu=2\nqueue red deserved.cpu=1\nqueue blue deserved.cpu=1
        pod v w cpu=1 queue=red on=a\npod late cpu=1 queue=blue";
    let decided =
        || Decided::by("allocate, reclaim", "priority; gang; predicates; capacity", cluster);
    sees(decided().seen_after("queue red deserved.cpu=2"), Veto, "deserved share");
    let guarantee = "queue red deserved.cpu=1 guarantee.cpu=2";
    sees(decided().seen_after(guarantee), Veto, "guarantee");
}

#[test]
fn a_gang_is_seen_to_be_broken() {
    let cluster =
        "node a cpu=2\ngang pair x2 cpu=1 class=low\npod pair-0 pair-1 gang=pair cpu=1 on=a
        gang urgent x1 cpu=1 class=high";
    let decided = Decided::by("allocate, preempt", "priority; predicates", cluster);
    sees(decided.seen_with("priority; gang; predicates"), GangStaysWhole, "broken");
}

#[test]
fn a_pod_is_seen_to_leave_in_vain() {
    let decided = Decided::by("allocate, preempt", "priority; gang; predicates", PREEMPTION);
    sees(decided.seen_after("node a cpu=2"), EvictionNeeded, "in vain");
}

// What a queue may have.

#[test]
fn a_queue_is_seen_to_have_more_than_its_limit() {
    let pods = "pod p q cpu=1 queue=red";
    for (queues, plugin, words) in [
        ("queue red cap.cpu=1", "capacity", "red to 2 of 1 cpu"),
        ("queue red weight=1\nqueue blue guarantee.cpu=3", "capacity", "red to 2 of 1 cpu"),
        ("queue red cap.cpu=1", "proportion", "red to 2 of 1 cpu"),
        (
            "queue all cap.cpu=1\nqueue red parent=all",
            "capacity, enableHierarchy: true",
            "all to 2 of 1 cpu",
        ),
        (
            "queue all weight=1\nqueue red parent=all\nqueue blue parent=all guarantee.cpu=3",
            "capacity, enableHierarchy: true",
            "red to 2 of 1 cpu",
        ),
    ] {
        let cluster = format!("node a cpu=4\n{queues}\n{pods}");
        let decided = Decided::by("allocate", "gang; predicates", &cluster);
        sees(decided.seen_with(&format!("gang; predicates; {plugin}")), QueueLimit, words);
    }
}

#[test]
fn non_preemptable_gangs_are_seen_to_have_more_than_their_queue_deserves() {
    let cluster =
        "node a cpu=4\nqueue red deserved.cpu=1\ngang g x2 cpu=1 queue=red preemptable=false";
    let decided = Decided::by("allocate", "gang; predicates; capacity", cluster);
    let limited = "gang; predicates; capacity, arguments: {nonPreemptibleWithinDeserved: true}";
    sees(decided.seen_with(limited), QueueLimit, "red to 2 of 1 cpu");
}

// Where a gang may be.

/// Two racks with one node each, and a pair that needs both nodes.
const RACKS: &str = "node a b cpu=1\ndomain r0 tier=1 nodes=a\ndomain r1 tier=1 nodes=b
    domain top tier=2 tiername=room domains=r0,r1";

#[test]
fn a_gang_is_seen_to_be_spread_over_two_racks() {
    let decided =
        || Decided::by("allocate", "gang; predicates", &format!("{RACKS}\ngang g x2 cpu=1"));
    sees(decided().seen_after("gang g x2 cpu=1 close=hard:1"), TopologyLimit, "top of tier 2");
    sees(decided().seen_after("gang g x2 cpu=1 close=hard:gone"), TopologyLimit, "does not exist");
    for near_enough in ["close=hard:2", "close=hard:room", "close=hard", "close=soft:1"] {
        let cluster = format!("{RACKS}\ngang g x2 cpu=1 {near_enough}");
        Decided::by("allocate", "gang; predicates", &cluster);
    }
}

#[test]
fn a_subgroup_is_seen_to_be_spread_over_two_racks() {
    let gang = "gang g x2 cpu=1 groups=2";
    let decided = Decided::by("allocate", "gang; predicates", &format!("{RACKS}\n{gang}"));
    sees(decided.seen_after(&format!("{gang}:hard:1")), TopologyLimit, "top of tier 2");
}

// Whether a gang may start.

#[test]
fn a_gang_is_seen_to_lack_pods_to_its_minimum() {
    let cluster = "node a cpu=1\ngang g x2 cpu=1";
    let decided = Decided::by("allocate", "predicates", cluster);
    sees(decided.seen_with("gang; predicates"), GangMinimum, "lacks 1 pods");
}

#[test]
fn a_gang_is_seen_to_be_in_a_queue_that_is_not_open() {
    let cluster = "node a cpu=1\nqueue red weight=1\npod p cpu=1 queue=red";
    let decided = Decided::by("allocate", "gang; predicates", cluster);
    sees(decided.seen_after("queue red weight=1 closed"), MayRun, "not open");
}

// Whether plan and model say the same.

#[test]
fn a_plan_is_seen_to_say_what_the_model_does_not() {
    let mut decided = Decided::by("allocate", "gang; predicates", "node a b cpu=1\npod p cpu=1");
    let bind = decided.plan.binds[0];
    decided.plan.binds.push(bind);
    sees(violated(&decided.engine, &decided.plan), PlanIsInModel, "bound twice");
    let nodes = &decided.engine.cluster().nodes;
    let other = ["a", "b"].iter().filter_map(|name| nodes.find(name));
    let other = other.into_iter().find(|&node| node != bind.node).expect("two nodes");
    decided.plan.binds = vec![muster_engine::Bind { node: other, ..bind }];
    sees(violated(&decided.engine, &decided.plan), PlanIsInModel, "not allocated");
}

// What one cycle binds, the next does not evict.

#[test]
fn a_pod_that_was_bound_in_vain_is_seen_unless_something_happened_since() {
    let decided = Decided::by("allocate", "gang", "node a cpu=1\npod low cpu=1 class=low");
    let (engine, mut next) = (&decided.engine, Decisions::default());
    let bind = decided.plan.binds[0];
    next.evictions.push(Eviction {
        pod: bind.pod,
        node: bind.node,
        action: "preempt",
        preemptor: engine.cluster().pods.gang[bind.pod],
        cause: Cause::Outranked { priority: 1, preemptor: 10, next: None },
        method: Method::Evict,
    });
    let later = NOW.plus_ms(1000);
    let mut last = LastBinds::default();
    last.check(engine, &decided.plan, NOW).expect("nothing was bound before");
    let violation = last.check(engine, &next, later).expect_err("low was bound just now");
    sees((violation.invariant, violation.what), BoundInVain, "low is evicted for another gang");
    let mut last = LastBinds::default();
    last.check(engine, &decided.plan, NOW).expect("nothing was bound before");
    for object in objects(&format!("{CLASSES}\npod high cpu=1 class=high")) {
        last.hear(engine, &Event::from(object));
    }
    last.check(engine, &next, later).expect("a pod came meanwhile");
}
