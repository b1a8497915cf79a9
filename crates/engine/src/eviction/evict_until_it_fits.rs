//! Evicts candidates one after the other until there is room. Three searches do this; what differs
//! between them is a parameter:
//!
//! | | one pod on a node (`per_pod.rs`) | a gang in a domain (`per_domain.rs`) | moves (`consolidate.rs`) |
//! |---|---|---|---|
//! | tries to fit (`lacks`) | after each eviction | once the sums suffice | after each eviction |
//! | rules asked before each (`evict`) | vetoes that count evictions | these, and in mode `scenario` fair shares | vetoes that count evictions |
//! | tries again (`tries_again`) | no | what fair shares protected, if it may be moved instead | no |
//! | stops early (`most`, `budget`) | no | at its budget of steps | at `maxMoves` |
//! | gives back | last evicted first | bundles, then subgroups, then pods; last evicted first | first evicted first |
//!
//! The caller of `give_back` determines its order.

use std::collections::VecDeque;

use crate::base::ids::PodId;
use crate::eviction::fit::Target;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::Needed;

/// How the searches differ.
pub struct Rules {
    /// What the nodes lack in sum. No attempt to fit is made before the evictions free that much.
    /// Empty: an attempt is made after each eviction.
    pub lacks: Needed,
    /// How many candidates may be evicted.
    pub most: usize,
    /// How many steps the transaction may have taken before the next eviction.
    pub budget: u64,
    /// Candidates that a rule protected are tried again after all others.
    pub tries_again: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { lacks: Needed::new(), most: usize::MAX, budget: u64::MAX, tries_again: false }
    }
}

/// The result of the evictions.
pub struct Evicted<B, C> {
    pub fits: bool,
    /// What was evicted, in this order.
    pub evicted: Vec<C>,
    /// What the nodes still lack in sum.
    pub lacks: Needed,
    /// After how many evictions no attempt to fit was made.
    pub untried: u32,
    pub stopped: Option<Stop<B>>,
}

/// Why not all candidates were tried although the target does not fit.
pub enum Stop<B> {
    /// This candidate would be one too many.
    TooMany(B),
    BudgetExhausted,
}

/// Evicts candidates in this order until the target fits. `evict` asks the rules and evicts what
/// they allow of a candidate; its last argument says whether the candidate is tried again. Leaves
/// its moves in the transaction.
pub fn evict_until_it_fits<B: Copy, C: AsRef<[PodId]>>(
    txn: &mut Txn,
    rankings: &mut Rankings,
    target: &mut impl Target,
    candidates: impl IntoIterator<Item = B>,
    rules: Rules,
    mut evict: impl FnMut(&mut Txn, B, bool) -> Option<C>,
) -> Evicted<B, C> {
    let Rules { mut lacks, most, budget, tries_again } = rules;
    let mut candidates = candidates.into_iter().fuse();
    let mut protected: VecDeque<B> = VecDeque::new();
    let (mut evicted, mut untried, mut stopped) = (Vec::new(), 0, None);
    let mut fits = lacks.is_empty() && target.fit_more(txn, rankings);
    while !fits {
        let first = candidates.next().map(|candidate| (candidate, false));
        let next = first.or_else(|| Some((protected.pop_front()?, true)));
        let Some((candidate, again)) = next else { break };
        if evicted.len() >= most {
            stopped = Some(Stop::TooMany(candidate));
            break;
        }
        if txn.steps() >= budget {
            let stopped = Some(Stop::BudgetExhausted);
            return Evicted { fits, evicted, lacks, untried, stopped };
        }
        let Some(set) = evict(txn, candidate, again) else {
            protected.extend((tries_again && !again).then_some(candidate));
            continue;
        };
        for &pod in set.as_ref() {
            for (resource, lack) in &mut lacks {
                *lack -= txn.request_of(txn.pods.shape[pod], *resource);
            }
        }
        lacks.retain(|&(_, lack)| lack > 0);
        evicted.push(set);
        untried += u32::from(!lacks.is_empty());
        fits = lacks.is_empty() && target.fit_more(txn, rankings);
    }
    fits = fits || lacks.is_empty() && target.fit_anew(txn, rankings);
    Evicted { fits, evicted, lacks, untried, stopped }
}
