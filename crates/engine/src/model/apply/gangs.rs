//! Puts pods into their gangs, and gangs into the sums of their queues.

use std::cmp::Ordering;

use muster_api::core::Meta;
use muster_api::keys::{EXPECTED_END_TIME, GROUP_NAME, LAST_CHECKPOINT_TIME, QUEUE_NAME};
use muster_api::{PodGroupPhase, Time, core};

use crate::base::ids::{GangId, PodId, QueueId, SpaceId};
use crate::model::Cluster;
use crate::model::gangs::{Gang, Origin, RareGangFields, Role};
use crate::model::queues::DEFAULT;
use crate::model::topology::subgroups::{TierLimit, TopologyRules};

impl Cluster {
    /// The gang that a pod names, which is created if it does not exist; none for pods of other
    /// schedulers. `known` is the gang that the pod was in before.
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

    /// The queue of gangs that name none.
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

    /// Forgets a gang without a PodGroup and without pods that name one.
    pub(in crate::model) fn disband(&mut self, gang: Option<GangId>) {
        let empty = |gang: &GangId| {
            self.gangs[*gang].pods.is_empty() && self.gangs[*gang].origin != Origin::Group
        };
        if let Some(gang) = gang.filter(empty) {
            self.end_reservations(gang);
            self.gangs.remove(gang);
        }
    }

    /// Marks a gang as worth trying again after a change.
    pub(in crate::model) fn stir(&mut self, gang: Option<GangId>) {
        if let Some(gang) = gang {
            self.gangs[gang].did_not_fit_at = None;
        }
    }

    /// Moves a gang with all its sums to another queue.
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

    /// Updates whether its nodes may be taken back: the nodes count revocable pods.
    pub(super) fn revoke(&mut self, id: GangId, protected: bool, revocable: bool) {
        let before = (self.gangs[id].protected, self.gangs[id].revocable);
        self.protect(id, protected);
        self.gangs[id].revocable = revocable;
        if before != (protected, revocable) {
            let pods = self.gangs[id].pods.clone();
            self.reshape_pods(&pods);
        }
    }

    /// Updates whether the gang can be evicted.
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
}

/// The progress that an object reports. Values that cannot be read count as not reported.
pub(super) fn progress(meta: &Meta) -> RareGangFields {
    let time = |key: &str| meta.annotations.get(key).and_then(|text| Time::parse(text).ok());
    let (last_checkpoint, expected_end) = (time(LAST_CHECKPOINT_TIME), time(EXPECTED_END_TIME));
    RareGangFields { last_checkpoint, expected_end, ..RareGangFields::default() }
}
