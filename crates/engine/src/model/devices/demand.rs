//! What a pod wants of the cards of its node.

use muster_api::cards::Card;
use muster_api::core::{Labels, PodSpec};
use muster_api::keys::{
    GPU_MEMORY, GPU_NUMBER, NOUSE_GPU_ID, NOUSE_GPU_TYPE, USE_GPU_ID, USE_GPU_TYPE, VGPU_CORES,
    VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE, VGPU_NUMBER,
};
use muster_api::{ResourceList, container_requests, pod_requests};
use serde::{Deserialize, Serialize};

use crate::base::cards::{ALL_CORES, Ask, Memory};
use crate::model::devices::{By, Slot};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// One for each container that asks, or one for the pod.
    pub asks: Box<[Ask]>,
    #[serde(alias = "likes")]
    pub card_selector: Option<Box<CardSelector>>,
}

impl Demand {
    /// None if the pod asks for nothing that is shared in this way.
    pub fn of(by: By, spec: &PodSpec, card_selector: Option<&CardSelector>) -> Option<Box<Demand>> {
        let asks: Box<[Ask]> = match by {
            By::Memory => {
                let memory = Memory::Mib(asked(&pod_requests(spec), GPU_MEMORY)?);
                [Ask { cards: 1, memory, cores: 0 }].into()
            }
            By::Number => {
                let cards = count(asked(&pod_requests(spec), GPU_NUMBER)?);
                [Ask { cards, memory: Memory::Mib(0), cores: ALL_CORES }].into()
            }
            By::Virtual => {
                let asks = spec.containers.iter().map(container_requests);
                asks.filter_map(|request| of_container(&request)).collect()
            }
        };
        let card_selector = card_selector.filter(|_| by == By::Virtual).cloned().map(Box::new);
        (!asks.is_empty()).then(|| Box::new(Demand { asks, card_selector }))
    }

    /// Whether a pod with these has all cards that it asks for.
    pub(super) fn is_met_by(&self, slots: &[Slot]) -> bool {
        let of = |container: u32| slots.iter().filter(|slot| slot.container == container).count();
        (0..).zip(&self.asks).all(|(container, ask)| of(container) == ask.cards as usize)
    }

    pub fn accepts(&self, card: &Card) -> bool {
        self.card_selector.as_ref().is_none_or(|card_selector| card_selector.accepts(card))
    }
}

/// A request for memory alone is for one card; a request for cards that names no amount of memory
/// is for all of it.
fn of_container(request: &ResourceList) -> Option<Ask> {
    let memory = asked(request, VGPU_MEMORY);
    let cards = match asked(request, VGPU_NUMBER) {
        Some(cards) => count(cards),
        None => memory.map(|_| 1)?,
    };
    let percent = asked(request, VGPU_MEMORY_PERCENTAGE).unwrap_or(100);
    let memory = memory.map_or(Memory::Percent(percent), Memory::Mib);
    Some(Ask { cards, memory, cores: asked(request, VGPU_CORES).unwrap_or(0) })
}

fn asked(request: &ResourceList, name: &str) -> Option<i64> {
    request.get(name).map(|amount| amount.value()).filter(|amount| *amount > 0)
}

fn count(cards: i64) -> u32 {
    u32::try_from(cards).unwrap_or(u32::MAX)
}

/// Which cards a pod wants or refuses, as its annotations say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CardSelector {
    /// Parts of a model's name, in capitals.
    kinds: Box<[String]>,
    other_kinds: Box<[String]>,
    ids: Box<[String]>,
    other_ids: Box<[String]>,
}

impl CardSelector {
    /// None for most pods, which take any card.
    pub fn of(annotations: &Labels) -> Option<CardSelector> {
        let list = |key: &str| {
            let words = annotations.get(key).map(String::as_str).unwrap_or_default().split(',');
            words
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect::<Box<[String]>>()
        };
        let capitals = |key: &str| list(key).iter().map(|word| word.to_uppercase()).collect();
        let card_selector = CardSelector {
            kinds: capitals(USE_GPU_TYPE),
            other_kinds: capitals(NOUSE_GPU_TYPE),
            ids: list(USE_GPU_ID),
            other_ids: list(NOUSE_GPU_ID),
        };
        (card_selector != CardSelector::default()).then_some(card_selector)
    }

    /// Kinds or ids that are wanted decide alone; those that are refused count only where none is
    /// wanted.
    fn accepts(&self, card: &Card) -> bool {
        let kind = card.kind.to_uppercase();
        let of_kind = |kinds: &[String]| kinds.iter().any(|part| kind.contains(part));
        let allowed = |wanted: bool, refused: bool, any: bool| if any { !refused } else { wanted };
        allowed(of_kind(&self.kinds), of_kind(&self.other_kinds), self.kinds.is_empty())
            && allowed(
                self.ids.contains(&card.id),
                self.other_ids.contains(&card.id),
                self.ids.is_empty(),
            )
    }
}
