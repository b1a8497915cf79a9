//! The Namespace: only its labels matter, which selectors of pods name.

use serde::{Deserialize, Serialize};

use crate::core::{Meta, is_default};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Namespace {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
}
