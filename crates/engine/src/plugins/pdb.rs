//! Pods that a PodDisruptionBudget needs are not taken; where they are deleted rather than evicted,
//! they are taken last.

use crate::base::ids::PodId;
use crate::base::purpose::Method;
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin};
use crate::policy::preemptor::Claim;
use crate::policy::question::Question;

pub static ENTRY: Entry = Entry {
    name: "pdb",
    summary: "takes no more pods than their PodDisruptionBudgets allow",
    arguments: &[],
    differs: "Pods without labels can be taken like others. What was asked to leave and hasn't left yet counts. With \
              `evictionMethod: delete` a budget is broken only where nobody else could make room.",
    answers: &[Question::Preempt, Question::Reclaim, Question::Shuffle],
    build: |_, _| Box::new(Pdb),
};

struct Pdb;

const RULE: &str = "a PodDisruptionBudget";

impl Plugin for Pdb {
    fn restrains(&self, cluster: &Cluster, claim: &Claim, victim: PodId) -> Option<&'static str> {
        let holds = claim.method == Method::Evict && !cluster.budgets.allow(cluster, victim);
        holds.then_some(RULE)
    }

    fn retains(&self, cluster: &Cluster, pod: PodId) -> Option<&'static str> {
        (!cluster.budgets.allow(cluster, pod)).then_some(RULE)
    }

    fn breaks(&self, cluster: &Cluster, claim: &Claim, victims: &[PodId], broken: &mut Vec<PodId>) {
        if claim.method == Method::Delete {
            broken.extend(cluster.budgets.broken_by(cluster, victims));
        }
    }
}
