//! `tensorflow`: `TF_CONFIG` with the hosts of all roles and the role of the pod.

use serde_json::{Map, Value, json};

use super::hosts::host;
use super::pod::{Which, each_container, set_env};
use super::{Asked, Place};

pub fn dress(asked: &Asked<'_>, place: &Place<'_>, pod: &mut Value) {
    let Asked { job, spec, args } = asked;
    // A single pod needs no cluster.
    if spec.replicas() == 1 {
        return;
    }
    let port = args.number("port");
    let mut cluster = Map::new();
    let mut role_of_pod = place.task.name.as_str();
    for role in ["ps", "worker", "chief", "evaluator"] {
        let Some(task) = spec.task(args.text(role)) else { continue };
        if task.name == place.task.name {
            role_of_pod = role;
        }
        let hosts = (0..task.replicas.max(0) as u32)
            .map(|index| format!("{}:{port}", host(job, task, index)));
        let hosts: Vec<String> = hosts.collect();
        if !hosts.is_empty() {
            cluster.insert(role.to_owned(), hosts.into());
        }
    }
    let task = json!({ "type": role_of_pod, "index": place.index });
    let config = json!({ "cluster": cluster, "task": task }).to_string();
    each_container(pod, Which::Main, |container| set_env(container, "TF_CONFIG", config.clone()));
}
