//! A set of moves that happen together or not at all. Undo is the same move backwards, through the
//! same code, so there is no second path to get wrong. Dropping an uncommitted transaction undoes
//! it.

use std::ops::Deref;

use muster_api::Time;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::model::Cluster;
use crate::model::devices::Held;
use crate::model::pods::PodState;
use crate::model::reservations::Change;

/// One change of a pod's state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub pod: PodId,
    pub from: PodState,
    pub to: PodState,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    moves: usize,
    reservations: usize,
}

impl Mark {
    /// Before the first move.
    pub const START: Mark = Mark { moves: 0, reservations: 0 };
}

#[must_use = "dropping a transaction undoes it"]
pub struct Txn<'c> {
    cluster: &'c mut Cluster,
    log: Vec<Move>,
    /// How many moves were made, including undone ones.
    steps: u64,
    /// The cards that a pod had before a move, by the index of the move in the log; only for pods
    /// that share cards.
    cards: Vec<(usize, Option<Held>)>,
    /// Reservations that were made or ended, by the number of moves before that.
    reservations: Vec<(usize, Change)>,
}

/// Readers see trial state without knowing that it is a trial.
impl Deref for Txn<'_> {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster
    }
}

impl<'c> Txn<'c> {
    pub fn begin(cluster: &'c mut Cluster) -> Txn<'c> {
        let (log, cards, reservations) = (Vec::new(), Vec::new(), Vec::new());
        Txn { cluster, log, steps: 0, cards, reservations }
    }

    /// Binds the pod to the node, now.
    pub fn allocate(&mut self, pod: PodId, node: NodeId) {
        self.step(pod, PodState::Allocated(node));
    }

    /// Nominates the pod to the node.
    pub fn nominate(&mut self, pod: PodId, node: NodeId) {
        self.step(pod, PodState::Nominated(node));
    }

    /// Evicts the pod from its node.
    pub fn evict(&mut self, pod: PodId) {
        let node = self.pods.state[pod].node().expect("only a pod on a node can be evicted");
        self.evict_from(pod, node);
    }

    /// Evicts the pod from this node, where it runs although it was nominated to another one in
    /// this transaction.
    pub fn evict_from(&mut self, pod: PodId, node: NodeId) {
        self.step(pod, PodState::Releasing(node));
    }

    /// Undoes the eviction of a pod in this transaction.
    pub fn keep_running(&mut self, pod: PodId, node: NodeId) {
        self.step(pod, PodState::Running(node));
    }

    /// Releases a nomination.
    pub fn release(&mut self, pod: PodId) {
        self.step(pod, PodState::Pending);
    }

    /// Reserves room on a node for the successor of a pod of the gang that is evicted.
    pub fn reserve(&mut self, gang: GangId, pod: PodId, node: NodeId, until: Time) {
        let change = self.cluster.reserve(gang, pod, node, until);
        self.reservations.push((self.log.len(), change));
    }

    /// Ends the reservations for the successors of these pods of the gang.
    pub fn end_reservations_for(&mut self, gang: GangId, pods: &[PodId]) {
        for place in self.cluster.reservations_for(gang, pods).into_iter().rev() {
            let change = self.cluster.end_reservation(gang, place);
            self.reservations.push((self.log.len(), change));
        }
    }

    /// Ends the reservation for the successor of a pod, if there is one. Returns its node.
    pub fn end_reservation_for(&mut self, gang: GangId, pod: PodId) -> Option<NodeId> {
        let place = *self.cluster.reservations_for(gang, &[pod]).first()?;
        let node = self.cluster.gangs[gang].reserved()[place].node;
        self.end_reservations_for(gang, &[pod]);
        Some(node)
    }

    fn step(&mut self, pod: PodId, to: PodState) {
        if self.cluster.shares_cards(pod) {
            self.cards.push((self.log.len(), self.cluster.devices.held(pod).cloned()));
        }
        let from = self.cluster.set(pod, to);
        self.steps += 1;
        self.log.push(Move { pod, from, to });
    }

    /// Whether any pod is evicted.
    pub fn evicts(&self) -> bool {
        self.log.iter().any(|step| matches!(step.to, PodState::Releasing(_)))
    }

    /// The evicted pods without another node, each once, with the node they leave.
    pub fn evicted(&self) -> Vec<(PodId, NodeId)> {
        let mut evicted: Vec<(PodId, NodeId)> = Vec::new();
        for step in &self.log {
            if let (PodState::Running(node), PodState::Releasing(_)) = (step.from, step.to)
                && self.pods.state[step.pod] == step.to
            {
                evicted.push((step.pod, node));
            }
        }
        evicted.sort_unstable();
        evicted.dedup();
        evicted
    }

    /// Pods that ran and are nominated to another node now, each once: from where, and where to.
    pub fn moved(&self) -> Vec<(PodId, NodeId, NodeId)> {
        let moved = |step: &Move| match (step.from, self.pods.state[step.pod]) {
            (PodState::Running(from), PodState::Nominated(to)) => Some((step.pod, from, to)),
            _ => None,
        };
        let mut moved: Vec<(PodId, NodeId, NodeId)> = self.log.iter().filter_map(moved).collect();
        moved.sort_unstable();
        moved.dedup();
        moved
    }

    /// Whether any running pod leaves its node, to move or not.
    pub fn displaces(&self) -> bool {
        self.log.iter().any(|step| {
            matches!(step.from, PodState::Running(_)) && self.pods.state[step.pod] != step.from
        })
    }

    /// How many moves were tried.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Does not count the moves since there were so many: they asked for something else than room.
    pub fn uncount(&mut self, steps: u64) {
        self.steps = steps;
    }

    pub fn mark(&self) -> Mark {
        Mark { moves: self.log.len(), reservations: self.reservations.len() }
    }

    pub fn rewind(&mut self, mark: Mark) {
        self.undo_reservations(mark);
        while self.log.len() > mark.moves {
            let Move { pod, from, .. } = self.log.pop().expect("longer than the mark");
            match self.cards.pop_if(|(place, _)| *place == self.log.len()) {
                Some((_, held)) => self.cluster.put_back(pod, from, held),
                None => drop(self.cluster.set(pod, from)),
            }
            self.undo_reservations(mark);
        }
    }

    /// Undoes what was done to reservations after the last move, and after the mark.
    fn undo_reservations(&mut self, mark: Mark) {
        while self.reservations.len() > mark.reservations
            && let Some((_, change)) =
                self.reservations.pop_if(|(moves, _)| *moves == self.log.len())
        {
            self.cluster.undo_reservation(change);
        }
    }

    /// The moves since a mark, to be replayed later.
    pub fn since(&self, mark: Mark) -> Vec<Move> {
        let unchanged = self.reservations.len() == mark.reservations;
        debug_assert!(unchanged, "a replay makes no reservations");
        self.log[mark.moves..].to_vec()
    }

    pub fn replay(&mut self, moves: &[Move]) {
        for step in moves {
            self.step(step.pod, step.to);
        }
    }

    /// Keeps the changes and returns the net moves in the order of the decisions: a pod that moved
    /// and came back is not among them, one that moved twice appears once.
    pub fn commit(mut self) -> Vec<Move> {
        let mut log = std::mem::take(&mut self.log);
        self.reservations.clear();
        self.cluster.pods.begin_visit();
        log.retain_mut(|step| {
            let first = self.cluster.pods.visit(step.pod);
            step.to = self.cluster.pods.state[step.pod];
            first && step.from != step.to
        });
        log
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        self.rewind(Mark::START);
    }
}
