//! `ray`: starts the head and the workers of a Ray cluster, and a Service in front of the head.

use serde_json::{Value, json};

use super::hosts::host;
use super::pod::{Which, each_container, open_port};
use super::{Asked, Place, Wanted, svc};
use crate::job::owner;
use crate::names::TASK_SPEC;

pub fn dress(asked: &Asked<'_>, place: &Place<'_>, pod: &mut Value) {
    let Asked { job, spec, args } = asked;
    let ports = ["port", "dashboardPort", "clientPort"].map(|name| args.number(name));
    let [port, dashboard, client] = ports;
    let Some(head) = spec.task(args.text("head")) else { return };
    let (name, command) = match place.task.name.as_str() {
        name if name == head.name => (
            args.text("headContainer"),
            format!(
                "ray start --head --block --dashboard-host=0.0.0.0 --port={port} \
                 --dashboard-port={dashboard} --ray-client-server-port={client}"
            ),
        ),
        name if name == args.text("worker") => (
            args.text("workerContainer"),
            format!("ray start --block --address={}:{port}", host(job, head, 0)),
        ),
        _ => return,
    };
    let is_head = place.task.name == head.name;
    each_container(pod, Which::Main, |container| {
        if container.get("name").and_then(Value::as_str) != Some(name) {
            return;
        }
        container.insert("command".to_owned(), json!(["sh", "-c", command]));
        if is_head {
            for (name, port) in ["gcs", "dashboard", "client-server"].into_iter().zip(ports) {
                open_port(container, name, port);
            }
        }
    });
}

pub fn parts(asked: &Asked<'_>) -> Vec<Wanted> {
    let Asked { job, args, .. } = asked;
    let mut selector = svc::selector(job);
    selector[TASK_SPEC] = args.text("head").into();
    let named = [("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort")];
    // The container may have opened a port under another name, so the numbers are named here.
    let ports = named.map(|(name, arg)| {
        let number = args.number(arg);
        json!({ "name": name, "port": number, "targetPort": number, "protocol": "TCP" })
    });
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": format!("{}-head-svc", job.metadata.name),
            "namespace": job.metadata.namespace,
            "ownerReferences": [owner(job)],
        },
        "spec": { "type": "ClusterIP", "selector": selector, "ports": ports },
    });
    vec![Wanted { object, keys: None }]
}
