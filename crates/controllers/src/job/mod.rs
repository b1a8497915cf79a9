//! The Job controller: from a Job to its pods, and from what happens to them to what becomes of the
//! Job.
//!
//! An action is written on the Job before any pod is deleted for it. So another controller that
//! starts after a crash goes on where this one stopped, and nothing that was asked is forgotten.

mod answers;
mod claims;
mod group;
mod intent;
mod jobs;
mod parts;
mod passes;
mod pod;
mod pods;
mod policy;
mod requests;
mod restart;
mod status;
mod unwritten;
mod work;

pub use jobs::Jobs;
pub use pod::{list_in, name as pod_name, owner};
pub use policy::Action;

use muster_api::Job;

use crate::write::Target;

/// The Job as the target of a write.
pub fn target(job: &Job) -> Target {
    Target {
        kind: "Job".to_owned(),
        api_version: "batch.volcano.sh/v1alpha1".to_owned(),
        namespace: job.metadata.namespace.clone(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
    }
}
