//! PodGroups into the model, and pods into their gangs.

use std::cmp::Ordering;

use muster_api::core::Meta;
use muster_api::keys::{
    DEFAULT_QUEUE, EXPECTED_END_TIME, GROUP_NAME, JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE,
    LAST_CHECKPOINT_TIME, QUEUE_NAME, RUNNING_ESTIMATE, SLA_WAITING_TIME, STALENESS_GRACE_PERIOD,
};
use muster_api::{PodGroup, PodGroupPhase, Portion, Time, core, parse_duration};

use crate::base::ids::{GangId, PodId, QueueId, SpaceId, Symbol};
use crate::model::Cluster;
use crate::model::apply::{cooldown, revocable, says_false, stale, version_of};
use crate::model::gangs::{Gang, Origin, RareGangFields, Role};
use crate::model::notes::GroupAnnotations;
use crate::model::queues::DEFAULT;
use crate::model::topology::subgroups::{Rule, TierLimit, TopologyRules};

impl Cluster {
    /// The gang that a pod names, made if it isn't there; none for pods of other schedulers.
    /// `known` is the gang that the pod has been in.
    pub(in crate::model) fn gang_of(
        &mut self,
        object: &core::Pod,
        key: &str,
        space: SpaceId,
        known: Option<GangId>,
    ) -> Option<GangId> {
        if !self.scheduler_names.contains(&object.spec.scheduler_name) {
            return None;
        }
        let meta = &object.metadata;
        let named = GROUP_NAME
            .iter()
            .find_map(|key| meta.annotation_or_label(key))
            .filter(|name| !name.is_empty());
        let origin = if named.is_some() { Origin::Missing } else { Origin::Solo };
        let queue = meta.annotations.get(QUEUE_NAME).filter(|_| origin == Origin::Solo);
        let names_queue = queue.is_some();
        let queue = match queue {
            Some(name) => self.queues.slot(name),
            None => self.queue_of_space(space),
        };
        if let Some(gang) =
            known.filter(|&gang| origin == Origin::Solo && self.gangs[gang].origin == origin)
        {
            self.gangs[gang].names_queue = names_queue;
            self.gangs[gang].topology_rules =
                TopologyRules::new(TierLimit::of_pod(meta), Vec::new());
            self.gangs[gang].rare = progress(meta).boxed();
            self.move_gang(gang, queue);
            return Some(gang);
        }
        let lookup = match named {
            Some(name) => [&meta.namespace, "/", name].concat(),
            // A pod may have the name of a PodGroup that it isn't in.
            None => [key, "#"].concat(),
        };
        if let Some(gang) = self.gangs.find(&lookup) {
            return Some(gang);
        }
        let shown = lookup.trim_end_matches('#');
        let mut gang = Gang::new(shown.into(), space, origin, queue);
        gang.names_queue = names_queue;
        if origin == Origin::Solo {
            gang.phase = PodGroupPhase::Inqueue;
            gang.topology_rules = TopologyRules::new(TierLimit::of_pod(meta), Vec::new());
            gang.rare = progress(meta).boxed();
        }
        Some(self.gangs.insert(&lookup, gang))
    }

    /// The queue of work that names none.
    pub(in crate::model) fn queue_of_space(&mut self, space: SpaceId) -> QueueId {
        match self.spaces[space].queue.clone() {
            Some(name) => self.queues.slot(&name),
            None => DEFAULT,
        }
    }

    /// Puts a pod into its gang's list; the caller tallies it.
    pub(in crate::model) fn join(&mut self, pod: PodId, gang: Option<GangId>) {
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
        let tags = &self.pods.fact[pod].labels;
        let topology_rules = self.gangs[id].topology_rules.as_mut();
        self.pods.subgroup[pod] =
            topology_rules.map_or(0, |topology_rules| topology_rules.assign(&self.names, tags));
        let list = &self.gangs[id].pods;
        let place = match list.last() {
            Some(&last) if self.pod_order(last, pod) != Ordering::Less => {
                list.partition_point(|&other| self.pod_order(other, pod) == Ordering::Less)
            }
            _ => list.len(),
        };
        self.gangs[id].pods.insert(place, pod);
        self.want(pod, 1);
        self.stir(gang);
        let fact = &self.pods.fact[pod];
        let gang = &mut self.gangs[id];
        if gang.origin == Origin::Solo {
            gang.created = fact.created;
            gang.uid = fact.uid.clone();
            gang.estimate = fact.estimate();
        }
        if self.gangs[id].origin == Origin::Solo {
            self.protect(id, self.pods.fact[pod].protected);
            self.gangs[id].revocable = self.pods.fact[pod].revocable;
        }
        self.raise(id, pod);
    }

    /// Takes a pod out of its gang's list and returns the gang; the caller has taken it out of the
    /// sums.
    pub(in crate::model) fn leave(&mut self, pod: PodId) -> Option<GangId> {
        let id = self.pods.gang[pod]?;
        self.want(pod, -1);
        let gang = &mut self.gangs[id];
        let place =
            gang.pods.iter().rposition(|&other| other == pod).expect("a pod is in its gang's list");
        gang.pods.remove(place);
        self.pods.gang[pod] = None;
        self.prioritize(id);
        self.stir(Some(id));
        Some(id)
    }

    /// Forgets a gang that nothing stands for any more: no PodGroup, and no pod that names one.
    pub(in crate::model) fn disband(&mut self, gang: Option<GangId>) {
        let empty = |gang: &GangId| {
            self.gangs[*gang].pods.is_empty() && self.gangs[*gang].origin != Origin::Group
        };
        if let Some(gang) = gang.filter(empty) {
            self.end_reservations(gang);
            self.gangs.remove(gang);
        }
    }

    /// Something happened to the gang: it is worth trying again.
    pub(in crate::model) fn stir(&mut self, gang: Option<GangId>) {
        if let Some(gang) = gang {
            self.gangs[gang].did_not_fit_at = None;
        }
    }

    pub(in crate::model) fn pod_group(&mut self, object: &PodGroup) {
        let meta = &object.metadata;
        let version = version_of(meta);
        let key = meta.key();
        let space = self.space(&meta.namespace);
        let id = match self.gangs.find(&key) {
            Some(id) => id,
            None => self
                .gangs
                .insert(&key, Gang::new(key.as_str().into(), space, Origin::Missing, DEFAULT)),
        };
        let gang = &self.gangs[id];
        let known = gang.origin == Origin::Group;
        let another = !known || *gang.uid != *meta.uid;
        if known && stale(version, gang.version) {
            return;
        }
        if another {
            self.end_reservations(id);
        }
        let before = self.gangs[id].taken_as();
        let spec = &object.spec;
        let named =
            Some(spec.queue.as_str()).filter(|name| !name.is_empty() && *name != DEFAULT_QUEUE);
        let queue = match named {
            Some(name) => self.queues.slot(name),
            None => self.queue_of_space(space),
        };
        let class = Some(&spec.priority_class_name).filter(|name| !name.is_empty());
        let class = class.map(|name| self.names.intern(name));
        let roles: Vec<(Option<Symbol>, u32)> = spec
            .min_task_member
            .iter()
            .map(|(role, &n)| {
                // The empty name is the role of pods that name none.
                let name =
                    Some(role).filter(|role| !role.is_empty()).map(|role| self.names.intern(role));
                (name, n.max(0) as u32)
            })
            .collect();
        let rules: Vec<Rule> =
            spec.sub_group_policy.iter().map(|policy| Rule::of(&mut self.names, policy)).collect();
        let min_resources =
            spec.min_resources.as_ref().map(|list| self.dimensions.sparse(list, false));
        self.nodes.widen(self.dimensions.len());
        let duration =
            |key: &str| meta.annotations.get(key).and_then(|text| parse_duration(text).ok());
        let portion =
            |key: &str| meta.annotations.get(key).and_then(|text| Portion::parse(text).ok());
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
        let other_rules = gang.rules() != rules;
        let tier_limit = spec.network_topology.as_ref().map(TierLimit::of);
        let old = gang.topology_rules.take().filter(|_| !other_rules);
        gang.topology_rules = TopologyRules::new(tier_limit, rules);
        if let (Some(new), Some(old)) = (&mut gang.topology_rules, old) {
            new.subgroups = old.subgroups;
        }
        gang.estimate = duration(RUNNING_ESTIMATE);
        let rare = RareGangFields {
            cooldown: cooldown(&meta),
            min_available: portion(JDB_MIN_AVAILABLE),
            max_unavailable: portion(JDB_MAX_UNAVAILABLE),
            staleness_grace: duration(STALENESS_GRACE_PERIOD),
            sla_wait: SLA_WAITING_TIME.iter().find_map(|key| duration(key)),
            ..progress(&meta)
        };
        gang.rare = rare.boxed();
        for role in &mut gang.roles {
            role.minimum = 0;
        }
        for (name, minimum) in roles {
            match gang.roles.iter_mut().find(|role| role.name == name) {
                Some(role) => role.minimum = minimum,
                None => gang.roles.push(Role { name, minimum, counts: Default::default() }),
            }
        }
        if another {
            gang.notes = GroupAnnotations::read(&meta);
        } else {
            GroupAnnotations::reread(&mut gang.notes, &meta);
        }
        // Our own view of phase and condition is newer than an echo of what we wrote, unless the
        // object is new.
        if another {
            gang.phase = status.phase;
            gang.reported = None;
            gang.condition = Default::default();
            gang.reasons.clear();
            gang.admitted = None;
            gang.gave_back = None;
            gang.waiting_since = None;
            let waits = |c: &&muster_api::PodGroupCondition| {
                c.kind == "Unschedulable" && c.status == "True"
            };
            if let Some(condition) = status.conditions.iter().find(waits) {
                gang.waiting_since = condition.last_transition_time;
            }
        }
        if other_rules {
            self.split(id);
        }
        self.revoke(id, says_false(&meta), revocable(&meta));
        self.move_gang(id, queue);
        self.prioritize(id);
        self.stir(Some(id));
        self.gangs.review(id);
        let gang = &self.gangs[id];
        self.outlook_changes += u64::from(!gang.idle() && gang.taken_as() != before);
    }

    /// Puts the gang's pods into subgroups anew.
    fn split(&mut self, id: GangId) {
        let gang = &mut self.gangs[id];
        let Some(topology_rules) = &mut gang.topology_rules else { return };
        for &pod in &gang.pods {
            let place = topology_rules.assign(&self.names, &self.pods.fact[pod].labels);
            self.pods.subgroup[pod] = place;
            if let Some(subgroup) = topology_rules.subgroups.get_mut(place as usize) {
                let best_effort = self.shapes[self.pods.shape[pod]].best_effort;
                subgroup.counts.add(self.pods.state[pod], best_effort, 1);
            }
        }
    }

    pub(in crate::model) fn pod_group_gone(&mut self, key: &str, uid: &str) {
        let Some(id) = self.gangs.find(key) else { return };
        let gang = &mut self.gangs[id];
        if gang.origin != Origin::Group || !uid.is_empty() && *gang.uid != *uid {
            return;
        }
        self.end_reservations(id);
        let gang = &mut self.gangs[id];
        if gang.pods.is_empty() {
            self.gangs.remove(id);
        } else {
            let space = gang.space;
            self.outlook_changes += u64::from(!gang.idle());
            self.revoke(id, false, false);
            self.gangs[id].forget();
            let queue = self.queue_of_space(space);
            self.move_gang(id, queue);
            self.prioritize(id);
            self.gangs.review(id);
        }
    }

    /// Takes a gang with all its sums to another queue.
    pub(in crate::model) fn move_gang(&mut self, id: GangId, queue: QueueId) {
        if self.gangs[id].queue == queue {
            return;
        }
        self.outlook_changes += u64::from(!self.gangs[id].idle());
        self.sum_gang(id, -1);
        self.gangs[id].queue = queue;
        self.sum_gang(id, 1);
        let picky = self.picky_queue(queue);
        let differs = |pod: &PodId| self.shapes[self.pods.shape[*pod]].queue != picky;
        if self.gangs[id].pods.iter().any(differs) {
            self.reshape();
        }
    }

    /// Whether its places may be taken back has been said (again), one way or the other: to a node
    /// that makes a difference.
    fn revoke(&mut self, id: GangId, protected: bool, revocable: bool) {
        let before = (self.gangs[id].protected, self.gangs[id].revocable);
        self.protect(id, protected);
        self.gangs[id].revocable = revocable;
        if before != (protected, revocable) {
            let pods = self.gangs[id].pods.clone();
            self.reshape_pods(&pods);
        }
    }

    /// Whether the gang can be evicted has been said (again).
    fn protect(&mut self, id: GangId, protected: bool) {
        if self.gangs[id].protected != protected {
            self.sum_gang(id, -1);
            self.gangs[id].protected = protected;
            self.sum_gang(id, 1);
        }
    }

    pub(in crate::model) fn sum_gang(&mut self, id: GangId, sign: i64) {
        let gang = &self.gangs[id];
        for at in 0..self.queues[gang.queue].lineage.len() {
            let queue = self.queues[gang.queue].lineage[at];
            let queue = &mut self.queues[queue];
            queue.held.add_amounts(&gang.held, sign);
            queue.nominated.add_amounts(&gang.nominated, sign);
            queue.leaving.add_amounts(&gang.leaving, sign);
            queue.requested.add_amounts(&gang.requested, sign);
            if gang.protected {
                queue.protected.add_amounts(&gang.held, sign);
                queue.protected.add_amounts(&gang.nominated, sign);
            }
        }
    }

    pub(in crate::model) fn class_value(&self, class: Option<Symbol>) -> i32 {
        match class {
            Some(name) => self.priority_classes.get(&name).map_or(0, |class| class.value),
            None => self.default_class().unwrap_or(0),
        }
    }

    /// The value of the cluster's default class; of several (an error in the cluster) the lowest,
    /// as in Kubernetes.
    pub(in crate::model) fn default_class(&self) -> Option<i32> {
        self.priority_classes
            .values()
            .filter(|class| class.global_default)
            .map(|class| class.value)
            .min()
    }

    pub(in crate::model) fn prioritize(&mut self, id: GangId) {
        let gang = &self.gangs[id];
        let highest =
            || gang.pods.iter().map(|&pod| self.pods.fact[pod].priority).max().unwrap_or(0);
        let priority = match (gang.origin, gang.priority_class) {
            (Origin::Group, Some(name)) => {
                self.priority_classes.get(&name).map_or(0, |class| class.value)
            }
            (Origin::Group, None) => self.default_class().unwrap_or_else(highest),
            _ => highest(),
        };
        self.gangs[id].priority = priority;
    }

    /// A pod has joined: the gang's priority may have become that pod's.
    pub(in crate::model) fn raise(&mut self, id: GangId, pod: PodId) {
        let gang = &self.gangs[id];
        if gang.pods.len() == 1 {
            self.prioritize(id);
        } else if gang.origin != Origin::Group
            || gang.priority_class.is_none() && self.default_class().is_none()
        {
            self.gangs[id].priority = gang.priority.max(self.pods.fact[pod].priority);
        }
    }

    pub(in crate::model) fn reprioritize(&mut self) {
        let pods: Vec<PodId> = self.pods.live().collect();
        for pod in pods {
            let fact = &self.pods.fact[pod];
            let priority = if fact.says_priority {
                fact.priority
            } else {
                self.class_value(fact.priority_class)
            };
            self.pods.order[pod] = fact.explicit_order.unwrap_or(priority);
            self.pods.fact[pod].priority = priority;
        }
        let gangs: Vec<GangId> = self.gangs.ids().collect();
        for gang in gangs {
            self.prioritize(gang);
        }
    }
}

/// What an object says of how far its work has come. What can't be read is not said.
fn progress(meta: &Meta) -> RareGangFields {
    let time = |key: &str| meta.annotations.get(key).and_then(|text| Time::parse(text).ok());
    let (last_checkpoint, expected_end) = (time(LAST_CHECKPOINT_TIME), time(EXPECTED_END_TIME));
    RareGangFields { last_checkpoint, expected_end, ..RareGangFields::default() }
}
