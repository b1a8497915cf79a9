//! A slow, obvious recount of every sum, to compare with the sums that moved. Always on in tests.

use crate::base::ids::{PodId, ResourceId};
use crate::base::resources::Amounts;
use crate::model::Cluster;
use crate::model::devices::Devices;
use crate::model::devices::cards::Cards;
use crate::model::pods::{Counts, PodState};
use crate::model::{nodes, terms};

/// Every sum of the model, for comparing two moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    nodes: Vec<NodeSums>,
    gangs: Vec<(Counts, Vec<Counts>, [Amounts; 4])>,
    queues: Vec<[Amounts; 5]>,
    spaces: Vec<Amounts>,
    terms: Vec<(Vec<terms::Count>, u32)>,
    foreign: Amounts,
    nominations: u32,
    departures: u32,
    domains: Vec<Vec<Vec<i64>>>,
    devices: Devices,
}

#[derive(Clone, Debug, PartialEq)]
struct NodeSums {
    idle: Vec<i64>,
    releasing: Vec<i64>,
    nominated: Vec<i64>,
    pods_on: Vec<PodId>,
    ports: Vec<(muster_api::core::Port, [u32; 2])>,
}

impl Cluster {
    pub fn sums(&self) -> Sums {
        let column =
            |columns: &nodes::Columns, node| columns.rows().iter().map(|c| c[node]).collect();
        Sums {
            nodes: self
                .nodes
                .fact
                .ids()
                .map(|node| NodeSums {
                    idle: column(&self.nodes.idle, node),
                    releasing: column(&self.nodes.releasing, node),
                    nominated: column(&self.nodes.nominated, node),
                    pods_on: self.nodes.pods_on[node].clone(),
                    ports: self.nodes.ports[node].clone(),
                })
                .collect(),
            gangs: self
                .gangs
                .iter()
                .map(|(_, gang)| {
                    let amounts = [&gang.held, &gang.nominated, &gang.leaving, &gang.requested]
                        .map(Clone::clone);
                    (
                        gang.counts.clone(),
                        gang.roles
                            .iter()
                            .map(|role| &role.counts)
                            .chain(gang.subgroups().iter().map(|subgroup| &subgroup.counts))
                            .cloned()
                            .collect(),
                        amounts,
                    )
                })
                .collect(),
            queues: self
                .queues
                .iter()
                .map(|(_, queue)| {
                    [
                        &queue.held,
                        &queue.nominated,
                        &queue.leaving,
                        &queue.requested,
                        &queue.protected,
                    ]
                    .map(Clone::clone)
                })
                .collect(),
            spaces: self.spaces.rows().iter().map(|space| space.held.clone()).collect(),
            terms: self.terms.counts(),
            foreign: self.foreign.clone(),
            nominations: self.nominated_count,
            departures: self.departures,
            domains: if self.domains_stale { Vec::new() } else { self.domains.sums() },
            devices: self.devices.clone(),
        }
    }

    /// The model with every sum recomputed from the pods alone.
    fn recounted(&self) -> Cluster {
        let mut fresh = self.clone();
        for node in self.nodes.fact.ids() {
            for resource in self.nodes.idle.ids() {
                fresh.nodes.idle[resource][node] = self.nodes.allocatable[resource][node];
                fresh.nodes.releasing[resource][node] = 0;
                fresh.nodes.nominated[resource][node] = 0;
            }
            fresh.nodes.pods_on[node].clear();
            fresh.nodes.ports[node].clear();
        }
        let gangs: Vec<_> = self.gangs.ids().collect();
        for &id in &gangs {
            let gang = &mut fresh.gangs[id];
            gang.counts = Counts::default();
            gang.roles.iter_mut().for_each(|role| role.counts = Counts::default());
            let subgroups = gang
                .topology_rules
                .iter_mut()
                .flat_map(|topology_rules| &mut topology_rules.subgroups);
            subgroups.for_each(|subgroup| subgroup.counts = Counts::default());
            (gang.held, gang.nominated, gang.leaving, gang.requested) = Default::default();
        }
        for id in self.queues.ids() {
            let queue = &mut fresh.queues[id];
            (queue.held, queue.nominated, queue.leaving, queue.requested) = Default::default();
            queue.protected = Amounts::default();
        }
        fresh.spaces.rows_mut().iter_mut().for_each(|space| space.held = Amounts::default());
        fresh.foreign = Amounts::default();
        fresh.nominated_count = 0;
        fresh.departures = 0;
        fresh.devices.clear_sums();
        fresh.recount_terms();
        fresh.terms.clear_counts();
        let pods: Vec<_> = self.pods.live().collect();
        for pod in pods {
            fresh.tally(pod, self.pods.state[pod], 1);
            fresh.want(pod, 1);
        }
        for &gang in &self.reserving {
            for reservation in self.gangs[gang].reserved() {
                fresh.tally_reservation(gang, reservation, 1);
            }
        }
        if !self.domains_stale {
            fresh.domains.recount(&fresh.nodes);
        }
        fresh
    }

    /// Compares the kept sums with a recount, and the recount of the nodes with plain arithmetic.
    pub fn audit(&self) -> Result<(), String> {
        let kept = self.sums();
        let fresh = self.recounted().sums();
        for (place, (kept, fresh)) in kept.nodes.iter().zip(&fresh.nodes).enumerate() {
            if kept != fresh {
                return Err(format!("node {place} keeps {kept:?}, recounted {fresh:?}"));
            }
        }
        if kept != fresh {
            return Err(format!("sums differ from a recount:\nkept {kept:?}\nrecounted {fresh:?}"));
        }
        let mut total = Amounts::default();
        for node in self.nodes.fact.ids() {
            for resource in (0..self.dimensions.len()).map(ResourceId::from) {
                let taken: i64 = self
                    .pods
                    .live()
                    .filter(|&pod| {
                        self.pods.state[pod].occupies() && self.pods.state[pod].node() == Some(node)
                    })
                    .map(|pod| self.request_of(self.pods.shape[pod], resource))
                    .sum();
                let allocatable = self.nodes.allocatable[resource][node];
                if self.nodes.idle[resource][node] != allocatable - taken {
                    return Err(format!(
                        "{} has {} of {} idle, but {allocatable} less {taken} is expected",
                        self.nodes.name[node],
                        self.nodes.idle[resource][node],
                        self.dimensions.name(resource),
                    ));
                }
                if self.nodes.fact[node].lets_go() {
                    total.add(resource, allocatable);
                }
            }
        }
        if total != self.total {
            return Err(format!(
                "the cluster's total is kept as {:?}, recounted {total:?}",
                self.total
            ));
        }
        let reserving = self.gangs.iter().filter(|(_, gang)| !gang.reserved().is_empty());
        if !reserving.map(|(id, _)| id).eq(self.reserving.iter().copied()) {
            return Err("the list of gangs with reservations is not what they say".into());
        }
        if !self.shapes.counts_hold(self.pods.live().map(|pod| self.pods.shape[pod])) {
            return Err("shapes have other pods than they count".into());
        }
        if !self.gangs.lists_hold() {
            return Err("the list of gangs that wait is not what their states say".into());
        }
        for pod in self.pods.live() {
            if let PodState::Nominated(node) | PodState::Allocated(node) = self.pods.state[pod]
                && !self.nodes.fact[node].live
                && matches!(self.pods.state[pod], PodState::Nominated(_))
            {
                return Err(format!(
                    "{} is nominated to a node that has left",
                    self.pods.name(pod)
                ));
            }
        }
        self.audit_cards()
    }

    /// Cards of pods are cards of the nodes that they are on, and what is used of each is what its
    /// pods take.
    fn audit_cards(&self) -> Result<(), String> {
        let on_nodes = || {
            self.devices
                .all_held()
                .into_iter()
                .filter(|(pod, _)| self.pods.state[*pod].node().is_some())
        };
        for (pod, held) in on_nodes() {
            if self.pods.state[pod].node() != Some(held.node) {
                return Err(format!(
                    "{} has cards of a node that it isn't on",
                    self.pods.name(pod)
                ));
            }
        }
        for node in self.nodes.fact.ids() {
            let cards = self.devices.cards(node).into_iter().flat_map(Cards::iter);
            for (card, place) in cards.zip(0..) {
                let there = on_nodes()
                    .filter(|(pod, held)| held.node == node && self.pods.state[*pod].occupies());
                let slots =
                    there.flat_map(|(_, held)| held.slots.iter()).filter(|slot| slot.card == place);
                let memory: i64 = slots.map(|slot| slot.takes.memory).sum();
                if memory != card.used.memory {
                    let (name, kept) = (&self.nodes.name[node], card.used.memory);
                    return Err(format!(
                        "card {place} of {name} has {kept} MiB in use, recounted {memory}"
                    ));
                }
            }
        }
        Ok(())
    }
}
