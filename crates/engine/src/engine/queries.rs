//! Answers of an engine to questions, which decide nothing.

use muster_api::Time;

use crate::actions::stalegangeviction::{ACTION, cause, due_of, grace, kept, leaving};
use crate::base::ids::{GangId, QueueId};
use crate::base::purpose::Purpose;
use crate::decision::decisions::Decisions;
use crate::decision::staleness::{Fate, Staleness};
use crate::engine::Engine;
use crate::eviction::as_if_running;
use crate::eviction::queries;
use crate::eviction::queries::TakingBack;
use crate::eviction::request::EvictionRequest;
use crate::eviction::trace::Trace;
use crate::order::session::Session;
use crate::placement::rankings::Rankings;

impl Engine {
    /// What a broken gang lacks, since when, and what will become of it.
    pub fn staleness(&self, id: GangId, now: Time) -> Option<Staleness> {
        let (cluster, policy, settings) =
            (&self.cluster, &self.config.policy, &self.config.settings);
        let since = cluster.gangs.broken_since(id)?;
        let (gang, whole) = (&cluster.gangs[id], policy.enforces_minimum());
        let cause = cause(gang, whole, &leaving(cluster, id, whole), now.0 - since.0);
        let acts = self.config.runs(&ACTION);
        let fate = match (acts, grace(gang, settings), kept(cluster, policy, id)) {
            (false, ..) => Fate::NotWatched,
            (_, None, _) => Fate::ForEver,
            (.., Some(rule)) => Fate::Kept(rule),
            (_, Some(grace), None) => {
                let times = due_of(cluster, policy, id, since.plus_ms(grace));
                Fate::Leaves(times.min().unwrap_or(now))
            }
        };
        Some(Staleness { since, cause, fate })
    }
}

impl Engine {
    /// What `preempt` and `reclaim` would try for a starving gang, by the name of the action.
    /// Nothing is changed.
    pub fn trace(&mut self, gang: GangId, now: Time) -> Vec<(&'static str, Trace)> {
        let mut traces = Vec::new();
        self.look(now, &mut |session, request| {
            traces.extend(
                queries::trace(session, gang, request).map(|trace| (request.action, trace)),
            );
        });
        traces
    }

    /// What a queue would reclaim for the first of its gangs that lacks room, and from which
    /// queues.
    pub fn taking_back(&mut self, queue: QueueId, now: Time) -> Option<TakingBack> {
        let mut found = None;
        self.look(now, &mut |session, request| {
            if request.purpose == Purpose::Reclaim && found.is_none() {
                found = queries::taking_back(session, queue, request);
            }
        });
        found
    }

    /// Visits the eviction request of each action that makes room, as in a cycle. Everything stays
    /// as it was.
    fn look(&mut self, now: Time, at: &mut dyn FnMut(&mut Session, EvictionRequest)) {
        self.cluster.settle();
        let before = self.cluster.generation;
        // The counters of the cycles are restored.
        let rankings = std::mem::take(&mut self.rankings);
        for action in self.config.actions.clone() {
            self.rankings = Rankings::default();
            let mut plan = Decisions::default();
            let mut session = self.session(&mut plan, now);
            if let Some(request) = EvictionRequest::of(session.settings, action) {
                as_if_running::begin(&mut session, request);
                at(&mut session, request);
                as_if_running::put_back(&mut session);
            }
        }
        self.rankings = rankings;
        // An engine that was at rest still is.
        if let Some((generation, _)) =
            self.rests.as_mut().filter(|(generation, _)| *generation == before)
        {
            *generation = self.cluster.generation;
        }
    }
}
