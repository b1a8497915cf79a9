//! The PersistentVolume: which nodes can reach it.

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{Meta, NodeSelector, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, Problems, check_node_term};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolume {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: PersistentVolumeSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<VolumeNodeAffinity>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<NodeSelector>,
}

impl Contents for PersistentVolume {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.meta(&self.metadata);
        let required =
            self.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
        for (index, term) in
            required.iter().flat_map(|required| &required.node_selector_terms).enumerate()
        {
            let path = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
            check_node_term(&mut problems, &path, term);
        }
        problems.0
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        walk.meta(Class::Volume, &mut self.metadata);
        let affinity = self.spec.node_affinity.iter_mut();
        affinity
            .flat_map(|affinity| &mut affinity.required)
            .for_each(|required| walk.node_selector(required));
    }
}
