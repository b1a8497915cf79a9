//! Pods that a PodDisruptionBudget needs are not taken.

use super::Entry;
use crate::ids::PodId;
use crate::model::Cluster;
use crate::policy::{Claim, Plugin, Question};

pub static ENTRY: Entry = Entry {
    name: "pdb",
    summary: "takes no more pods than their PodDisruptionBudgets allow",
    arguments: &[],
    differs: "Pods without labels can be taken like others. What was asked to leave and hasn't left yet counts.",
    answers: &[Question::Preempt, Question::Reclaim],
    build: |_, _| Box::new(Pdb),
};

struct Pdb;

impl Plugin for Pdb {
    fn restrains(&self, cluster: &Cluster, _: &Claim, victim: PodId) -> Option<&'static str> {
        (!cluster.budgets.allow(cluster, victim)).then_some("a PodDisruptionBudget")
    }
}
