//! Room by moving: pods leave nodes of a domain for other places, as few as possible, and only if each has one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, GangTaker, Need, Way};
use crate::bundles::{Bundle, share};
use crate::clearing;
use crate::ids::{DomainId, NodeId, PodId, ShapeId};
use crate::model::domains::ROOT;
use crate::model::pods::PodState;
use crate::placement::{Rankings, size_of};
use crate::plan::Cause;
use crate::policy::{Purpose, Room};
use crate::relocation::move_one;
use crate::seating::Seating;
use crate::trace::DomainOutcome;
use crate::txn::Txn;
use crate::victims::{Verdict, concerns, consider_one};

/// What it costs to move a pod, before its size: fewer pods first, then smaller ones.
const MOVE: i64 = 1_000_000;

/// A way that did not do: someone there could not be placed elsewhere.
struct Stranded(NodeId);

impl GangTaker<'_> {
    /// Whether there is enough in the whole cluster, so that nobody need be lost.
    pub(super) fn there_is_enough(&self, txn: &Txn, need: &Need) -> bool {
        let ranks = txn.domains.ranks(ROOT);
        let nodes = &txn.nodes.by_rank[ranks.start as usize..ranks.end as usize];
        need.lacks(txn, nodes).is_empty()
    }

    /// Makes room in a domain by moving pods elsewhere. Leaves its moves in the transaction either way.
    pub(super) fn move_others(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (domain, nodes): (DomainId, &[NodeId]),
        findings: &mut Findings,
    ) -> Option<Way> {
        let movable = self.movable(txn, rankings, nodes, findings);
        let mut left: Vec<NodeId> = nodes.to_vec();
        let mark = txn.mark();
        let mut found = self.try_moves(txn, rankings, need, (domain, &left), &movable, findings);
        findings.again = true;
        // Whoever is there can't be placed elsewhere beside the others: somewhere else, then.
        while let Err(Some(Stranded(stuck))) = found
            && self.may_go_on(txn)
        {
            left.retain(|&node| node != stuck);
            txn.rewind(mark);
            found = self.try_moves(txn, rankings, need, (domain, &left), &movable, findings);
        }
        findings.again = false;
        if found.is_err() {
            findings.refusal.nodes += nodes.len() as u32;
            let why = vec![findings.refusal.clone().reason(Purpose::Consolidate)];
            findings.tell(|trace| trace.conclude_domain(DomainOutcome::Fails { gone: Vec::new(), why }));
        }
        found.ok()
    }

    /// Single pods on these nodes that may be moved, and for which there is room somewhere.
    fn movable(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        nodes: &[NodeId],
        findings: &mut Findings,
    ) -> Vec<(NodeId, Bundle)> {
        let mut fits: BTreeMap<ShapeId, bool> = BTreeMap::new();
        let mut found = Vec::new();
        for &node in nodes {
            let mut pods = txn.nodes.seats[node].clone();
            pods.sort_unstable_by(|&a, &b| txn.pods.name(a).cmp(txn.pods.name(b)));
            for pod in pods {
                let Some(gang) = txn.pods.gang[pod].filter(|&gang| concerns(txn, &self.claim, gang)) else {
                    continue;
                };
                match consider_one(txn, self.policy, &self.claim, pod) {
                    Verdict::NoConcern => continue,
                    Verdict::Kept(shield) => {
                        findings.keep(&[pod], shield);
                        continue;
                    }
                    Verdict::Free => {}
                }
                let shape = txn.pods.shape[pod];
                let fits = fits
                    .entry(shape)
                    .or_insert_with(|| rankings.of(txn, self.policy, shape, Room::Later).best(txn).is_some());
                if *fits {
                    found.push((node, Bundle::single(gang, pod)));
                }
            }
        }
        found
    }

    fn try_moves(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (domain, nodes): (DomainId, &[NodeId]),
        movable: &[(NodeId, Bundle)],
        findings: &mut Findings,
    ) -> Result<Way, Option<Stranded>> {
        let open: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let here: Vec<Bundle> = movable
            .iter()
            .filter(|(node, _)| open.contains(node))
            .map(|(_, bundle)| bundle.clone())
            .collect();
        let size = |pod: PodId| size_of(txn, txn.pods.shape[pod]);
        let price = |bundle: &Bundle| {
            let size = size(bundle.pods[0]);
            MOVE + share(size.part, size.whole).min(MOVE) / 1000
        };
        let prices: Vec<i64> = here.iter().map(price).collect();
        let order = clearing::by_place(txn, &need.shapes, nodes, &here, &prices, BTreeMap::new());
        let mut seating = Seating::new(txn, self.policy, self.wish, &need.pods, domain);
        let mut gone: Vec<PodId> = Vec::new();
        let mut seated = seating.seat(txn, rankings);
        for at in order {
            if seated || gone.len() >= self.taking.max_moves {
                break;
            }
            let pod = here[at].pods[0];
            if let Some(shield) = self.policy.restrains(txn, &self.claim, pod) {
                findings.keep(&[pod], shield);
                continue;
            }
            txn.evict(pod);
            gone.push(pod);
            findings.record.work.scenarios += 1;
            seated = seating.seat(txn, rankings);
        }
        seated = seated || seating.seat_anew(txn, rankings);
        if seated {
            gone.retain(|&pod| !seating.spare(txn, rankings, &[pod]));
        }
        findings.record.work.simulations += seating.tries;
        if !seated {
            return Err(None);
        }
        self.move_all(txn, rankings, gone, findings).map_err(Some)
    }

    /// Finds other places for all of them, the largest first; or says from where some could not go.
    fn move_all(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        mut gone: Vec<PodId>,
        findings: &mut Findings,
    ) -> Result<Way, Stranded> {
        gone.sort_by_key(|&pod| Reverse(size_of(txn, txn.pods.shape[pod])));
        let homes: Vec<(PodId, NodeId)> =
            gone.iter().filter_map(|&pod| Some((pod, txn.pods.state[pod].node()?))).collect();
        for (pod, home) in homes {
            if !move_one(txn, self.policy, rankings, pod) {
                return Err(Stranded(home));
            }
        }
        let moved = |&pod: &PodId| match txn.pods.state[pod] {
            PodState::Nominated(node) => Some((pod, node)),
            _ => None,
        };
        let moved: Vec<(PodId, NodeId)> = gone.iter().filter_map(moved).collect();
        let bundle = |&(pod, _): &(PodId, NodeId)| Some(Bundle::single(txn.pods.gang[pod]?, pod));
        let bundles: Vec<Bundle> = moved.iter().filter_map(bundle).collect();
        let cost = moved.len() as i64 * MOVE;
        let causes = moved.iter().map(|&(pod, to)| (pod, Cause::Moved { to })).collect();
        findings.tell(|trace| trace.conclude_domain(DomainOutcome::Works { gone: bundles, moved, cost }));
        Ok(Way { cost, causes, reprieved: 0 })
    }
}
