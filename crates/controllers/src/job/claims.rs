//! The volume claims of a Job. A claim that is made for a Job gets a name that follows from the
//! Job's UID: a controller that starts again makes no second one.

use muster_api::{Job, JobSpec};
use serde_json::{Value, json};

use super::pod::owner;
use crate::known::Known;
use crate::names;
use crate::write::What;

/// The name of the claim of a volume of the Job.
pub fn name(job: &Job, spec: &JobSpec, place: usize) -> String {
    let named = &spec.volumes[place].volume_claim_name;
    match named.as_str() {
        "" => {
            format!("{}-pvc-{}", job.metadata.name, names::suffix(&job.metadata.uid, place))
        }
        named => named.to_owned(),
    }
}

/// What the status says of claims.
pub fn controlled<'j>(
    job: &'j Job,
    spec: &'j JobSpec,
) -> impl Iterator<Item = (String, String)> + 'j {
    let names = (0..spec.volumes.len()).map(|place| name(job, spec, place));
    names.map(|name| (format!("volume-pvc-{name}"), name))
}

/// What must be written before pods can use the claims: those that are missing, and their names.
/// The error is a claim that only a user can make.
pub fn wanted(job: &Job, spec: &JobSpec, known: &Known) -> Result<Vec<What>, String> {
    let mut writes = Vec::new();
    let mut volumes = serde_json::to_value(&job.spec.volumes).expect("texts are JSON");
    let mut names_are_new = false;
    for (place, volume) in spec.volumes.iter().enumerate() {
        let claim = name(job, spec, place);
        let exists = known.claims.contains(&format!("{}/{claim}", job.metadata.namespace));
        match &volume.volume_claim {
            Some(content) if !exists => writes.push(What::Create(json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": claim,
                    "namespace": job.metadata.namespace,
                    "ownerReferences": [owner(job)],
                },
                "spec": content,
            }))),
            None if !exists => {
                return Err(format!(
                    "spec.volumes[{place}]: there is no PersistentVolumeClaim {claim}; create it, or write \
                     volumeClaim so that one is made"
                ));
            }
            _ => {}
        }
        if volume.volume_claim_name.is_empty() {
            volumes[place]["volumeClaimName"] = Value::from(claim);
            names_are_new = true;
        }
    }
    if names_are_new {
        let patch = json!({ "spec": { "volumes": volumes } });
        writes.push(What::Merge { object: super::target(job), patch });
    }
    Ok(writes)
}
