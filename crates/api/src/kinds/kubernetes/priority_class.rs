//! The PriorityClass: a name for a priority.

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{Meta, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, Problems};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityClass {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub value: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub global_default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<String>,
}

impl Contents for PriorityClass {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.meta(&self.metadata);
        if let Some(policy) = &self.preemption_policy {
            problems.one_of("preemptionPolicy", policy, &["", "Never", "PreemptLowerPriority"]);
        }
        problems.0
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        walk.meta(Class::PriorityClass, &mut self.metadata);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::tests::problems;

    #[test]
    fn only_known_policies_are_accepted() {
        assert_eq!(
            problems("metadata: {name: c}\npreemptionPolicy: Maybe", PriorityClass::problems),
            ["preemptionPolicy: \"Maybe\" is not known; write one of Never, PreemptLowerPriority"]
        );
    }
}
