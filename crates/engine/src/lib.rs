//! The scheduler as a pure state machine: events and the clock in, plans out. No I/O, no clock, no
//! randomness.
//!
//! ```
//! use muster_api::{Time, manifest};
//! use muster_engine::config::Config;
//! use muster_engine::{Engine, Event};
//!
//! let cluster = "
//! kind: Node
//! apiVersion: v1
//! metadata: {name: gpu-1}
//! status: {allocatable: {cpu: 8, pods: 110}}
//! ---
//! kind: Pod
//! apiVersion: v1
//! metadata: {name: trainer, namespace: default}
//! spec:
//!   schedulerName: volcano
//!   containers:
//!   - resources: {requests: {cpu: 4}}
//! ";
//! let mut engine = Engine::new(Config::builtin(), vec!["volcano".to_owned()]);
//! manifest::read("cluster.yaml", cluster.as_bytes(), &mut |found| {
//!     if let manifest::Found::Object { object, .. } = found {
//!         engine.apply(Event::from(object));
//!     }
//! });
//! let plan = engine.cycle(Time(0));
//! let [bind] = &plan.binds[..] else { panic!("one pod is bound") };
//! assert_eq!((&*bind.pod, &*bind.node), ("default/trainer", "gpu-1"));
//! ```

// `#[answers]` writes paths that begin with our name, so that it can be used here and elsewhere.
extern crate self as muster_engine;

mod actions;
mod base;
pub mod config;
mod decision;
mod engine;
mod eviction;
pub mod model;
mod nomination;
mod order;
mod placement;
mod plugins;
mod policy;
mod report;
mod settings;
pub mod shares;

pub use base::cards::ALL_CORES;
pub use base::ids;
pub use base::purpose::{Method, Mode, Purpose};
pub use base::resources::{Amounts, Dimensions, Share, Sparse};
pub use base::room::Room;
pub use config::lists::{ACTIONS, PLUGINS, VOLCANO_ONLY};
pub use decision::cause::Cause;
pub use decision::counters::{NominationCounters, SearchCounters, SearchRecord};
pub use decision::decisions::{Bind, Decisions, Eviction};
pub use decision::node_reason::{Bar, Histogram, Shown, Why};
pub use decision::reason::{Lack, Limit, Near, Reason, Stage};
pub use decision::staleness::{Fate, Staleness};
pub use engine::Engine;
pub use engine::checkpoint::Checkpoint;
pub use engine::known::{KnownGang, KnownPod, Standing};
pub use eviction::trace;
pub use model::event::Event;
pub use model::txn::{Mark, Move, Txn};
pub use order::session::Action;
pub use policy::answers::{ConfiguredPlugin, Policy};
pub use policy::bundle::{Bundle, Needed};
pub use policy::plugin::{Plugin, Scope, Vote, answers, each_function_has_a_question};
pub use policy::preemptor::Preemptor;
pub use policy::question::{Question, Switches, answered_by};
pub use report::plan::{self, Plan};
pub use report::{status, words as explain};
pub use settings::argument::Argument;

/// Where the pods of a gang are.
pub mod search {
    pub use crate::model::topology::places::domain_of;
}
