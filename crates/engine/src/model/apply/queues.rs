//! Queues, namespaces and their quotas into the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_api::core::Meta;
use muster_api::keys::{
    HIERARCHY, HIERARCHY_WEIGHTS, NODEGROUP_LIMITS, PREEMPT_MIN_RUNTIME, QUEUE_NAME,
    RECLAIM_MIN_RUNTIME,
};
use muster_api::{NodeGroupAffinity, Quantity, Queue, ResourceList, core, parse_duration};
use serde::Deserialize;

use crate::base::ids::{GangId, SpaceId};
use crate::model::Cluster;
use crate::model::apply::{stale, version_of};
use crate::model::queues::{DEFAULT, GroupLimits, MinRuntime, NodeGroups, ROOT};
use crate::model::selectors::tags;

impl Cluster {
    pub(in crate::model) fn queue(&mut self, object: &Queue) {
        let meta = &object.metadata;
        let version = version_of(meta);
        let id = self.queues.slot(&meta.name);
        if self.queues[id].exists && stale(version, self.queues[id].version) {
            return;
        }
        let spec = &object.spec;
        let mut amounts = |list: Option<&ResourceList>| {
            list.map(|list| self.dimensions.sparse(list, true)).unwrap_or_default()
        };
        let capability = amounts(spec.capability.as_ref());
        let guarantee = amounts(spec.guarantee.as_ref().map(|guarantee| &guarantee.resource));
        let deserved = amounts(spec.deserved.as_ref());
        self.nodes.widen(self.dimensions.len());
        let parent = spec.parent.as_deref().filter(|name| !name.is_empty() && id != ROOT);
        let parent = parent.map(|name| self.queues.slot(name));
        let groups = spec.affinity.as_ref().map(|affinity| {
            let lists = |side: &Option<NodeGroupAffinity>| {
                side.as_ref()
                    .map(|side| (side.required.clone(), side.preferred.clone()))
                    .unwrap_or_default()
            };
            let (required, preferred) = lists(&affinity.node_group_affinity);
            let (anti_required, anti_preferred) = lists(&affinity.node_group_anti_affinity);
            Box::new(NodeGroups { required, preferred, anti_required, anti_preferred })
        });
        let limits = meta.annotations.get(NODEGROUP_LIMITS).map(|text| self.group_limits(text));
        let before = self.queues[id].clone();
        let queue = &mut self.queues[id];
        let regrouped = queue.node_groups != groups || queue.group_limits != limits;
        queue.group_limits = limits;
        self.lines_stale |= !queue.exists || queue.parent != parent;
        queue.exists = true;
        queue.version = version;
        queue.created = meta.creation_timestamp.unwrap_or_default();
        queue.weight = spec.weight.max(1);
        queue.priority = spec.priority;
        queue.state = object.status.as_ref().map(|status| status.state).unwrap_or_default();
        queue.strategy = spec.dequeue_strategy;
        queue.reclaimable = spec.reclaimable.unwrap_or(true);
        queue.capability = capability;
        queue.guarantee = guarantee;
        queue.deserved = deserved;
        queue.parent = parent;
        queue.node_groups = groups;
        queue.min_runtime = min_runtime(meta);
        queue.hierarchy = hierarchy(meta);
        self.freed += u64::from(!queue.says_the_same(&before));
        if self.lines_stale || regrouped {
            self.regroup();
        }
    }

    fn group_limits(&mut self, text: &str) -> GroupLimits {
        let parsed = muster_yaml::parse(text)
            .and_then(|tree| BTreeMap::<String, ResourceList>::deserialize(&tree));
        let Ok(limits) = parsed else { return GroupLimits::Unreadable };
        let limits = limits
            .into_iter()
            .map(|(group, list)| (group, self.dimensions.sparse(&list, true)))
            .collect();
        self.nodes.widen(self.dimensions.len());
        GroupLimits::PerGroup(limits)
    }

    pub(in crate::model) fn queue_gone(&mut self, name: &str) {
        if let Some(id) = self.queues.find(name) {
            self.queues[id].forget();
            self.queues[id].exists = id == ROOT || id == DEFAULT;
            self.lines_stale = true;
            self.regroup();
            self.freed += 1;
        }
    }

    /// Queue lines or node groups changed: sums and shapes by queue are found anew.
    pub(in crate::model) fn regroup(&mut self) {
        if std::mem::take(&mut self.lines_stale) {
            self.redraw_queues();
        }
        if self.queues.iter().any(|(_, queue)| queue.picky()) {
            self.reshape();
            self.version += 1;
        }
    }

    pub(in crate::model) fn redraw_queues(&mut self) {
        self.queues.draw_lines();
        for id in self.queues.ids() {
            let queue = &mut self.queues[id];
            queue.held = Default::default();
            queue.nominated = Default::default();
            queue.leaving = Default::default();
            queue.requested = Default::default();
            queue.protected = Default::default();
        }
        let gangs: Vec<GangId> = self.gangs.ids().collect();
        for gang in gangs {
            self.sum_gang(gang, 1);
        }
    }

    pub(in crate::model) fn namespace(&mut self, meta: &Meta) {
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

    pub(in crate::model) fn quota(&mut self, object: &core::ResourceQuota) {
        let space = self.space(&object.metadata.namespace);
        let before = self.spaces[space].quotas.clone();
        self.read_quota(object, space);
        self.outlook_changes += u64::from(self.spaces[space].quotas != before);
    }

    pub(in crate::model) fn quota_gone(&mut self, key: &str) {
        if let Some((space, _)) = key.split_once('/') {
            let space = self.space(space);
            self.spaces[space].quotas.retain(|(name, _)| name != key);
            self.outlook_changes += 1;
        }
    }

    fn read_quota(&mut self, object: &core::ResourceQuota, space: SpaceId) {
        let key = object.metadata.key();
        self.spaces[space].quotas.retain(|(name, _)| *name != key);
        if !object.spec.scopes.is_empty() {
            return;
        }
        // Compute resources may be written with or without the prefix; limits and object counts are
        // not ours.
        let requests = object.spec.hard.iter().filter_map(|(name, &quantity)| {
            let plain = name.strip_prefix("requests.").unwrap_or(name);
            let counted =
                plain != name || ["cpu", "memory", "ephemeral-storage", "pods"].contains(&plain);
            (counted && plain != "storage").then(|| (plain.to_owned(), quantity))
        });
        let hard = self.dimensions.sparse(&requests.collect(), true);
        self.nodes.widen(self.dimensions.len());
        self.spaces[space].quotas.push((key, hard));
        self.spaces[space].quotas.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

/// What can't be read, or is below zero, is as if it were not there.
fn min_runtime(meta: &Meta) -> MinRuntime {
    let span = |key: &str| meta.annotations.get(key).and_then(|text| parse_duration(text).ok());
    let known = |key: &str| span(key).filter(|span| *span >= 0);
    MinRuntime { preempt: known(PREEMPT_MIN_RUNTIME), reclaim: known(RECLAIM_MIN_RUNTIME) }
}

/// `root/a/b` with weights `1/2/4`, each weight in thousandths, at least one.
fn hierarchy(meta: &Meta) -> Vec<(Arc<str>, i64)> {
    let path = meta.annotations.get(HIERARCHY).map(String::as_str).unwrap_or_default();
    let weights = meta.annotations.get(HIERARCHY_WEIGHTS).map(String::as_str).unwrap_or_default();
    let mut weights = weights.split('/').map(|text| {
        let quantity: Option<Quantity> = text.trim().parse().ok();
        quantity.map_or(1000, |quantity| quantity.milli_value()).max(1000)
    });
    path.split('/')
        .filter(|name| !name.is_empty())
        .map(|name| (name.into(), weights.next().unwrap_or(1000)))
        .collect()
}
