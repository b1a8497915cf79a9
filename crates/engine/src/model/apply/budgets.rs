//! PodDisruptionBudgets: how many pods of a set may be evicted.

use std::collections::BTreeMap;

use muster_api::core::{IntOrString, PodDisruptionBudget};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::base::ids::{PodId, SpaceId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::selectors::Selector;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Budgets {
    rows: BTreeMap<String, Budget>,
    /// Evicted pods, also those that move to other nodes; the cluster may not know yet.
    asked: FxHashSet<PodId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub space: SpaceId,
    pub selector: Selector,
    /// How many more pods may be evicted, according to its status.
    pub allowed: Option<i32>,
    /// Without a status: how many pods must stay, or may be missing.
    pub least: Option<IntOrString>,
    pub most: Option<IntOrString>,
}

impl Budgets {
    pub fn iter(&self) -> impl Iterator<Item = &Budget> {
        self.rows.values()
    }

    /// Notes that a pod was evicted, or that it stays after all. An evicted pod that moves is
    /// nominated to its new node in the same transaction, and counts as evicted all the same.
    pub(in crate::model) fn ask(&mut self, pod: PodId, state: PodState) {
        match state {
            PodState::Releasing(_) => drop(self.asked.insert(pod)),
            PodState::Nominated(_) | PodState::Pending => {}
            _ => drop(self.asked.remove(&pod)),
        };
    }

    pub(super) fn forget(&mut self, pod: PodId) {
        self.asked.remove(&pod);
    }

    /// Whether the budget of a pod allows its eviction. The API server never evicts a pod that is in
    /// several: it calls that a misconfiguration. Pods that count as running for now do not stand in
    /// for pods that run.
    pub fn allow(&self, cluster: &Cluster, pod: PodId) -> bool {
        let mut concerned = self.rows.values().filter(|budget| budget.is_about(cluster, pod));
        let on_trial = cluster.pods.fact[pod].on_trial;
        match (concerned.next(), concerned.next()) {
            (None, _) => true,
            (Some(budget), None) => self.left(cluster, budget, on_trial) > 0,
            (Some(_), Some(_)) => false,
        }
    }

    /// Whether a pod counts for a budget without a status, whatever its node.
    pub(super) fn count(&self, cluster: &Cluster, pod: PodId) -> bool {
        self.rows.values().any(|budget| budget.allowed.is_none() && budget.is_about(cluster, pod))
    }

    /// How many more pods of a budget may be evicted, with or without those that only count as
    /// running for now.
    fn left(&self, cluster: &Cluster, budget: &Budget, with_on_trial: bool) -> i64 {
        let counts = |pod: PodId| with_on_trial || !cluster.pods.fact[pod].on_trial;
        match budget.allowed {
            Some(allowed) => {
                // The status counts pods that the cluster knows to terminate.
                let news = |pod: &&PodId| {
                    !cluster.pods.fact[**pod].leaves
                        && budget.is_about(cluster, **pod)
                        && counts(**pod)
                };
                i64::from(allowed) - self.asked.iter().filter(news).count() as i64
            }
            None => budget.rare(cluster, counts),
        }
    }

    /// The pods that violate a budget if they are evicted in this order, and those that are in
    /// several. They may be evicted already.
    pub fn broken_by(&self, cluster: &Cluster, pods: &[PodId]) -> Vec<PodId> {
        let mut broken = Vec::new();
        let mut seen = FxHashSet::default();
        for budget in self.rows.values() {
            let mut concerned =
                pods.iter().filter(|&&pod| budget.is_about(cluster, pod)).peekable();
            if concerned.peek().is_none() {
                continue;
            }
            broken.extend(concerned.clone().copied().filter(|pod| !seen.insert(*pod)));
            let asked = concerned.clone().filter(|pod| self.asked.contains(pod)).count() as i64;
            let left = (self.left(cluster, budget, false) + asked).max(0);
            broken.extend(concerned.skip(left as usize).copied());
        }
        broken.sort_unstable();
        broken.dedup();
        broken
    }
}

impl Budget {
    fn is_about(&self, cluster: &Cluster, pod: PodId) -> bool {
        cluster.pods.space[pod] == self.space
            && self.selector.matches(&cluster.pods.fact[pod].labels)
    }

    /// How many more may be evicted, counted from the pods that are up and count.
    fn rare(&self, cluster: &Cluster, counts: impl Fn(PodId) -> bool) -> i64 {
        let pods = cluster.pods.live().filter(|&pod| self.is_about(cluster, pod));
        let of_all: Vec<PodId> = pods.filter(|&pod| !cluster.pods.state[pod].finished()).collect();
        let all = of_all.len() as i64;
        let stays = |state: PodState| state.occupies() && !matches!(state, PodState::Releasing(_));
        let up = |&&pod: &&PodId| stays(cluster.pods.state[pod]) && counts(pod);
        let up = of_all.iter().filter(up).count() as i64;
        let part = |amount: &IntOrString| match amount {
            IntOrString::Int(count) => *count,
            IntOrString::String(text) => {
                let percent = text.trim().trim_end_matches('%').parse::<i64>().unwrap_or(100);
                (all * percent + 99) / 100
            }
        };
        let least = self.least.as_ref().map(part);
        let most = self.most.as_ref().map(|most| all - part(most));
        up - least.or(most).unwrap_or(0)
    }
}

impl Cluster {
    pub(super) fn budget(&mut self, object: &PodDisruptionBudget) {
        let space = self.space(&object.metadata.namespace);
        let selector = Selector::compile(&mut self.names, object.spec.selector.as_ref());
        let budget = Budget {
            space,
            selector,
            allowed: object.status.disruptions_allowed,
            least: object.spec.min_available.clone(),
            most: object.spec.max_unavailable.clone(),
        };
        let old = self.budgets.rows.insert(object.metadata.key(), budget.clone());
        self.outlook_changes += u64::from(old != Some(budget));
    }

    pub(super) fn budget_gone(&mut self, key: &str) {
        self.outlook_changes += u64::from(self.budgets.rows.remove(key).is_some());
    }
}
