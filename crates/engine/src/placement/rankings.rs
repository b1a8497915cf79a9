//! The rankings of the shapes in use.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::base::ids::{DomainId, NodeId, PodId, ShapeId, Table};
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::topology::domains::ROOT;
use crate::placement::ranking;
use crate::placement::ranking::{Ranking, Scratch};
use crate::placement::request::{NodeQuery, Vicinity};
use crate::policy::answers::Policy;

/// The rankings of the shapes in use, most of which serve many gangs.
#[derive(Default)]
pub struct Rankings {
    /// By shape and room.
    kept: Vec<[Option<Box<Kept>>; 3]>,
    count: usize,
    clock: u64,
    scratch: Scratch,
    newest: Option<(ShapeId, Room)>,
    /// How many pods a gang of this shape lacked that found no room in this cycle, and why; room
    /// only shrinks until its end.
    refused: FxHashMap<(ShapeId, Room), (u32, Reason)>,
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

    /// The best node of all, with the points of domains.
    pub fn best(&mut self, ask: &NodeQuery) -> Option<NodeId> {
        let &NodeQuery { cluster, policy, shape, room, avoid, kind } = ask;
        if !kind.by_domain {
            return self.best_in(ask, ROOT);
        }
        self.of(cluster, policy, shape, room);
        let ranking = self.kept_mut(shape, room);
        if kind.depends_on_other_nodes {
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

    fn best_in(&mut self, ask: &NodeQuery, domain: DomainId) -> Option<NodeId> {
        let &NodeQuery { cluster, policy, shape, room, avoid, kind } = ask;
        let ranking = self.of(cluster, policy, shape, room);
        let ranks = cluster.domains.ranks(domain);
        match kind.depends_on_other_nodes {
            true => ranking.best_among(cluster, policy, shape, avoid, ranks, &Table::default()),
            false if domain == ROOT => ranking.best(cluster),
            false => ranking.best_of(cluster, ranks),
        }
    }

    /// The best node of the smallest domain that has one. `left` pods are still to be placed, this
    /// one included.
    pub fn nearest(&mut self, ask: &NodeQuery, near: Vicinity, left: u32) -> Option<NodeId> {
        let (domains, within) = (&ask.cluster.domains, near.within);
        let closer = domains.chain(near.of).take_while(|&domain| domain != within);
        let closer = closer.filter(|&domain| domains.holds(within, domain));
        let mut around = closer.chain(std::iter::once(within));
        around.find_map(|domain| {
            let lowest = self.lowest(ask, domain, near.others, left);
            self.best_in(ask, lowest).or_else(|| self.best_in(ask, domain))
        })
    }

    /// The path from a domain down to a leaf: at each step to the child with most of the placed
    /// pods, otherwise to the one that holds most of the remaining pods with the least left over.
    fn lowest(
        &mut self,
        ask: &NodeQuery,
        from: DomainId,
        others: &[DomainId],
        left: u32,
    ) -> DomainId {
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
