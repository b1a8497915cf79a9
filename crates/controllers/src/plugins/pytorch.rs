//! `pytorch`: where the master is, and the size and rank of the process group (env://).

use serde_json::{Value, json};

use super::hosts::host;
use super::pod::{Which, each_container, open_port, set_env};
use super::{Asked, Place};
use crate::job::list_in;

/// The seconds between two tries to reach the master.
const PAUSE: i64 = 2;

pub fn dress(asked: &Asked<'_>, place: &Place<'_>, pod: &mut Value) {
    let args = &asked.args;
    // Without a master there is no process group to join.
    let Some(master) = asked.spec.task(args.text("master")) else { return };
    let worker = args.text("worker");
    let workers = asked.spec.task(worker).map_or(0, |task| i64::from(task.replicas));
    let masters = i64::from(master.replicas);
    let index = i64::from(place.index);
    let is_worker = place.task.name == worker;
    let rank = match place.task.name == master.name {
        true => Some(index),
        false => is_worker.then_some(masters + index),
    };
    let (address, port) = (host(asked.job, master, 0), args.number("port"));
    each_container(pod, Which::Main, |container| {
        set_env(container, "MASTER_ADDR", address.clone());
        set_env(container, "MASTER_PORT", port.to_string());
        set_env(container, "WORLD_SIZE", (masters + workers).to_string());
        if let Some(rank) = rank {
            set_env(container, "RANK", rank.to_string());
        }
        open_port(container, "pytorchjob-port", port);
    });
    if is_worker && args.switch("wait-master-enabled") {
        let timeout = args.number("wait-master-timeout");
        let spec = pod["spec"].as_object_mut().expect("pods have a spec");
        list_in(spec, "initContainers").push(json!({
            "name": "wait-for-master",
            "image": args.text("wait-master-image"),
            "command": ["sh", "-c", wait_script(&address, port, timeout)],
        }));
    }
}

/// Ends as soon as the master accepts a connection, or fails after the time.
fn wait_script(address: &str, port: i64, timeout: i64) -> String {
    format!(
        "end=$(($(date +%s) + {timeout})); \
         until nc -z {address} {port} 2>/dev/null || (: </dev/tcp/{address}/{port}) 2>/dev/null; do \
         [ $(date +%s) -lt $end ] || exit 1; sleep {PAUSE}; done"
    )
}
