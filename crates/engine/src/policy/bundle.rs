//! Pods of one gang that leave together. A *safe* bundle is what a gang can lose and still run, or
//! all of a gang that doesn't run anyway; a *whole* bundle is the rest of it in a domain, and
//! breaks it.

use crate::base::ids::{GangId, PodId, ResourceId};

/// The rule that keeps what a gang needs where it may not be broken.
pub const GANG_AT_MINIMUM: &str = "gang at its minimum";

/// What a gang lacks in a domain, by resource; only what it does lack.
pub type Needed = Vec<(ResourceId, i64)>;

#[derive(Clone, Debug)]
pub struct Bundle {
    pub gang: GangId,
    pub kind: BundleKind,
    /// The gang lacks pods to its minimum anyway.
    pub broken: bool,
    /// They go all together or not at all.
    pub all_or_nothing: bool,
    /// In the order in which they would leave.
    pub pods: Vec<PodId>,
    /// What the gang could lose goes with the rest of it.
    pub rest: Vec<PodId>,
    /// Pods that could leave instead of these, if each may leave alone.
    pub instead: Vec<PodId>,
    /// What the preemptor gains for what is lost everywhere, in parts per million; nothing is lost
    /// with a safe one.
    pub roi: Option<i64>,
    /// Those before which nothing else goes have the same number; no matter of what they return.
    pub class: u32,
    /// How much it frees that was not requested, by pods and resources.
    pub(crate) unasked: usize,
}

impl Bundle {
    /// One pod that may leave alone.
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
            unasked: 0,
        }
    }

    /// The same with these of its pods.
    pub fn of(&self, pods: Vec<PodId>) -> Bundle {
        let &Bundle { gang, kind, broken, all_or_nothing, roi, class, unasked, .. } = self;
        let (rest, instead) = (Vec::new(), Vec::new());
        Bundle { gang, kind, broken, all_or_nothing, pods, rest, instead, roi, class, unasked }
    }

    /// The smallest bundles that it can be cut into. Pods that could leave instead are with the
    /// first.
    pub fn units(&self) -> Vec<Bundle> {
        if self.all_or_nothing || self.pods.len() < 2 {
            return vec![self.clone()];
        }
        let mut units: Vec<Bundle> = self.pods.iter().map(|&pod| self.of(vec![pod])).collect();
        units[0].instead.clone_from(&self.instead);
        units
    }

    /// The smallest bundles that it can be cut into, with those of pods that could leave instead.
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
