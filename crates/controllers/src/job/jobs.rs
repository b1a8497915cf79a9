//! All Jobs: which one a pod, a PodGroup or an answer is about, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::kinds::{Kind, Object};
use muster_api::{Job, PodGroup, Time};

use super::group;
use super::policy::Action;
use super::work::Work;
use crate::event::{Part, Refusal, SeenPod};
use crate::known::Known;
use crate::names::{TASK_INDEX, TASK_SPEC};
use crate::write::{Outbox, WriteId};

/// Where a pod belongs.
#[derive(Clone, Debug)]
struct Place {
    job: String,
    task: String,
    index: u32,
}

#[derive(Default)]
pub struct Jobs {
    /// By `namespace/name`.
    work: BTreeMap<String, Work>,
    /// The keys of Jobs by their UIDs.
    keys: BTreeMap<String, String>,
    /// Pods that belong to Jobs, by `namespace/name`.
    places: BTreeMap<String, Place>,
    /// The Jobs of what plugins have made, by kind and `namespace/name`.
    parts: BTreeMap<(String, String), String>,
    /// Pods and PodGroups that came before their Jobs, by the UID of the Job.
    early: BTreeMap<String, Early>,
    /// Whose answer it is that a write gets.
    waiting: BTreeMap<WriteId, String>,
    ready: BTreeSet<String>,
    alarms: BTreeMap<String, Time>,
}

#[derive(Default)]
struct Early {
    pods: BTreeMap<String, SeenPod>,
    group: Option<PodGroup>,
    parts: Vec<Part>,
}

impl Jobs {
    pub fn get(&self, key: &str) -> Option<&Job> {
        self.work.get(key).map(|work| &work.job)
    }

    pub fn apply(&mut self, object: &Object, now: Time) {
        match object {
            Object::Job(job) => self.job(job, now),
            Object::PodGroup(group) => self.group(group, now),
            // Something may be there now that a Job had missed.
            Object::Queue(_) | Object::PersistentVolumeClaim(_) => self.look_at_troubled(),
            _ => {}
        }
    }

    fn look_at_troubled(&mut self) {
        let troubled = self.work.iter().filter(|(_, work)| work.trouble.is_some());
        self.ready.extend(troubled.map(|(key, _)| key.clone()));
    }

    fn job(&mut self, job: &Job, now: Time) {
        let (key, uid) = (job.metadata.key(), job.metadata.uid.clone());
        match self.work.get_mut(&key) {
            Some(work) if work.job.metadata.uid == uid => {
                if !is_newer(job, &work.job) {
                    return;
                }
                work.update(job.clone());
            }
            _ => {
                self.forget(&key);
                self.work.insert(key.clone(), Work::new(job.clone()));
                self.keys.insert(uid.clone(), key.clone());
                let early = self.early.remove(&uid).unwrap_or_default();
                early.group.iter().for_each(|group| self.group(group, now));
                early.parts.into_iter().for_each(|part| self.part(part));
                early.pods.into_values().for_each(|pod| self.pod(&pod, now));
            }
        }
        self.ready.insert(key);
    }

    /// Drops everything that is known of a Job.
    fn forget(&mut self, key: &str) {
        if let Some(work) = self.work.remove(key) {
            self.keys.remove(&work.job.metadata.uid);
            self.places.retain(|_, place| place.job != key);
            self.parts.retain(|_, job| job != key);
        }
        self.ready.remove(key);
        self.alarms.remove(key);
        self.waiting.retain(|_, job| job != key);
    }

    pub fn pod(&mut self, pod: &SeenPod, now: Time) {
        let meta = &pod.metadata;
        let Some(owner) = meta.controller().filter(|owner| is_job(&owner.kind, &owner.api_version))
        else {
            return;
        };
        let Some(key) = self.keys.get(&owner.uid) else {
            let early = self.early.entry(owner.uid.clone()).or_default();
            early.pods.insert(meta.key(), pod.clone());
            return;
        };
        let key = key.clone();
        let task = meta.annotations.get(TASK_SPEC).cloned();
        let index = meta.annotations.get(TASK_INDEX).and_then(|text| text.parse().ok());
        let (Some(task), Some(index)) = (task, index) else { return };
        let place = Place { job: key.clone(), task, index };
        let work = self.work.get_mut(&key).expect("keys are of Jobs that are known");
        work.pod(&place.task, index, pod, now);
        self.places.insert(meta.key(), place);
        self.ready.insert(key);
    }

    fn group(&mut self, group: &PodGroup, now: Time) {
        let Some(owner) = group.metadata.controller() else { return };
        if !is_job(&owner.kind, &owner.api_version) {
            return;
        }
        match self.keys.get(&owner.uid).cloned() {
            None => {
                self.early.entry(owner.uid.clone()).or_default().group = Some(group.clone());
            }
            Some(key) => {
                let work = self.work.get_mut(&key).expect("keys are of Jobs that are known");
                if group::name(&work.job) == group.metadata.name {
                    work.group(group, now);
                    self.ready.insert(key);
                }
            }
        }
    }

    /// An object that a plugin has made.
    pub fn part(&mut self, part: Part) {
        let Some(owner) = part.metadata.controller() else { return };
        if !is_job(&owner.kind, &owner.api_version) {
            return;
        }
        let Some(key) = self.keys.get(&owner.uid).cloned() else {
            self.early.entry(owner.uid.clone()).or_default().parts.push(part);
            return;
        };
        let work = self.work.get_mut(&key).expect("keys are of Jobs that are known");
        self.parts.insert((part.kind.clone(), part.metadata.key()), key.clone());
        work.parts.insert((part.kind, part.metadata.name.clone()), part.metadata);
        self.ready.insert(key);
    }

    pub fn part_gone(&mut self, kind: String, key: String, uid: &str) {
        let name = key.rsplit('/').next().unwrap_or_default().to_owned();
        let Some(job) = self.parts.remove(&(kind.clone(), key)) else { return };
        if let Some(work) = self.work.get_mut(&job) {
            let at = (kind, name);
            if work.parts.get(&at).is_some_and(|part| uid.is_empty() || part.uid == uid) {
                work.parts.remove(&at);
            }
            self.ready.insert(job);
        }
    }

    pub fn gone(&mut self, kind: Kind, key: &str, uid: &str, now: Time) {
        match kind {
            Kind::Job => {
                let is_this = |work: &Work| uid.is_empty() || work.job.metadata.uid == uid;
                if self.work.get(key).is_some_and(is_this) {
                    self.forget(key);
                }
                self.early.remove(uid);
            }
            Kind::Pod => {
                for early in self.early.values_mut() {
                    early.pods.remove(key);
                }
                let Some(place) = self.places.get(key).cloned() else { return };
                if let Some(work) = self.work.get_mut(&place.job) {
                    work.pod_gone(&place.task, place.index, uid, now);
                    if work.pods.get(&place.task, place.index).is_none() {
                        self.places.remove(key);
                    }
                }
                self.ready.insert(place.job);
            }
            Kind::PodGroup => {
                let named = |work: &&mut Work| {
                    work.group.as_ref().is_some_and(|group| uid.is_empty() || group.uid == uid)
                        && format!("{}/{}", work.job.metadata.namespace, group::name(&work.job))
                            == key
                };
                // The name of a PodGroup ends with the UID of its Job.
                let of_job = key.len().checked_sub(36).and_then(|at| key.get(at..));
                let job = of_job.and_then(|uid| self.keys.get(uid)).cloned();
                let work = match &job {
                    Some(job) => self.work.get_mut(job),
                    None => self.work.values_mut().find(|work| named(work)),
                };
                if let Some(work) = work
                    && named(&&mut *work)
                {
                    work.group = None;
                    self.ready.insert(work.job.metadata.key());
                }
            }
            _ => {}
        }
    }

    /// A Command for the Job with this UID; without a UID for the one of that name.
    pub fn command(&mut self, key: &str, uid: &str, action: Action) -> bool {
        let is_meant = |work: &&mut Work| uid.is_empty() || work.job.metadata.uid == uid;
        let Some(work) = self.work.get_mut(key).filter(is_meant) else { return false };
        work.command(action);
        self.ready.insert(key.to_owned());
        true
    }

    pub fn answer(&mut self, id: WriteId, result: &Result<(), Refusal>) {
        let Some(key) = self.waiting.remove(&id) else { return };
        if let Some(work) = self.work.get_mut(&key) {
            work.answer(id, result.clone());
            self.ready.insert(key);
        }
    }

    /// The turn of every Job to which something has happened, or whose time has come.
    pub fn turn(&mut self, known: &Known, now: Time, outbox: &mut Outbox) -> Option<Time> {
        let due = self.alarms.iter().filter(|(_, time)| **time <= now);
        self.ready.extend(due.map(|(key, _)| key.clone()));
        for key in std::mem::take(&mut self.ready) {
            let Some(work) = self.work.get_mut(&key) else { continue };
            let alarm = work.turn(known, now, outbox);
            for id in work.answers.waits_for.keys() {
                self.waiting.insert(*id, key.clone());
            }
            match alarm {
                Some(time) => drop(self.alarms.insert(key, time)),
                None => drop(self.alarms.remove(&key)),
            }
        }
        self.alarms.values().min().copied()
    }
}

fn is_job(kind: &str, api_version: &str) -> bool {
    kind == Kind::Job.name() && api_version == Kind::Job.api_version()
}

/// Whether an object is not older than what is known. Versions that are no numbers tell nothing.
fn is_newer(new: &Job, known: &Job) -> bool {
    let number = |job: &Job| {
        job.metadata.resource_version.as_deref().and_then(|version| version.parse::<u64>().ok())
    };
    match (number(new), number(known)) {
        (Some(new), Some(known)) => new >= known,
        _ => true,
    }
}
