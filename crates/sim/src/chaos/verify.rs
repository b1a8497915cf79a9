//! Moments without anything under way. Then the scheduler must come to rest, nothing may be forgotten, and a fresh
//! scheduler that sees the same objects in another order must decide the same.

use std::collections::BTreeMap;

use muster_engine::Engine;
use muster_engine::model::gangs::Origin;
use muster_engine::model::pods::PodState;

use super::{Day, scheduler_names};
use crate::invariants;

/// More cycles than gangs have pods, so that each can have placed one pod per cycle.
const REST_AFTER: u64 = 200;

impl Day<'_> {
    /// Everything arrives, then everything is checked that only holds when nothing is under way.
    pub(super) fn calm(&mut self) -> Result<(), String> {
        self.settle();
        let mut fresh = self.fresh();
        let comparable = self.may_be_compared() && !fresh_is_overdue(&fresh, self.world.now);
        let ours = self.rest()?;
        let theirs = rest(&mut fresh, self.world.now)?;
        if comparable {
            self.history.comparisons += 1;
            agree(&ours, &theirs)?;
        } else {
            self.history.not_compared += 1;
        }
        nothing_is_forgotten(&self.engine)?;
        self.the_server_knows()
    }

    /// Lets every write arrive and every event be told, and waits until no backoff is left.
    fn settle(&mut self) {
        while !self.writes.is_empty() {
            self.step = self.writes.last_due().map_or(self.step, |due| due.max(self.step));
            self.write_due();
        }
        self.hear(u64::MAX);
        let backoffs = self.engine.cluster().gangs.iter().filter_map(|(_, gang)| gang.backoff_until);
        if let Some(last) = backoffs.max() {
            self.world.now = self.world.now.max(last);
        }
    }

    fn fresh(&mut self) -> Engine {
        let mut fresh = Engine::new((self.config)(), scheduler_names());
        let mut events = self.world.list();
        self.dice.shuffle(&mut events);
        for event in events {
            fresh.apply(event);
        }
        fresh
    }

    /// Cycles until nothing is planned, each carried out; returns where that leads.
    fn rest(&mut self) -> Result<BTreeMap<String, String>, String> {
        for _ in 0..REST_AFTER {
            if self.cycle()?.is_empty() {
                return Ok(outcome(&self.engine));
            }
        }
        Err(format!("still planning after {REST_AFTER} cycles without an event"))
    }

    /// How long something waits is remembered by a process, not by the objects: such moments can't be compared.
    fn may_be_compared(&self) -> bool {
        let settings = &self.engine.config().settings;
        let now = self.world.now;
        let past = |since: Option<muster_api::Time>, limit: i64| {
            limit > 0 && since.is_some_and(|since| since.plus_ms(limit) <= now)
        };
        self.engine.cluster().gangs.iter().all(|(_, gang)| {
            gang.gave_back.is_none()
                && !past(gang.waiting_since, settings.traverse_head_wait_ms)
                && !past(gang.admitted.filter(|_| gang.idle()), settings.admission_timeout_ms)
        })
    }

    /// What was decided about PodGroups stands in their status.
    fn the_server_knows(&self) -> Result<(), String> {
        for (_, gang) in self.engine.cluster().gangs.iter().filter(|(_, gang)| gang.origin == Origin::Group) {
            let Some(group) = self.world.groups.get(gang.key.as_ref()) else {
                return Err(format!("{} is known, but no such PodGroup exists", gang.key));
            };
            let status = group.status.clone().unwrap_or_default();
            if status.phase != gang.phase {
                return Err(format!(
                    "{} is {:?}, but its PodGroup says {:?}",
                    gang.key, gang.phase, status.phase
                ));
            }
            let said = status.conditions.iter().any(|condition| condition.message == gang.condition.message);
            if !gang.condition.message.is_empty() && !said {
                return Err(format!(
                    "{} waits ({}), but its PodGroup doesn't say so",
                    gang.key, gang.condition.message
                ));
            }
        }
        let groups =
            self.engine.cluster().gangs.iter().filter(|(_, gang)| gang.origin == Origin::Group).count();
        match self.world.groups.len() == groups {
            true => Ok(()),
            false => Err(format!("{} PodGroups exist, but {groups} are known", self.world.groups.len())),
        }
    }
}

fn fresh_is_overdue(fresh: &Engine, now: muster_api::Time) -> bool {
    let wait = fresh.config().settings.traverse_head_wait_ms;
    let overdue = |since: muster_api::Time| wait > 0 && since.plus_ms(wait) <= now;
    fresh.cluster().gangs.iter().any(|(_, gang)| gang.waiting_since.is_some_and(overdue))
}

fn rest(engine: &mut Engine, now: muster_api::Time) -> Result<BTreeMap<String, String>, String> {
    for _ in 0..REST_AFTER {
        let plan = engine.cycle(now);
        invariants::check(engine, &plan).map_err(|what| format!("a fresh scheduler: {what}"))?;
        if plan.is_empty() {
            return Ok(outcome(engine));
        }
    }
    Err(format!("a fresh scheduler still plans after {REST_AFTER} cycles"))
}

/// Every pod's state and every gang's phase, by name.
fn outcome(engine: &Engine) -> BTreeMap<String, String> {
    let cluster = engine.cluster();
    let name = |node| &cluster.nodes.name[node];
    let pods = cluster.pods.live().map(|pod| {
        let state = match cluster.pods.state[pod] {
            PodState::Nominated(node) => format!("is promised {}", name(node)),
            PodState::Allocated(node) => format!("is bound to {}", name(node)),
            PodState::Running(node) => format!("runs on {}", name(node)),
            PodState::Releasing(node) => format!("leaves {}", name(node)),
            other => format!("is {other:?}"),
        };
        (format!("pod {}", cluster.pods.name(pod)), state)
    });
    let gangs = cluster.gangs.iter().filter(|(_, gang)| gang.origin == Origin::Group).map(|(_, gang)| {
        let state = format!(
            "is {:?} in queue {}, priority {}",
            gang.phase, cluster.queues[gang.queue].name, gang.priority
        );
        (format!("PodGroup {}", gang.key), state)
    });
    pods.chain(gangs).collect()
}

fn agree(ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) -> Result<(), String> {
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differ = names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name));
    let lines: Vec<String> = differ
        .map(|name| {
            let text = |found: Option<&String>| found.map_or("is unknown", |text| text.as_str()).to_owned();
            format!("{name} {}; to a fresh scheduler it {}", text(ours.get(name)), text(theirs.get(name)))
        })
        .collect();
    if lines.is_empty() {
        Ok(())
    } else {
        Err(format!("order of arrival matters:\n  {}", lines.join("\n  ")))
    }
}

/// Whoever waits knows why.
fn nothing_is_forgotten(engine: &Engine) -> Result<(), String> {
    let whole = engine.policy().gangs_are_whole();
    for (_, gang) in engine.cluster().gangs.iter() {
        if gang.counts.pending > 0 && !gang.ready(whole) && gang.reasons.is_empty() {
            return Err(format!("{} has {} pods pending and no reason to", gang.key, gang.counts.pending));
        }
    }
    Ok(())
}
