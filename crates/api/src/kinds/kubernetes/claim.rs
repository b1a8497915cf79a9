//! The PersistentVolumeClaim: which volume it is bound to.

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{Meta, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, Problems};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaim {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: PersistentVolumeClaimSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaimSpec {
    /// Empty while no volume is bound to the claim.
    #[serde(skip_serializing_if = "is_default")]
    pub volume_name: String,
}

impl Contents for PersistentVolumeClaim {
    fn problems(&self) -> Vec<Problem> {
        Problems::of_meta(&self.metadata)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        walk.meta(Class::Claim, &mut self.metadata);
        walk.name(Class::Volume, &mut self.spec.volume_name);
    }
}
