//! What one cycle binds, the next does not evict for another gang, if nothing has happened between
//! them but what the scheduler asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_api::Time;
use muster_api::kinds::{Kind, Object};
use muster_engine::{Decisions, Engine, Event};

use crate::violation::{Invariant, Violation};

/// What the last cycle bound, and whether anything has happened since.
#[derive(Default)]
pub struct LastBinds {
    pods: BTreeSet<Arc<str>>,
    /// When the last cycle wanted to be called again: a time limit may run out then.
    wake: Option<Time>,
    changed: bool,
}

impl LastBinds {
    /// Checks the decisions of the next cycle, and keeps what it binds.
    pub fn check(&mut self, engine: &Engine, plan: &Decisions, now: Time) -> Result<(), Violation> {
        let name = |pod| engine.cluster().pods.name(pod).clone();
        let in_time = !self.changed && self.wake.is_none_or(|wake| now < wake);
        let for_others = plan.evictions.iter().filter(|eviction| eviction.preemptor.is_some());
        let in_vain = for_others.map(|one| name(one.pod)).find(|pod| self.pods.contains(pod));
        if let Some(pod) = in_vain.filter(|_| in_time) {
            let what = format!("{pod} is evicted for another gang a cycle after it was bound");
            return Invariant::BoundInVain.fails(what);
        }
        self.pods = plan.binds.iter().map(|bind| name(bind.pod)).collect();
        (self.wake, self.changed) = (plan.wake, false);
        Ok(())
    }

    /// Notes what happens. Pods that start, and pods that leave because they were evicted, are what
    /// the scheduler asked for.
    pub fn hear(&mut self, engine: &Engine, event: &Event) {
        let standing = |key: &str| engine.pod(key).map(|known| known.standing);
        let expected = match event {
            Event::Object(Object::Pod(pod)) => {
                let is_known = standing(&pod.metadata.key()).is_some();
                is_known && pod.spec.node_name.is_some() && pod.status.phase == "Running"
            }
            Event::Gone { kind: Kind::Pod, .. } => true,
            _ => false,
        };
        self.changed |= !expected;
    }
}
