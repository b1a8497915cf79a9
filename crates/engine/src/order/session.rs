//! An action, and what it works with.

use std::collections::BTreeMap;
use std::ptr;

use muster_api::Time;

use crate::base::ids::{GangId, PodId, QueueId};
use crate::base::purpose::{Mode, Purpose};
use crate::decision::decisions::{Bind, Decisions};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::txn::Move;
use crate::order::failed_searches;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::settings::actions::Settings;
use crate::settings::args::Args;
use crate::settings::argument::Argument;
use crate::settings::eviction::EvictionSettings;

pub struct Action {
    pub name: &'static str,
    pub summary: &'static str,
    pub arguments: &'static [Argument],
    /// Takes the action's arguments from its `configurations:` entry.
    pub configure: fn(&mut Args, &mut Settings),
    /// How it makes room for gangs by evicting pods, if it does.
    pub makes_room: Option<MakesRoom>,
    pub run: fn(&mut Session),
}

/// How an action makes room.
pub struct MakesRoom {
    pub purpose: Purpose,
    /// Where its arguments are kept.
    pub settings: fn(&Settings) -> &EvictionSettings,
    /// Its mode, where an administrator may choose one.
    pub mode: Option<fn(&mut Settings) -> &mut Mode>,
}

/// What an action works with.
pub struct Session<'e> {
    pub cluster: &'e mut Cluster,
    pub policy: &'e Policy,
    /// The configured ones.
    pub actions: &'e [&'static Action],
    pub settings: &'e Settings,
    pub rankings: &'e mut Rankings,
    pub failed_searches: &'e mut failed_searches::Memory,
    pub plan: &'e mut Decisions,
    pub now: Time,
    /// Gangs that keep all gangs behind them in their queue waiting, found by `allocate` for
    /// `backfill`.
    pub heads: Vec<(QueueId, GangId)>,
    /// How things stood when each of the actions ran last.
    pub ran_at: Vec<Stamp>,
    /// How many pods were bound before the first action that evicts.
    pub bound_first: Option<usize>,
    /// Pods that count as running while an action decides which pods to evict.
    pub on_trial: Vec<OnTrial>,
    /// Pods whose gangs back off, with room that is held for them during this cycle.
    pub held_during_backoff: Vec<PodId>,
    /// The gangs whose nominations were released in this cycle, and for which stronger gang.
    pub released_for: BTreeMap<GangId, GangId>,
}

/// What changes with every decision of an action.
#[derive(PartialEq, Eq)]
pub struct Stamp {
    binds: usize,
    nominations: usize,
    freed: u64,
}

impl Stamp {
    pub fn of(session: &Session) -> Stamp {
        let (binds, nominations) = (session.plan.binds.len(), session.plan.nominations.len());
        Stamp { binds, nominations, freed: session.cluster.freed }
    }
}

/// A pod that was bound in this cycle or is nominated, and counts as running on its node for now.
pub struct OnTrial {
    pub pod: PodId,
    /// Its state otherwise.
    pub state: PodState,
    /// When it started, according to the cluster.
    pub started: Option<Time>,
}

impl Session<'_> {
    /// Whether an action is among the configured ones.
    pub fn runs(&self, action: &'static Action) -> bool {
        self.actions.iter().any(|listed| ptr::eq(*listed, action))
    }

    /// Puts committed moves into the plan.
    pub fn record(&mut self, moves: &[Move]) {
        for step in moves {
            let pod = step.pod;
            match step.to {
                PodState::Allocated(node) => self.plan.binds.push(Bind { pod, node }),
                PodState::Nominated(node) => self.plan.nominations.push(Bind { pod, node }),
                _ => {}
            }
        }
    }
}
