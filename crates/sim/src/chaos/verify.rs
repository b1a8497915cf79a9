//! Moments without anything under way. Then the scheduler must come to rest, every waiting gang must
//! have a reason, and a fresh scheduler that sees the same objects in another order must decide the
//! same.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::keys::{PIPELINED_NODE, RESERVATIONS};
use muster_api::{Reserved, Time};
use muster_engine::model::gangs::Origin;
use muster_engine::model::pods::PodState;
use muster_engine::{Amounts, Engine};

use super::{Day, scheduler_names};
use crate::{Invariant, Violation, invariants};

/// More cycles than gangs have pods, so that each can have placed one pod per cycle.
const REST_AFTER: u64 = 200;

impl Day<'_> {
    /// Everything arrives, then everything is checked that only holds when nothing is under way.
    pub(super) fn calm(&mut self) -> Result<(), Violation> {
        self.settle();
        let mut fresh = self.fresh();
        // What is still to be written of nominations and notes a fresh scheduler can't know.
        let written = self.nominations_are_written().and_then(|()| self.notes_are_written());
        let written = written.and_then(|()| self.reservations_are_written());
        let comparable = written.is_ok() && may_be_compared(&self.engine, &fresh, self.world.now);
        self.rest()?;
        rest(&mut fresh, self.world.now)?;
        if comparable && !gave_back(&self.engine, self.world.now) {
            self.history.comparisons += 1;
            agree(&self.engine, &fresh)?;
        } else {
            self.history.not_compared += 1;
        }
        waiting_gangs_have_reasons(&self.engine)?;
        self.statuses_are_written()?;
        self.come_to_an_end()?;
        self.nominations_are_written()?;
        self.notes_are_written()
    }

    /// Everything that was decided arrives, and what follows from that, until there is nothing left
    /// to decide or to write.
    fn come_to_an_end(&mut self) -> Result<(), Violation> {
        for _ in 0..REST_AFTER {
            self.settle();
            if self.cycle()?.is_empty() && self.writes.is_empty() {
                return Ok(());
            }
        }
        Invariant::Rest
            .fails(format!("still planning after {REST_AFTER} cycles in which everything arrived"))
    }

    /// Lets every write arrive and every event be told, and waits until no backoff is left, and no
    /// pod is kept because an eviction was refused.
    fn settle(&mut self) {
        while !self.writes.is_empty() {
            self.step = self.writes.last_due().map_or(self.step, |due| due.max(self.step));
            self.write_due();
        }
        self.hear(u64::MAX);
        let backoffs =
            self.engine.cluster().gangs.iter().filter_map(|(_, gang)| gang.backoff_until);
        let refused = self.engine.cluster().eviction_refused.values().copied();
        if let Some(last) = backoffs.chain(refused).max() {
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

    /// Cycles until nothing is planned, each carried out.
    fn rest(&mut self) -> Result<(), Violation> {
        for _ in 0..REST_AFTER {
            if self.cycle()?.is_empty() {
                return Ok(());
            }
        }
        Invariant::Rest.fails(format!("still planning after {REST_AFTER} cycles without an event"))
    }

    /// What was decided about PodGroups stands in their status.
    fn statuses_are_written(&self) -> Result<(), Violation> {
        for (_, gang) in
            self.engine.cluster().gangs.iter().filter(|(_, gang)| gang.origin == Origin::Group)
        {
            let Some(group) = self.world.groups.get(gang.key.as_ref()) else {
                return Invariant::Written
                    .fails(format!("{} is known, but no such PodGroup exists", gang.key));
            };
            let status = group.status.clone().unwrap_or_default();
            if status.phase != gang.phase {
                return Invariant::Written.fails(format!(
                    "{} is {:?}, but its PodGroup says {:?}",
                    gang.key, gang.phase, status.phase
                ));
            }
            let said = status
                .conditions
                .iter()
                .any(|condition| condition.message == gang.condition.message);
            if !gang.condition.message.is_empty() && !said {
                return Invariant::Written.fails(format!(
                    "{} waits ({}), but its PodGroup doesn't say so",
                    gang.key, gang.condition.message
                ));
            }
        }
        let groups = self
            .engine
            .cluster()
            .gangs
            .iter()
            .filter(|(_, gang)| gang.origin == Origin::Group)
            .count();
        match self.world.groups.len() == groups {
            true => Ok(()),
            false => Invariant::Written.fails(format!(
                "{} PodGroups exist, but {groups} are known",
                self.world.groups.len()
            )),
        }
    }
}

impl Day<'_> {
    /// What was noted on PodGroups stands there.
    fn notes_are_written(&self) -> Result<(), Violation> {
        for (_, gang) in self.engine.cluster().gangs.iter() {
            for (key, told) in gang.noted() {
                let annotations = &self.world.groups[&*gang.key].metadata.annotations;
                let written = annotations.get(key).map(String::as_str);
                if written != told {
                    return Invariant::Written.fails(format!(
                        "{} has {key} {told:?}, but its object says {written:?}",
                        gang.key
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reservations stand on their PodGroups, and no others: the next cycle puts right what another
    /// writer has changed.
    fn reservations_are_written(&self) -> Result<(), Violation> {
        let cluster = self.engine.cluster();
        for (_, gang) in cluster.gangs.iter() {
            let group = self.world.groups.get(&*gang.key);
            let annotations = group.map(|group| &group.metadata.annotations);
            let text = annotations.and_then(|annotations| annotations.get(RESERVATIONS));
            let written = text.and_then(|text| Reserved::read(text).ok()).unwrap_or_default();
            let pods =
                |place: Reserved| place.pods.into_iter().map(move |pod| (place.node.clone(), pod));
            let written: BTreeSet<(String, String)> = written.into_iter().flat_map(pods).collect();
            let known = gang.reserved().iter();
            let known: BTreeSet<(String, String)> = known
                .map(|place| {
                    (cluster.nodes.name[place.node].to_string(), place.instead_of.to_string())
                })
                .collect();
            if known != written {
                return Invariant::Written.fails(format!(
                    "{} keeps {known:?}, but its object says {written:?}",
                    gang.key
                ));
            }
        }
        Ok(())
    }

    /// Nominations stand on their pods, and no others do.
    fn nominations_are_written(&self) -> Result<(), Violation> {
        let cluster = self.engine.cluster();
        for pod in cluster.pods.live() {
            let name = cluster.pods.name(pod);
            let nominated = match cluster.pods.state[pod] {
                PodState::Nominated(node) => Some(&*cluster.nodes.name[node]),
                PodState::Pending | PodState::Allocated(_) | PodState::Running(_) => None,
                _ => continue,
            };
            let object = &self.world.pods[&**name];
            let written = object.metadata.annotations.get(PIPELINED_NODE).map(String::as_str);
            if written != nominated {
                return Invariant::Written.fails(format!(
                    "{name} is {:?}, but its object is nominated to {written:?}",
                    cluster.pods.state[pod]
                ));
            }
        }
        Ok(())
    }
}

/// How long something waits and what it gave back is remembered by a process, not by the objects.
/// Where that makes a difference now, the two can't be compared.
fn may_be_compared(ours: &Engine, fresh: &Engine, now: Time) -> bool {
    let settings = &ours.config().settings;
    let past = |since: Option<Time>, limit: i64| {
        limit > 0 && since.is_some_and(|since| since.plus_ms(limit) <= now)
    };
    let overdue = |engine: &Engine| -> BTreeSet<String> {
        let gangs = engine.cluster().gangs.iter();
        let waits = |since| past(since, settings.traverse_head_wait_ms);
        let overdue =
            gangs.filter(|(_, gang)| gang.counts.pending > 0 && waits(gang.waiting_since));
        overdue.map(|(_, gang)| gang.key.to_string()).collect()
    };
    let remembers =
        ours.cluster().gangs.iter().any(|(_, gang)| gang.gave_back.is_some() && !gang.admitted());
    !remembers && overdue(ours) == overdue(fresh)
}

/// Whether an admission has run out just now: only the process that gave it knows since when it
/// ran.
fn gave_back(engine: &Engine, now: Time) -> bool {
    engine.cluster().gangs.iter().any(|(_, gang)| gang.gave_back == Some(now))
}

fn rest(engine: &mut Engine, now: Time) -> Result<(), Violation> {
    for _ in 0..REST_AFTER {
        let plan = engine.cycle(now);
        invariants::check(engine, engine.decisions()).map_err(|violation| {
            violation.invariant.violated(format!("a fresh scheduler: {violation}"))
        })?;
        if plan.is_empty() {
            return Ok(());
        }
    }
    Invariant::Rest.fails(format!("a fresh scheduler still plans after {REST_AFTER} cycles"))
}

/// Every pod, gang, queue and domain as a scheduler sees it, by name.
fn outcome(engine: &Engine) -> BTreeMap<String, String> {
    let cluster = engine.cluster();
    let name = |node| &cluster.nodes.name[node];
    let pods = cluster.pods.live().map(|pod| {
        let state = match cluster.pods.state[pod] {
            PodState::Nominated(node) => format!("is nominated to {}", name(node)),
            PodState::Allocated(node) => format!("is bound to {}", name(node)),
            PodState::Running(node) => format!("runs on {}", name(node)),
            PodState::Releasing(node) => format!("leaves {}", name(node)),
            other => format!("is {other:?}"),
        };
        (format!("pod {}", cluster.pods.name(pod)), state)
    });
    let gangs = cluster.gangs.iter().map(|(_, gang)| {
        let (queue, priority) = (&cluster.queues[gang.queue].name, gang.priority);
        // A gang without a PodGroup shows no phase.
        let phase = if gang.origin == Origin::Group {
            format!("{:?}", gang.phase)
        } else {
            "a gang".to_owned()
        };
        let kept: Vec<&str> = gang.reserved().iter().map(|place| &**name(place.node)).collect();
        let kept = if kept.is_empty() {
            String::new()
        } else {
            format!(", keeps places on {}", kept.join(", "))
        };
        (
            format!("gang {}", gang.key),
            format!("is {phase} in queue {queue}, priority {priority}{kept}"),
        )
    });
    let queues = cluster.queues.iter().filter(|(_, queue)| queue.exists).map(|(_, queue)| {
        let list = |amounts: &Amounts| -> BTreeMap<&str, i64> {
            amounts.iter().map(|(resource, amount)| (cluster.dimensions.name(resource), amount)).collect()
        };
        let (held, nominated) = (list(&queue.held), list(&queue.nominated));
        let (priority, weight, state) = (queue.priority, queue.weight, queue.state);
        let text = format!(
            "is {state:?}, priority {priority}, weight {weight}, holds {held:?}, has nominations for {nominated:?}"
        );
        (format!("queue {}", queue.name), text)
    });
    let domains = cluster.hyper_nodes.iter().map(|hyper| {
        let fault = cluster.domains.faults().get(&hyper.name);
        let text = match cluster.domains.find(&hyper.name) {
            Some(domain) => {
                let above =
                    cluster.domains[domain].parent.map(|parent| &cluster.domains[parent].name);
                format!(
                    "is below {above:?} with {} nodes, fault {fault:?}",
                    cluster.domains.node_count(domain)
                )
            }
            None => {
                format!("is not in the tree with {} nodes, fault {fault:?}", hyper.nodes().count())
            }
        };
        (format!("domain {}", hyper.name), text)
    });
    pods.chain(gangs).chain(queues).chain(domains).collect()
}

fn agree(ours: &Engine, fresh: &Engine) -> Result<(), Violation> {
    let (left, right) = (outcome(ours), outcome(fresh));
    let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let differ = names.into_iter().filter(|name| left.get(*name) != right.get(*name));
    let lines: Vec<String> = differ
        .map(|name| {
            let text = |found: Option<&String>| {
                found.map_or("is unknown", |text| text.as_str()).to_owned()
            };
            format!(
                "{name} {}; to a fresh scheduler it {}",
                text(left.get(name)),
                text(right.get(name))
            )
        })
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    let waiting = |engine: &Engine| -> Vec<String> {
        let gangs = engine.cluster().gangs.iter().filter(|(_, gang)| !gang.reasons.is_empty());
        gangs
            .map(|(id, gang)| format!("  {}: {}", gang.key, engine.reasons(id).join("; ")))
            .collect()
    };
    Invariant::FreshScheduler.fails(format!(
        "a fresh scheduler decides otherwise:\n  {}\nwhat waits here\n{}\nand there\n{}",
        lines.join("\n  "),
        waiting(ours).join("\n"),
        waiting(fresh).join("\n")
    ))
}

/// A gang that waits for its minimum has a reason.
fn waiting_gangs_have_reasons(engine: &Engine) -> Result<(), Violation> {
    let whole = engine.policy().enforces_minimum();
    for (_, gang) in engine.cluster().gangs.iter() {
        if gang.counts.pending > 0 && !gang.ready(whole) && gang.reasons.is_empty() {
            return Invariant::Reason.fails(format!(
                "{} has {} pods pending and no reason",
                gang.key, gang.counts.pending
            ));
        }
    }
    Ok(())
}
