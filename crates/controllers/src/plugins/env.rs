//! `env`: every container knows the index of its pod in its task.

use serde_json::Value;

use super::pod::{Which, each_container, set_env};
use super::{Asked, Place};

pub fn dress(_: &Asked<'_>, place: &Place<'_>, pod: &mut Value) {
    let index = place.index.to_string();
    each_container(pod, Which::All, |container| {
        for name in ["VK_TASK_INDEX", "VC_TASK_INDEX"] {
            set_env(container, name, index.clone());
        }
    });
}
