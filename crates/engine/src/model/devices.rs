//! Cards that pods share. For such pods "fits the node" means "fits a card". The cards are chosen
//! when a pod gets a node; it keeps them while it is there, and an undone transaction restores the
//! same ones.

pub mod cards;
pub mod demand;
pub mod notes;

use muster_api::cards::Card as Fact;
use muster_api::keys::{GPU_MEMORY, GPU_NUMBER};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{NodeId, PodId, ShapeId, Table};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::devices::cards::{Cards, Taken};
use crate::model::devices::demand::Demand;
use crate::model::pods::PodState;

pub use crate::model::devices::demand::CardSelector;
pub use crate::model::devices::notes::Noted;
pub use crate::model::devices::notes::note_of_bound;
pub use crate::model::devices::notes::note_of_nominated;

/// How cards are shared, as the plugin `deviceshare` says.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    pub by: By,
    pub prefer: Prefer,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// A pod takes memory of one card.
    Memory,
    /// A pod takes whole cards.
    Number,
    /// A container takes memory and cores of one card or several.
    Virtual,
}

/// Which of the fitting cards is preferred.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prefer {
    Fullest,
    Emptiest,
}

/// No node has more cards than this; a higher number is a mistake.
const MOST_CARDS: i64 = 256;

/// A card that is shared by memory alone takes any number of pods that fit.
const ANY_PODS: i64 = 1 << 40;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Devices {
    sharing: Option<Sharing>,
    /// Only as long as needed: empty if no node has cards.
    cards: Table<NodeId, Option<Box<Cards>>>,
    /// The cards of pods on nodes, and of pods that left one in this cycle: if they return they get
    /// the same ones.
    held: FxHashMap<PodId, Held>,
    /// How many of them are on nodes.
    #[serde(alias = "seated")]
    pods: usize,
}

/// The cards of one pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub node: NodeId,
    pub slots: Box<[Slot]>,
}

/// What a pod has of one card.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Its place in the node's list.
    pub card: u32,
    /// For which of the containers that ask.
    pub container: u32,
    pub takes: Taken,
}

impl Devices {
    pub fn sharing(&self) -> Option<Sharing> {
        self.sharing
    }

    #[inline]
    pub fn are_shared(&self) -> bool {
        self.sharing.is_some()
    }

    pub fn prefer(&self) -> Prefer {
        self.sharing.map_or(Prefer::Fullest, |sharing| sharing.prefer)
    }

    pub fn cards(&self, node: NodeId) -> Option<&Cards> {
        self.cards.rows().get(usize::from(node))?.as_deref()
    }

    pub fn held(&self, pod: PodId) -> Option<&Held> {
        self.held.get(&pod)
    }

    /// In the order of the pods.
    pub fn all_held(&self) -> Vec<(PodId, &Held)> {
        let mut held: Vec<_> = self.held.iter().map(|(&pod, held)| (pod, held)).collect();
        held.sort_unstable_by_key(|(pod, _)| *pod);
        held
    }

    /// Whether a node has cards for a pod.
    pub fn admit(&self, demand: &Demand, node: NodeId, room: Room) -> bool {
        self.cards(node).is_some_and(|cards| cards.admit(demand, room, self.prefer()))
    }

    /// How many such pods a node's cards can hold.
    pub fn holds(&self, demand: &Demand, node: NodeId, room: Room) -> i64 {
        self.cards(node).map_or(0, |cards| cards.holds(demand, room, self.prefer()))
    }

    /// Adds a pod on its node to the sums of its cards, or takes it out.
    pub(super) fn count_on_node(&mut self, pod: PodId, state: PodState, lets_go: bool, sign: i64) {
        let Some(held) = self.held.get(&pod) else { return };
        debug_assert_eq!(
            state.node(),
            Some(held.node),
            "a pod has cards of the node that it is on"
        );
        self.pods = self.pods.wrapping_add_signed(sign as isize);
        let Some(Some(cards)) = self.cards.rows_mut().get_mut(usize::from(held.node)) else {
            return;
        };
        for slot in &held.slots {
            let Some(card) = cards.get_mut(slot.card) else { continue };
            match state {
                PodState::Nominated(_) => card.nominated.add(slot.takes, sign),
                PodState::Releasing(_) if lets_go => {
                    card.used.add(slot.takes, sign);
                    card.releasing.add(slot.takes, sign);
                }
                _ => card.used.add(slot.takes, sign),
            }
        }
    }

    pub(super) fn put_back(&mut self, pod: PodId, held: Option<Held>) {
        match held {
            Some(held) => drop(self.held.insert(pod, held)),
            None => self.forget(pod),
        }
    }

    pub(super) fn forget(&mut self, pod: PodId) {
        self.held.remove(&pod);
    }

    fn hold(&mut self, pod: PodId, node: NodeId, slots: Vec<Slot>) {
        let held = (!slots.is_empty()).then(|| Held { node, slots: slots.into() });
        self.put_back(pod, held);
    }

    /// Clears the usage of all cards, for a recount.
    pub(super) fn clear_sums(&mut self) {
        self.pods = 0;
        for cards in self.cards.rows_mut().iter_mut().flatten() {
            **cards = cards.emptied();
        }
    }
}

impl Cluster {
    /// What pods of the shape request of a node's cards, if cards are shared.
    #[inline]
    pub fn demand(&self, shape: ShapeId) -> Option<&Demand> {
        self.shapes[shape].devices.as_deref()
    }

    #[inline]
    pub(crate) fn shares_cards(&self, pod: PodId) -> bool {
        self.devices.are_shared() && self.demand(self.pods.shape[pod]).is_some()
    }

    /// Chooses the cards of a pod that gets a node. A pod that is there already keeps its cards,
    /// unless it leaves to return to others: until it has left it has those that its object names.
    pub(super) fn choose_cards(&mut self, pod: PodId, from: PodState, to: PodState) {
        let Some(demand) = self.shapes[self.pods.shape[pod]].devices.as_deref() else { return };
        let returns = matches!(
            (from, to),
            (PodState::Releasing(_), PodState::Nominated(_))
                | (PodState::Nominated(_), PodState::Releasing(_))
        );
        let Some(node) = to.node().filter(|&node| returns || from.node() != Some(node)) else {
            return;
        };
        let slots = match to {
            PodState::Nominated(_) => self.pick_cards(pod, node, demand, Room::FutureIdle),
            PodState::Allocated(_) => self.pick_cards(pod, node, demand, Room::Backfill),
            _ => self.stated_cards(pod, to),
        };
        self.devices.hold(pod, node, slots);
    }

    /// Whether the cards of a terminating pod are still its own.
    pub fn may_keep_cards(&self, pod: PodId) -> bool {
        let demand = self.shapes[self.pods.shape[pod]].devices.as_deref();
        let Some((demand, held)) = demand.zip(self.devices.held(pod)) else { return true };
        let cards = self.devices.cards(held.node);
        cards.is_some_and(|cards| cards.admit_on(demand, &held.slots, Room::FutureIdle))
    }

    /// The cards that the pod had before on this node, or in a nomination of an earlier process, if
    /// they fit; otherwise those that the policy prefers.
    fn pick_cards(&self, pod: PodId, node: NodeId, demand: &Demand, room: Room) -> Vec<Slot> {
        let Some(cards) = self.devices.cards(node) else { return Vec::new() };
        let not_nominated = if room == Room::Backfill { Room::Idle } else { room };
        let before = self.devices.held(pod).filter(|held| held.node == node);
        let known = before.map_or_else(|| self.noted_cards(pod, node), |held| held.slots.to_vec());
        if demand.is_met_by(&known) && cards.admit_on(demand, &known, not_nominated) {
            return known;
        }
        cards.choose(demand, room, self.devices.prefer()).unwrap_or_default()
    }

    /// The cards that the object of a pod on a node names. Pods that wait or are only assumed to be
    /// bound may name cards that they never got.
    fn stated_cards(&self, pod: PodId, state: PodState) -> Vec<Slot> {
        match state {
            PodState::Running(node) | PodState::Releasing(node) => self.noted_cards(pod, node),
            _ => Vec::new(),
        }
    }

    /// Reads the cards of a pod again after its object or shape changed. The pod is in no sum
    /// meanwhile.
    pub(super) fn reread_cards(&mut self, pod: PodId, from: PodState, to: PodState) {
        let noted = self.stated_cards(pod, to);
        match to.node() {
            _ if self.shapes[self.pods.shape[pod]].devices.is_none() => self.devices.forget(pod),
            Some(node) if !noted.is_empty() => self.devices.hold(pod, node, noted),
            _ => self.choose_cards(pod, from, to),
        }
    }

    /// Rebuilds the cards of a node after its card facts changed. Pods keep cards that still exist.
    pub(super) fn deal_cards(&mut self, node: NodeId) {
        let facts = self.card_facts(node);
        let same = match self.devices.cards(node) {
            Some(known) => known.iter().map(|card| &card.fact).eq(&facts),
            None => facts.is_empty(),
        };
        if same {
            return;
        }
        let lets_go = self.nodes.fact[node].lets_go();
        let pods = self.nodes.pods_on[node].clone();
        for &pod in &pods {
            self.devices.count_on_node(pod, self.pods.state[pod], lets_go, -1);
        }
        self.devices.cards.grow(usize::from(node) + 1, None);
        let fresh = (!facts.is_empty()).then(|| Box::new(Cards::new(facts)));
        let old = std::mem::replace(&mut self.devices.cards[node], fresh).unwrap_or_default();
        for &pod in &pods {
            let slots = self.stated_cards(pod, self.pods.state[pod]);
            let slots = if slots.is_empty() { self.moved_cards(pod, node, &old) } else { slots };
            self.devices.hold(pod, node, slots);
            self.devices.count_on_node(pod, self.pods.state[pod], lets_go, 1);
        }
        self.touched.push(node);
        self.freed += 1;
    }

    /// A pod's cards by their positions in the new list.
    fn moved_cards(&self, pod: PodId, node: NodeId, old: &Cards) -> Vec<Slot> {
        let (Some(held), Some(cards)) = (self.devices.held(pod), self.devices.cards(node)) else {
            return Vec::new();
        };
        let moved =
            |slot: &Slot| Some(Slot { card: cards.find(&old.get(slot.card)?.fact.id)?, ..*slot });
        held.slots.iter().filter_map(moved).collect()
    }

    fn card_facts(&self, node: NodeId) -> Vec<Fact> {
        let fact = &self.nodes.fact[node];
        let Some(Sharing { by, .. }) = self.devices.sharing.filter(|_| fact.live) else {
            return Vec::new();
        };
        if by == By::Virtual {
            return fact.cards.as_ref().map_or(Vec::new(), |cards| cards.offered.clone());
        }
        let has = |name: &str| {
            let resource = self.dimensions.find(name);
            resource.map_or(0, |resource| self.nodes.allocatable[resource][node])
        };
        let count = has(GPU_NUMBER).min(MOST_CARDS);
        let memory = has(GPU_MEMORY).checked_div(count).unwrap_or(0);
        let card = |number: u32| Fact {
            id: number.to_string(),
            kind: String::new(),
            memory,
            pods: ANY_PODS,
            healthy: !fact.cards.as_ref().is_some_and(|cards| cards.broken.contains(&number)),
        };
        (0..count as u32).map(card).collect()
    }

    /// Changes how cards are shared, or ends it: everything about cards is computed again.
    pub(crate) fn share_devices(&mut self, sharing: Option<Sharing>) {
        let before = self.devices.sharing;
        if before.map(|sharing| sharing.by) == sharing.map(|sharing| sharing.by) {
            self.devices.sharing = sharing;
            return;
        }
        self.devices = Devices { sharing, ..Devices::default() };
        self.shapes.demand_anew(sharing.map(|sharing| sharing.by));
        for node in self.nodes.name.ids() {
            self.deal_cards(node);
        }
    }

    /// Forgets the cards of pods that are on no node any more.
    pub(super) fn forget_cards(&mut self) {
        if self.devices.held.len() > self.devices.pods {
            let state = &self.pods.state;
            self.devices.held.retain(|&pod, _| state[pod].node().is_some());
        }
    }
}
