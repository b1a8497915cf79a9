//! Applies pods to the model, and the results of our binds.

use std::cmp::Ordering;
use std::sync::Arc;

use muster_api::keys::{
    EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS, RUNNING_ESTIMATE, TASK_PRIORITY, TASK_SPEC,
};
use muster_api::{Time, core, parse_duration};

use crate::base::ids::{GangId, PodId, ShapeId};
use crate::model::Cluster;
use crate::model::apply::{cooldown, revocable, says_false, stale, version_of};
use crate::model::devices::demand::CardSelector;
use crate::model::devices::notes::Noted;
use crate::model::pods::{Pod, PodState, RarePodFields, RecordedNomination};
use crate::model::selectors::{Tags, tags};

/// The first wait after a failed bind; it doubles with each failure in a row up to
/// [`BACKOFF_LIMIT_MS`].
const BACKOFF_MS: i64 = 1_000;
const BACKOFF_LIMIT_MS: i64 = 60_000;

/// How long a pod is not evicted again after the cluster has refused its eviction.
const SPARED_MS: i64 = 10_000;

impl Cluster {
    pub(in crate::model) fn pod(&mut self, object: &core::Pod) {
        let meta = &object.metadata;
        let key = meta.key();
        let version = version_of(meta);
        let mut known = self.pods.find(&key);
        if let Some(id) = known {
            let fact = &self.pods.fact[id];
            // Versions count across all objects of a kind, so an older version under another uid is
            // outdated too.
            if stale(version, fact.version) {
                return;
            }
            if !meta.uid.is_empty() && *fact.uid != *meta.uid {
                self.remove_pod(id);
                known = None;
            }
        }
        let space = match known {
            Some(id) => self.pods.space[id],
            None => self.space(&meta.namespace),
        };
        let labels = tags(&mut self.names, &meta.labels);
        let gang = self.gang_of(object, &key, space, known.and_then(|id| self.pods.gang[id]));
        let standing = self.standing(gang, says_false(meta), revocable(meta));
        let shape = known.map(|id| self.pods.shape[id]);
        let card_selector = CardSelector::of(&meta.annotations);
        let shape =
            self.shape_of(space, &labels, standing, &object.spec, card_selector.as_ref(), shape);
        let mut fact = self.pod_fact(object, labels, version);
        match known {
            Some(id) => {
                fact.uid = self.pods.fact[id].uid.clone();
                self.change_pod(id, object, gang, shape, fact);
            }
            None => {
                fact.uid = meta.uid.as_str().into();
                let id = self.pods.slot(&key, shape, space);
                self.shapes.join(shape);
                self.pods.fact[id] = Pod { key: self.pods.fact[id].key.clone(), ..fact };
                let state = self.state_of(object, PodState::Pending);
                self.pods.state[id] = state;
                self.join(id, gang);
                self.unread_nominations
                    .extend(self.pods.fact[id].recorded_nomination().is_some().then_some(id));
                self.reread_cards(id, PodState::Pending, state);
                self.tally(id, state, 1);
                self.outlook_changes += u64::from(self.matters(id));
            }
        }
    }

    pub(in crate::model) fn change_pod(
        &mut self,
        id: PodId,
        object: &core::Pod,
        gang: Option<GangId>,
        shape: ShapeId,
        fact: Pod,
    ) {
        let before = self.pods.state[id];
        let after = self.state_of(object, before);
        let key = self.pods.fact[id].key.clone();
        let old = std::mem::replace(&mut self.pods.fact[id], Pod { key, ..fact });
        let new = &self.pods.fact[id];
        let moved_in_gang = (old.index, old.created, old.role, old.priority)
            != (new.index, new.created, new.role, new.priority)
            || (old.explicit_order, &old.labels) != (new.explicit_order, &new.labels);
        let renoted = old.noted != new.noted;
        let placed = before.node().is_some() || after.node().is_some();
        let helps = placed && (before != after || old.taken_as() != new.taken_as());
        if gang != self.pods.gang[id] || shape != self.pods.shape[id] || moved_in_gang || renoted {
            let mattered = self.matters(id);
            self.tally(id, before, -1);
            let left = self.leave(id);
            self.change_shape(id, shape);
            self.pods.state[id] = after;
            self.join(id, gang);
            self.reread_cards(id, before, after);
            self.tally(id, after, 1);
            self.outlook_changes += u64::from(mattered || self.matters(id));
            self.disband(left);
        } else if before != after {
            let asks = before.asks() != after.asks();
            if asks {
                self.want(id, -1);
            }
            self.set(id, after);
            if asks {
                self.want(id, 1);
            }
        }
        self.outlook_changes += u64::from(helps);
        if before != after {
            self.freed += u64::from(
                before.node().is_some() && before.node() != after.node()
                    || matches!(after, PodState::Releasing(_)),
            );
            self.stir(gang);
        }
        if let Some(gang) = gang.filter(|_| old.runs != self.pods.fact[id].runs) {
            self.gangs.review(gang);
        }
        let (said, says) = (old.recorded_nomination(), self.pods.fact[id].recorded_nomination());
        if says.is_some() && said != says {
            self.unread_nominations.push(id);
        }
        // An earlier process removed it too late: it is published again.
        if said.is_some() && says.is_none() {
            self.nomination_ledger.entry(id).and_modify(|nomination| nomination.published = false);
        }
    }

    pub(in crate::model) fn pod_gone(&mut self, key: &str, uid: &str) {
        if let Some(id) = self.pods.find(key)
            && (uid.is_empty() || *self.pods.fact[id].uid == *uid)
        {
            self.remove_pod(id);
        }
    }

    pub(in crate::model) fn remove_pod(&mut self, id: PodId) {
        let state = self.pods.state[id];
        self.outlook_changes += u64::from(self.matters(id));
        self.tally(id, state, -1);
        self.freed += u64::from(state.node().is_some());
        let left = self.leave(id);
        self.disband(left);
        self.eviction_refused.remove(&id);
        self.nomination_ledger.remove(&id);
        self.budgets.forget(id);
        self.devices.forget(id);
        self.shapes.leave(self.pods.shape[id]);
        self.pods.remove(id);
    }

    /// Whether other pods are affected if this one goes: it is on a node, or a pod of its gang is,
    /// or pods were evicted for it.
    fn matters(&self, id: PodId) -> bool {
        self.pods.state[id].node().is_some()
            || self.pods.gang[id].is_some_and(|gang| !self.gangs[gang].idle())
            || self.budgets.count(self, id)
    }

    pub(in crate::model) fn pod_fact(
        &mut self,
        object: &core::Pod,
        labels: Tags,
        version: u64,
    ) -> Pod {
        let (meta, spec) = (&object.metadata, &object.spec);
        let number =
            |key: &str| meta.annotation_or_label(key).and_then(|text| text.parse::<i32>().ok());
        let duration =
            |key: &str| meta.annotations.get(key).and_then(|text| parse_duration(text).ok());
        let class = Some(&spec.priority_class_name).filter(|name| !name.is_empty());
        let class = class.map(|name| self.names.intern(name));
        let priority = spec.priority.unwrap_or_else(|| self.class_value(class));
        let explicit_order = number(TASK_PRIORITY);
        let placed = |c: &&core::Condition| c.kind == "PodScheduled" && c.status == "True";
        let scheduled = object.status.conditions.iter().find(placed);
        let says = |key: &str| meta.annotations.get(key).map(String::as_str) == Some("true");
        let nominated = object.status.nominated_node_name.as_ref().filter(|name| !name.is_empty());
        let annotated =
            says(PIPELINED_STATUS).then(|| meta.annotations.get(PIPELINED_NODE)).flatten();
        let annotated = annotated.filter(|name| !name.is_empty());
        let recorded_nomination = annotated.or(nominated).map(|name| RecordedNomination {
            node: name.as_str().into(),
            needs_evictions: says(EVICTION_OCCURRED) || nominated.is_some(),
            annotated: annotated.is_some(),
        });
        let deadline = spec.active_deadline_seconds.map(|seconds| seconds.saturating_mul(1000));
        let estimate = duration(RUNNING_ESTIMATE).or(deadline);
        let rare = RarePodFields { estimate, cooldown: cooldown(meta), recorded_nomination };
        Pod {
            key: Arc::default(),
            uid: Arc::default(),
            version,
            live: true,
            priority,
            index: meta.task_index(),
            created: meta.creation_timestamp.unwrap_or_default(),
            started: object.status.start_time,
            scheduled: scheduled.and_then(|condition| condition.last_transition_time),
            on_trial: false,
            leaves: meta.deletion_timestamp.is_some(),
            runs: object.status.phase == "Running",
            role: meta.annotation_or_label(TASK_SPEC).map(|role| self.names.intern(role)),
            labels,
            priority_class: class,
            says_priority: spec.priority.is_some(),
            explicit_order,
            protected: says_false(meta),
            revocable: revocable(meta),
            never_preempts: spec.preemption_policy.as_ref().map(|policy| policy == "Never"),
            noted: Noted::of(&meta.annotations),
            rare: (rare != RarePodFields::default()).then(|| Box::new(rare)),
        }
    }

    /// The state of a pod according to its object, given the state we know.
    pub(in crate::model) fn state_of(&mut self, object: &core::Pod, before: PodState) -> PodState {
        let leaving = object.metadata.deletion_timestamp.is_some();
        match (object.status.phase.as_str(), object.spec.node_name.as_deref()) {
            ("Succeeded", _) => PodState::Succeeded,
            ("Failed", _) => PodState::Failed,
            (_, Some(node)) if !node.is_empty() => {
                // A node that we know only by name has no rank yet.
                self.ranks_stale |= self.nodes.find(node).is_none();
                let node = self.nodes.slot(node);
                // An evicted pod counts as terminating until the cluster refuses the eviction.
                let leaving = leaving || matches!(before, PodState::Releasing(_));
                if leaving { PodState::Releasing(node) } else { PodState::Running(node) }
            }
            _ if leaving || !object.spec.scheduling_gates.is_empty() => PodState::Gated,
            // An assumed bind ends only when the cluster confirms or refuses it, not by an older
            // view of the pod; and a bound pod is never unbound.
            _ => match before {
                PodState::Gated | PodState::Pending | PodState::Succeeded | PodState::Failed => {
                    PodState::Pending
                }
                assumed => assumed,
            },
        }
    }

    /// Counts what a pod requests, in any state. Only events change that: if evicting a pod lowered
    /// its queue's requests, the queue's fair share would fall with every pod that is taken from
    /// it.
    pub(in crate::model) fn want(&mut self, pod: PodId, sign: i64) {
        let (Some(gang), true) = (self.pods.gang[pod], self.pods.state[pod].asks()) else { return };
        let request = &self.shapes[self.pods.shape[pod]].request;
        self.gangs[gang].requested.add_all(request, sign);
        for at in 0..self.queues[self.gangs[gang].queue].lineage.len() {
            let queue = self.queues[self.gangs[gang].queue].lineage[at];
            self.queues[queue].requested.add_all(request, sign);
        }
    }

    /// The order of a gang's pods if no plugin has an opinion: index in the role, age, name.
    pub(crate) fn pod_order(&self, a: PodId, b: PodId) -> Ordering {
        let (a, b) = (&self.pods.fact[a], &self.pods.fact[b]);
        (a.index, a.created).cmp(&(b.index, b.created)).then_with(|| a.key.cmp(&b.key))
    }

    /// The cluster confirmed a bind. If the pod has changed since, its watch decides.
    pub(in crate::model) fn bound(&mut self, key: &str, uid: &str, node: &str) {
        let Some(id) = self.pods.find(key) else { return };
        let PodState::Allocated(assumed) = self.pods.state[id] else { return };
        if *self.pods.fact[id].uid == *uid && *self.nodes.name[assumed] == *node {
            self.set(id, PodState::Running(assumed));
            self.nomination_ledger.remove(&id);
            self.outlook_changes += 1;
        }
    }

    /// The cluster refused an eviction: the pod runs on, and is not evicted again for a while.
    pub(in crate::model) fn eviction_refused(&mut self, key: &str, uid: &str, at: Time) {
        let Some(id) = self.pods.find(key) else { return };
        let PodState::Releasing(node) = self.pods.state[id] else { return };
        let fact = &self.pods.fact[id];
        if *fact.uid == *uid && !fact.leaves {
            self.set(id, PodState::Running(node));
            self.outlook_changes += 1;
            self.eviction_refused.insert(id, at.plus_ms(SPARED_MS));
        }
    }

    /// A bind failed: the pod waits again, with its nomination if it had one.
    pub(in crate::model) fn bind_failed(&mut self, key: &str, uid: &str, at: Time) {
        let Some(id) = self.pods.find(key) else { return };
        let PodState::Allocated(node) = self.pods.state[id] else { return };
        if !uid.is_empty() && *self.pods.fact[id].uid != *uid {
            return;
        }
        let lives = self.nodes.traits[node].live;
        let nomination = self
            .nomination_ledger
            .get_mut(&id)
            .filter(|nomination| nomination.node == node && lives);
        if let Some(nomination) = nomination {
            // Once a pod is bound, its nomination need not be written any more.
            nomination.published = false;
            self.set(id, PodState::Nominated(node));
            self.outlook_changes += 1;
        } else {
            self.set(id, PodState::Pending);
            self.freed += 1;
            // Once a pod is bound, an older nomination need not be removed any more.
            self.unread_nominations
                .extend(self.pods.fact[id].recorded_nomination().is_some().then_some(id));
        }
        self.back_off(id, at);
    }

    /// A nomination that cannot be written does not exist.
    pub(in crate::model) fn nomination_refused(&mut self, key: &str, uid: &str, at: Time) {
        let Some(id) = self.pods.find(key) else { return };
        let PodState::Nominated(_) = self.pods.state[id] else { return };
        if *self.pods.fact[id].uid != *uid {
            return;
        }
        self.set(id, PodState::Pending);
        self.nomination_ledger.entry(id).and_modify(|nomination| nomination.published = false);
        self.freed += 1;
        self.back_off(id, at);
    }

    /// A write for the pod failed: its gang is not tried again for a while.
    fn back_off(&mut self, pod: PodId, at: Time) {
        let Some(gang) = self.pods.gang[pod] else { return };
        self.stir(Some(gang));
        let gang = &mut self.gangs[gang];
        let wait = BACKOFF_MS.saturating_mul(1 << gang.failures.min(16)).min(BACKOFF_LIMIT_MS);
        // Pods of one gang fail together; that is one failure.
        if gang.backoff_until.is_none_or(|known| known <= at) {
            gang.failures += 1;
            gang.backoff_until = Some(at.plus_ms(wait));
        }
    }
}
