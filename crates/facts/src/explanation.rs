//! What there is to say of a pod, gang or queue, as data.

use muster_api::Time;
use muster_engine::Engine;
use serde::Serialize;

use crate::gangs::{GangFacts, gang_facts};
use crate::nominations::FindPod;
use crate::pods::{PodFacts, pod_facts};
use crate::queues::{QueueFacts, queue_facts};
use crate::target::Target;

/// So many nodes are told for each pod that others could make room for, and so many domains for
/// each gang, unless more are asked for.
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

/// How to look at something.
pub struct Look<'o> {
    /// The time of the last cycle.
    pub now: Time,
    /// So many of the nodes on which others could be asked to leave are told.
    pub nodes: usize,
    /// Finds the object of a pod by its key, where there are objects beside the engine.
    pub find_pod: FindPod<'o>,
}

/// What the engine knows of something after its last cycle. It is as before afterwards.
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
