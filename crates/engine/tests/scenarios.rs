//! Scenarios as text: a few lines of cluster and work, `----`, and what comes of it. Each name is a
//! sentence that is true. `MUSTER_REWRITE=1 cargo test -p muster-engine --test scenarios` writes
//! the second halves; read the diff.
//!
//! Lines are done from top to bottom, earlier ones are older. Besides objects (see
//! `support/lines.rs`) there are `plugins`, `with`, `actions` and `set` (before all else), `cycle`,
//! `after 5m`, `gone POD`, `ungate POD`, `ungroup GANG`, `done POD`, `undomain DOMAIN`, `unnode
//! NODE`, `refuse PODS` (their next bind, nomination or eviction), `delay PODS` (their next bind is
//! not answered), `says POD saved=TIME`. Without a
//! `cycle` there is one at the end. `->` is bound, `~>` is nominated, `~> nowhere` no longer, `/`
//! begins the next tier of plugins, `rounds 50` are so many cycles in a row. A plugin may have
//! switches: `capacity+hierarchy`, `deviceshare+memory+spread`, `pdb+unasked` (its vetoes don't
//! count). `restart` is another process that knows what the objects say, and nothing else.

#[path = "support/lines.rs"]
mod lines;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use lines::Line;
use muster_api::core::Pod;
use muster_api::kinds::Kind;
use muster_api::manifest::Object;
use muster_api::{Time, parse_duration};
use muster_engine::config::Config;
use muster_engine::ids::PodId;
use muster_engine::model::gangs::Gang;
use muster_engine::plan::{GroupNote, Placement};
use muster_engine::trace::DomainOutcome;
use muster_engine::{Engine, Event, Plan, SearchCounters};

/// 2026-01-05T00:00:00Z
const START: Time = Time(1_767_571_200_000);

#[test]
fn scenarios_come_out_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    let rewrite = std::env::var_os("MUSTER_REWRITE").is_some();
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text");
        let mut fresh = String::new();
        for scenario in scenarios(&text) {
            let found = play(scenario.script);
            if found.trim() != scenario.expected.trim() {
                wrong.push(format!(
                    "# {}\nexpected\n{}\nfound\n{}\n",
                    scenario.name,
                    scenario.expected.trim(),
                    found.trim()
                ));
            }
            write!(
                fresh,
                "# {}\n{}\n----\n{}\n\n",
                scenario.name,
                scenario.script.trim(),
                found.trim()
            )
            .expect("a string");
        }
        if rewrite {
            std::fs::write(&file, format!("{}\n", fresh.trim_end())).expect("a file to write");
        }
    }
    assert!(rewrite || wrong.is_empty(), "{}", wrong.join("\n"));
}

struct Scenario<'t> {
    name: &'t str,
    script: &'t str,
    expected: &'t str,
}

fn scenarios(text: &str) -> impl Iterator<Item = Scenario<'_>> {
    let parts = text.strip_prefix("# ").expect("a file begins with a name").split("\n# ");
    parts.map(|part| {
        let (name, rest) = part.split_once('\n').expect("a scenario after its name");
        let (script, expected) = rest.split_once("----").unwrap_or((rest, ""));
        Scenario { name, script, expected }
    })
}

const WHOLE_GANGS: &str = "
plugins priority gang conformance cdp predicates network-topology-aware
actions enqueue allocate backfill preempt
set preempt mode=gang
";

#[test]
fn what_is_told_of_whole_gangs_is_what_is_done() {
    let script = "
        domain s0 tier=1 nodes=a,b
        domain s1 tier=1 nodes=c,d
        domain s2 tier=1 nodes=e
        node a b c d e gpu=2
        gang one min=2 prio=1 cooldown=1h
        pod one-0 gang=one gpu=2 on=a
        pod one-1 gang=one gpu=2 on=b
        gang two min=2 prio=1 cooldown=1h
        pod two-0 gang=two gpu=2 on=c
        pod two-1 gang=two gpu=2 on=d
        gang small x1 gpu=2 prio=1 on=e
        gang urgent x2 gpu=2 prio=10 close=hard:1
        cycle
        after 1h
        cycle";
    let stage = staged(&format!("{WHOLE_GANGS}{script}"));
    assert_eq!(stage.kept_word, 1, "{}", stage.told);
}

#[test]
fn the_work_of_taking_room_is_counted() {
    let script = "
        node a gpu=4
        gang elastic x2 gpu=1 min=1 prio=1 on=a
        gang pair x2 gpu=1 prio=1 on=a
        gang urgent x2 gpu=1 prio=10";
    let lines = format!("{WHOLE_GANGS}{script}");
    let lines: Vec<Line> = lines.lines().filter_map(Line::parse).collect();
    let mut stage = Stage::new(&lines);
    lines.iter().for_each(|line| stage.act(line));
    let Plan { search_counters, evictions, .. } = stage.cycle();
    // One pod that can be spared is not enough; when the pair goes, it need not go.
    assert_eq!(
        (
            search_counters.domains,
            search_counters.selected,
            search_counters.reprieved,
            search_counters.broken
        ),
        (2, 3, 1, 1)
    );
    assert!(search_counters.simulations > 0);
    assert_eq!(evictions.len() as u32, search_counters.selected - search_counters.reprieved);
    // The sixth line is 994 seconds old.
    let wasted: Vec<i64> = search_counters.wasted_seconds.into_values().collect();
    assert_eq!(wasted, [2 * 994]);
    assert_eq!(stage.cycle().search_counters, SearchCounters::default(), "no other pod leaves");
}

/// Does what the script says and tells what came of it.
fn play(script: &str) -> String {
    staged(script).told
}

fn staged(script: &str) -> Stage {
    let lines: Vec<Line> = script.lines().filter_map(Line::parse).collect();
    let mut stage = Stage::new(&lines);
    let cycles = lines.iter().filter(|line| line.kind == "cycle").count();
    stage.dated = cycles > 1;
    for line in &lines {
        stage.act(line);
    }
    if cycles == 0 && lines.iter().all(|line| line.kind != "rounds") {
        stage.cycle();
    }
    stage
}

struct Stage {
    engine: Engine,
    now: Time,
    config: String,
    pods: BTreeMap<String, Pod>,
    /// All other objects, as they came.
    others: Vec<Object>,
    /// Pods whose next bind or eviction the API server refuses.
    refused: BTreeSet<String>,
    /// Pods whose next bind the API server does not answer.
    delayed: BTreeSet<String>,
    /// Lines so far: they order creation and tell incarnations apart.
    serial: u64,
    dated: bool,
    told: String,
    /// How often the pods left that a trace had named before.
    kept_word: usize,
}

impl Stage {
    fn new(lines: &[Line]) -> Stage {
        let config = configuration(lines);
        Stage {
            engine: engine(&config),
            now: START,
            config,
            pods: BTreeMap::new(),
            others: Vec::new(),
            refused: BTreeSet::new(),
            delayed: BTreeSet::new(),
            serial: 0,
            dated: false,
            told: String::new(),
            kept_word: 0,
        }
    }

    fn act(&mut self, line: &Line) {
        self.serial += 1;
        let first = || line.names.first().copied().unwrap_or_default();
        match line.kind {
            "plugins" | "with" | "actions" | "set" => {}
            "cycle" => drop(self.cycle()),
            "restart" => self.restart(),
            "rounds" => self.rounds(first().parse().expect("a number")),
            "after" => self.now = self.now.plus_ms(parse_duration(first()).expect("a duration")),
            "gone" => {
                let pod =
                    self.pods.remove(&key(first())).unwrap_or_else(|| panic!("no pod {}", first()));
                self.engine.apply(Event::Gone {
                    kind: Kind::Pod,
                    key: pod.metadata.key(),
                    uid: pod.metadata.uid,
                });
            }
            "leaves" => {
                let now = self.now;
                self.change(first(), |pod| pod.metadata.deletion_timestamp = Some(now));
            }
            "says" => self.change(first(), |pod| {
                pod.metadata
                    .annotations
                    .extend(line.notes().map(|(key, text)| (key.into(), text.into())));
            }),
            "done" => self.change(first(), |pod| pod.status.phase = "Succeeded".into()),
            "delay" => self.delayed.extend(line.names.iter().map(|name| key(name))),
            "refuse" => self.refused.extend(line.names.iter().map(|name| key(name))),
            "unnode" => self.engine.apply(Event::gone(Kind::Node, first())),
            "undomain" => self.engine.apply(Event::gone(Kind::HyperNode, first())),
            "ungate" => self.change(first(), |pod| pod.spec.scheduling_gates.clear()),
            "ungroup" => self.engine.apply(Event::gone(Kind::PodGroup, key(first()))),
            _ => self.add(line),
        }
    }

    fn add(&mut self, line: &Line) {
        // Lines before the start are its past, a second apart.
        let born = if self.now == START {
            START.plus_ms(self.serial as i64 * 1000 - 1_000_000)
        } else {
            self.now
        };
        let text = line.manifests(&born.to_string(), self.serial);
        assert!(!text.is_empty(), "nothing is called {}", line.kind);
        for object in support::objects(&text) {
            match &object {
                Object::Pod(pod) => drop(self.pods.insert(object.key(), (**pod).clone())),
                other => self.others.push(other.clone()),
            }
            self.engine.apply(Event::from(object));
        }
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        let pod = self.pods.get_mut(&key(name)).unwrap_or_else(|| panic!("no pod {name}"));
        change(pod);
        self.engine.apply(Event::from(pod.clone()));
    }

    /// Another process: nominations are on the pods, all else is forgotten.
    fn restart(&mut self) {
        let cluster = self.engine.cluster();
        for (pod, nomination) in &cluster.nomination_ledger {
            let pod =
                self.pods.get_mut(cluster.pods.name(*pod).as_ref()).expect("the nominated pod");
            let notes = [
                ("volcano.sh/pipelined-status", "true".to_owned()),
                ("volcano.sh/pipelined-node", cluster.nodes.name[nomination.node].to_string()),
                ("volcano.sh/eviction-occurred", nomination.needs_evictions.to_string()),
            ];
            pod.metadata.annotations.extend(notes.map(|(key, text)| (key.to_owned(), text)));
        }
        self.engine = engine(&self.config);
        let pods = self.pods.values().map(|pod| Object::from(pod.clone()));
        self.others
            .iter()
            .cloned()
            .chain(pods)
            .for_each(|object| self.engine.apply(Event::from(object)));
    }

    /// Asking what would be tried changes nothing: what follows comes out as written all the same.
    fn ask_what_is_tried(&mut self) {
        for gang in self.engine.cluster().gangs.waiting().to_vec() {
            self.engine.trace(gang, self.now);
        }
        self.engine.cluster().audit().expect("a trial leaves no trace in the sums");
    }

    /// The pods that would leave for the only gang that waits, as far as traces of whole gangs say.
    fn pods_that_would_leave(&mut self) -> Option<BTreeSet<PodId>> {
        let &[gang] = self.engine.cluster().gangs.waiting() else { return None };
        let traces = self.engine.trace(gang, self.now);
        let passes = traces.into_iter().flat_map(|(_, trace)| trace.passes);
        let taken = passes.flat_map(|pass| pass.domains).find(|trial| trial.chosen)?;
        let DomainOutcome::Works { victims, .. } = taken.outcome else {
            panic!("the chosen domain does not work: {taken:?}")
        };
        Some(victims.into_iter().flat_map(|bundle| bundle.pods).collect())
    }

    /// So many cycles, a second apart. A pod that is to leave does, and its controller creates it
    /// again. Only sums are told, and what waits at the end.
    fn rounds(&mut self, count: usize) {
        let told = std::mem::take(&mut self.told);
        let (mut bound, mut left) = (0, 0);
        for _ in 0..count {
            self.now = self.now.plus_ms(1000);
            let plan = self.cycle();
            bound += plan.binds.len();
            left += plan.evictions.len();
            self.serial += 1;
            let leaving =
                self.pods.values().filter(|pod| pod.metadata.deletion_timestamp.is_some());
            for pod in leaving.cloned().collect::<Vec<_>>() {
                let (key, uid) = (pod.metadata.key(), pod.metadata.uid.clone());
                self.engine.apply(Event::Gone {
                    kind: Kind::Pod,
                    key: key.clone(),
                    uid: uid.clone(),
                });
                let mut again = pod;
                again.metadata.uid = format!("{uid}.{}", self.serial);
                again.metadata.creation_timestamp = Some(self.now);
                again.metadata.deletion_timestamp = None;
                again.spec.node_name = None;
                again.status = Default::default();
                self.engine.apply(Event::from(again.clone()));
                self.pods.insert(key, again);
            }
        }
        self.told = told;
        writeln!(self.told, "{count} rounds: {bound} bound, {left} left").expect("a string");
        self.say_what_waits();
    }

    fn cycle(&mut self) -> Plan {
        if self.dated {
            writeln!(self.told, "[{}s]", (self.now.0 - START.0) / 1000).expect("a string");
        }
        let told = self.pods_that_would_leave();
        let plan = self.engine.cycle(self.now);
        if let Some(told) = told {
            let done: BTreeSet<PodId> =
                self.engine.decisions().evictions.iter().map(|eviction| eviction.pod).collect();
            assert_eq!(told, done, "what is told is not what is done");
            self.kept_word += 1;
        }
        let names = |place: &Placement| (place.pod.to_string(), place.node.to_string());
        let binds: Vec<(String, String)> = plan.binds.iter().map(names).collect();
        let notes: Vec<_> =
            plan.binds.iter().map(|bind| plan.card_note(&bind.pod).to_vec()).collect();
        let nominations: Vec<(String, String)> = plan.nominations.iter().map(names).collect();
        for (arrow, list) in [("->", &binds), ("~>", &nominations)] {
            for (at, (pod, node)) in list.iter().enumerate() {
                let note = notes.get(at).filter(|_| arrow == "->").and_then(|notes| notes.first());
                let card = note.map_or(String::new(), |(_, cards)| format!(" card {cards}"));
                writeln!(self.told, "{} {arrow} {node}{card}", short(pod)).expect("a string");
            }
        }
        for pod in &plan.withdrawn {
            writeln!(self.told, "{} ~> nowhere", short(pod)).expect("a string");
        }
        let mut leaving = Vec::new();
        for eviction in &plan.evictions {
            let pod = eviction.place.pod.to_string();
            let how = if eviction.delete { "is deleted" } else { "leaves" };
            writeln!(self.told, "{} {how}: {}", short(&pod), short(&eviction.cause))
                .expect("a string");
            leaving.push(pod);
        }
        self.say_what_waits();
        self.ask_what_is_tried();
        self.note(&plan);
        let now = self.now;
        for (pod, _) in nominations.iter().filter(|(pod, _)| self.refused.remove(pod)) {
            let (uid, cause) = (self.pods[pod].metadata.uid.clone(), "refused".to_owned());
            self.engine.apply(Event::NominationRefused { key: pod.clone(), uid, cause, at: now });
        }
        for pod in leaving {
            if self.refused.remove(&pod) {
                let (uid, cause) = (self.pods[&pod].metadata.uid.clone(), "refused".to_owned());
                self.engine.apply(Event::EvictionRefused { key: pod, uid, cause, at: now });
            } else {
                self.change(&pod, |pod| pod.metadata.deletion_timestamp = Some(now));
            }
        }
        for ((pod, node), notes) in binds.into_iter().zip(notes) {
            if self.delayed.remove(&pod) {
                continue;
            }
            if self.refused.remove(&pod) {
                let (uid, cause) = (self.pods[&pod].metadata.uid.clone(), "refused".to_owned());
                self.engine.apply(Event::BindFailed { key: pod, uid, cause, at: now });
                continue;
            }
            self.change(&pod, |pod| {
                pod.spec.node_name = Some(node);
                pod.status.phase = "Running".into();
                pod.status.start_time = Some(now);
                pod.metadata
                    .annotations
                    .extend(notes.into_iter().map(|(key, text)| (key.to_owned(), text)));
            });
        }
        plan
    }

    /// What is noted on PodGroups is on their objects, and is told by the watch.
    fn note(&mut self, plan: &Plan) {
        for GroupNote { gang: name, annotations, .. } in &plan.notes {
            let of_gang = |object: &&mut Object| {
                matches!(object, Object::PodGroup(_)) && object.key() == **name
            };
            let Some(Object::PodGroup(group)) = self.others.iter_mut().rfind(of_gang) else {
                panic!("{name} has no PodGroup to write on")
            };
            let known = &mut group.metadata.annotations;
            for (key, text) in annotations {
                let short_key = key.trim_start_matches("volcano.sh/");
                match text {
                    Some(text) => drop(known.insert(key.to_string(), text.clone())),
                    None => drop(known.remove(&**key)),
                }
                let text = text.as_deref().unwrap_or("nothing");
                writeln!(self.told, "{} says {short_key}: {text}", short(name)).expect("a string");
            }
            let event = Event::Object(Object::PodGroup(group.clone()));
            self.engine.apply(event);
        }
    }

    fn say_what_waits(&mut self) {
        let cluster = self.engine.cluster();
        let waits =
            |gang: &Gang| gang.counts.pending + gang.counts.gated + gang.counts.nominated > 0;
        let mut gangs: Vec<_> = cluster.gangs.iter().filter(|(_, gang)| waits(gang)).collect();
        gangs.sort_by(|a, b| a.1.key.cmp(&b.1.key));
        for (id, gang) in gangs {
            let reasons = short(&self.engine.reasons(id).join("; "));
            writeln!(self.told, "{} waits: {reasons}", short(&gang.key)).expect("a string");
        }
    }
}

fn engine(config: &str) -> Engine {
    let config = Config::parse("scenario", config).unwrap_or_else(|errors| panic!("{errors:?}"));
    Engine::new(config, vec!["volcano".into()])
}

fn key(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("default/{name}") }
}

fn short(text: &str) -> String {
    text.replace("default/", "").replace("nvidia.com/gpu", "gpu")
}

/// What is built in, without actions that evict.
const PLAIN: &str = "actions: enqueue, allocate, backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder, arguments: \
  {leastrequested.weight: 0}}, {name: binpack}]
";

/// `plugins a b+hierarchy`, `with plugin key=value`, `actions a b`, `set action key=value`; without
/// the first, a plain configuration.
fn configuration(lines: &[Line]) -> String {
    let find = |kind: &str| lines.iter().find(|line| line.kind == kind);
    let settings: String = lines
        .iter()
        .filter(|line| line.kind == "set")
        .map(|line| format!("- name: {}\n  arguments: {{{}}}\n", line.names[0], pairs(line)))
        .collect();
    let settings =
        if settings.is_empty() { settings } else { format!("configurations:\n{settings}") };
    let Some(plugins) = find("plugins") else {
        assert!(find("actions").is_none(), "actions are read only together with plugins");
        return format!("{PLAIN}{settings}");
    };
    let actions =
        find("actions").map_or("enqueue, allocate, backfill".into(), |line| line.names.join(", "));
    let tier = |words: &[&str]| {
        let plugins: String = words.iter().map(|word| plugin(word, lines)).collect();
        format!("- plugins:\n{plugins}")
    };
    let tiers: String = plugins.names.split(|word| *word == "/").map(tier).collect();
    format!("actions: \"{actions}\"\ntiers:\n{tiers}{settings}")
}

/// A plugin and its switches.
fn plugin(word: &str, lines: &[Line]) -> String {
    let mut words = word.split('+');
    let name = words.next().unwrap_or_default();
    let mut text = format!("  - name: {name}\n");
    let given = lines.iter().filter(|line| line.kind == "with" && line.names[0] == name);
    let mut arguments: Vec<String> = given.map(pairs).collect();
    for word in words {
        let argument = match word {
            "hierarchy" => {
                text += "    enableHierarchy: true\n";
                continue;
            }
            "unasked" => {
                text += "    enablePreemptable: false\n    enableReclaimable: false\n";
                continue;
            }
            "memory" => "deviceshare.GPUSharingEnable: true",
            "number" => "deviceshare.GPUNumberEnable: true",
            "virtual" => "deviceshare.VGPUEnable: true",
            "spread" => "deviceshare.SchedulePolicy: spread",
            "weight" => "deviceshare.ScheduleWeight: 10",
            other => panic!("no switch {other}"),
        };
        arguments.push(argument.to_owned());
    }
    if !arguments.is_empty() {
        writeln!(text, "    arguments: {{{}}}", arguments.join(", ")).expect("a string");
    }
    text
}

fn pairs(line: &Line) -> String {
    let pairs: Vec<String> =
        line.values.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    pairs.join(", ")
}
