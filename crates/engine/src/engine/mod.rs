//! The two calls: `apply` an event, run a `cycle`.

pub mod checkpoint;
mod cycle;
pub mod known;
mod old_checkpoint;
pub mod queries;

use std::borrow::Borrow;

use muster_api::Time;

use crate::base::ids::GangId;
use crate::config::Config;
use crate::decision::decisions::Decisions;
use crate::model::Cluster;
use crate::model::event::Event;
use crate::order::failed_searches;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::report::words;

pub struct Engine {
    pub(crate) cluster: Cluster,
    pub(crate) config: Config,
    pub(crate) rankings: Rankings,
    /// The gangs for which no room could be made.
    failed_searches: failed_searches::Memory,
    /// What the last cycle decided.
    decisions: Decisions,
    /// After a cycle that decided nothing: the generation then, and when time alone will change
    /// something.
    pub(crate) rests: Option<(u64, Option<Time>)>,
}

impl Engine {
    /// Pods whose `schedulerName` is one of these are ours; others only use room.
    pub fn new(config: Config, scheduler_names: Vec<String>) -> Engine {
        let mut cluster = Cluster::new(scheduler_names);
        cluster.share_devices(config.policy.sharing());
        Engine {
            cluster,
            config,
            rankings: Rankings::default(),
            failed_searches: failed_searches::Memory::default(),
            decisions: Decisions::default(),
            rests: None,
        }
    }

    /// Continues with another configuration. Earlier decisions stay.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
        self.rankings = Rankings::default();
        self.rests = None;
        self.cluster.share_devices(self.config.policy.sharing());
        self.cluster.reconsider();
        self.cluster.gangs.review_broken();
    }

    /// Applies what happened.
    pub fn apply(&mut self, event: impl Borrow<Event>) {
        self.cluster.apply(event.borrow());
    }

    /// Completes what events left for later, as a cycle does before it decides; for callers that
    /// only want to look.
    pub fn settle(&mut self) {
        self.cluster.settle();
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// What the last cycle decided, by ids, for those that compare it with the model. They stand for
    /// its pods, nodes and gangs until the next event is applied.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    pub fn policy(&self) -> &Policy {
        &self.config.policy
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The reasons for which a gang waits, in words.
    pub fn reasons(&self, gang: GangId) -> Vec<String> {
        let gang = &self.cluster.gangs[gang];
        gang.reasons.iter().map(|reason| words::message(reason, &self.cluster.dimensions)).collect()
    }
}
