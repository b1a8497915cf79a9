//! Candidates are evicted one after the other until there is room. Three searches do this, and each
//! difference between them is a parameter:
//!
//! | | one pod on a node (`per_pod.rs`) | a gang in a domain (`per_domain.rs`) | moves (`consolidate.rs`) |
//! |---|---|---|---|
//! | tries to fit (`lacks`) | after each eviction | once the sums suffice | after each eviction |
//! | asks before each (`evict`) | vetoes that count evictions | these, and in mode `scenario` fair shares | vetoes that count evictions |
//! | asks again (`asks_again`) | no | what fair shares withheld, if it may be moved instead | no |
//! | stops early (`most`, `budget`) | no | at its budget of steps | at `maxMoves` |
//! | gives back | last evicted first | bundles, then subgroups, then pods; last evicted first | first evicted first |
//!
//! The order of giving back is in the call of `give_back`.

use std::collections::VecDeque;

use crate::base::ids::PodId;
use crate::eviction::fit::Target;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::Needed;

/// How the searches differ.
pub struct Rules {
    /// What the nodes have too little of in sum: it is not tried to fit before as much has left.
    /// Empty: it is tried after each eviction.
    pub lacks: Needed,
    /// How many candidates may be evicted.
    pub most: usize,
    /// How many steps the transaction may have taken before the next eviction.
    pub budget: u64,
    /// Candidates that stay are asked again after all others.
    pub asks_again: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { lacks: Needed::new(), most: usize::MAX, budget: u64::MAX, asks_again: false }
    }
}

/// What came of it.
pub struct Evicted<B, C> {
    pub fits: bool,
    /// What was evicted, in this order.
    pub gone: Vec<C>,
    /// What the nodes still have too little of in sum.
    pub lacks: Needed,
    /// After how many evictions it was not tried to fit.
    pub untried: u32,
    pub stopped: Option<Stop<B>>,
}

/// Why not all candidates were asked although it does not fit.
pub enum Stop<B> {
    /// This candidate would be one too many.
    TooMany(B),
    BudgetExhausted,
}

/// Evicts candidates in this order until the target fits. `evict` asks the rules, and evicts what
/// they allow of a candidate; it is told if it asks again. Leaves its moves in the transaction.
pub fn evict_until_it_fits<B: Copy, C: AsRef<[PodId]>>(
    txn: &mut Txn,
    rankings: &mut Rankings,
    target: &mut impl Target,
    candidates: impl IntoIterator<Item = B>,
    rules: Rules,
    mut evict: impl FnMut(&mut Txn, B, bool) -> Option<C>,
) -> Evicted<B, C> {
    let Rules { mut lacks, most, budget, asks_again } = rules;
    let mut candidates = candidates.into_iter().fuse();
    let mut stayed: VecDeque<B> = VecDeque::new();
    let (mut gone, mut untried, mut stopped) = (Vec::new(), 0, None);
    let mut fits = lacks.is_empty() && target.fit_more(txn, rankings);
    while !fits {
        let first = candidates.next().map(|candidate| (candidate, false));
        let next = first.or_else(|| Some((stayed.pop_front()?, true)));
        let Some((candidate, again)) = next else { break };
        if gone.len() >= most {
            stopped = Some(Stop::TooMany(candidate));
            break;
        }
        if txn.steps() >= budget {
            let stopped = Some(Stop::BudgetExhausted);
            return Evicted { fits, gone, lacks, untried, stopped };
        }
        let Some(set) = evict(txn, candidate, again) else {
            stayed.extend((asks_again && !again).then_some(candidate));
            continue;
        };
        for &pod in set.as_ref() {
            for (resource, lack) in &mut lacks {
                *lack -= txn.request_of(txn.pods.shape[pod], *resource);
            }
        }
        lacks.retain(|&(_, lack)| lack > 0);
        gone.push(set);
        untried += u32::from(!lacks.is_empty());
        fits = lacks.is_empty() && target.fit_more(txn, rankings);
    }
    fits = fits || lacks.is_empty() && target.fit_anew(txn, rankings);
    Evicted { fits, gone, lacks, untried, stopped }
}
