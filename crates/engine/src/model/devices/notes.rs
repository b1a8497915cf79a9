//! What pods say of their cards in annotations, and what is to be written there with a bind.

use muster_api::Time;
use muster_api::cards::{Share, numbers, shares, write_shares};
use muster_api::core::Labels;
use muster_api::keys::{
    BIND_PHASE, BIND_TIME, GPU_INDEX, PREDICATE_TIME, VGPU_IDS, VGPU_NODE, VGPU_TIME,
    VGPU_TO_ALLOCATE,
};
use serde::{Deserialize, Serialize};

use crate::base::ids::{NodeId, PodId};
use crate::model::Cluster;
use crate::model::devices::cards::Taken;
use crate::model::devices::{By, Held, Slot};

/// What a pod says of its cards, for each way to share them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    index: Option<String>,
    shares: Option<String>,
}

impl Noted {
    /// None for most pods.
    pub fn of(annotations: &Labels) -> Option<Box<Noted>> {
        let note = |key: &str| annotations.get(key).filter(|text| !text.is_empty()).cloned();
        let noted = Noted { index: note(GPU_INDEX), shares: note(VGPU_IDS) };
        (noted != Noted::default()).then(|| Box::new(noted))
    }
}

impl Cluster {
    /// The cards that a pod says it has, as far as they are on the node. A pod that was bound
    /// without a note about its cards is on none that we know of.
    pub(super) fn noted_cards(&self, pod: PodId, node: NodeId) -> Vec<Slot> {
        let demand = self.demand(self.pods.shape[pod]);
        let (Some(noted), Some(demand)) = (&self.pods.fact[pod].noted, demand) else {
            return Vec::new();
        };
        let (Some(sharing), Some(cards)) = (self.devices.sharing, self.devices.cards(node)) else {
            return Vec::new();
        };
        if sharing.by == By::Virtual {
            let containers = noted.shares.as_deref().map(shares).unwrap_or_default();
            let containers = (0..).zip(containers);
            let all = containers
                .flat_map(|(place, shares)| shares.into_iter().map(move |share| (place, share)));
            let slot = |(container, share): (u32, Share)| {
                let takes = Taken { memory: share.memory, cores: share.cores, pods: 1 };
                Some(Slot { card: cards.find(&share.id)?, container, takes })
            };
            return all.filter_map(slot).collect();
        }
        let listed = noted.index.as_deref().and_then(numbers).unwrap_or_default();
        let slot = |card: u32| {
            let (ask, card_fact) = (demand.asks.first()?, &cards.get(card)?.fact);
            let takes =
                Taken { memory: ask.memory.of(card_fact.memory), cores: ask.cores, pods: 1 };
            Some(Slot { card, container: 0, takes })
        };
        listed.into_iter().filter_map(slot).collect()
    }
}

/// What is to be written on a pod, by key.
type Note = Vec<(&'static str, String)>;

/// What is to be written on a pod that is bound to its cards, before the bind: the device plugin on
/// the node reads it. Nothing for a pod without cards.
pub fn note_of_bound(cluster: &Cluster, pod: PodId, now: Time) -> Note {
    let Some((held, key, text)) = place(cluster, pod) else { return Vec::new() };
    if key == GPU_INDEX {
        let nanoseconds = i128::from(now.0) * 1_000_000;
        return vec![(key, text), (PREDICATE_TIME, nanoseconds.to_string())];
    }
    let seconds = (now.0 / 1000).to_string();
    vec![
        (key, text.clone()),
        (VGPU_TO_ALLOCATE, text),
        (VGPU_NODE, cluster.nodes.name[held.node].to_string()),
        (VGPU_TIME, seconds.clone()),
        (BIND_TIME, seconds),
        (BIND_PHASE, "allocating".to_owned()),
    ]
}

/// What is to be written on a nominated pod, so that another scheduler keeps the same card for
/// it. Nothing if that is what it says already.
pub fn note_of_nominated(cluster: &Cluster, pod: PodId) -> Note {
    let Some((_, key, text)) = place(cluster, pod) else { return Vec::new() };
    let noted = cluster.pods.fact[pod].noted.as_deref();
    let said =
        noted.and_then(
            |noted| if key == GPU_INDEX { noted.index.as_ref() } else { noted.shares.as_ref() },
        );
    if said == Some(&text) { Vec::new() } else { vec![(key, text)] }
}

/// A pod's cards, and the annotation that names them.
fn place(cluster: &Cluster, pod: PodId) -> Option<(&Held, &'static str, String)> {
    let (held, sharing) = (cluster.devices.held(pod)?, cluster.devices.sharing?);
    if sharing.by == By::Virtual {
        return Some((held, VGPU_IDS, write_shares(&shares_of(cluster, held))));
    }
    let numbers: Vec<String> = held.slots.iter().map(|slot| slot.card.to_string()).collect();
    Some((held, GPU_INDEX, numbers.join(",")))
}

fn shares_of(cluster: &Cluster, held: &Held) -> Vec<Vec<Share>> {
    let last = held.slots.iter().map(|slot| slot.container).max().unwrap_or(0);
    let mut containers = vec![Vec::new(); last as usize + 1];
    for slot in &held.slots {
        let card = cluster.devices.cards(held.node).and_then(|cards| cards.get(slot.card));
        let id = card.map(|card| card.fact.id.clone()).unwrap_or_default();
        let share = Share { id, memory: slot.takes.memory, cores: slot.takes.cores };
        containers[slot.container as usize].push(share);
    }
    containers
}
