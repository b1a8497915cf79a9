//! The ResourceQuota: how much the pods of a namespace may request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::anonymise::{Class, Walk};
use crate::core::{Meta, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, Problems};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuota {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: ResourceQuotaSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuotaSpec {
    #[serde(skip_serializing_if = "is_default")]
    pub hard: BTreeMap<String, Quantity>,
    /// A quota with scopes does not cover the whole namespace and is left out.
    #[serde(skip_serializing_if = "is_default")]
    pub scopes: Vec<String>,
}

impl Contents for ResourceQuota {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.meta(&self.metadata);
        problems.amounts("spec.hard", &self.spec.hard);
        problems.0
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        walk.meta(Class::Quota, &mut self.metadata);
        // These refer to storage classes and custom resources, and count objects that are not
        // scheduled.
        let named =
            |key: &str| key.starts_with("count/") || key.contains(".storageclass.storage.k8s.io/");
        self.spec.hard.retain(|key, _| !named(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::tests::problems;

    #[test]
    fn amounts_are_not_negative() {
        assert_eq!(
            problems("metadata: {name: q}\nspec: {hard: {cpu: -2}}", ResourceQuota::problems),
            ["spec.hard[cpu]: -2 is negative; write 0 or more"]
        );
    }
}
