//! `mpi`: the master knows the hosts of the workers, and the port of sshd is open everywhere.

use serde_json::Value;

use super::hosts::hosts;
use super::pod::{Which, each_container, open_port, set_env};
use super::{Asked, Place};

pub fn dress(asked: &Asked<'_>, place: &Place<'_>, pod: &mut Value) {
    let port = asked.args.number("port");
    each_container(pod, Which::All, |container| open_port(container, "mpijob-port", port));
    let is_master = place.task.name == asked.args.text("master");
    if let Some(workers) = asked.spec.task(asked.args.text("worker")).filter(|_| is_master) {
        let list = hosts(asked.job, workers).join(",");
        each_container(pod, Which::All, |container| set_env(container, "MPI_HOST", list.clone()));
    }
}
