//! The controllers in the embedded cluster: they hear what happens, and what they want is written.

use std::collections::BTreeMap;

use muster_api::core::Meta;
use muster_api::kinds::{Kind, Object, WithType};
use muster_api::manifest::merge_patch;
use muster_api::simulated::ending;
use muster_api::{JobPhase, Time};
use muster_controllers as controllers;
use muster_controllers::{Controllers, Part, Refusal, SeenPod, Target, What, Write};
use muster_engine::Event;
use serde::Deserialize;
use serde_json::Value;

use crate::world::World;

/// Controllers that still want something after so many turns never come to rest.
const TURNS: usize = 10_000;

/// Something that happened to a Job, or that is said of it.
#[derive(Clone, Debug)]
pub struct Change {
    pub job: String,
    pub phase: JobPhase,
    pub message: String,
}

#[derive(Default)]
pub struct Manager {
    controllers: Controllers,
    /// Objects of kinds that nothing else here knows: Services, Secrets, ….
    parts: BTreeMap<(String, String), Meta>,
    /// What was told the controllers and not answered yet.
    news: Vec<controllers::Event>,
    /// When they want to be asked again though nothing happens.
    pub wake: Option<Time>,
    /// Whether they changed something when they were last asked.
    pub was_busy: bool,
    pub changes: Vec<Change>,
    /// What they told about objects.
    pub told: Vec<(String, String)>,
}

impl Manager {
    /// Controllers, if there is something for them to do.
    pub fn of(world: &World) -> Option<Manager> {
        let kinds = [Kind::Job, Kind::JobFlow];
        let has_work = kinds.into_iter().any(|kind| world.others(kind).next().is_some());
        has_work.then(Manager::default)
    }

    pub fn hear(&mut self, event: &Event) {
        self.news.extend(translate(event));
    }

    /// The controllers take their turns until they want nothing more.
    pub fn turn(&mut self, world: &mut World) -> Vec<Event> {
        let mut events = Vec::new();
        self.was_busy = false;
        for _ in 0..TURNS {
            for event in std::mem::take(&mut self.news) {
                self.controllers.apply(event);
            }
            let plan = self.controllers.turn(world.now);
            self.wake = plan.wake;
            if plan.writes.is_empty() && self.news.is_empty() {
                return events;
            }
            for write in plan.writes {
                self.write(write, world, &mut events);
            }
        }
        panic!("controllers do not come to rest: {:?}", self.changes.last());
    }

    fn write(&mut self, write: Write, world: &mut World, events: &mut Vec<Event>) {
        let before = events.len();
        let is_told = matches!(write.what, What::Tell { .. });
        let result = self.perform(write.what, world, events);
        self.was_busy |= !is_told && result.is_ok();
        for event in &events[before..] {
            self.news.extend(translate(event));
        }
        self.news.push(controllers::Event::Answer { id: write.id, result });
    }

    fn perform(
        &mut self,
        what: What,
        world: &mut World,
        events: &mut Vec<Event>,
    ) -> Result<(), Refusal> {
        match what {
            // Nothing logs in to anything here, so no keys are made.
            What::Create(object) | What::CreateWithKeys { object, .. } => {
                return self.create(object, world, events);
            }
            What::SetStatus { object, status, version } => {
                let kind = self.find(&object, world)?;
                let there = world.get(kind, &object.key()).ok_or(Refusal::NotFound)?;
                if version.is_some() && there.meta().resource_version != version {
                    return Err(Refusal::Conflict);
                }
                let set = |fields: &mut Value| fields["status"] = status;
                let event = world.change(kind, &object.key(), set).map_err(refused)?;
                self.note_phase(&there, &event);
                events.push(event);
            }
            What::Merge { object, patch } => {
                if Kind::named(&object.kind).is_none() {
                    return self.patch_part(&object, patch);
                }
                let kind = self.find(&object, world)?;
                let patched = |fields: &mut Value| merge_patch(fields, patch);
                events.push(world.change(kind, &object.key(), patched).map_err(refused)?);
            }
            What::Delete { object, .. } => {
                let at = (object.kind.clone(), object.key());
                if Kind::named(&object.kind).is_none() {
                    let part = self.parts.remove(&at).ok_or(Refusal::NotFound)?;
                    self.part_gone(object.kind, at.1, part.uid);
                    return Ok(());
                }
                let kind = self.find(&object, world)?;
                events.extend(world.delete(kind, &object.key()));
                self.drop_parts_of(&object.uid);
            }
            What::Tell { object, reason, message, .. } => {
                let text = format!("{reason}: {message}");
                self.told.push((format!("{} {}", object.kind, object.key()), text));
            }
        }
        Ok(())
    }

    fn create(
        &mut self,
        object: Value,
        world: &mut World,
        events: &mut Vec<Event>,
    ) -> Result<(), Refusal> {
        let name = object["kind"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = Kind::named(&name) else {
            let meta = Meta::deserialize(&object["metadata"]).map_err(refused)?;
            return self.create_part(name, meta);
        };
        let object = kind.with_type(Read(&object)).map_err(refused)?;
        if let Some(there) = world.get(kind, &object.key()) {
            let owner = there.meta().controller().map(|owner| owner.uid.clone());
            return Err(Refusal::Exists { owner });
        }
        if let Some(problem) = object.problems().first() {
            return Err(Refusal::Refused(format!("{}: {}", problem.path, problem.message)));
        }
        events.push(world.create(object));
        Ok(())
    }

    fn create_part(&mut self, kind: String, mut meta: Meta) -> Result<(), Refusal> {
        let at = (kind.clone(), meta.key());
        if let Some(there) = self.parts.get(&at) {
            let owner = there.controller().map(|owner| owner.uid.clone());
            return Err(Refusal::Exists { owner });
        }
        meta.uid = format!("uid-{kind}-{}", at.1);
        self.parts.insert(at, meta.clone());
        self.news.push(controllers::Event::Part(Part { kind, metadata: meta }));
        Ok(())
    }

    /// Only what is said of a part is kept.
    fn patch_part(&mut self, object: &Target, patch: Value) -> Result<(), Refusal> {
        let at = (object.kind.clone(), object.key());
        let meta = self.parts.get_mut(&at).ok_or(Refusal::NotFound)?;
        let mut fields = serde_json::to_value(&*meta).map_err(refused)?;
        merge_patch(&mut fields, patch["metadata"].clone());
        *meta = Meta::deserialize(&fields).map_err(refused)?;
        let part = Part { kind: object.kind.clone(), metadata: meta.clone() };
        self.news.push(controllers::Event::Part(part));
        Ok(())
    }

    fn part_gone(&mut self, kind: String, key: String, uid: String) {
        self.news.push(controllers::Event::PartGone { kind, key, uid });
    }

    fn drop_parts_of(&mut self, owner: &str) {
        let belongs = |meta: &Meta| meta.owner_references.iter().any(|its| its.uid == owner);
        let gone: Vec<_> = self.parts.extract_if(.., |_, meta| belongs(meta)).collect();
        for ((kind, key), meta) in gone {
            self.part_gone(kind, key, meta.uid);
        }
    }

    /// The kind of an object that is there, if it is the one that is meant.
    fn find(&self, target: &Target, world: &World) -> Result<Kind, Refusal> {
        let kind = Kind::named(&target.kind).ok_or(Refusal::NotFound)?;
        let there = world.get(kind, &target.key()).ok_or(Refusal::NotFound)?;
        match there.meta().uid == target.uid || target.uid.is_empty() {
            true => Ok(kind),
            false => Err(Refusal::Conflict),
        }
    }

    fn note_phase(&mut self, before: &Object, event: &Event) {
        let (Object::Job(before), Event::Object(Object::Job(now))) = (before, event) else {
            return;
        };
        let (old, new) = (&before.status.state, &now.status.state);
        let is_new = old.last_transition_time.is_none()
            || (old.phase, &old.message) != (new.phase, &new.message)
                && (old.phase != new.phase || !new.message.is_empty());
        if is_new {
            self.changes.push(Change {
                job: now.metadata.key(),
                phase: new.phase,
                message: new.message.clone(),
            });
        }
    }
}

fn refused(error: impl ToString) -> Refusal {
    Refusal::Refused(error.to_string())
}

/// An event as controllers hear it; of some they hear nothing.
fn translate(event: &Event) -> Option<controllers::Event> {
    match event {
        Event::Object(Object::Pod(pod)) => {
            let mut seen = SeenPod::of(pod);
            if seen.phase.has_ended()
                && let Some(ending) = ending(pod)
            {
                seen.finished_at = Some(ending.at);
                seen.exit_codes = ending.exit_code.into_iter().filter(|code| *code != 0).collect();
            }
            Some(controllers::Event::Pod(seen))
        }
        Event::Object(object) => Some(controllers::Event::Object(object.clone())),
        Event::Gone { kind, key, uid } => {
            let (kind, key, uid) = (*kind, key.clone(), uid.clone());
            Some(controllers::Event::Gone { kind, key, uid })
        }
        _ => None,
    }
}

struct Read<'v>(&'v Value);

impl WithType for Read<'_> {
    type Output = Result<Object, serde_json::Error>;

    fn call<T: muster_api::kinds::Resource>(self) -> Self::Output {
        T::deserialize(self.0).map(Into::into)
    }
}
