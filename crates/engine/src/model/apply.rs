//! Events into the model. Each handler may be called in any order and any number of times with the same object.

use std::cmp::Ordering;
use std::sync::Arc;

use muster_api::core::{self, Meta};
use muster_api::keys::{
    GROUP_NAME, HIERARCHY, HIERARCHY_WEIGHTS, PIPELINED_NODE, PIPELINED_STATUS, PREEMPTABLE, QUEUE_NAME,
    RUNNING_ESTIMATE, SLA_WAITING_TIME, TASK_INDEX, TASK_PRIORITY, TASK_SPEC,
};
use muster_api::{PodGroup, PodGroupPhase, Queue, Time, parse_duration};

use super::Cluster;
use super::gangs::{Gang, Origin, Role};
use super::nodes::Node;
use super::pods::{Pod, PodState};
use super::queues::{DEFAULT, NodeGroups, ROOT};
use super::selectors::tags;
use crate::event::Event;
use crate::ids::{GangId, NodeId, PodId, QueueId, Symbol};
use crate::resources::Sparse;

/// The first wait after a failed bind; it doubles with each failure in a row up to [`BACKOFF_LIMIT_MS`].
const BACKOFF_MS: i64 = 1_000;
const BACKOFF_LIMIT_MS: i64 = 60_000;

impl Cluster {
    pub fn apply(&mut self, event: &Event) {
        self.generation += 1;
        self.events += 1;
        match event {
            Event::Node(node) => self.node(node),
            Event::NodeGone(name) => self.node_gone(name),
            Event::Pod(pod) => self.pod(pod),
            Event::PodGone { key, uid } => self.pod_gone(key, uid),
            Event::PodGroup(group) => self.pod_group(group),
            Event::PodGroupGone { key, uid } => self.pod_group_gone(key, uid),
            Event::Queue(queue) => self.queue(queue),
            Event::QueueGone(name) => self.queue_gone(name),
            Event::PriorityClass(class) => {
                let name = self.names.intern(&class.metadata.name);
                let class = super::PriorityClass { value: class.value, global_default: class.global_default };
                if self.priority_classes.insert(name, class.clone()).as_ref() != Some(&class) {
                    self.reprioritize();
                }
            }
            Event::PriorityClassGone(name) => {
                let name = self.names.intern(name);
                if self.priority_classes.remove(&name).is_some() {
                    self.reprioritize();
                }
            }
            Event::Namespace(namespace) => self.namespace(&namespace.metadata),
            Event::NamespaceGone(name) => self.namespace(&Meta { name: name.clone(), ..Meta::default() }),
            Event::ResourceQuota(quota) => self.quota(quota),
            Event::ResourceQuotaGone(key) => {
                if let Some((space, _)) = key.split_once('/') {
                    let space = self.space(space);
                    self.spaces[space].quotas.retain(|(name, _)| name != key);
                }
            }
            Event::PersistentVolume(volume) => {
                let affinity =
                    volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.clone());
                self.volumes.insert(volume.metadata.name.clone(), affinity);
                self.storage_changed();
            }
            Event::PersistentVolumeGone(name) => {
                self.volumes.remove(name);
                self.storage_changed();
            }
            Event::PersistentVolumeClaim(claim) => {
                let volume = Some(&claim.spec.volume_name).filter(|name| !name.is_empty());
                self.claims.insert(claim.metadata.key(), volume.cloned());
                self.storage_changed();
            }
            Event::PersistentVolumeClaimGone(key) => {
                self.claims.remove(key);
                self.storage_changed();
            }
            Event::BindFailed { key, uid, at, .. } => self.bind_failed(key, uid, *at),
        }
    }

    fn storage_changed(&mut self) {
        self.version += 1;
        self.freed += 1;
    }

    fn node(&mut self, object: &core::Node) {
        let id = self.nodes.slot(&object.metadata.name);
        let version = version_of(&object.metadata);
        if stale(version, self.nodes.version[id]) {
            return;
        }
        self.nodes.version[id] = version;
        let condition = |kind: &str| object.status.conditions.iter().find(|condition| condition.kind == kind);
        let images = &object.status.images;
        let fact = Node {
            live: true,
            // A node that says nothing of its readiness (a hand-written manifest) is taken at its word.
            ready: condition("Ready").is_none_or(|ready| ready.status == "True"),
            cordoned: object.spec.unschedulable,
            labels: object.metadata.labels.clone(),
            taints: object.spec.taints.clone(),
            images: images
                .iter()
                .flat_map(|image| image.names.iter().map(|n| (n.clone(), image.size_bytes)))
                .collect(),
            created: object.metadata.creation_timestamp.unwrap_or_default(),
        };
        let list = if object.status.allocatable.is_empty() {
            &object.status.capacity
        } else {
            &object.status.allocatable
        };
        let allocatable = self.dimensions.sparse(list, false);
        self.nodes.widen(self.dimensions.len());
        let learns_images = !self.images_known && !fact.images.is_empty();
        self.change_node(id, fact, &allocatable);
        if learns_images {
            self.images_known = true;
            self.reshape();
            self.version += 1;
        }
    }

    fn node_gone(&mut self, name: &str) {
        if let Some(id) = self.nodes.find(name) {
            self.nodes.version[id] = 0;
            self.change_node(id, Node::default(), &Sparse::default());
        }
    }

    fn change_node(&mut self, id: NodeId, fact: Node, allocatable: &Sparse) {
        let same_facts = self.nodes.fact[id] == fact;
        if !same_facts {
            if self.nodes.fact[id].live != fact.live {
                self.ranks_stale = true;
            }
            // Pods on it count by its labels and leave only if it lets them, so they are counted anew.
            let seated: Vec<PodId> = self.nodes.seats[id].clone();
            for &pod in &seated {
                self.tally(pod, self.pods.state[pod], -1);
            }
            let counted = self.nodes.fact[id].lets_go();
            let counts = fact.lets_go();
            self.count_total(id, counted, -1);
            self.nodes.describe(id, fact);
            self.terms.label(id, &self.nodes.fact[id].labels);
            self.count_total(id, counts, 1);
            for &pod in &seated {
                self.tally(pod, self.pods.state[pod], 1);
            }
            if !self.nodes.fact[id].live {
                self.forsake(&seated);
            }
            self.changed.push(id);
            self.freed += 1;
        }
        for resource in (0..self.dimensions.len()).map(crate::ids::ResourceId::from) {
            let before = self.nodes.allocatable[resource][id];
            let amount = allocatable.get(resource).unwrap_or(0);
            if amount != before {
                if self.nodes.fact[id].lets_go() {
                    self.total.add(resource, amount - before);
                }
                self.nodes.set_allocatable(resource, id, amount);
                self.touched.push(id);
                self.freed += u64::from(amount > before);
            }
        }
    }

    fn count_total(&mut self, node: NodeId, counted: bool, sign: i64) {
        if counted {
            for resource in self.nodes.allocatable.ids() {
                self.total.add(resource, sign * self.nodes.allocatable[resource][node]);
            }
        }
    }

    /// A node has left: what was promised or assumed there is pending again. Pods that run there are the
    /// cluster's to delete.
    fn forsake(&mut self, seated: &[PodId]) {
        for &pod in seated {
            if matches!(self.pods.state[pod], PodState::Nominated(_)) {
                self.set(pod, PodState::Pending);
                self.stir(self.pods.gang[pod]);
            }
        }
    }

    fn pod(&mut self, object: &core::Pod) {
        let meta = &object.metadata;
        let key = meta.key();
        let version = version_of(meta);
        let mut known = self.pods.find(&key);
        if let Some(id) = known {
            let fact = &self.pods.fact[id];
            // Versions count through all objects of a kind, so an older one under another uid is of the past too.
            if stale(version, fact.version) {
                return;
            }
            if !meta.uid.is_empty() && *fact.uid != *meta.uid {
                self.remove_pod(id);
                known = None;
            }
        }
        let space = self.space(&meta.namespace);
        let labels = tags(&mut self.names, &meta.labels);
        let gang = self.gang_of(object, &key, space);
        let queue = gang.and_then(|gang| self.picky_queue(self.gangs[gang].queue));
        let shape = known.map(|id| self.pods.shape[id]);
        let shape = self.shape_of(space, &labels, queue, &object.spec, shape);
        let mut fact = self.pod_fact(object, labels, version);
        match known {
            Some(id) => {
                fact.uid = self.pods.fact[id].uid.clone();
                self.change_pod(id, object, gang, shape, fact);
            }
            None => {
                fact.uid = meta.uid.as_str().into();
                let id = self.pods.slot(&key, shape, space);
                self.pods.fact[id] = Pod { key: self.pods.fact[id].key.clone(), ..fact };
                let state = self.state_of(object, PodState::Pending);
                self.pods.state[id] = state;
                self.join(id, gang);
                self.tally(id, state, 1);
            }
        }
    }

    fn change_pod(
        &mut self,
        id: PodId,
        object: &core::Pod,
        gang: Option<GangId>,
        shape: crate::ids::ShapeId,
        fact: Pod,
    ) {
        let before = self.pods.state[id];
        let after = self.state_of(object, before);
        let key = self.pods.fact[id].key.clone();
        let old = std::mem::replace(&mut self.pods.fact[id], Pod { key, ..fact });
        let new = &self.pods.fact[id];
        let moved_in_gang = (old.index, old.created, old.role, old.priority)
            != (new.index, new.created, new.role, new.priority)
            || old.explicit_order != new.explicit_order;
        if gang != self.pods.gang[id] || shape != self.pods.shape[id] || moved_in_gang {
            self.tally(id, before, -1);
            let left = self.leave(id);
            self.pods.shape[id] = shape;
            self.pods.state[id] = after;
            self.join(id, gang);
            self.tally(id, after, 1);
            self.disband(left);
        } else if before != after {
            // Finished pods no longer ask for anything.
            let request = before.finished() != after.finished();
            if request {
                self.want(id, -1);
            }
            self.set(id, after);
            if request {
                self.want(id, 1);
            }
        }
        if before != after {
            self.freed += u64::from(
                before.node().is_some() && before.node() != after.node()
                    || matches!(after, PodState::Releasing(_)),
            );
            self.stir(gang);
        }
        if self.pods.fact[id].promised.is_some() && old.promised != self.pods.fact[id].promised {
            self.promises.push(id);
            self.stir(gang);
        }
    }

    fn pod_gone(&mut self, key: &str, uid: &str) {
        if let Some(id) = self.pods.find(key)
            && (uid.is_empty() || *self.pods.fact[id].uid == *uid)
        {
            self.remove_pod(id);
        }
    }

    fn remove_pod(&mut self, id: PodId) {
        let state = self.pods.state[id];
        self.tally(id, state, -1);
        self.freed += u64::from(state.node().is_some());
        let left = self.leave(id);
        self.disband(left);
        self.pods.remove(id);
    }

    fn pod_fact(&mut self, object: &core::Pod, labels: super::selectors::Tags, version: u64) -> Pod {
        let (meta, spec) = (&object.metadata, &object.spec);
        let number = |key: &str| meta.annotation_or_label(key).and_then(|text| text.parse::<i32>().ok());
        let duration = |key: &str| meta.annotations.get(key).and_then(|text| parse_duration(text).ok());
        let class = Some(&spec.priority_class_name).filter(|name| !name.is_empty());
        let class = class.map(|name| self.names.intern(name));
        let priority = spec.priority.unwrap_or_else(|| self.class_value(class));
        let explicit_order = number(TASK_PRIORITY);
        let promised = (meta.annotations.get(PIPELINED_STATUS).map(String::as_str) == Some("true"))
            .then(|| meta.annotations.get(PIPELINED_NODE))
            .flatten()
            .or(object.status.nominated_node_name.as_ref());
        Pod {
            key: Arc::default(),
            uid: Arc::default(),
            version,
            live: true,
            priority,
            index: number(TASK_INDEX).map_or(0, |index| index.max(0) as u32),
            created: meta.creation_timestamp.unwrap_or_default(),
            started: object.status.start_time,
            estimate: duration(RUNNING_ESTIMATE)
                .or(spec.active_deadline_seconds.map(|s| s.saturating_mul(1000))),
            role: meta.annotation_or_label(TASK_SPEC).map(|role| self.names.intern(role)),
            labels,
            priority_class: class,
            explicit_priority: spec.priority,
            explicit_order,
            protected: says_false(meta),
            promised: promised.filter(|name| !name.is_empty()).map(|name| name.as_str().into()),
        }
    }

    /// What a pod's object says of its state, seen from the state we know.
    fn state_of(&mut self, object: &core::Pod, before: PodState) -> PodState {
        let leaving = object.metadata.deletion_timestamp.is_some();
        match (object.status.phase.as_str(), object.spec.node_name.as_deref()) {
            ("Succeeded", _) => PodState::Succeeded,
            ("Failed", _) => PodState::Failed,
            (_, Some(node)) if !node.is_empty() => {
                // A node that we know only by name has no rank yet.
                self.ranks_stale |= self.nodes.find(node).is_none();
                let node = self.nodes.slot(node);
                if leaving { PodState::Releasing(node) } else { PodState::Running(node) }
            }
            _ if leaving || !object.spec.scheduling_gates.is_empty() => PodState::Gated,
            // An assumption ends only when the cluster confirms or refuses it, not by an older view of the pod.
            _ => match before {
                PodState::Allocated(_) | PodState::Nominated(_) => before,
                _ => PodState::Pending,
            },
        }
    }

    /// The gang that a pod names, made if it isn't there; none for pods of other schedulers.
    fn gang_of(&mut self, object: &core::Pod, key: &str, space: crate::ids::SpaceId) -> Option<GangId> {
        if !self.scheduler_names.contains(&object.spec.scheduler_name) {
            return None;
        }
        let meta = &object.metadata;
        let named =
            GROUP_NAME.iter().find_map(|key| meta.annotation_or_label(key)).filter(|name| !name.is_empty());
        let (lookup, origin) = match named {
            Some(name) => (format!("{}/{name}", meta.namespace), Origin::Missing),
            // A pod may have the name of a PodGroup that it isn't in.
            None => ([key, "#"].concat(), Origin::Solo),
        };
        let queue = meta.annotations.get(QUEUE_NAME).filter(|_| origin == Origin::Solo);
        let names_queue = queue.is_some();
        let queue = match queue {
            Some(name) => self.queues.slot(name),
            None => self.queue_of_space(space),
        };
        if let Some(gang) = self.gangs.find(&lookup) {
            if origin == Origin::Solo {
                self.gangs[gang].names_queue = names_queue;
                self.move_gang(gang, queue);
            }
            return Some(gang);
        }
        let shown = lookup.trim_end_matches('#');
        let mut gang = Gang::new(shown.into(), space, origin, queue);
        gang.names_queue = names_queue;
        if origin == Origin::Solo {
            gang.phase = PodGroupPhase::Inqueue;
        }
        Some(self.gangs.insert(&lookup, gang))
    }

    /// The queue of work that names none.
    fn queue_of_space(&mut self, space: crate::ids::SpaceId) -> QueueId {
        match self.spaces[space].queue.clone() {
            Some(name) => self.queues.slot(&name),
            None => DEFAULT,
        }
    }

    /// Puts a pod into its gang's list; the caller tallies it.
    fn join(&mut self, pod: PodId, gang: Option<GangId>) {
        self.pods.gang[pod] = gang;
        let fact = &self.pods.fact[pod];
        self.pods.order[pod] = fact.explicit_order.unwrap_or(fact.priority);
        let Some(id) = gang else { return };
        let role = self.pods.fact[pod].role;
        let roles = &mut self.gangs[id].roles;
        let place = roles.iter().position(|known| known.name == role).unwrap_or_else(|| {
            roles.push(Role { name: role, minimum: 0, counts: Default::default() });
            roles.len() - 1
        });
        self.pods.role[pod] = place as u32;
        let list = &self.gangs[id].pods;
        let place = match list.last() {
            Some(&last) if self.pod_order(last, pod) != Ordering::Less => {
                list.partition_point(|&other| self.pod_order(other, pod) == Ordering::Less)
            }
            _ => list.len(),
        };
        self.gangs[id].pods.insert(place, pod);
        self.want(pod, 1);
        if self.pods.fact[pod].promised.is_some() {
            self.promises.push(pod);
        }
        self.stir(gang);
        let fact = &self.pods.fact[pod];
        let gang = &mut self.gangs[id];
        if gang.origin == Origin::Solo {
            gang.created = fact.created;
            gang.uid = fact.uid.clone();
            gang.estimate = fact.estimate;
            gang.protected = fact.protected;
        }
        self.raise(id, pod);
    }

    /// Takes a pod out of its gang's list and returns the gang; the caller has taken it out of the sums.
    fn leave(&mut self, pod: PodId) -> Option<GangId> {
        let id = self.pods.gang[pod]?;
        self.want(pod, -1);
        let gang = &mut self.gangs[id];
        let place = gang.pods.iter().rposition(|&other| other == pod).expect("a pod is in its gang's list");
        gang.pods.remove(place);
        self.pods.gang[pod] = None;
        self.prioritize(id);
        self.stir(Some(id));
        Some(id)
    }

    /// Forgets a gang that nothing stands for any more: no PodGroup, and no pod that names one.
    fn disband(&mut self, gang: Option<GangId>) {
        let empty =
            |gang: &GangId| self.gangs[*gang].pods.is_empty() && self.gangs[*gang].origin != Origin::Group;
        if let Some(gang) = gang.filter(empty) {
            self.gangs.remove(gang);
        }
    }

    /// Counts what a pod asks for, wherever it is, unless it is over.
    pub(super) fn want(&mut self, pod: PodId, sign: i64) {
        let (Some(gang), false) = (self.pods.gang[pod], self.pods.state[pod].finished()) else { return };
        let request = &self.shapes[self.pods.shape[pod]].request;
        self.gangs[gang].requested.add_all(request, sign);
        for at in 0..self.queues[self.gangs[gang].queue].lineage.len() {
            let queue = self.queues[self.gangs[gang].queue].lineage[at];
            self.queues[queue].requested.add_all(request, sign);
        }
    }

    /// The order of a gang's pods where no plugin has an opinion: place in the role, age, name.
    pub(crate) fn pod_order(&self, a: PodId, b: PodId) -> Ordering {
        let (a, b) = (&self.pods.fact[a], &self.pods.fact[b]);
        (a.index, a.created).cmp(&(b.index, b.created)).then_with(|| a.key.cmp(&b.key))
    }

    /// Something happened to the gang: it is worth trying again.
    fn stir(&mut self, gang: Option<GangId>) {
        if let Some(gang) = gang {
            self.gangs[gang].hopeless = None;
        }
    }

    fn pod_group(&mut self, object: &PodGroup) {
        let meta = Meta::from(&object.metadata);
        let version = version_of(&meta);
        let key = meta.key();
        let space = self.space(&meta.namespace);
        let id = match self.gangs.find(&key) {
            Some(id) => id,
            None => self.gangs.insert(&key, Gang::new(key.as_str().into(), space, Origin::Missing, DEFAULT)),
        };
        let gang = &self.gangs[id];
        let known = gang.origin == Origin::Group;
        let another = !known || *gang.uid != *meta.uid;
        if known && stale(version, gang.version) {
            return;
        }
        let spec = &object.spec;
        let named = Some(spec.queue.as_str())
            .filter(|name| !name.is_empty() && *name != muster_api::keys::DEFAULT_QUEUE);
        let queue = match named {
            Some(name) => self.queues.slot(name),
            None => self.queue_of_space(space),
        };
        let class = Some(&spec.priority_class_name).filter(|name| !name.is_empty());
        let class = class.map(|name| self.names.intern(name));
        let roles: Vec<(Symbol, u32)> = spec
            .min_task_member
            .iter()
            .map(|(role, &n)| (self.names.intern(role), n.max(0) as u32))
            .collect();
        let min_resources = spec.min_resources.as_ref().map(|list| self.dimensions.sparse(list, false));
        self.nodes.widen(self.dimensions.len());
        let duration = |key: &str| meta.annotations.get(key).and_then(|text| parse_duration(text).ok());
        let status = object.status.clone().unwrap_or_default();

        let gang = &mut self.gangs[id];
        gang.origin = Origin::Group;
        gang.names_queue = named.is_some();
        gang.uid = meta.uid.as_str().into();
        gang.version = version;
        gang.created = meta.creation_timestamp.unwrap_or_default();
        gang.minimum = spec.min_member.max(0) as u32;
        gang.priority_class = class;
        gang.min_resources = min_resources;
        gang.estimate = duration(RUNNING_ESTIMATE);
        gang.sla_wait = SLA_WAITING_TIME.iter().find_map(|key| duration(key));
        gang.protected = says_false(&meta);
        for role in &mut gang.roles {
            role.minimum = 0;
        }
        for (name, minimum) in roles {
            match gang.roles.iter_mut().find(|role| role.name == Some(name)) {
                Some(role) => role.minimum = minimum,
                None => gang.roles.push(Role { name: Some(name), minimum, counts: Default::default() }),
            }
        }
        // Our own view of phase and condition is newer than an echo of what we wrote, unless the object is new.
        if another {
            gang.phase = status.phase;
            gang.reported = None;
            gang.condition = Default::default();
            gang.reasons.clear();
            gang.admitted = None;
            gang.gave_back = None;
            gang.waiting_since = None;
            let waits = |c: &&muster_api::PodGroupCondition| c.kind == "Unschedulable" && c.status == "True";
            if let Some(condition) = status.conditions.iter().find(waits) {
                gang.waiting_since = condition.last_transition_time;
            }
        }
        self.move_gang(id, queue);
        self.prioritize(id);
        self.stir(Some(id));
        self.gangs.review(id);
    }

    fn pod_group_gone(&mut self, key: &str, uid: &str) {
        let Some(id) = self.gangs.find(key) else { return };
        let gang = &mut self.gangs[id];
        if gang.origin != Origin::Group || !uid.is_empty() && *gang.uid != *uid {
            return;
        }
        if gang.pods.is_empty() {
            self.gangs.remove(id);
        } else {
            gang.forget();
            let space = gang.space;
            let queue = self.queue_of_space(space);
            self.move_gang(id, queue);
            self.prioritize(id);
            self.gangs.review(id);
        }
    }

    /// Takes a gang with all its sums to another queue.
    fn move_gang(&mut self, id: GangId, queue: QueueId) {
        if self.gangs[id].queue == queue {
            return;
        }
        self.sum_gang(id, -1);
        self.gangs[id].queue = queue;
        self.sum_gang(id, 1);
        let picky = self.picky_queue(queue);
        let differs = |pod: &PodId| self.shapes[self.pods.shape[*pod]].queue != picky;
        if self.gangs[id].pods.iter().any(differs) {
            self.reshape();
        }
    }

    fn sum_gang(&mut self, id: GangId, sign: i64) {
        let gang = &self.gangs[id];
        for at in 0..self.queues[gang.queue].lineage.len() {
            let queue = self.queues[gang.queue].lineage[at];
            let queue = &mut self.queues[queue];
            queue.held.add_amounts(&gang.held, sign);
            queue.nominated.add_amounts(&gang.nominated, sign);
            queue.leaving.add_amounts(&gang.leaving, sign);
            queue.requested.add_amounts(&gang.requested, sign);
        }
    }

    fn queue(&mut self, object: &Queue) {
        let meta = Meta::from(&object.metadata);
        let version = version_of(&meta);
        let id = self.queues.slot(&meta.name);
        if self.queues[id].exists && stale(version, self.queues[id].version) {
            return;
        }
        let spec = &object.spec;
        let mut amounts = |list: Option<&muster_api::ResourceList>| {
            list.map(|list| self.dimensions.sparse(list, true)).unwrap_or_default()
        };
        let capability = amounts(spec.capability.as_ref());
        let guarantee = amounts(spec.guarantee.as_ref().map(|guarantee| &guarantee.resource));
        let deserved = amounts(spec.deserved.as_ref());
        self.nodes.widen(self.dimensions.len());
        let parent = spec.parent.as_deref().filter(|name| !name.is_empty() && id != ROOT);
        let parent = parent.map(|name| self.queues.slot(name));
        let groups = spec.affinity.as_ref().map(|affinity| {
            let lists = |side: &Option<muster_api::NodeGroupAffinity>| {
                side.as_ref().map(|side| (side.required.clone(), side.preferred.clone())).unwrap_or_default()
            };
            let (required, preferred) = lists(&affinity.node_group_affinity);
            let (anti_required, anti_preferred) = lists(&affinity.node_group_anti_affinity);
            Box::new(NodeGroups { required, preferred, anti_required, anti_preferred })
        });
        let queue = &mut self.queues[id];
        let regrouped = queue.node_groups != groups;
        self.lines_stale |= !queue.exists || queue.parent != parent;
        queue.exists = true;
        queue.version = version;
        queue.created = meta.creation_timestamp.unwrap_or_default();
        queue.weight = spec.weight.max(1);
        queue.priority = spec.priority;
        queue.state = object.status.as_ref().map(|status| status.state).unwrap_or_default();
        queue.strategy = spec.dequeue_strategy;
        queue.capability = capability;
        queue.guarantee = guarantee;
        queue.deserved = deserved;
        queue.parent = parent;
        queue.node_groups = groups;
        queue.hierarchy = hierarchy(&meta);
        if self.lines_stale || regrouped {
            self.regroup();
        }
        self.freed += 1;
    }

    fn queue_gone(&mut self, name: &str) {
        if let Some(id) = self.queues.find(name) {
            self.queues[id].forget();
            self.queues[id].exists = id == ROOT || id == DEFAULT;
            self.lines_stale = true;
            self.regroup();
            self.freed += 1;
        }
    }

    /// Queue lines or node groups changed: sums and shapes by queue are found anew.
    fn regroup(&mut self) {
        if std::mem::take(&mut self.lines_stale) {
            self.redraw_queues();
        }
        if self.queues.iter().any(|(_, queue)| queue.node_groups.is_some()) {
            self.reshape();
            self.version += 1;
        }
    }

    pub(super) fn redraw_queues(&mut self) {
        self.queues.draw_lines();
        for id in self.queues.ids() {
            let queue = &mut self.queues[id];
            queue.held = Default::default();
            queue.nominated = Default::default();
            queue.leaving = Default::default();
            queue.requested = Default::default();
        }
        let gangs: Vec<GangId> = self.gangs.ids().collect();
        for gang in gangs {
            self.sum_gang(gang, 1);
        }
    }

    fn class_value(&self, class: Option<Symbol>) -> i32 {
        match class {
            Some(name) => self.priority_classes.get(&name).map_or(0, |class| class.value),
            None => self.default_class().unwrap_or(0),
        }
    }

    /// The value of the cluster's default class; of several (an error in the cluster) the lowest, as in Kubernetes.
    fn default_class(&self) -> Option<i32> {
        self.priority_classes.values().filter(|class| class.global_default).map(|class| class.value).min()
    }

    fn prioritize(&mut self, id: GangId) {
        let gang = &self.gangs[id];
        let highest = || gang.pods.iter().map(|&pod| self.pods.fact[pod].priority).max().unwrap_or(0);
        let priority = match (gang.origin, gang.priority_class) {
            (Origin::Group, Some(name)) => self.priority_classes.get(&name).map_or(0, |class| class.value),
            (Origin::Group, None) => self.default_class().unwrap_or_else(highest),
            _ => highest(),
        };
        self.gangs[id].priority = priority;
    }

    /// A pod has joined: the gang's priority may have become that pod's.
    fn raise(&mut self, id: GangId, pod: PodId) {
        let gang = &self.gangs[id];
        if gang.pods.len() == 1 {
            self.prioritize(id);
        } else if gang.origin != Origin::Group
            || gang.priority_class.is_none() && self.default_class().is_none()
        {
            self.gangs[id].priority = gang.priority.max(self.pods.fact[pod].priority);
        }
    }

    fn reprioritize(&mut self) {
        let pods: Vec<PodId> = self.pods.live().collect();
        for pod in pods {
            let fact = &self.pods.fact[pod];
            let priority = fact.explicit_priority.unwrap_or_else(|| self.class_value(fact.priority_class));
            self.pods.order[pod] = fact.explicit_order.unwrap_or(priority);
            self.pods.fact[pod].priority = priority;
        }
        let gangs: Vec<GangId> = self.gangs.ids().collect();
        for gang in gangs {
            self.prioritize(gang);
        }
    }

    fn namespace(&mut self, meta: &Meta) {
        let id = self.space(&meta.name);
        let labels = tags(&mut self.names, &meta.labels);
        let relabelled = self.spaces[id].tags != labels;
        self.spaces[id].tags = labels;
        self.spaces[id].queue = meta.annotations.get(QUEUE_NAME).map(|name| name.as_str().into());
        if relabelled && !self.terms.is_empty() {
            self.recount_terms();
            self.freed += 1;
        }
        // Work that named no queue follows its namespace, whichever of the two came first.
        let queue = self.queue_of_space(id);
        let gangs: Vec<GangId> = self
            .gangs
            .iter()
            .filter(|(_, gang)| gang.space == id && !gang.names_queue)
            .map(|(id, _)| id)
            .collect();
        for gang in gangs {
            self.move_gang(gang, queue);
        }
    }

    fn quota(&mut self, object: &core::ResourceQuota) {
        let space = self.space(&object.metadata.namespace);
        let key = object.metadata.key();
        self.spaces[space].quotas.retain(|(name, _)| *name != key);
        if !object.spec.scopes.is_empty() {
            return;
        }
        // Compute resources may be written with or without the prefix; limits and object counts are not ours.
        let requests = object.spec.hard.iter().filter_map(|(name, &quantity)| {
            let plain = name.strip_prefix("requests.").unwrap_or(name);
            let counted = plain != name || ["cpu", "memory", "ephemeral-storage", "pods"].contains(&plain);
            (counted && plain != "storage").then(|| (plain.to_owned(), quantity))
        });
        let hard = self.dimensions.sparse(&requests.collect(), true);
        self.nodes.widen(self.dimensions.len());
        self.spaces[space].quotas.push((key, hard));
        self.spaces[space].quotas.sort_by(|a, b| a.0.cmp(&b.0));
    }

    fn bind_failed(&mut self, key: &str, uid: &str, at: Time) {
        let Some(id) = self.pods.find(key) else { return };
        let PodState::Allocated(_) = self.pods.state[id] else { return };
        if !uid.is_empty() && *self.pods.fact[id].uid != *uid {
            return;
        }
        self.set(id, PodState::Pending);
        self.freed += 1;
        if let Some(gang) = self.pods.gang[id] {
            self.stir(Some(gang));
            let gang = &mut self.gangs[gang];
            let wait = BACKOFF_MS.saturating_mul(1 << gang.failures.min(16)).min(BACKOFF_LIMIT_MS);
            let until = at.plus_ms(wait);
            // Pods of one gang fail together; that is one failure.
            if gang.backoff_until.is_none_or(|known| known <= at) {
                gang.failures += 1;
                gang.backoff_until = Some(until);
            }
        }
    }
}

/// Objects without a version (hand-written ones) are always the newest.
fn version_of(meta: &Meta) -> u64 {
    meta.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A version that is older than the one we know.
fn stale(version: u64, known: u64) -> bool {
    version != 0 && version < known
}

fn says_false(meta: &Meta) -> bool {
    [meta.annotations.get(PREEMPTABLE), meta.labels.get(PREEMPTABLE)]
        .iter()
        .flatten()
        .any(|text| text.as_str() == "false")
}

/// `root/a/b` with weights `1/2/4`, each weight in thousandths, at least one.
fn hierarchy(meta: &Meta) -> Vec<(Arc<str>, i64)> {
    let path = meta.annotations.get(HIERARCHY).map(String::as_str).unwrap_or_default();
    let weights = meta.annotations.get(HIERARCHY_WEIGHTS).map(String::as_str).unwrap_or_default();
    let mut weights = weights.split('/').map(|text| {
        let quantity: Option<muster_api::Quantity> = text.trim().parse().ok();
        quantity.map_or(1000, |quantity| quantity.milli_value()).max(1000)
    });
    path.split('/')
        .filter(|name| !name.is_empty())
        .map(|name| (name.into(), weights.next().unwrap_or(1000)))
        .collect()
}
