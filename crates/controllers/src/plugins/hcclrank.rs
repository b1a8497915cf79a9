//! `hcclrank`: the rank of each pod as an annotation, as Ascend's device plugin reads it.

use serde_json::Value;

use super::pod::{Which, each_container};
use super::{Asked, Place};

const RANK_INDEX: &str = "hccl/rankIndex";

pub fn dress(asked: &Asked<'_>, place: &Place<'_>, pod: &mut Value) {
    if pod["metadata"]["annotations"][RANK_INDEX].is_string() {
        return;
    }
    let mut written = None;
    each_container(pod, Which::Main, |container| {
        let env = container.get("env").and_then(Value::as_array);
        let rank = env.into_iter().flatten().find(|entry| entry["name"] == "RANK");
        let rank = rank.and_then(|entry| entry["value"].as_str().map(str::to_owned));
        written = written.take().or(rank);
    });
    let master = asked.args.text("master");
    let masters = asked.spec.task(master).map_or(0, |task| i64::from(task.replicas));
    let index = i64::from(place.index);
    let rank = written.or_else(|| match place.task.name.as_str() {
        name if name == master => Some(index.to_string()),
        name if name == asked.args.text("worker") => Some((masters + index).to_string()),
        _ => None,
    });
    if let Some(rank) = rank {
        pod["metadata"]["annotations"][RANK_INDEX] = rank.into();
    }
}
