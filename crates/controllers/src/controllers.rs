//! All controllers at once: events are passed to those that they concern, and each takes its turn.

use muster_api::Time;
use muster_api::kinds::{Kind, Object};

use crate::command::Commands;
use crate::event::Event;
use crate::flow::Flows;
use crate::job::Jobs;
use crate::known::Known;
use crate::write::{Outbox, Write};

/// What controllers want: writes, and when to be asked again though nothing happens.
#[derive(Debug, Default)]
pub struct Plan {
    pub writes: Vec<Write>,
    pub wake: Option<Time>,
}

#[derive(Default)]
pub struct Controllers {
    now: Time,
    known: Known,
    jobs: Jobs,
    commands: Commands,
    flows: Flows,
    outbox: Outbox,
}

impl Controllers {
    /// Something has happened.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Object(object) => self.object(&object),
            Event::Pod(pod) => self.jobs.pod(&pod, self.now),
            Event::Part(part) => self.jobs.part(part),
            Event::PartGone { kind, key, uid } => self.jobs.part_gone(kind, key, &uid),
            Event::Gone { kind, key, uid } => {
                self.known.forget(kind, &key);
                self.flows.gone(kind, &key, &self.jobs);
                self.jobs.gone(kind, &key, &uid, self.now);
                if kind == Kind::Command {
                    self.commands.gone(&key);
                }
            }
            Event::Answer { id, result } => {
                self.jobs.answer(id, &result);
                self.flows.answer(id, &result);
                self.commands.answer(id, &result, &mut self.jobs, &mut self.outbox);
            }
        }
    }

    fn object(&mut self, object: &Object) {
        self.known.apply(object);
        self.jobs.apply(object, self.now);
        self.flows.apply(object);
        if let Object::Command(command) = object {
            self.commands.apply(command);
        }
    }

    /// The time has come to this moment: what is to be written now.
    pub fn turn(&mut self, now: Time) -> Plan {
        self.now = now;
        self.commands.turn(&mut self.outbox);
        let flows = self.flows.turn(&self.jobs, now, &mut self.outbox);
        let jobs = self.jobs.turn(&self.known, now, &mut self.outbox);
        let wake = [flows, jobs].into_iter().flatten().min();
        Plan { writes: std::mem::take(&mut self.outbox.writes), wake }
    }
}
