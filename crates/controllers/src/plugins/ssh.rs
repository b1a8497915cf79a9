//! `ssh`: the pods of a Job may log in to each other. The keys live as long as the Job runs, and
//! nothing here ever sees them: they are made when the Secret is created.

use std::fmt::Write;

use serde_json::{Value, json};

use super::hosts::{hostname, subdomain};
use super::pod::{Which, add_volume, each_container, mount};
use super::{Asked, Place, Wanted};
use crate::job::owner;
use crate::write::Keys;

const FILES: [&str; 4] = ["id_rsa", "id_rsa.pub", "authorized_keys", "config"];

fn secret(asked: &Asked<'_>) -> String {
    format!("{}-ssh", asked.job.metadata.name)
}

pub fn dress(asked: &Asked<'_>, _: &Place<'_>, pod: &mut Value) {
    let name = secret(asked);
    let path = asked.args.text("ssh-key-file-path");
    // sshd refuses keys of root that others may read; another user could not read them otherwise.
    let mode = if path == "/root/.ssh" { 0o600 } else { 0o644 };
    let items = FILES.map(|file| json!({ "key": file, "path": format!(".ssh/{file}") }));
    let source = json!({ "secretName": name, "items": items, "defaultMode": mode });
    add_volume(pod, json!({ "name": name, "secret": source }));
    each_container(pod, Which::All, |container| {
        mount(container, json!({ "name": name, "mountPath": path, "subPath": ".ssh" }));
    });
}

pub fn parts(asked: &Asked<'_>) -> Vec<Wanted> {
    let Asked { job, args, .. } = asked;
    let mut files = json!({ "config": config(asked) });
    let (private, public) = (args.text("ssh-private-key"), args.text("ssh-public-key"));
    let keys = match (private, args.text("ssh-key-type")) {
        ("", "rsa") => Some(Keys::Rsa2048),
        ("", _) => Some(Keys::Ed25519),
        _ => {
            files["id_rsa"] = private.into();
            files["id_rsa.pub"] = public.into();
            files["authorized_keys"] = public.into();
            None
        }
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret(asked),
            "namespace": job.metadata.namespace,
            "ownerReferences": [owner(job)],
        },
        "type": "Opaque",
        "stringData": files,
    });
    vec![Wanted { object, keys }]
}

/// How to reach every pod of the Job.
fn config(asked: &Asked<'_>) -> String {
    let Asked { job, spec, args } = asked;
    let port = args.number("ssh-port");
    let mut text = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n".to_owned();
    for task in &spec.tasks {
        for index in 0..task.replicas.max(0) as u32 {
            let (name, domain) = (hostname(job, task, index), subdomain(job, task));
            let _ = write!(text, "Host {name}\n  HostName {name}.{domain}\n  Port {port}\n");
        }
    }
    text
}
