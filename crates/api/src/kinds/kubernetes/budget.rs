//! The PodDisruptionBudget: how many pods of a set may be missing.

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{LabelSelector, Meta, is_default};
use crate::kinds::Contents;
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
