//! Applies PodGroups to the model.

use muster_api::core::Meta;
use muster_api::keys::{
    DEFAULT_QUEUE, JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, RUNNING_ESTIMATE, SLA_WAITING_TIME,
    STALENESS_GRACE_PERIOD,
};
use muster_api::{
    PodGroup, PodGroupCondition, PodGroupSpec, PodGroupStatus, Portion, parse_duration,
};

use crate::base::ids::{GangId, Symbol};
use crate::model::Cluster;
use crate::model::apply::gangs::progress;
use crate::model::apply::{cooldown, revocable, says_false, stale, version_of};
use crate::model::gangs::{Gang, Origin, RareGangFields, Role};
use crate::model::notes::GroupAnnotations;
use crate::model::queues::DEFAULT;
use crate::model::topology::subgroups::{Rule, TierLimit, TopologyRules};

/// Whether it is a name that only quotas have: for what is requested under its plain name too, for
/// limits, or for a number of objects.
fn is_name_of_quota(resource: &str) -> bool {
    ["requests.", "limits.", "count/"].iter().any(|prefix| resource.starts_with(prefix))
}

impl Cluster {
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
            // How long pods of an earlier object lacked company says nothing of this gang.
            self.gangs.forget_broken(id);
        }
        let before = self.gangs[id].taken_as();
        let named = Some(object.spec.queue.as_str());
        let named = named.filter(|name| !name.is_empty() && *name != DEFAULT_QUEUE);
        let queue = match named {
            Some(name) => self.queues.slot(name),
            None => self.queue_of_space(space),
        };
        let other_rules = self.read_spec(id, &object.spec);
        let gang = &mut self.gangs[id];
        gang.origin = Origin::Group;
        gang.names_queue = named.is_some();
        gang.uid = meta.uid.as_str().into();
        gang.version = version;
        gang.created = meta.creation_timestamp.unwrap_or_default();
        read_annotations(gang, meta);
        // Our own view of phase and condition is newer than an echo of what we wrote, unless the
        // object is new.
        if another {
            gang.notes = GroupAnnotations::read(meta);
            begin_anew(gang, object.status.clone().unwrap_or_default());
        } else {
            GroupAnnotations::reread(&mut gang.notes, meta);
        }
        if other_rules {
            self.split(id);
        }
        self.revoke(id, says_false(meta), revocable(meta));
        self.move_gang(id, queue);
        self.prioritize(id);
        self.stir(Some(id));
        self.gangs.review(id);
        let gang = &self.gangs[id];
        self.outlook_changes += u64::from(!gang.idle() && gang.taken_as() != before);
    }

    /// Reads what the gang needs. Returns whether the rules for its subgroups have changed.
    fn read_spec(&mut self, id: GangId, spec: &PodGroupSpec) -> bool {
        let class = Some(&spec.priority_class_name).filter(|name| !name.is_empty());
        let class = class.map(|name| self.names.intern(name));
        let roles: Vec<(Option<Symbol>, u32)> = spec
            .min_task_member
            .iter()
            .map(|(role, &n)| {
                // Pods that name no role belong to the role with the empty name.
                let name =
                    Some(role).filter(|role| !role.is_empty()).map(|role| self.names.intern(role));
                (name, n.max(0) as u32)
            })
            .collect();
        let rules: Vec<Rule> =
            spec.sub_group_policy.iter().map(|policy| Rule::of(&mut self.names, policy)).collect();
        // Volcano's Job controller also writes the amounts under the names that quotas have for
        // them. No node has those.
        let min_resources = spec.min_resources.as_ref().map(|list| {
            let mut list = list.clone();
            list.retain(|name, _| !is_name_of_quota(name));
            self.dimensions.sparse(&list, false)
        });
        self.nodes.widen(self.dimensions.len());

        let gang = &mut self.gangs[id];
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
        for role in &mut gang.roles {
            role.minimum = 0;
        }
        for (name, minimum) in roles {
            match gang.roles.iter_mut().find(|role| role.name == name) {
                Some(role) => role.minimum = minimum,
                None => gang.roles.push(Role { name, minimum, counts: Default::default() }),
            }
        }
        other_rules
    }

    /// Assigns the gang's pods to subgroups again.
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
        self.gangs.forget_broken(id);
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
}

fn read_annotations(gang: &mut Gang, meta: &Meta) {
    let duration = |key: &str| meta.annotations.get(key).and_then(|text| parse_duration(text).ok());
    let portion = |key: &str| meta.annotations.get(key).and_then(|text| Portion::parse(text).ok());
    gang.estimate = duration(RUNNING_ESTIMATE);
    let rare = RareGangFields {
        cooldown: cooldown(meta),
        min_available: portion(JDB_MIN_AVAILABLE),
        max_unavailable: portion(JDB_MAX_UNAVAILABLE),
        staleness_grace: duration(STALENESS_GRACE_PERIOD),
        sla_wait: SLA_WAITING_TIME.iter().find_map(|key| duration(key)),
        ..progress(meta)
    };
    gang.rare = rare.boxed();
}

/// Takes over the status of an object that is new or was created again.
fn begin_anew(gang: &mut Gang, status: PodGroupStatus) {
    gang.phase = status.phase;
    gang.reported = None;
    gang.condition = Default::default();
    gang.reasons.clear();
    gang.admitted = None;
    gang.gave_back = None;
    let waits = |c: &&PodGroupCondition| c.kind == "Unschedulable" && c.status == "True";
    let condition = status.conditions.iter().find(waits);
    gang.waiting_since = condition.and_then(|condition| condition.last_transition_time);
}
