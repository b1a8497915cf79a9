//! The PodDisruptionBudget: how many pods of a set may be missing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{LabelSelector, Labels, Meta, is_default};
use crate::kinds::{Contents, Object};
use crate::validate::{Problem, Problems};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudget {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: PodDisruptionBudgetSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: PodDisruptionBudgetStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetSpec {
    /// A number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number or a percentage like 50%")]
pub enum IntOrString {
    Int(i64),
    String(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruptions_allowed: Option<i32>,
}

impl Contents for PodDisruptionBudget {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        let spec = &self.spec;
        problems.meta(&self.metadata);
        if spec.min_available.is_some() && spec.max_unavailable.is_some() {
            problems.add("spec.maxUnavailable", "set minAvailable or maxUnavailable, not both");
        }
        for (path, bound) in [
            ("spec.minAvailable", &spec.min_available),
            ("spec.maxUnavailable", &spec.max_unavailable),
        ] {
            match bound {
                Some(IntOrString::Int(number)) => problems.at_least(path, 0, *number),
                Some(IntOrString::String(text)) => {
                    let percent =
                        text.strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok());
                    let message = format!(
                        "{text:?} is not a percentage; write a whole number or one like \"50%\""
                    );
                    problems.check(percent.is_some_and(|percent| percent <= 100), path, message);
                }
                None => {}
            }
        }
        if let Some(selector) = &spec.selector {
            problems.label_selector("spec.selector", selector);
        }
        problems.0
    }

    fn remarks(&self) -> Vec<String> {
        let meaning = "spec.selector is missing, so it protects no pod; write {} to protect all pods of its namespace";
        self.spec.selector.is_none().then(|| meaning.to_owned()).into_iter().collect()
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        walk.meta(Class::Budget, &mut self.metadata);
        self.spec.selector.iter_mut().for_each(|selector| walk.selector(selector));
    }

    /// The status is only true while its controller updates it. Without a status the pods are
    /// counted.
    fn forget_controllers(&mut self) {
        if self.spec.min_available.is_some() || self.spec.max_unavailable.is_some() {
            self.status = PodDisruptionBudgetStatus::default();
        }
    }
}

/// Budgets that share pods, and the pods. The API server never evicts a pod that is in several.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedBudgets {
    /// In the order of their names.
    pub budgets: Vec<String>,
    /// The first of the pods, and how many more there are.
    pub pod: String,
    pub more: u64,
}

/// All sets of budgets that share pods.
pub fn shared_budgets(objects: &[Object]) -> Vec<SharedBudgets> {
    let mut budgets: BTreeMap<&str, Vec<&PodDisruptionBudget>> = BTreeMap::new();
    for object in objects {
        if let Object::PodDisruptionBudget(budget) = object {
            budgets.entry(&budget.metadata.namespace).or_default().push(budget);
        }
    }
    budgets.retain(|_, budgets| budgets.len() > 1);
    let mut pods: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for object in objects {
        let Object::Pod(pod) = object else { continue };
        let meta = &pod.metadata;
        let near = budgets.get(&*meta.namespace).into_iter().flatten();
        let around = near.filter(|budget| budget.is_about(&meta.labels));
        let mut names: Vec<String> = around.map(|budget| budget.metadata.key()).collect();
        if names.len() > 1 {
            names.sort();
            pods.entry(names).or_default().push(meta.key());
        }
    }
    let shared = |(budgets, mut pods): (Vec<String>, Vec<String>)| {
        pods.sort();
        let more = pods.len() as u64 - 1;
        SharedBudgets { budgets, pod: pods.swap_remove(0), more }
    };
    pods.into_iter().map(shared).collect()
}

impl PodDisruptionBudget {
    /// As in Kubernetes an empty selector matches all pods of the namespace, and none at all no
    /// pod.
    fn is_about(&self, labels: &Labels) -> bool {
        self.spec.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::tests::problems;

    #[test]
    fn a_budget_needs_exactly_one_valid_bound() {
        let text = "metadata: {name: b}
spec: {minAvailable: 150%, maxUnavailable: -1, selector: {matchExpressions: [{key: a, operator: Is}]}}";
        assert_eq!(
            problems(text, PodDisruptionBudget::problems),
            [
                "spec.maxUnavailable: set minAvailable or maxUnavailable, not both",
                "spec.minAvailable: \"150%\" is not a percentage; write a whole number or one like \"50%\"",
                "spec.maxUnavailable: -1 is too small; write 0 or more",
                "spec.selector.matchExpressions[0].operator: \"Is\" is not known; write one of In, NotIn, Exists, \
                 DoesNotExist",
            ]
        );
    }
}
