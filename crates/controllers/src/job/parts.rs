//! The objects that plugins need beside the pods: made before the first pod, made again if they are
//! deleted, kept in all restarts, and removed when the Job has ended.

use std::collections::BTreeMap;

use muster_api::core::Meta;
use muster_api::{Job, JobSpec};
use serde_json::{Value, json};

use crate::names;
use crate::plugins::{self, Wanted};
use crate::write::{Dependents, Target, What};

/// The objects that there are, by kind and name.
pub type Parts = BTreeMap<(String, String), Meta>;

/// Says on an object what it was made from, so that a difference is seen without reading it.
const CONTENT: &str = "muster.sh/content";

/// What must be written so that everything is there as it should be.
pub fn missing(job: &Job, spec: &JobSpec, there: &Parts) -> Vec<What> {
    let wanted = plugins::parts(job, spec);
    wanted.into_iter().filter_map(|part| write(job, part, there)).collect()
}

fn write(job: &Job, part: Wanted, there: &Parts) -> Option<What> {
    let Wanted { mut object, keys } = part;
    let text = |pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let content = content(&object);
    let Some(meta) = there.get(&(kind.clone(), name.clone())) else {
        object["metadata"]["annotations"][CONTENT] = content.into();
        return Some(match keys {
            Some(keys) => What::CreateWithKeys { object, keys },
            None => What::Create(object),
        });
    };
    if meta.annotations.get(CONTENT) == Some(&content) || meta.deletion_timestamp.is_some() {
        return None;
    }
    let mut patch = json!({ "metadata": { "annotations": { CONTENT: content } } });
    for key in ["data", "stringData", "spec"] {
        if let Some(value) = object.get(key) {
            patch[key] = value.clone();
        }
    }
    let target = target(job, &kind, &name, &meta.uid);
    Some(What::Merge { object: target, patch })
}

/// A word that differs where the content does. Private keys leave no trace in it.
fn content(object: &Value) -> String {
    let mut content = object.clone();
    if let Some(files) = content.get_mut("stringData").and_then(Value::as_object_mut) {
        files.remove("id_rsa");
    }
    names::suffix(&content.to_string(), 0)
}

/// Everything goes when the Job has ended.
pub fn removals(job: &Job, there: &Parts) -> Vec<What> {
    let staying = there.iter().filter(|(_, meta)| meta.deletion_timestamp.is_none());
    let delete = |((kind, name), meta): (&(String, String), &Meta)| What::Delete {
        object: target(job, kind, name, &meta.uid),
        then: Dependents::Later,
    };
    staying.map(delete).collect()
}

fn target(job: &Job, kind: &str, name: &str, uid: &str) -> Target {
    let api_version = if kind == "NetworkPolicy" { "networking.k8s.io/v1" } else { "v1" };
    Target {
        kind: kind.to_owned(),
        api_version: api_version.to_owned(),
        namespace: job.metadata.namespace.clone(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}
