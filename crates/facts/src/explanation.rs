//! The explanation of a pod, gang or queue, as data.

use muster_api::Time;
use muster_engine::Engine;
use serde::Serialize;

use crate::gangs::{GangFacts, gang_facts};
use crate::nominations::FindPod;
use crate::pods::{PodFacts, pod_facts};
use crate::queues::{QueueFacts, queue_facts};
use crate::target::Target;

/// How many nodes are listed for each pod that evictions could make room for, and how many domains
/// for each gang, unless the caller asks for more.
pub const NODES_SHOWN: usize = 10;

#[derive(Serialize)]
pub struct Explanation {
    /// The time of the last cycle.
    pub now: String,
    #[serde(flatten)]
    pub subject: Subject,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Subject {
    Pod(Box<PodFacts>),
    Gang(Box<GangFacts>),
    Queue(Box<QueueFacts>),
}

/// How to explain something.
pub struct Look<'o> {
    /// The time of the last cycle.
    pub now: Time,
    /// How many of the nodes with eviction candidates are listed.
    pub nodes: usize,
    /// Finds the object of a pod by its key, if the caller has objects beside the engine.
    pub find_pod: FindPod<'o>,
}

/// Explains what the engine knows after its last cycle, and leaves the engine as it was.
pub fn explain(engine: &mut Engine, target: Target, look: &Look) -> Explanation {
    let subject = match target {
        Target::Pod(pod) => {
            let gang = engine.cluster().pods.gang[pod];
            let gang = gang.map(|gang| gang_facts(engine, gang, look));
            Subject::Pod(Box::new(pod_facts(engine, look.now, pod, gang)))
        }
        Target::Gang(gang) => Subject::Gang(Box::new(gang_facts(engine, gang, look))),
        Target::Queue(queue) => Subject::Queue(Box::new(queue_facts(engine, queue, look.now))),
    };
    Explanation { now: look.now.to_string(), subject }
}
