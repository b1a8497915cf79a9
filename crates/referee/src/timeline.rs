//! The run told again from its beginning: where every pod is before and after each cycle. It follows
//! the simulator's own rules: what was bound runs a second later, what was evicted is gone then, and
//! comes back as pending if a controller makes it again.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::Case;
use crate::cluster::{Amounts, Cluster, Gang, Pod, Seconds};
use crate::output::{Eviction, Output};

/// A pod on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot {
    pub node: String,
    pub since: Seconds,
}

/// One cycle, with what was before it.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    pub cycle: usize,
    /// Pods on nodes, and pods without one, when the cycle begins.
    pub placed: BTreeMap<String, Spot>,
    pub waiting: BTreeSet<String>,
    /// Nominations that stood at the end of the last cycle.
    pub held_before: BTreeMap<String, String>,
    /// Pods came back before this cycle.
    pub recreated: bool,
    /// In the order of the decisions.
    pub binds: Vec<(String, String)>,
    pub evictions: Vec<Eviction>,
    pub nominations: BTreeMap<String, String>,
    pub held: BTreeMap<String, String>,
    /// Successors of moved pods that are not there yet, with the nodes that are kept for them.
    pub awaited: BTreeMap<String, String>,
}

pub struct Story<'c> {
    pub case: &'c Case,
    pub output: &'c Output,
    pub moments: Vec<Moment>,
    /// What does not add up in the output itself: pods that are bound twice, evicted without being
    /// there.
    pub impossible: Vec<(usize, String)>,
    pub pods: BTreeMap<String, &'c Pod>,
}

impl Moment {
    pub fn now(&self) -> Seconds {
        self.cycle as Seconds - 1
    }

    pub fn evicts(&self, pod: &str) -> bool {
        self.evictions.iter().any(|eviction| eviction.pod == pod)
    }

    /// Pods and nodes when the cycle ends, with those that were asked to leave.
    pub fn occupied(&self) -> impl Iterator<Item = (&str, &str)> {
        let placed = self.placed.iter().map(|(pod, spot)| (pod.as_str(), spot.node.as_str()));
        placed.chain(self.binds.iter().map(|(pod, node)| (pod.as_str(), node.as_str())))
    }

    /// Pods and nodes when the cycle ends, without those that were asked to leave.
    pub fn staying(&self) -> impl Iterator<Item = (&str, &str)> {
        self.occupied().filter(|(pod, _)| !self.evicts(pod))
    }

    /// Nominations that stand, and room that is kept for pods that this cycle moves.
    pub fn kept(&self) -> impl Iterator<Item = (&str, &str)> {
        let held = self.held.iter().map(|(pod, node)| (pod.as_str(), node.as_str()));
        let moved = self.evictions.iter();
        held.chain(moved.filter_map(|one| Some((one.pod.as_str(), one.moves_to.as_deref()?))))
    }

    /// Evictions by actions that make room, by the gang that gets it.
    pub fn made_room(&self) -> impl Iterator<Item = (&Eviction, &str)> {
        let makes = |one: &&Eviction| makes_room(&one.action);
        self.evictions.iter().filter(makes).filter_map(|one| Some((one, one.preemptor.as_deref()?)))
    }
}

pub fn makes_room(action: &str) -> bool {
    matches!(action, "preempt" | "reclaim" | "consolidate")
}

impl<'c> Story<'c> {
    pub fn tell(case: &'c Case, output: &'c Output) -> Story<'c> {
        let ours = case.cluster.pods.iter();
        let pods = ours.clone().map(|pod| (pod.key(), pod)).collect();
        let mut story = Story { case, output, moments: Vec::new(), impossible: Vec::new(), pods };
        let mut next = Moment { cycle: 1, ..Moment::default() };
        for pod in ours {
            match &pod.runs {
                Some((node, since)) => {
                    let spot = Spot { node: node.clone(), since: *since };
                    next.placed.insert(pod.key(), spot);
                }
                None => drop(next.waiting.insert(pod.key())),
            }
            if let Some((node, _)) = &pod.nominated {
                next.held_before.insert(pod.key(), node.clone());
            }
        }
        for cycle in 1..=output.cycles.len() {
            next = story.go_on(cycle, next);
        }
        story
    }

    /// Takes in what a cycle did, and returns how the next one begins.
    fn go_on(&mut self, cycle: usize, mut now: Moment) -> Moment {
        let output = self.output;
        let mut wrong = |text: String| self.impossible.push((cycle, text));
        let mut waiting = now.waiting.clone();
        let mut placed = now.placed.clone();
        for bind in output.binds.iter().filter(|bind| bind.cycle == cycle) {
            if !waiting.remove(&bind.pod) {
                wrong(format!("{} is bound, but it was not waiting", bind.pod));
            }
            let spot = Spot { node: bind.node.clone(), since: cycle as Seconds };
            placed.insert(bind.pod.clone(), spot);
            now.awaited.remove(&bind.pod);
            now.binds.push((bind.pod.clone(), bind.node.clone()));
        }
        for eviction in output.evictions.iter().filter(|eviction| eviction.cycle == cycle) {
            let there = now.placed.get(&eviction.pod).is_some_and(|at| at.node == eviction.node);
            if !there || placed.remove(&eviction.pod).is_none() {
                let Eviction { pod, node, .. } = eviction;
                wrong(format!("{pod} is evicted from {node}, but it does not run there"));
            }
            if let Some(node) = &eviction.moves_to {
                now.awaited.insert(eviction.pod.clone(), node.clone());
            }
            now.evictions.push(eviction.clone());
        }
        for one in output.nominations.iter().filter(|one| one.cycle == cycle) {
            now.nominations.insert(one.pod.clone(), one.node.clone());
        }
        for one in output.held_nominations.iter().filter(|one| one.cycle == cycle) {
            if !waiting.contains(&one.pod) {
                wrong(format!("{} holds a nomination, but it does not wait", one.pod));
            }
            now.held.insert(one.pod.clone(), one.node.clone());
        }
        for (pod, node) in &now.nominations {
            if now.held.get(pod) != Some(node) {
                wrong(format!("{pod} is nominated to {node}, and does not hold that nomination"));
            }
        }
        let back = now.evictions.iter().filter(|_| self.case.recreate);
        let back: BTreeSet<String> = back.map(|eviction| eviction.pod.clone()).collect();
        let mut next = Moment { cycle: cycle + 1, ..Moment::default() };
        next.recreated = !back.is_empty();
        next.placed = placed;
        next.waiting = waiting.into_iter().chain(back).collect();
        next.held_before = now.held.clone();
        next.awaited = now.awaited.clone();
        self.moments.push(now);
        next
    }

    pub fn cluster(&self) -> &'c Cluster {
        &self.case.cluster
    }

    pub fn pod(&self, key: &str) -> Option<&'c Pod> {
        self.pods.get(key).copied()
    }

    pub fn gang_key(&self, pod: &str) -> String {
        self.pod(pod).map_or_else(|| pod.to_owned(), Pod::gang_key)
    }

    pub fn gang_of(&self, pod: &str) -> Option<&'c Gang> {
        self.pod(pod).and_then(|pod| self.cluster().gang_of(pod))
    }

    pub fn queue_of(&self, pod: &str) -> &'c str {
        self.pod(pod).map_or("", |pod| self.cluster().queue_of(pod))
    }

    /// The queue of a gang, by its key.
    pub fn queue_of_gang(&self, gang: &str) -> &'c str {
        match self.cluster().gang(gang) {
            Some(gang) => &gang.queue,
            None => self.queue_of(gang),
        }
    }

    pub fn request(&self, pod: &str) -> Amounts {
        self.pod(pod).map(|pod| pod.request).unwrap_or_default()
    }

    /// What pods of these pairs request on a node.
    pub fn used_on<'p>(
        &self,
        node: &str,
        pairs: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Amounts {
        pairs.filter(|(_, at)| *at == node).map(|(pod, _)| self.request(pod)).sum()
    }

    /// The pods of a gang among these pairs.
    pub fn pods_of<'p>(
        &self,
        gang: &str,
        pairs: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Vec<(&'c Pod, &'p str)> {
        let own = |(pod, node): (&str, &'p str)| Some((self.pod(pod)?, node));
        pairs.filter_map(own).filter(|(pod, _)| pod.gang_key() == gang).collect()
    }
}
