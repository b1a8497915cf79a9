//! Applies nodes to the model.

use muster_api::cards::{Card, numbers, registered};
use muster_api::keys::{
    GPU_UNHEALTHY, VGPU_CORES, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE, VGPU_NUMBER, VGPU_REGISTER,
};
use muster_api::{Quantity, ResourceList, core};

use crate::base::ids::{NodeId, PodId, ResourceId};
use crate::base::resources::Sparse;
use crate::model::Cluster;
use crate::model::apply::{stale, version_of};
use crate::model::nodes::{CardFacts, Node};
use crate::model::pods::PodState;

impl Cluster {
    pub(in crate::model) fn node(&mut self, object: &core::Node) {
        let id = self.nodes.slot(&object.metadata.name);
        let version = version_of(&object.metadata);
        if stale(version, self.nodes.version[id]) {
            return;
        }
        self.nodes.version[id] = version;
        let condition =
            |kind: &str| object.status.conditions.iter().find(|condition| condition.kind == kind);
        let images = &object.status.images;
        let note = |key: &str| object.metadata.annotations.get(key);
        let cards = CardFacts {
            offered: note(VGPU_REGISTER).map(|text| registered(text)).unwrap_or_default(),
            broken: note(GPU_UNHEALTHY).and_then(|text| numbers(text)).unwrap_or_default(),
        };
        let fact = Node {
            live: true,
            // A node that reports no readiness (a hand-written manifest) counts as ready.
            ready: condition("Ready").is_none_or(|ready| ready.status == "True"),
            cordoned: object.spec.unschedulable,
            labels: object.metadata.labels.clone(),
            taints: object.spec.taints.clone(),
            images: images
                .iter()
                .flat_map(|image| image.names.iter().map(|n| (n.clone(), image.size_bytes)))
                .collect(),
            created: object.metadata.creation_timestamp.unwrap_or_default(),
            cards: (cards != CardFacts::default()).then(|| Box::new(cards)),
        };
        let list = if object.status.allocatable.is_empty() {
            &object.status.capacity
        } else {
            &object.status.allocatable
        };
        let allocatable = match &fact.cards {
            Some(cards) if !cards.offered.is_empty() => {
                self.dimensions.sparse(&with_cards(list, &cards.offered), false)
            }
            _ => self.dimensions.sparse(list, false),
        };
        self.nodes.widen(self.dimensions.len());
        let learns_images = !self.images_known && !fact.images.is_empty();
        self.change_node(id, fact, &allocatable);
        if learns_images {
            self.images_known = true;
            self.reshape();
            self.version += 1;
        }
    }

    pub(in crate::model) fn node_gone(&mut self, name: &str) {
        if let Some(id) = self.nodes.find(name) {
            self.nodes.version[id] = 0;
            self.change_node(id, Node::default(), &Sparse::default());
        }
    }

    pub(in crate::model) fn change_node(&mut self, id: NodeId, fact: Node, allocatable: &Sparse) {
        let same_facts = self.nodes.fact[id] == fact;
        if !same_facts {
            let old = &self.nodes.fact[id];
            if old.live != fact.live {
                self.ranks_stale = true;
                self.domains_stale = true;
            }
            if old.live != fact.live || old.labels != fact.labels {
                self.hyper_nodes.note_node(id);
            }
            // Its labels decide how pods on it count and whether they can leave, so they are
            // counted again.
            let pods: Vec<PodId> = self.nodes.pods_on[id].clone();
            for &pod in &pods {
                self.tally(pod, self.pods.state[pod], -1);
            }
            let counted = self.nodes.fact[id].lets_go();
            let counts = fact.lets_go();
            self.count_total(id, counted, -1);
            self.nodes.describe(id, fact);
            self.terms.label(id, &self.nodes.fact[id].labels);
            self.count_total(id, counts, 1);
            for &pod in &pods {
                self.tally(pod, self.pods.state[pod], 1);
            }
            if !self.nodes.fact[id].live {
                self.forsake(&pods);
            }
            self.changed.push(id);
            self.freed += 1;
        }
        for resource in (0..self.dimensions.len()).map(ResourceId::from) {
            let before = self.nodes.allocatable[resource][id];
            let amount = allocatable.get(resource).unwrap_or(0);
            if amount != before {
                if self.nodes.fact[id].lets_go() {
                    self.total.add(resource, amount - before);
                }
                self.nodes.set_allocatable(resource, id, amount);
                if self.counts_domains(id) {
                    self.domains.widen(id, resource, amount - before);
                }
                self.touched.push(id);
                self.freed += u64::from(amount > before);
                // With less in total, queues deserve less.
                self.outlook_changes += u64::from(amount < before);
            }
        }
        self.deal_cards(id);
    }

    pub(in crate::model) fn count_total(&mut self, node: NodeId, counted: bool, sign: i64) {
        if counted {
            for resource in self.nodes.allocatable.ids() {
                self.total.add(resource, sign * self.nodes.allocatable[resource][node]);
            }
        }
    }

    /// A node is gone: pods nominated to it or assumed there are pending again. Pods that run there
    /// are left for the cluster to delete.
    pub(in crate::model) fn forsake(&mut self, pods: &[PodId]) {
        for &pod in pods {
            if matches!(self.pods.state[pod], PodState::Nominated(_)) {
                self.set(pod, PodState::Pending);
                self.stir(self.pods.gang[pod]);
            }
        }
    }
}

/// The resources of a node, with the sums of its cards if the kubelet does not report them.
fn with_cards(list: &ResourceList, cards: &[Card]) -> ResourceList {
    let mut list = list.clone();
    let healthy = || cards.iter().filter(|card| card.healthy);
    let percent = 100 * healthy().count() as i64;
    for (name, sum) in [
        (VGPU_NUMBER, healthy().map(|card| card.pods).sum()),
        (VGPU_MEMORY, healthy().map(|card| card.memory).sum()),
        (VGPU_MEMORY_PERCENTAGE, percent),
        (VGPU_CORES, percent),
    ] {
        list.entry(name.to_owned()).or_insert_with(|| Quantity::from_milli(sum * 1000));
    }
    list
}
