//! Commands: a Job is told what to do, once. The Command is deleted first and obeyed then, so that
//! it is obeyed at most once.

use std::collections::BTreeMap;

use muster_api::Command;
use muster_api::kinds::Kind;

use crate::event::Refusal;
use crate::job::{Action, Jobs};
use crate::write::{Dependents, Level, Outbox, Target, What, WriteId};

#[derive(Default)]
pub struct Commands {
    /// Those that are being deleted, by the write that deletes them.
    leaving: BTreeMap<WriteId, Command>,
    /// Those of which nothing has been done yet, by `namespace/name`.
    new: BTreeMap<String, Command>,
}

impl Commands {
    pub fn apply(&mut self, command: &Command) {
        let is_ours = command.target.as_ref().is_some_and(|target| target.kind == "Job");
        let uid = &command.metadata.uid;
        let is_known = self.leaving.values().any(|leaving| leaving.metadata.uid == *uid);
        if is_ours && !is_known && command.metadata.deletion_timestamp.is_none() {
            self.new.insert(command.metadata.key(), command.clone());
        }
    }

    pub fn gone(&mut self, key: &str) {
        self.new.remove(key);
    }

    /// A Command that is gone because of us is obeyed; one that was deleted by others is not.
    pub fn answer(
        &mut self,
        id: WriteId,
        result: &Result<(), Refusal>,
        jobs: &mut Jobs,
        outbox: &mut Outbox,
    ) {
        let Some(command) = self.leaving.remove(&id) else { return };
        match result {
            Ok(()) => obey(&command, jobs, outbox),
            Err(Refusal::NotFound | Refusal::Conflict) => {}
            Err(_) => drop(self.new.insert(command.metadata.key(), command)),
        }
    }

    pub fn turn(&mut self, outbox: &mut Outbox) {
        for command in std::mem::take(&mut self.new).into_values() {
            let meta = &command.metadata;
            let object = Target {
                kind: Kind::Command.name().to_owned(),
                api_version: Kind::Command.api_version().to_owned(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
            };
            let id = outbox.push(What::Delete { object, then: Dependents::Later });
            self.leaving.insert(id, command);
        }
    }
}

fn obey(command: &Command, jobs: &mut Jobs, outbox: &mut Outbox) {
    let Some(target) = &command.target else { return };
    let key = format!("{}/{}", command.metadata.namespace, target.name);
    let action = Action::read(&command.action);
    let obeyed = jobs.command(&key, &target.uid, action);
    let Some(job) = jobs.get(&key).filter(|_| obeyed) else { return };
    let (level, message) = match action {
        Action::Sync => {
            (Level::Warning, format!("{:?} is no action; nothing is done", command.action))
        }
        _ => (Level::Normal, format!("Start to execute command {}", command.action)),
    };
    let object = crate::job::target(job);
    outbox.push(What::Tell { object, level, reason: "CommandIssued", message });
}
