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
pub struct NodeSums {
    idle: Vec<i64>,
    releasing: Vec<i64>,
    nominated: Vec<i64>,
    pods_on: Vec<PodId>,
    ports: Vec<(muster_api::core::Port, [u32; 2])>,
}

/// A sum or a list that is kept, and that a recount finds different.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AuditError {
    #[error("node {node} keeps {kept:?}, recounted {recounted:?}")]
    Node { node: String, kept: Box<NodeSums>, recounted: Box<NodeSums> },
    #[error("sums differ from a recount:\nkept {kept:?}\nrecounted {recounted:?}")]
    Sums { kept: Box<Sums>, recounted: Box<Sums> },
    #[error("{node} has {idle} of {resource} idle, but {allocatable} less {taken} is expected")]
    Idle { node: String, resource: String, idle: i64, allocatable: i64, taken: i64 },
    #[error("the cluster's total is kept as {kept:?}, recounted {recounted:?}")]
    Total { kept: Amounts, recounted: Amounts },
    #[error("the list of gangs with reservations is not what they say")]
    ReservingGangs,
    #[error("shapes have other pods than they count")]
    Shapes,
    #[error("the list of gangs that wait is not what their states say")]
    WaitingGangs,
    #[error("{pod} is nominated to a node that has left")]
    NodeHasLeft { pod: String },
    #[error("{pod} has cards of a node that it isn't on")]
    CardsElsewhere { pod: String },
    #[error("card {card} of {node} has {kept} MiB in use, recounted {recounted}")]
    Card { card: u32, node: String, kept: i64, recounted: i64 },
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
    pub fn audit(&self) -> Result<(), AuditError> {
        let (kept, recounted) = (self.sums(), self.recounted().sums());
        for (node, (kept, recounted)) in
            self.nodes.fact.ids().zip(kept.nodes.iter().zip(&recounted.nodes))
        {
            if kept != recounted {
                let node = self.nodes.name[node].to_string();
                let (kept, recounted) = (Box::new(kept.clone()), Box::new(recounted.clone()));
                return Err(AuditError::Node { node, kept, recounted });
            }
        }
        if kept != recounted {
            let (kept, recounted) = (Box::new(kept), Box::new(recounted));
            return Err(AuditError::Sums { kept, recounted });
        }
        self.audit_idle()?;
        self.audit_lists()?;
        self.audit_cards()
    }

    /// What is idle on a node is what its pods leave of it, and the total is what the nodes have.
    fn audit_idle(&self) -> Result<(), AuditError> {
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
                let idle = self.nodes.idle[resource][node];
                if idle != allocatable - taken {
                    let resource = self.dimensions.name(resource).to_string();
                    let node = self.nodes.name[node].to_string();
                    return Err(AuditError::Idle { node, resource, idle, allocatable, taken });
                }
                if self.nodes.fact[node].lets_go() {
                    total.add(resource, allocatable);
                }
            }
        }
        if total != self.total {
            return Err(AuditError::Total { kept: self.total.clone(), recounted: total });
        }
        Ok(())
    }

    /// Lists and counts hold what the states of gangs and pods say.
    fn audit_lists(&self) -> Result<(), AuditError> {
        let reserving = self.gangs.iter().filter(|(_, gang)| !gang.reserved().is_empty());
        if !reserving.map(|(id, _)| id).eq(self.reserving.iter().copied()) {
            return Err(AuditError::ReservingGangs);
        }
        if !self.shapes.counts_hold(self.pods.live().map(|pod| self.pods.shape[pod])) {
            return Err(AuditError::Shapes);
        }
        if !self.gangs.lists_hold() {
            return Err(AuditError::WaitingGangs);
        }
        for pod in self.pods.live() {
            if let PodState::Nominated(node) = self.pods.state[pod]
                && !self.nodes.fact[node].live
            {
                return Err(AuditError::NodeHasLeft { pod: self.pods.name(pod).to_string() });
            }
        }
        Ok(())
    }

    /// Cards of pods are cards of the nodes that they are on, and what is used of each is what its
    /// pods take.
    fn audit_cards(&self) -> Result<(), AuditError> {
        let on_nodes = || {
            self.devices
                .all_held()
                .into_iter()
                .filter(|(pod, _)| self.pods.state[*pod].node().is_some())
        };
        for (pod, held) in on_nodes() {
            if self.pods.state[pod].node() != Some(held.node) {
                return Err(AuditError::CardsElsewhere { pod: self.pods.name(pod).to_string() });
            }
        }
        for node in self.nodes.fact.ids() {
            let cards = self.devices.cards(node).into_iter().flat_map(Cards::iter);
            for (card, place) in cards.zip(0..) {
                let there = on_nodes()
                    .filter(|(pod, held)| held.node == node && self.pods.state[*pod].occupies());
                let slots =
                    there.flat_map(|(_, held)| held.slots.iter()).filter(|slot| slot.card == place);
                let recounted: i64 = slots.map(|slot| slot.takes.memory).sum();
                let kept = card.used.memory;
                if recounted != kept {
                    let node = self.nodes.name[node].to_string();
                    return Err(AuditError::Card { card: place, node, kept, recounted });
                }
            }
        }
        Ok(())
    }
}
