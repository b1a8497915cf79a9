//! The content of the page `/debug/gangs/NAMESPACE/NAME`.

use muster_api::Time;
use muster_engine::Engine;
use muster_facts::{Look, NODES_SHOWN, explain, find};
use serde_json::Value;

/// The explanation of the gang with this name, else of the pod without a PodGroup.
pub fn gang(engine: &mut Engine, now: Time, name: &str) -> Option<Value> {
    let target = ["gang", "pod"]
        .iter()
        .find_map(|kind| find(engine.cluster(), &format!("{kind}/{name}")).ok())?;
    // The engine keeps no objects, so the explanation uses only what the engine knows.
    let look = Look { now, nodes: NODES_SHOWN, find_pod: &|_| None };
    serde_json::to_value(explain(engine, target, &look)).ok()
}
