//! The ResourceQuota: how much the pods of a namespace may request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::core::{Meta, is_default};

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
    /// A quota with scopes says nothing about a whole namespace and is left out.
    #[serde(skip_serializing_if = "is_default")]
    pub scopes: Vec<String>,
}
