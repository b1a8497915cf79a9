//! Pods of one gang that are evicted together. A *safe* bundle is surplus of a gang, or all of a
//! gang that is broken already; a *whole* bundle is the rest of a gang in a domain, and evicting it
//! breaks the gang.

use crate::base::ids::{GangId, PodId, ResourceId};

/// The rule that protects what a gang needs where it may not be broken.
pub const GANG_AT_MINIMUM: &str = "gang at its minimum";

/// What a gang lacks in a domain, by resource; without resources that it does not lack.
pub type Needed = Vec<(ResourceId, i64)>;

#[derive(Clone, Debug)]
pub struct Bundle {
    pub gang: GangId,
    pub kind: BundleKind,
    /// The gang is broken already.
    pub broken: bool,
    /// Its pods are evicted all together or not at all.
    pub all_or_nothing: bool,
    /// In the order in which they would be evicted.
    pub pods: Vec<PodId>,
    /// The surplus of the gang, which is evicted with the rest of it.
    pub rest: Vec<PodId>,
    /// The pods that could be evicted instead of these, if each can be evicted alone.
    pub instead: Vec<PodId>,
    /// The return: what the preemptor gains relative to what is lost everywhere, in parts per
    /// million; a safe bundle loses nothing.
    pub roi: Option<i64>,
    /// Bundles of equal rank have the same number, whatever they return.
    pub class: u32,
    /// Its place in the order of eviction.
    pub place: u32,
    /// The place of its queue among those that give; the same for queues that are equal.
    pub turn: u32,
    /// How much it frees that is not needed: the number of such resources, summed over pods.
    pub(crate) unneeded: usize,
}

impl Bundle {
    /// One pod that can be evicted alone.
    pub fn single(gang: GangId, pod: PodId) -> Bundle {
        Bundle {
            gang,
            kind: BundleKind::Safe,
            broken: true,
            all_or_nothing: false,
            pods: vec![pod],
            rest: Vec::new(),
            instead: Vec::new(),
            roi: None,
            class: 0,
            place: 0,
            turn: 0,
            unneeded: 0,
        }
    }

    /// The same bundle with only these of its pods.
    pub fn of(&self, pods: Vec<PodId>) -> Bundle {
        let &Bundle {
            gang, kind, broken, all_or_nothing, roi, class, place, turn, unneeded, ..
        } = self;
        let (rest, instead) = (Vec::new(), Vec::new());
        Bundle {
            gang,
            kind,
            broken,
            all_or_nothing,
            pods,
            rest,
            instead,
            roi,
            class,
            place,
            turn,
            unneeded,
        }
    }

    /// The smallest parts that can be evicted on their own; the alternatives are listed with the
    /// first.
    pub fn units(&self) -> Vec<Bundle> {
        if self.all_or_nothing || self.pods.len() < 2 {
            return vec![self.clone()];
        }
        let mut units: Vec<Bundle> = self.pods.iter().map(|&pod| self.of(vec![pod])).collect();
        units[0].instead.clone_from(&self.instead);
        units
    }

    /// The smallest parts that can be evicted on their own, and the alternatives.
    pub fn one_by_one(&self) -> Vec<Bundle> {
        match self.all_or_nothing {
            true => vec![self.clone()],
            false => self.pods.iter().chain(&self.instead).map(|&pod| self.of(vec![pod])).collect(),
        }
    }
}

impl AsRef<[PodId]> for Bundle {
    fn as_ref(&self) -> &[PodId] {
        &self.pods
    }
}

/// In the order in which they are evicted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleKind {
    Safe,
    Whole,
}
