//! All JobFlows: which one a Job or a template is about, and what each wants to be written.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::kinds::{Kind, Object};
use muster_api::{Flow, Job, JobFlow, JobTemplate, Time};

use super::make::{job, job_name};
use super::progress::{Steps, is_completed, passes, status};
use crate::event::Refusal;
use crate::job::{Jobs, target};
use crate::write::{Dependents, Level, Outbox, Target, What, WriteId};

/// The pause after a refused write (in milliseconds).
const PAUSE: i64 = 5_000;

struct Work {
    flow: JobFlow,
    waits_for: BTreeMap<WriteId, &'static str>,
    not_before: Option<Time>,
    refusal: Option<String>,
    /// What was last told as a warning.
    told: Option<String>,
}

#[derive(Default)]
pub struct Flows {
    work: BTreeMap<String, Work>,
    templates: BTreeMap<String, JobTemplate>,
    ready: BTreeSet<String>,
    waiting: BTreeMap<WriteId, String>,
}

impl Flows {
    pub fn apply(&mut self, object: &Object) {
        match object {
            Object::JobFlow(flow) => {
                let key = flow.metadata.key();
                match self.work.get_mut(&key) {
                    Some(work) if work.flow.metadata.uid == flow.metadata.uid => {
                        work.flow = (**flow).clone();
                    }
                    _ => {
                        let work = Work {
                            flow: (**flow).clone(),
                            waits_for: BTreeMap::new(),
                            not_before: None,
                            refusal: None,
                            told: None,
                        };
                        self.work.insert(key.clone(), work);
                    }
                }
                self.ready.insert(key);
            }
            Object::JobTemplate(template) => {
                self.templates.insert(template.metadata.key(), (**template).clone());
                // A flow may have missed it.
                self.ready.extend(self.work.keys().cloned());
            }
            Object::Job(job) => self.look_at_owner(job),
            _ => {}
        }
    }

    /// The flow of a Job that has changed or is gone.
    fn look_at_owner(&mut self, job: &Job) {
        if let Some(owner) = job.metadata.controller().filter(|owner| owner.kind == "JobFlow") {
            self.ready.insert(format!("{}/{}", job.metadata.namespace, owner.name));
        }
    }

    pub fn gone(&mut self, kind: Kind, key: &str, jobs: &Jobs) {
        match kind {
            Kind::JobFlow => drop(self.work.remove(key)),
            Kind::JobTemplate => drop(self.templates.remove(key)),
            Kind::Job => {
                if let Some(job) = jobs.get(key) {
                    self.look_at_owner(&job.clone());
                }
            }
            _ => {}
        }
    }

    pub fn answer(&mut self, id: WriteId, result: &Result<(), Refusal>) {
        let Some(key) = self.waiting.remove(&id) else { return };
        let Some(work) = self.work.get_mut(&key) else { return };
        work.waits_for.remove(&id);
        work.refusal = match result {
            Ok(()) | Err(Refusal::NotFound | Refusal::Conflict) => work.refusal.take(),
            Err(Refusal::Exists { owner }) if owner.as_ref() == Some(&work.flow.metadata.uid) => {
                work.refusal.take()
            }
            Err(Refusal::Exists { .. }) => {
                Some("a Job of the name that is needed is there and belongs to another".to_owned())
            }
            Err(Refusal::Refused(message) | Refusal::Unknown(message)) => Some(message.clone()),
        };
        self.ready.insert(key);
    }

    pub fn turn(&mut self, jobs: &Jobs, now: Time, outbox: &mut Outbox) -> Option<Time> {
        let due = self
            .work
            .iter()
            .filter(|(_, work)| work.not_before.is_some_and(|moment| moment <= now));
        self.ready.extend(due.map(|(key, _)| key.clone()));
        for key in std::mem::take(&mut self.ready) {
            let Some(work) = self.work.get_mut(&key) else { continue };
            if !work.waits_for.is_empty() || work.flow.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let writes = work.turn(&self.templates, jobs, now);
            outbox.send(writes, &mut work.waits_for);
            self.waiting.extend(work.waits_for.keys().map(|id| (*id, key.clone())));
        }
        self.work.values().filter_map(|work| work.not_before).min()
    }
}

impl Work {
    fn turn(
        &mut self,
        templates: &BTreeMap<String, JobTemplate>,
        jobs: &Jobs,
        now: Time,
    ) -> Vec<What> {
        let mut writes = Vec::new();
        if let Some(message) = self.refusal.take() {
            self.not_before = Some(now.plus_ms(PAUSE));
            return self.warn(message).into_iter().collect();
        }
        match self.not_before {
            Some(moment) if moment > now => return writes,
            _ => self.not_before = None,
        }
        let flow = &self.flow;
        let namespace = &flow.metadata.namespace;
        let is_ours = |job: &&Job| {
            job.metadata.controller().is_some_and(|owner| owner.uid == flow.metadata.uid)
        };
        let steps: Steps = flow
            .spec
            .flows
            .iter()
            .map(|step| job_name(flow, &step.name))
            .map(|name| {
                let job = jobs.get(&format!("{namespace}/{name}")).filter(is_ours);
                (name, job)
            })
            .collect();
        let mut warning = Object::from(flow.clone())
            .problems()
            .first()
            .map(|problem| format!("{}: {}", problem.path, problem.message));
        let goes_on =
            !matches!(flow.status.state.phase.as_str(), "Succeed" | "Failed" | "Terminating");
        if goes_on && warning.is_none() {
            for (step, (name, there)) in flow.spec.flows.iter().zip(&steps) {
                if there.is_some()
                    || is_completed(flow, name, None)
                    || !self.may_start(step, &steps)
                {
                    continue;
                }
                match templates.get(&format!("{namespace}/{}", step.name)) {
                    Some(template) => writes.push(What::Create(job(flow, step, template))),
                    None => {
                        let message = format!("there is no JobTemplate {}; create it", step.name);
                        warning = warning.or(Some(message));
                    }
                }
            }
        }
        let new = status(flow, &steps, now);
        if new.state.phase == "Succeed" && flow.spec.job_retain_policy == "delete" {
            let there = steps.iter().filter_map(|(_, job)| *job);
            let staying = there.filter(|job| job.metadata.deletion_timestamp.is_none());
            writes.extend(
                staying.map(|job| What::Delete { object: target(job), then: Dependents::First }),
            );
        }
        if new != flow.status {
            let version = flow.metadata.resource_version.clone();
            let status = serde_json::to_value(new).expect("a status is JSON");
            writes.push(What::SetStatus { object: self.target(), status, version });
        }
        match warning {
            Some(message) => writes.extend(self.warn(message)),
            None => self.told = None,
        }
        writes
    }

    /// Whether everything that the step waits for has come.
    fn may_start(&self, step: &Flow, steps: &Steps<'_>) -> bool {
        let Some(before) = &step.depends_on else { return true };
        before.targets.iter().all(|target| {
            let name = job_name(&self.flow, target);
            let job = steps.iter().find(|(its, _)| *its == name).and_then(|(_, job)| *job);
            // Phases of pods are known here. Pages and ports are not asked, so where a probe names
            // some, the step waits for the end of the Job.
            let probe = before
                .probe
                .as_ref()
                .filter(|probe| probe.http_get_list.is_empty() && probe.tcp_socket_list.is_empty());
            let passes_probe = |job: &Job| {
                probe.is_some_and(|probe| {
                    !probe.task_status_list.is_empty()
                        && probe.task_status_list.iter().all(|probe| passes(job, probe))
                })
            };
            is_completed(&self.flow, &name, job) || job.is_some_and(passes_probe)
        })
    }

    /// An Event, unless the same was told last.
    fn warn(&mut self, message: String) -> Option<What> {
        if self.told.as_ref() == Some(&message) {
            return None;
        }
        self.told = Some(message.clone());
        let level = Level::Warning;
        Some(What::Tell { object: self.target(), level, reason: "SyncJobFlow", message })
    }

    fn target(&self) -> Target {
        let meta = &self.flow.metadata;
        Target {
            kind: Kind::JobFlow.name().to_owned(),
            api_version: Kind::JobFlow.api_version().to_owned(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
        }
    }
}
