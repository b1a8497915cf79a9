//! Two runs on almost the same cluster compared: what some more objects would change, gang by gang.
//! Its JSON form is a contract (`docs/simulate-json.md`).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use muster_api::Time;
use muster_engine::ids::PodId;
use muster_engine::model::pods::PodState;
use muster_facts::{GangLine, QueueLine};
use serde::Serialize;

use crate::report::{Eviction, Placement};
use crate::simulation::Simulation;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The time of the first cycle of both runs.
    pub now: String,
    /// How many objects came, by kind.
    pub objects: BTreeMap<&'static str, usize>,
    /// Those that took the place of another, kind and name.
    pub replaced: Vec<String>,
    pub new_gangs: Vec<Fate>,
    /// Only with the objects.
    pub evictions: Vec<Eviction>,
    /// Only without them.
    pub spared: Vec<Eviction>,
    /// Gangs that are there anyway and fare otherwise, the worst first.
    pub gangs: Vec<GangChange>,
    pub queues: Vec<QueueChange>,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        let Difference {
            now: _,
            objects: _,
            replaced: _,
            new_gangs,
            evictions,
            spared,
            gangs,
            queues,
        } = self;
        new_gangs.is_empty()
            && evictions.is_empty()
            && spared.is_empty()
            && gangs.is_empty()
            && queues.is_empty()
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct GangChange {
    pub name: String,
    pub change: Change,
    pub without: Fate,
    /// Nothing if it is no gang any more.
    pub with: Option<Fate>,
}

/// What becomes of a gang that is there anyway.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It would have started.
    Waits,
    /// It has fewer pods.
    Shrinks,
    Later,
    /// Its pods belong to others.
    Gone,
    /// It would not have started.
    Starts,
    Earlier,
    /// It has more pods.
    Grows,
    /// Its pods are elsewhere.
    Moves,
    /// It waits as before, and for something else.
    Reason,
}

#[derive(Clone, Debug, Serialize)]
pub struct QueueChange {
    pub name: String,
    /// Nothing if it comes with the objects.
    pub without: Option<QueueLine>,
    pub with: QueueLine,
}

/// How a gang fares in a run.
#[derive(Clone, Debug, Serialize)]
pub struct Fate {
    /// How it stands at the end.
    #[serde(flatten)]
    pub line: GangLine,
    /// When the first of its pods was bound.
    pub starts: Option<Moment>,
    /// Its pods that were bound, where each came to be.
    pub binds: Vec<Placement>,
    /// Its pods that are nominated at the end.
    #[serde(rename = "promised")]
    pub nominated: Vec<Placement>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    pub cycle: u64,
    /// After the first cycle.
    pub after_ms: i64,
}

impl Fate {
    /// How many of its pods are bound or nominated to each node.
    pub fn places(&self) -> BTreeMap<&str, u32> {
        let mut places = BTreeMap::new();
        for placement in self.binds.iter().chain(&self.nominated) {
            *places.entry(placement.node.as_str()).or_default() += 1;
        }
        places
    }

    fn words(&self) -> BTreeSet<&'static str> {
        self.line.reasons.iter().map(|reason| reason.reason).collect()
    }

    /// Pods that got a place for good.
    fn pods(&self) -> u32 {
        self.line.running + self.line.succeeded
    }
}

/// Compares a run without some objects to one with them. Both are over.
pub fn compare(without: &Simulation, with: &Simulation) -> Difference {
    let (before, after) = (fates(without), fates(with));
    let mut gangs = Vec::new();
    for (name, old) in &before {
        let new = after.get(name);
        if let Some(change) = change(old, new) {
            let (name, without, with) = ((*name).to_owned(), old.clone(), new.cloned());
            gangs.push(GangChange { name, change, without, with });
        }
    }
    gangs.sort_by_key(|gang| gang.change);
    let new_gangs = after.iter().filter(|(name, _)| !before.contains_key(*name));
    Difference {
        now: with.report.now.clone(),
        objects: BTreeMap::new(),
        replaced: Vec::new(),
        new_gangs: new_gangs.map(|(_, fate)| fate.clone()).collect(),
        evictions: evictions(with, without),
        spared: evictions(without, with),
        gangs,
        queues: queues(without, with),
    }
}

fn change(old: &Fate, new: Option<&Fate>) -> Option<Change> {
    let Some(new) = new else { return Some(Change::Gone) };
    match (old.starts, new.starts) {
        (Some(_), None) if new.pods() == 0 => return Some(Change::Waits),
        (None, Some(_)) if old.pods() == 0 => return Some(Change::Starts),
        _ => {}
    }
    match new.pods().cmp(&old.pods()) {
        Ordering::Less => return Some(Change::Shrinks),
        Ordering::Greater => return Some(Change::Grows),
        Ordering::Equal => {}
    }
    match (old.starts, new.starts) {
        (Some(old), Some(new)) if old < new => Some(Change::Later),
        (Some(old), Some(new)) if old > new => Some(Change::Earlier),
        _ if old.places() != new.places() => Some(Change::Moves),
        _ => (old.words() != new.words()).then_some(Change::Reason),
    }
}

fn queues(without: &Simulation, with: &Simulation) -> Vec<QueueChange> {
    let old = |name: &str| without.report.queues.iter().find(|queue| queue.name == name);
    let changed = with.report.queues.iter().filter(|queue| old(&queue.name) != Some(queue));
    let change = |queue: &QueueLine| QueueChange {
        name: queue.name.clone(),
        without: old(&queue.name).cloned(),
        with: queue.clone(),
    };
    changed.map(change).collect()
}

/// Evictions of a run that the other doesn't have: of other pods, or for other gangs.
fn evictions(run: &Simulation, other: &Simulation) -> Vec<Eviction> {
    let of = |one: &Eviction| (one.pod.clone(), one.preemptor.clone());
    let known: HashSet<_> = other.report.evictions.iter().map(of).collect();
    let only = run.report.evictions.iter().filter(|one| !known.contains(&of(one)));
    only.cloned().collect()
}

/// How every gang fares in a run, by name.
fn fates(run: &Simulation) -> BTreeMap<&str, Fate> {
    let fate = |line: &GangLine| Fate {
        line: line.clone(),
        starts: None,
        binds: Vec::new(),
        nominated: Vec::new(),
    };
    let mut fates: BTreeMap<&str, Fate> =
        run.report.gangs.iter().map(|line| (line.name.as_str(), fate(line))).collect();
    for bind in &run.report.binds {
        if let Some(fate) = fates.get_mut(run.gang_of(&bind.pod)) {
            fate.starts.get_or_insert_with(|| moment(run, bind.cycle));
        }
    }
    for bind in last_of_each(&run.report.binds) {
        if let Some(fate) = fates.get_mut(run.gang_of(&bind.pod)) {
            fate.binds.push(bind.clone());
        }
    }
    let pods = &run.engine.cluster().pods;
    let waits = |pod: PodId| matches!(pods.state[pod], PodState::Nominated(_));
    for nomination in last_of_each(&run.report.nominations) {
        if let Some(fate) = fates.get_mut(run.gang_of(&nomination.pod))
            && pods.find(&nomination.pod).is_some_and(waits)
        {
            fate.nominated.push(nomination.clone());
        }
    }
    fates
}

/// Where each pod came to be in the end, in the order of the decisions.
fn last_of_each(placements: &[Placement]) -> Vec<&Placement> {
    let mut seen = HashSet::new();
    let mut last: Vec<&Placement> =
        placements.iter().rev().filter(|placement| seen.insert(placement.pod.as_str())).collect();
    last.reverse();
    last
}

fn moment(run: &Simulation, cycle: u64) -> Moment {
    let time = |text: &str| Time::parse(text).unwrap_or_default().0;
    let at =
        run.report.cycles.iter().find(|line| line.cycle == cycle).map_or(0, |line| time(&line.now));
    Moment { cycle, after_ms: at - time(&run.report.now) }
}
