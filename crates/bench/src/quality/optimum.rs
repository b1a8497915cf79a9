//! The cheapest way to make room, found by trying everything that the rules allow. Written without
//! the engine.

use super::small::{Domain, Pods, Purpose, Small, members};

/// The cost of a way to make room; the smallest is the best.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    pub breaks: bool,
    pub tier: u8,
    /// The highest priority of a gang that loses pods; between queues, how late the queue is in the
    /// order in which queues give.
    pub priority: i32,
    /// In parts per million of what is needed.
    pub lost: i64,
}

#[derive(Clone, Debug)]
pub struct Solution {
    pub domain: Domain,
    pub gone: Pods,
    pub cost: Cost,
}

pub fn cost(small: &Small, domain: &Domain, gone: Pods) -> Cost {
    Cost {
        breaks: (0..small.gangs.len()).any(|gang| small.breaks(gang, gone)),
        tier: domain.tier,
        priority: highest(small, gone),
        lost: small.lost(domain, gone),
    }
}

fn highest(small: &Small, gone: Pods) -> i32 {
    let gangs = members(gone).map(|pod| &small.gangs[small.pods[pod].gang]);
    let rank = gangs.map(|gang| match small.purpose {
        Purpose::Preempt => gang.priority,
        Purpose::Reclaim => small.queues_before(gang.queue),
    });
    rank.max().unwrap_or(i32::MIN)
}

/// The best way there is.
pub fn optimum(small: &Small) -> Option<Solution> {
    if !small.may_allocate() {
        return None;
    }
    let domains = small.domains();
    for breaks in [false, true] {
        for tier in domains.chunk_by(|a, b| a.tier == b.tier) {
            let found = tier.iter().filter_map(|domain| Search::new(small, domain, breaks).best());
            if let Some(best) = found.min_by_key(|solution| solution.cost) {
                return Some(best);
            }
        }
    }
    None
}

/// All ways to make room in one domain.
struct Search<'s> {
    small: &'s Small,
    domain: &'s Domain,
    /// For each gang, the sets of its pods that may be evicted.
    choices: Vec<Vec<Pods>>,
    best: Option<Solution>,
}

impl<'s> Search<'s> {
    fn new(small: &'s Small, domain: &'s Domain, breaks: bool) -> Self {
        let concerned = (0..small.gangs.len()).filter(|&gang| small.in_scope(gang));
        let choices = concerned.map(|gang| choices(small, domain, gang, breaks)).collect();
        Search { small, domain, choices, best: None }
    }

    fn best(mut self) -> Option<Solution> {
        self.go(0, 0);
        self.best
    }

    /// Tries all choices from gang `from` on, with the pods in `gone` evicted already. Evicting
    /// more costs more and only adds room.
    fn go(&mut self, gang: usize, gone: Pods) {
        let cost = cost(self.small, self.domain, gone);
        let cheaper = self.best.as_ref().is_none_or(|best| cost < best.cost);
        if !cheaper || !self.small.quotas_allow(gone) {
            return;
        }
        if self.small.holds(self.domain, gone) {
            self.best = Some(Solution { domain: self.domain.clone(), gone, cost });
            return;
        }
        let all = self.choices[gang..].iter().flatten().fold(gone, |all, pods| all | pods);
        if gang == self.choices.len() || !self.small.holds(self.domain, all) {
            return;
        }
        for at in 0..self.choices[gang].len() {
            self.go(gang + 1, gone | self.choices[gang][at]);
        }
    }
}

/// The sets of pods of a gang that may be evicted in a domain: any of its surplus pods, or all that
/// it has there. Of equal pods the first ones are taken.
fn choices(small: &Small, domain: &Domain, gang: usize, breaks: bool) -> Vec<Pods> {
    let here = small.pods_of(gang) & small.pods_in(domain);
    let mut found = vec![0];
    for pod in members(here) {
        let alike = |other: &usize| {
            let (one, other) = (&small.pods[pod], &small.pods[*other]);
            (one.role, one.node, one.request) == (other.role, other.node, other.request)
        };
        let before = members(here).take_while(|&other| other < pod).filter(alike).last();
        for at in 0..found.len() {
            if before.is_none_or(|before| found[at] & 1 << before != 0) {
                found.push(found[at] | 1 << pod);
            }
        }
    }
    found.retain(|&gone| !small.breaks(gang, gone));
    if breaks && small.breaks(gang, here) {
        found.push(here);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::drawing;

    /// Every set of pods in every domain, one after the other.
    fn slowly(small: &Small) -> Option<Cost> {
        let allowed = |domain: &Domain, gone: Pods| {
            let here = small.pods_in(domain);
            gone & !here == 0
                && small.quotas_allow(gone)
                && (0..small.gangs.len()).filter(|&gang| gone & small.pods_of(gang) != 0).all(
                    |gang| {
                        let all = small.pods_of(gang) & here;
                        small.in_scope(gang) && (!small.breaks(gang, gone) || gone & all == all)
                    },
                )
        };
        let mut best = None;
        for domain in small.domains().iter().filter(|_| small.may_allocate()) {
            for gone in 0..1 << small.pods.len() {
                if allowed(domain, gone) && small.holds(domain, gone) {
                    let cost = cost(small, domain, gone);
                    best = Some(best.map_or(cost, |best: Cost| best.min(cost)));
                }
            }
        }
        best
    }

    #[test]
    fn every_set_of_pods_is_tried() {
        let clusters = (0..400).map(drawing::small).filter(|small| small.pods.len() <= 11);
        let clusters: Vec<Small> = clusters.collect();
        assert!(clusters.len() > 80, "only {} are small enough", clusters.len());
        for small in &clusters {
            assert_eq!(optimum(small).map(|best| best.cost), slowly(small), "{small:?}");
        }
    }
}
