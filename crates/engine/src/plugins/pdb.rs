//! Pods that a PodDisruptionBudget needs are not evicted; with `evictionMethod: delete` they are
//! deleted last.

use crate::base::ids::PodId;
use crate::base::purpose::Method;
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, answers};
use crate::policy::preemptor::Preemptor;

pub static ENTRY: Entry = Entry {
    name: "pdb",
    summary: "evicts no more pods than their PodDisruptionBudgets allow",
    arguments: &[],
    differs: "Pods without labels can be evicted like others. Terminating pods count. With \
              `evictionMethod: delete` a budget is broken only where no other pods could make \
              room.",
    build: |_, _| Box::new(Pdb),
};

struct Pdb;

const RULE: &str = "a PodDisruptionBudget";

#[answers]
impl Plugin for Pdb {
    fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<&'static str> {
        let holds = preemptor.method == Method::Evict && !cluster.budgets.allow(cluster, victim);
        holds.then_some(RULE)
    }

    fn vetoes_shuffle(&self, cluster: &Cluster, pod: PodId) -> Option<&'static str> {
        (!cluster.budgets.allow(cluster, pod)).then_some(RULE)
    }
}
