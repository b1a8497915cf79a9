//! The actions, in one list. A cycle runs the configured ones in order; each is a plain function on
//! a [`Session`].

use muster_api::Time;

use crate::actions::{
    allocate, backfill, consolidate, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle,
    stalegangeviction,
};
use crate::base::ids::{GangId, QueueId};
use crate::config::Settings;
use crate::config::lists::Argument;
use crate::decision::plan::Plan;
use crate::model::Cluster;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::settings::args::Args;

pub struct Action {
    pub name: &'static str,
    pub summary: &'static str,
    pub arguments: &'static [Argument],
    /// Takes the action's arguments from its `configurations:` entry.
    pub configure: fn(&mut Args, &mut Settings),
    pub run: fn(&mut Session),
}

pub static ACTIONS: &[&Action] = &[
    &allocate::ACTION,
    &backfill::ACTION,
    &consolidate::ACTION,
    &enqueue::ACTION,
    &gangpreempt::ACTION,
    &gangreclaim::ACTION,
    &preempt::ACTION,
    &reclaim::ACTION,
    &shuffle::ACTION,
    &stalegangeviction::ACTION,
];

/// What an action works with.
pub struct Session<'e> {
    pub cluster: &'e mut Cluster,
    pub policy: &'e Policy,
    pub rankings: &'e mut Rankings,
    pub settings: &'e Settings,
    pub plan: &'e mut Plan,
    pub now: Time,
    /// Gangs that keep everyone behind them in their queue waiting, found by `allocate` for
    /// `backfill`.
    pub heads: Vec<(QueueId, GangId)>,
}
