//! The Namespace: only its labels matter, since selectors of pods refer to them.

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{Meta, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, Problems};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Namespace {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
}

impl Contents for Namespace {
    fn problems(&self) -> Vec<Problem> {
        Problems::of_meta(&self.metadata)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        walk.meta(Class::Namespace, &mut self.metadata);
    }
}
