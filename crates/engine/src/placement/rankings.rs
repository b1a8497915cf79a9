//! Putting pods of a gang on nodes inside a transaction: each on the best node that fits, until
//! nothing is missing.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::base::ids::{DomainId, GangId, NodeId, PodId, ShapeId, Table, TermId};
use crate::base::resources::{Amounts, Share};
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::gangs::Missing;
use crate::model::topology::domains::ROOT;
use crate::model::txn::{Mark, Txn};
use crate::placement::ranking;
use crate::placement::ranking::{Ranking, Scratch};
use crate::policy::answers::{Policy, Room};

/// The rankings of the shapes in use, most of which serve many gangs.
#[derive(Default)]
pub struct Rankings {
    /// By shape and room.
    kept: Vec<[Option<Box<Kept>>; 3]>,
    count: usize,
    clock: u64,
    scratch: Scratch,
    newest: Option<(ShapeId, Room)>,
    /// In this cycle, a gang of this shape that lacked so many pods found no room; room only
    /// shrinks until its end.
    refused: FxHashMap<(ShapeId, Room), (u32, Reason)>,
}

/// Where would one pod go?
pub struct Ask<'a> {
    pub cluster: &'a Cluster,
    pub policy: &'a Policy,
    pub shape: ShapeId,
    pub room: Room,
    /// See [`Wish::avoid`].
    pub avoid: &'a [(TermId, u32)],
    pub kind: Kind,
}

/// How nodes are compared for a shape.
#[derive(Copy, Clone)]
pub struct Kind {
    /// By what is on other nodes too.
    far_reaching: bool,
    /// By what is in their domains too.
    by_domain: bool,
}

impl Kind {
    pub fn of(cluster: &Cluster, policy: &Policy, shape: ShapeId) -> Kind {
        Kind {
            far_reaching: cluster.far_reaching(shape),
            by_domain: policy.scores_domains(cluster, shape),
        }
    }
}

struct Kept {
    ranking: Ranking,
    used: u64,
}

impl Rankings {
    /// One ranking is about 16 bytes a node; more shapes than these take turns.
    const LIMIT: usize = 256;

    pub fn begin_cycle(&mut self) {
        self.refused.clear();
    }

    /// The ranking of a shape, up to date.
    pub fn of(
        &mut self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        room: Room,
    ) -> &Ranking {
        self.clock += 1;
        if self.kept.len() <= usize::from(shape) {
            self.kept.resize_with(cluster.shapes.len(), Default::default);
        }
        if self.kept[usize::from(shape)][room as usize].is_none() {
            if self.count >= Self::LIMIT {
                self.drop_oldest();
            }
            self.count += 1;
            let mut ranking = Ranking::new(room, cluster.shapes[shape].born);
            if let Some((other, room)) = self.newest.replace((shape, room))
                && let Some(known) = &self.kept[usize::from(other)][room as usize]
                && cluster.shapes[other].born == known.ranking.born
                && cluster.shapes[other].sees_like(&cluster.shapes[shape])
            {
                ranking.learn(&known.ranking);
            }
            let kept = Kept { ranking, used: 0 };
            self.kept[usize::from(shape)][room as usize] = Some(Box::new(kept));
        }
        let kept = self.kept[usize::from(shape)][room as usize].as_mut().expect("just made");
        kept.used = self.clock;
        kept.ranking.refresh(cluster, policy, shape, &mut self.scratch);
        &kept.ranking
    }

    fn drop_oldest(&mut self) {
        let slots = self.kept.iter_mut().flatten().filter(|slot| slot.is_some());
        if let Some(oldest) = slots.min_by_key(|slot| slot.as_ref().map(|kept| kept.used)) {
            *oldest = None;
            self.count -= 1;
        }
    }

    /// The best node of all, with what domains add to the scores of their nodes.
    pub fn best(&mut self, ask: &Ask) -> Option<NodeId> {
        let &Ask { cluster, policy, shape, room, avoid, kind } = ask;
        if !kind.by_domain {
            return self.best_in(ask, ROOT);
        }
        self.of(cluster, policy, shape, room);
        let ranking = self.kept_mut(shape, room);
        if kind.far_reaching {
            let added = ranking::added_by_domains(cluster, policy, shape);
            return ranking.best_among(
                cluster,
                policy,
                shape,
                avoid,
                cluster.domains.ranks(ROOT),
                &added,
            );
        }
        ranking.need_tops(cluster, policy, shape);
        ranking.best_of_all(cluster)
    }

    fn best_in(&mut self, ask: &Ask, domain: DomainId) -> Option<NodeId> {
        let &Ask { cluster, policy, shape, room, avoid, kind } = ask;
        let ranking = self.of(cluster, policy, shape, room);
        let ranks = cluster.domains.ranks(domain);
        match kind.far_reaching {
            true => ranking.best_among(cluster, policy, shape, avoid, ranks, &Table::default()),
            false if domain == ROOT => ranking.best(cluster),
            false => ranking.best_of(cluster, ranks),
        }
    }

    /// The best node of the smallest domain that has one. So many pods are to come, this one
    /// included.
    pub fn nearest(&mut self, ask: &Ask, near: Vicinity, left: u32) -> Option<NodeId> {
        let (domains, within) = (&ask.cluster.domains, near.within);
        let closer = domains.chain(near.of).take_while(|&domain| domain != within);
        let closer = closer.filter(|&domain| domains.holds(within, domain));
        let mut around = closer.chain(std::iter::once(within));
        around.find_map(|domain| {
            let lowest = self.lowest(ask, domain, near.others, left);
            self.best_in(ask, lowest).or_else(|| self.best_in(ask, domain))
        })
    }

    /// The way down from a domain to a leaf: each time to where most of the others are, else to
    /// where most of those fit that are to come, with the least left over.
    fn lowest(&mut self, ask: &Ask, from: DomainId, others: &[DomainId], left: u32) -> DomainId {
        let domains = &ask.cluster.domains;
        if domains.is_leaf(from) {
            return from;
        }
        let ranking = self.counted(ask.cluster, ask.policy, ask.shape, ask.room);
        let worth = |domain: &DomainId| {
            let before = |id: u32| others.partition_point(|other| other.0 < id);
            let below = domains.below(*domain);
            let holds = ranking.holds(*domain);
            (
                before(below.end) - before(below.start),
                holds.min(left),
                Reverse((holds, domains[*domain].order)),
            )
        };
        let down = |&at: &DomainId| {
            domains.children(at).filter(|&child| ranking.holds(child) > 0).max_by_key(worth)
        };
        std::iter::successors(Some(from), down).last().unwrap_or(from)
    }

    fn kept_mut(&mut self, shape: ShapeId, room: Room) -> &mut Ranking {
        &mut self.kept[usize::from(shape)][room as usize].as_mut().expect("just asked for").ranking
    }

    /// The ranking of a shape that also knows how many pods fit in each domain.
    pub fn counted(
        &mut self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        room: Room,
    ) -> &Ranking {
        self.of(cluster, policy, shape, room);
        let ranking = self.kept_mut(shape, room);
        ranking.need_counts(cluster, shape);
        ranking
    }

    /// A gang of one shape that lacks as many pods as one that failed before it in this cycle fails
    /// too.
    pub fn known_refusal(
        &self,
        cluster: &Cluster,
        shape: ShapeId,
        room: Room,
        pods: &[PodId],
        missing: u32,
    ) -> Option<Reason> {
        let (failed, reason) =
            self.refused.get(&(shape, room)).filter(|(failed, _)| missing >= *failed)?;
        let Reason::NoNodes { placed, histogram, .. } = reason else { return None };
        let first = pods.get(*placed.min(failed) as usize).or(pods.last())?;
        Some(Reason::NoNodes {
            placed: *placed,
            wanted: missing,
            pod: cluster.pods.name(*first).clone(),
            histogram: histogram.clone(),
        })
    }

    pub fn remember_refusal(&mut self, shape: ShapeId, room: Room, missing: u32, reason: &Reason) {
        let known = self.refused.entry((shape, room)).or_insert_with(|| (missing, reason.clone()));
        if missing < known.0 {
            *known = (missing, reason.clone());
        }
    }
}

/// What is to be placed, and where.
#[derive(Copy, Clone)]
pub struct Wish<'w> {
    pub gang: GangId,
    /// In the order in which they are placed.
    pub pods: &'w [PodId],
    pub missing: &'w Missing,
    pub room: Room,
    /// Topology values where a set that wants to be together was tried in vain.
    pub avoid: &'w [(TermId, u32)],
    /// Where they are to be near each other. Otherwise each goes to the best node of all.
    pub near: Option<Vicinity<'w>>,
}

/// Each pod as near as possible to the one before, the first to a domain.
#[derive(Copy, Clone)]
pub struct Vicinity<'v> {
    pub of: DomainId,
    /// Only there.
    pub within: DomainId,
    /// The homes of those that have places already, in order.
    pub others: &'v [DomainId],
}

/// Places pods of the gang until nothing is missing, in the order given if that is possible. Leaves
/// its moves in the transaction either way; on failure the reasons name what stopped the first pod
/// of each shape.
pub fn place(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    wish: &Wish,
) -> Result<(), Vec<Reason>> {
    let start = txn.mark();
    let result = place_in_order(txn, policy, rankings, wish);
    let may_differ = wish.missing.total > 1 && one_shape(txn, wish.pods).is_none();
    if result.is_err() && may_differ && try_otherwise(txn, policy, rankings, wish, start) {
        return Ok(());
    }
    result
}

fn place_in_order(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    wish: &Wish,
) -> Result<(), Vec<Reason>> {
    let &Wish { gang, pods, room, avoid, mut near, .. } = wish;
    let mut missing = wish.missing.clone();
    let wanted = missing.total;
    let mut reasons: Vec<Reason> = Vec::new();
    let mut failed: Vec<ShapeId> = Vec::new();
    // A pod that wants company may fit once the company is placed, so such pods get another round.
    let mut again: Vec<PodId> = Vec::new();
    let mut round: Vec<PodId> = Vec::new();
    let mut list = pods;
    // Asked once for pods that are alike.
    let mut known: Option<(ShapeId, Kind)> = None;
    loop {
        let before = missing.total;
        for (at, &pod) in list.iter().enumerate() {
            if missing.total == 0 {
                return Ok(());
            }
            let shape = txn.pods.shape[pod];
            let role = txn.pods.role[pod] as usize;
            if failed.contains(&shape) || !missing.wants(role) {
                continue;
            }
            if txn.shapes[shape].uses_claims() {
                reasons.push(Reason::ResourceClaims { pod: txn.pods.name(pod).clone() });
                failed.push(shape);
                continue;
            }
            if let Err(reason) = policy.may_take(txn, gang, shape, room) {
                reasons.push(reason);
                failed.push(shape);
                continue;
            }
            let kind = match known {
                Some((alike, kind)) if alike == shape => kind,
                _ => known.insert((shape, Kind::of(txn, policy, shape))).1,
            };
            let ask = Ask { cluster: txn, policy, shape, room, avoid, kind };
            let found = match near {
                Some(near) => rankings.nearest(&ask, near, (list.len() - at) as u32),
                None => rankings.best(&ask),
            };
            match found {
                Some(node) => {
                    near = near.map(|near| Vicinity { of: txn.domains.home(node), ..near });
                    match room {
                        Room::Now | Room::Meanwhile => txn.allocate(pod, node),
                        Room::Later => txn.nominate(pod, node),
                    }
                    missing.take(role);
                }
                None if !txn.shapes[shape].bonds.affinity.is_empty() => again.push(pod),
                None => {
                    failed.push(shape);
                    let reason = no_nodes(txn, policy, rankings, pod, wanted, &missing, room);
                    // Pods that differ in something else say the same of nodes.
                    if !reasons.iter().any(|known| known.says_the_same_of_nodes(&reason)) {
                        reasons.push(reason);
                    }
                }
            }
        }
        if missing.total == 0 {
            return Ok(());
        }
        if again.is_empty() || missing.total == before {
            break;
        }
        round.clear();
        std::mem::swap(&mut round, &mut again);
        list = &round;
    }
    if let Some(&pod) = again.first() {
        reasons.push(no_nodes(txn, policy, rankings, pod, wanted, &missing, room));
    }
    Err(reasons)
}

fn no_nodes(
    txn: &Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    pod: PodId,
    wanted: u32,
    missing: &Missing,
    room: Room,
) -> Reason {
    let shape = txn.pods.shape[pod];
    let histogram = rankings.of(txn, policy, shape, room).histogram(txn, policy, shape);
    Reason::NoNodes {
        placed: wanted - missing.total,
        wanted,
        pod: txn.pods.name(pod).clone(),
        histogram,
    }
}

/// How many places a set that wants to be together is tried in.
const TOGETHER_TRIES: usize = 16;

/// A gang of several shapes, or with rules between its pods, may fit in another way than the first
/// that was tried.
fn try_otherwise(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    wish: &Wish,
    start: Mark,
) -> bool {
    // The best place for the first of a set that wants to be together may be too small for the
    // rest.
    let mut avoid: Vec<(TermId, u32)> = Vec::new();
    while let Some(found) = first_together(txn, wish.pods).filter(|_| avoid.len() < TOGETHER_TRIES)
    {
        avoid.push(found);
        txn.rewind(start);
        if place_in_order(txn, policy, rankings, &Wish { avoid: &avoid, ..*wish }).is_ok() {
            return true;
        }
    }
    // Small pods may have taken the room of large ones.
    txn.rewind(start);
    let large_first = by_size(txn, wish.pods);
    place_in_order(txn, policy, rankings, &Wish { pods: &large_first, ..*wish }).is_ok()
}

/// Where the trial put the first of a set that wants to be together.
fn first_together(txn: &Txn, pods: &[PodId]) -> Option<(TermId, u32)> {
    pods.iter().find_map(|&pod| {
        let bonds = &txn.shapes[txn.pods.shape[pod]].bonds;
        let term = *bonds.affinity.first().filter(|_| bonds.affine_to_itself)?;
        let value = txn.terms.value(term, txn.pods.state[pod].node()?);
        (value != 0).then_some((term, value))
    })
}

fn by_size(txn: &Txn, pods: &[PodId]) -> Vec<PodId> {
    let mut sorted = pods.to_vec();
    sorted.sort_by_key(|&pod| Reverse(size_of(txn, txn.pods.shape[pod])));
    sorted
}

/// What a pod of the shape asks for of the cluster, where it asks for most.
pub fn size_of(cluster: &Cluster, shape: ShapeId) -> Share {
    let mut amounts = Amounts::default();
    amounts.add_all(&cluster.shapes[shape].request, 1);
    Share::dominant(&amounts, |resource| cluster.total.get(resource))
}

/// The shape of all of them, if it is one and no rule between pods concerns it.
pub fn one_shape(cluster: &Cluster, pods: &[PodId]) -> Option<ShapeId> {
    let shape = cluster.pods.shape[*pods.first()?];
    let same = pods.iter().all(|&pod| cluster.pods.shape[pod] == shape);
    (same && !cluster.shapes[shape].uses_claims() && !cluster.far_reaching(shape)).then_some(shape)
}
