//! Makes room for one gang by evicting pods: for everything it lacks, or not at all.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::resources::Amounts;
use crate::base::room::Room;
use crate::decision::counters::{SearchCounters, SearchRecord};
use crate::decision::reason::Reason;
use crate::eviction::causes::Causes;
use crate::eviction::commit::{commit, reserve_for_moved};
use crate::eviction::queue_limit::limit_in_the_way;
use crate::eviction::refusal::{Refusal, refuse};
use crate::eviction::request::EvictionRequest;
use crate::eviction::review::give_back_by_importance;
use crate::eviction::search::Search;
use crate::eviction::search_log::Record;
use crate::eviction::trace::Trace;
use crate::eviction::turns::{any_gang_can_spare, grows, turn_of};
use crate::eviction::verdict::takes_too_much;
use crate::model::gangs::missing::required;
use crate::model::shapes::one_shape;
use crate::model::txn::{Mark, Txn};
use crate::nomination::reaffirm::would_be_reaffirmed;
use crate::order::failed_searches::{FailedSearches, SearchKey, Signature};
use crate::order::session::Session;
use crate::placement::rankings::Rankings;
use crate::placement::request::PlacementRequest;
use crate::placement::search::{place_gang, place_gang_with};
use crate::policy::answers::Policy;
use crate::policy::preemptor::Preemptor;

pub struct Attempt<'t> {
    pub policy: &'t Policy,
    pub gang: GangId,
    pub request: EvictionRequest<'t>,
    pub now: Time,
    /// Why each victim is evicted, if the search says so; [`cause`] derives the others.
    pub causes: Causes,
    /// When the first of the vetoes in the way expires, if any does.
    pub until: Option<Time>,
    pub record: Record<'t>,
}

impl<'t> Attempt<'t> {
    pub fn new<'e: 't>(
        session: &Session<'e>,
        gang: GangId,
        request: EvictionRequest<'t>,
        trace: Option<&'t mut Trace>,
    ) -> Attempt<'t> {
        let (policy, now, causes) = (session.policy, session.now, Causes::new());
        let record = Record { trace, ..Record::default() };
        Attempt { policy, gang, request, now, causes, until: None, record }
    }

    pub fn preemptor_for(&self, pod: PodId) -> Preemptor {
        let EvictionRequest { purpose, settings, .. } = self.request;
        Preemptor {
            mode: settings.mode,
            purpose,
            gang: self.gang,
            pod,
            now: self.now,
            method: settings.method,
        }
    }

    /// Places these pods, by evictions if need be. Leaves its moves in the transaction, or says why
    /// there is no room.
    pub fn make_room(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        placement: &PlacementRequest,
    ) -> Result<(), Vec<Reason>> {
        // Room that evictions freed may only go to queues that may reclaim. All other free room is
        // left to `allocate`.
        if let (Mode::Scenario, Purpose::Reclaim, Some(&first)) =
            (self.request.settings.mode, self.request.purpose, placement.pods.first())
        {
            self.policy
                .may_reclaim(txn, &self.preemptor_for(first))
                .map_err(|reason| vec![reason])?;
        }
        // Without need nothing is evicted: the gang may fit as things are.
        let full = one_shape(txn, placement.pods).is_some_and(|shape| {
            rankings.of(txn, self.policy, shape, Room::FutureIdle).best(txn).is_none()
        });
        if !full && place_gang(txn, self.policy, rankings, placement).is_ok() {
            return Ok(());
        }
        txn.rewind(Mark::START);
        let queue = txn.gangs[self.gang].queue;
        let mut had = txn.queues[queue].held.clone();
        had.add_amounts(&txn.queues[queue].nominated, 1);
        self.evict_by_mode(txn, rankings, placement, &had)?;
        if self.request.settings.mode == Mode::Scenario {
            // Rules that look at other nodes may reject the placement once victims have moved.
            let depends =
                placement.pods.iter().any(|&pod| txn.depends_on_other_nodes(txn.pods.shape[pod]));
            return match !depends || would_be_reaffirmed(txn, self.policy, rankings, self.gang) {
                true => Ok(()),
                false => {
                    let refusal = Refusal { evictable: true, ..Refusal::default() };
                    Err(vec![refusal.reason(self.request.purpose)])
                }
            };
        }
        let victims: Vec<PodId> = txn.evicted().into_iter().map(|(pod, _)| pod).collect();
        // Only `reclaim` is bound by what queues deserve. Inside a queue priority decides.
        let reclaims = self.request.purpose == Purpose::Reclaim;
        let (Some(&first), false, true) = (placement.pods.first(), victims.is_empty(), reclaims)
        else {
            return Ok(());
        };
        match self.policy.rejects_outcome(txn, &self.preemptor_for(first), &had, &victims) {
            Some(reason) => Err(vec![reason]),
            None => Ok(()),
        }
    }

    fn evict_by_mode(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        placement: &PlacementRequest,
        had: &Amounts,
    ) -> Result<(), Vec<Reason>> {
        let policy = self.policy;
        if let (Mode::Gang | Mode::Scenario, Some(&first)) =
            (self.request.settings.mode, placement.pods.first())
        {
            let preemptor = self.preemptor_for(first);
            let doubled = 1_u64.checked_shl(self.record.progress.doubled).unwrap_or(u64::MAX);
            let steps = self.request.settings.bundle_settings.steps_per_gang;
            let budget = match preemptor.by_fair_share() {
                true => steps.saturating_mul(doubled),
                false => u64::MAX,
            };
            let search = Search {
                policy,
                settings: self.request.settings,
                budget,
                preemptor,
                placement: *placement,
                had,
            };
            let found = search.make_room(txn, rankings, &mut self.until, &mut self.record);
            let not_attempted = |reason: &Reason| matches!(reason, Reason::NotAttempted { .. });
            self.record.work.cut_short =
                found.as_ref().is_err_and(|refused| refused.iter().any(not_attempted));
            self.causes = found?;
            return Ok(());
        }
        let place_pod = &mut |txn: &mut Txn, rankings: &mut Rankings, pod: PodId, left: u32| {
            self.place_pod(txn, rankings, pod, left)
        };
        if let Err(refused) = place_gang_with(txn, policy, rankings, placement, place_pod) {
            return Err(self.refused(txn, placement, refused));
        }
        let victims = txn.evicted().into_iter().map(|(pod, _)| vec![(pod, self.gang)]);
        self.record.work.reprieved += give_back_by_importance(txn, rankings, policy, &[], victims);
        Ok(())
    }
}

impl Attempt<'_> {
    /// The reasons in mode `task`, or the limit of the queue that is in the way whatever is
    /// evicted.
    fn refused(
        &self,
        txn: &mut Txn,
        placement: &PlacementRequest,
        refused: Vec<Reason>,
    ) -> Vec<Reason> {
        let about_pods = |reason: &Reason| matches!(reason, Reason::NothingToTake { .. });
        let Some(&first) = placement.pods.first().filter(|_| refused.iter().any(about_pods)) else {
            return refused;
        };
        let pods = required(txn, placement.pods, placement.missing);
        let limit = limit_in_the_way(txn, self.policy, &self.preemptor_for(first), &pods);
        limit.map_or(refused, |limit| vec![limit])
    }
}

/// Makes room for the pods that a gang lacks, all or none; or for one pod above its minimum.
/// Returns whether it did, and adds the transaction's steps to `steps`.
pub fn serve(
    session: &mut Session,
    gang: GangId,
    request: EvictionRequest,
    failed_searches: &mut FailedSearches,
    steps: &mut u64,
) -> bool {
    let more = grows(session, gang);
    let (pods, missing) = turn_of(session, gang);
    if more && !any_gang_can_spare(session, gang, request) {
        return false;
    }
    let signature = Signature::of(session.cluster, gang, &pods, &missing, request.settings.mode);
    let known = signature
        .as_ref()
        .and_then(|signature| failed_searches.known_failure(signature, session.now));
    if let Some(failure) = known {
        if request.settings.mode == Mode::Scenario {
            session.plan.wake_at_any(failure.until);
            let reasons = match failure.gang == session.cluster.gangs[gang].key {
                true => failure.reasons.clone(),
                false => vec![Reason::LikeAnother {
                    purpose: request.purpose,
                    gang: failure.gang.clone(),
                }],
            };
            refuse(session, gang, request.purpose, reasons);
        }
        return false;
    }
    let key = SearchKey { signature: signature.clone(), pods: pods.len(), missing: missing.total };
    let mut attempt = Attempt::new(session, gang, request, None);
    attempt.record.progress = failed_searches.resume(&session.cluster.gangs[gang].key, &key);
    let mut txn = Txn::begin(session.cluster);
    let placement = PlacementRequest {
        gang,
        pods: &pods,
        missing: &missing,
        room: Room::FutureIdle,
        avoid: &[],
        near: None,
    };
    let result = attempt.make_room(&mut txn, session.rankings, &placement);
    *steps += txn.steps();
    if let Err(refused) = result {
        let untouched = txn.mark() == Mark::START;
        let Attempt { until, record, .. } = attempt;
        drop(txn);
        session.plan.wake_at_any(until);
        let cut_short = refused.iter().any(|reason| matches!(reason, Reason::NotAttempted { .. }));
        if cut_short {
            failed_searches.cut_short(
                session.cluster.gangs[gang].key.clone(),
                key,
                record.progress,
            );
            session.plan.wake_at(session.now);
        }
        record_search(session, gang, request, record.work.without_victims(), false);
        let no_victims = |reason: &Reason| {
            matches!(reason, Reason::NothingToTake { .. } | Reason::DomainsNotTried { .. })
        };
        let conclusive =
            request.settings.mode == Mode::Scenario && !cut_short || refused.iter().all(no_victims);
        if let Some(signature) = signature.filter(|_| untouched && conclusive) {
            failed_searches.note(session.cluster, gang, signature, (refused.clone(), until));
        }
        refuse(session, gang, request.purpose, refused);
        return false;
    }
    // Free room is left to `allocate`, which checks what the queue may have.
    if more && (!txn.displaces() || takes_too_much(session.policy, &txn, request, &pods)) {
        drop(txn);
        record_search(session, gang, request, attempt.record.work.without_victims(), false);
        return false;
    }
    let Attempt { mut causes, record, .. } = attempt;
    let until = session.now.plus_ms(session.settings.reservation_limit_ms);
    reserve_for_moved(&mut txn, &mut causes, until);
    let moves = txn.commit();
    record_search(session, gang, request, record.work, true);
    commit(session, gang, request, &moves, (&causes, &record.next));
    failed_searches.forget(session.cluster);
    true
}

/// Makes room for one pod of a running gang by evicting pods of the same gang that are less
/// important. Returns whether it did.
pub fn serve_within(
    session: &mut Session,
    gang: GangId,
    pod: PodId,
    request: EvictionRequest,
) -> bool {
    let request = EvictionRequest { purpose: Purpose::Within, ..request };
    let mut attempt = Attempt::new(session, gang, request, None);
    let mut txn = Txn::begin(session.cluster);
    if attempt.place_pod(&mut txn, session.rankings, pod, 1).is_err() {
        drop(txn);
        session.plan.wake_at_any(attempt.until);
        session.plan.search_counters.add(&attempt.record.work.without_victims());
        return false;
    }
    let moves = txn.commit();
    session.plan.search_counters.add(&attempt.record.work);
    commit(session, gang, request, &moves, (&Causes::new(), &attempt.record.next));
    true
}

fn record_search(
    session: &mut Session,
    gang: GangId,
    request: EvictionRequest,
    work: SearchCounters,
    found: bool,
) {
    session.plan.search_counters.add(&work);
    session.plan.searches.push(SearchRecord { gang, action: request.action, work, found });
}
