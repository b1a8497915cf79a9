//! The cards of one node and what is taken of each: the same three sums that the node has for its
//! resources.

use muster_api::cards::Card as Fact;
use serde::{Deserialize, Serialize};

use crate::base::cards::{ALL_CORES, Ask, Memory};
use crate::base::room::Room;
use crate::model::devices::demand::Demand;
use crate::model::devices::{Prefer, Slot};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cards(Box<[Card]>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    pub fact: Fact,
    /// By pods that are there.
    pub used: Taken,
    /// Of that, by pods that are on their way out.
    pub releasing: Taken,
    /// Kept for nominated pods.
    pub nominated: Taken,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// In MiB.
    pub memory: i64,
    /// In percent.
    pub cores: i64,
    pub pods: i64,
}

impl Taken {
    pub fn add(&mut self, other: Taken, sign: i64) {
        self.memory += sign * other.memory;
        self.cores += sign * other.cores;
        self.pods += sign * other.pods;
    }

    fn max(self, other: Taken) -> Taken {
        Taken {
            memory: self.memory.max(other.memory),
            cores: self.cores.max(other.cores),
            pods: self.pods.max(other.pods),
        }
    }
}

impl Card {
    fn new(fact: Fact) -> Card {
        let none = Taken::default();
        Card { fact, used: none, releasing: none, nominated: none }
    }

    /// What is out of bounds for a pod that is placed in this room.
    pub fn taken(&self, room: Room) -> Taken {
        let mut later = self.used;
        later.add(self.releasing, -1);
        later.add(self.nominated, 1);
        match room {
            // Each limit is on one amount alone, so what fits beside the larger of two fits beside
            // both.
            Room::Idle => self.used.max(later),
            Room::FutureIdle => later,
            Room::Backfill => self.used,
        }
    }

    /// What a pod would take of the card beside what is taken, if it may.
    fn takes(&self, demand: &Demand, ask: &Ask, taken: Taken) -> Option<Taken> {
        let takes = Taken { memory: ask.memory.of(self.fact.memory), cores: ask.cores, pods: 1 };
        let fits = self.fact.healthy
            && taken.memory + takes.memory <= self.fact.memory
            && taken.cores + takes.cores <= ALL_CORES
            && taken.cores < ALL_CORES
            && taken.pods < self.fact.pods
            && (takes.cores < ALL_CORES || taken.pods == 0)
            && demand.accepts(&self.fact);
        fits.then_some(takes)
    }

    /// The memory that a pod could have of it: none of a card that it may not share.
    pub fn free(&self, demand: &Demand, room: Room) -> i64 {
        let least = Ask { cards: 1, memory: Memory::Mib(0), cores: 0 };
        let taken = self.taken(room);
        self.takes(demand, &least, taken).map_or(0, |_| self.fact.memory - taken.memory)
    }

    /// How many pods with this ask alone it takes.
    fn holds(&self, demand: &Demand, ask: &Ask, room: Room) -> i64 {
        let taken = self.taken(room);
        let Some(takes) = self.takes(demand, ask, taken) else { return 0 };
        let times = |left: i64, each: i64| if each > 0 { left / each } else { i64::MAX };
        let memory = times(self.fact.memory - taken.memory, takes.memory);
        memory.min(times(ALL_CORES - taken.cores, takes.cores)).min(self.fact.pods - taken.pods)
    }
}

impl Cards {
    pub fn new(facts: Vec<Fact>) -> Cards {
        Cards(facts.into_iter().map(Card::new).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Card> {
        self.0.iter()
    }

    pub fn get(&self, card: u32) -> Option<&Card> {
        self.0.get(card as usize)
    }

    pub(super) fn get_mut(&mut self, card: u32) -> Option<&mut Card> {
        self.0.get_mut(card as usize)
    }

    pub(super) fn find(&self, id: &str) -> Option<u32> {
        self.0.iter().position(|card| card.fact.id == id).map(|place| place as u32)
    }

    /// The same cards with nothing on them.
    pub fn emptied(&self) -> Cards {
        Cards(self.0.iter().map(|card| Card::new(card.fact.clone())).collect())
    }

    /// Whether there are cards for a pod.
    pub fn admit(&self, demand: &Demand, room: Room, prefer: Prefer) -> bool {
        match &*demand.asks {
            [ask] => self.fitting(demand, ask, room) >= ask.cards as usize,
            _ => self.choose(demand, room, prefer).is_some(),
        }
    }

    /// How many cards would do for one ask.
    pub fn fitting(&self, demand: &Demand, ask: &Ask, room: Room) -> usize {
        self.0.iter().filter(|card| card.takes(demand, ask, card.taken(room)).is_some()).count()
    }

    /// The cards for a pod. Cards kept for nominated pods are used only where no others do, and
    /// only by pods that may.
    pub fn choose(&self, demand: &Demand, room: Room, prefer: Prefer) -> Option<Vec<Slot>> {
        let not_nominated = match room {
            Room::Backfill => self.choose_in(demand, Room::Idle, prefer),
            _ => None,
        };
        not_nominated.or_else(|| self.choose_in(demand, room, prefer))
    }

    /// Container by container; of the cards that do, the fullest or the emptiest, of equal ones the
    /// first.
    fn choose_in(&self, demand: &Demand, room: Room, prefer: Prefer) -> Option<Vec<Slot>> {
        let mut taken: Vec<Taken> = self.0.iter().map(|card| card.taken(room)).collect();
        let mut slots = Vec::new();
        for (container, ask) in (0..).zip(&demand.asks) {
            let fits = |(card, taken): (&Card, &Taken)| card.takes(demand, ask, *taken);
            let each = (0..).zip(self.0.iter().zip(&taken));
            let mut fitting: Vec<(u32, Taken)> =
                each.filter_map(|(place, card)| Some((place, fits(card)?))).collect();
            if fitting.len() < ask.cards as usize {
                return None;
            }
            let sign = if prefer == Prefer::Fullest { 1 } else { -1 };
            let free = |place: u32| {
                let taken = taken[place as usize];
                (sign * (self.0[place as usize].fact.memory - taken.memory), -sign * taken.cores)
            };
            fitting.sort_by_key(|&(place, _)| (free(place), place));
            for &(card, takes) in &fitting[..ask.cards as usize] {
                taken[card as usize].add(takes, 1);
                slots.push(Slot { card, container, takes });
            }
        }
        Some(slots)
    }

    /// Whether a pod can have these cards again.
    pub(super) fn admit_on(&self, demand: &Demand, slots: &[Slot], room: Room) -> bool {
        let mut taken: Vec<Taken> = self.0.iter().map(|card| card.taken(room)).collect();
        slots.iter().all(|slot| {
            let (ask, card) = (demand.asks.get(slot.container as usize), self.get(slot.card));
            let (Some(ask), Some(card)) = (ask, card) else { return false };
            let beside = &mut taken[slot.card as usize];
            let fits = card.takes(demand, ask, *beside) == Some(slot.takes);
            beside.add(slot.takes, 1);
            fits
        })
    }

    /// How many such pods find cards, one after the other.
    pub fn holds(&self, demand: &Demand, room: Room, prefer: Prefer) -> i64 {
        if let [ask] = &*demand.asks
            && ask.cards == 1
        {
            return self.0.iter().map(|card| card.holds(demand, ask, room)).sum();
        }
        let mut trial = self.clone();
        let mut pods = 0;
        while let Some(slots) = trial.choose(demand, room, prefer) {
            for slot in slots {
                let card = &mut trial.0[slot.card as usize];
                let sum =
                    if room == Room::FutureIdle { &mut card.nominated } else { &mut card.used };
                sum.add(slot.takes, 1);
            }
            pods += 1;
        }
        pods
    }
}
