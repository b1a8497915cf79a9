//! `svc`: the pods of a Job find each other by name. A headless Service, the hosts of all tasks as
//! files and in the environment, and a policy that lets in nothing but the Job's own pods.

use muster_api::Job;
use serde_json::{Map, Value, json};

use super::hosts::{hostname, hosts, subdomain};
use super::pod::{Which, add_volume, each_container, fill_in, mount, set_env_from};
use super::{Asked, Place, Wanted};
use crate::job::owner;
use crate::names::{JOB_NAME, JOB_NAMESPACE};

/// Where the hosts of all tasks are mounted.
const MOUNT_PATH: &str = "/etc/volcano";

fn config_map(job: &Job) -> String {
    format!("{}-svc", job.metadata.name)
}

/// The labels of the Job's pods.
pub fn selector(job: &Job) -> Value {
    json!({ JOB_NAME: job.metadata.name, JOB_NAMESPACE: job.metadata.namespace })
}

fn variable(task: &str, what: &str) -> String {
    format!("VC_{}_{what}", task.replace('-', "_").to_ascii_uppercase())
}

pub fn dress(asked: &Asked<'_>, place: &Place<'_>, pod: &mut Value) {
    let Asked { job, spec, args } = asked;
    let name = config_map(job);
    fill_in(pod, "hostname", &hostname(job, place.task, place.index));
    fill_in(pod, "subdomain", subdomain(job, place.task));
    add_volume(pod, json!({ "name": name, "configMap": { "name": name } }));
    each_container(pod, Which::All, |container| {
        if args.switch("inject-hosts-env") {
            for task in &spec.tasks {
                for what in ["HOSTS", "NUM"] {
                    set_env_from(container, &variable(&task.name, what), &name);
                }
            }
        }
        mount(container, json!({ "name": name, "mountPath": MOUNT_PATH }));
    });
}

pub fn parts(asked: &Asked<'_>) -> Vec<Wanted> {
    let Asked { job, args, .. } = asked;
    let object = |api_version: &str, kind: &str, name: &str, key: &str, content: Value| {
        let mut object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": job.metadata.namespace,
                "ownerReferences": [owner(job)],
            },
        });
        object[key] = content;
        Wanted { object, keys: None }
    };
    let name = &job.metadata.name;
    let publishes = args.switch("publish-not-ready-addresses");
    let service = json!({
        "clusterIP": "None",
        "selector": selector(job),
        "publishNotReadyAddresses": publishes,
    });
    let mut parts = vec![
        object("v1", "ConfigMap", &config_map(job), "data", Value::Object(host_lists(asked))),
        object("v1", "Service", name, "spec", service),
    ];
    if !args.switch("disable-network-policy") {
        let pods = json!({ "matchLabels": selector(job) });
        let policy = json!({
            "podSelector": pods,
            "ingress": [{ "from": [{ "podSelector": pods }] }],
            "policyTypes": ["Ingress"],
        });
        parts.push(object("networking.k8s.io/v1", "NetworkPolicy", name, "spec", policy));
    }
    parts
}

/// The hosts of every task: as a file, and as the variables of the environment.
fn host_lists(asked: &Asked<'_>) -> Map<String, Value> {
    let mut data = Map::new();
    for task in &asked.spec.tasks {
        let hosts = hosts(asked.job, task);
        data.insert(format!("{}.host", task.name.replace('-', "_")), hosts.join("\n").into());
        data.insert(variable(&task.name, "HOSTS"), hosts.join(",").into());
        data.insert(variable(&task.name, "NUM"), hosts.len().to_string().into());
    }
    data
}
