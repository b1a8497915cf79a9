//! Job plugins: what frameworks need beside the pods themselves. They are asked in the order of the
//! list, so that each pod of a task is the same, whatever the order in the Job.

mod env;
mod hcclrank;
mod hosts;
mod mpi;
mod pod;
mod pytorch;
mod ray;
mod ssh;
mod svc;
mod tensorflow;

use muster_api::{Job, JobSpec, PluginArgs, TaskSpec};
use serde_json::Value;

use crate::write::Keys;

/// What a plugin is asked about.
pub struct Asked<'j> {
    pub job: &'j Job,
    /// The Job's spec with defaults.
    pub spec: &'j JobSpec,
    pub args: PluginArgs,
}

/// A pod that is about to be created.
pub struct Place<'t> {
    pub task: &'t TaskSpec,
    pub index: u32,
}

/// An object that must be there as long as the Job runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub object: Value,
    /// Keys that are made and added when the object is created.
    pub keys: Option<Keys>,
}

struct Plugin {
    name: &'static str,
    /// The objects that the pods need.
    parts: fn(&Asked<'_>) -> Vec<Wanted>,
    /// Adds to a pod what it needs.
    dress: fn(&Asked<'_>, &Place<'_>, &mut Value),
}

/// Frameworks first: what comes later also reaches the containers that they add.
const PLUGINS: [Plugin; 8] = [
    Plugin { name: "mpi", parts: none, dress: mpi::dress },
    Plugin { name: "pytorch", parts: none, dress: pytorch::dress },
    Plugin { name: "ray", parts: ray::parts, dress: ray::dress },
    Plugin { name: "tensorflow", parts: none, dress: tensorflow::dress },
    Plugin { name: "hcclrank", parts: none, dress: hcclrank::dress },
    Plugin { name: "env", parts: none, dress: env::dress },
    Plugin { name: "svc", parts: svc::parts, dress: svc::dress },
    Plugin { name: "ssh", parts: ssh::parts, dress: ssh::dress },
];

fn none(_: &Asked<'_>) -> Vec<Wanted> {
    Vec::new()
}

/// The plugins that the Job names, with their arguments.
fn of<'j>(job: &'j Job, spec: &'j JobSpec) -> impl Iterator<Item = (&'static Plugin, Asked<'j>)> {
    PLUGINS.iter().filter_map(move |plugin| {
        let (args, _) = PluginArgs::read(plugin.name, spec.plugins.get(plugin.name)?);
        Some((plugin, Asked { job, spec, args }))
    })
}

/// The objects that must be there beside the pods.
pub fn parts(job: &Job, spec: &JobSpec) -> Vec<Wanted> {
    of(job, spec).flat_map(|(plugin, asked)| (plugin.parts)(&asked)).collect()
}

/// Adds to a pod what the plugins give it.
pub fn dress(job: &Job, spec: &JobSpec, place: &Place<'_>, pod: &mut Value) {
    of(job, spec).for_each(|(plugin, asked)| (plugin.dress)(&asked, place, pod));
}

/// What the status says of plugins.
pub fn controlled(spec: &JobSpec) -> impl Iterator<Item = (String, String)> {
    // This one makes nothing.
    let named = spec.plugins.keys().filter(|name| *name != "hcclrank");
    named.map(|name| (format!("plugin-{name}"), name.clone()))
}
