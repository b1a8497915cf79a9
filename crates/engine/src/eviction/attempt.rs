//! One gang that lacks room and makes others leave, all or nothing.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::resources::Amounts;
use crate::base::room::Room;
use crate::decision::counters::{SearchCounters, SearchRecord};
use crate::decision::reason::Reason;
use crate::eviction::causes::Causes;
use crate::eviction::commit::{commit, reserve_for_moved};
use crate::eviction::refusal::{Refusal, refuse};
use crate::eviction::request::EvictionRequest;
use crate::eviction::review::give_back_by_worth;
use crate::eviction::search::Search;
use crate::eviction::search_log::Record;
use crate::eviction::trace::Trace;
use crate::eviction::turns::{anyone_spares, grows, turn_of};
use crate::eviction::verdict::gave_too_much;
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
    /// Why each leaves, where that is known with the choice.
    pub causes: Causes,
    /// When a rule ends that stood in the way and that time alone ends.
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

    pub fn preemptor(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        placement: &PlacementRequest,
    ) -> Result<(), Vec<Reason>> {
        // What others have left is for those who may take back; the rest is lent by `allocate`.
        if let (Mode::Scenario, Purpose::Reclaim, Some(&first)) =
            (self.request.settings.mode, self.request.purpose, placement.pods.first())
        {
            self.policy
                .may_reclaim(txn, &self.preemptor_for(first))
                .map_err(|reason| vec![reason])?;
        }
        // Nobody leaves where nobody has to.
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
        self.take(txn, rankings, placement, &had)?;
        if self.request.settings.mode == Mode::Scenario {
            // Pods that look at other nodes mind where others went.
            let far =
                placement.pods.iter().any(|&pod| txn.depends_on_other_nodes(txn.pods.shape[pod]));
            return match !far || would_be_reaffirmed(txn, self.policy, rankings, self.gang) {
                true => Ok(()),
                false => Err(vec![Refusal::default().reason(self.request.purpose)]),
            };
        }
        let gone: Vec<PodId> = txn.evicted().into_iter().map(|(pod, _)| pod).collect();
        // Who matters more in its queue goes before what queues deserve.
        let reclaims = self.request.purpose == Purpose::Reclaim;
        let (Some(&first), false, true) = (placement.pods.first(), gone.is_empty(), reclaims)
        else {
            return Ok(());
        };
        match self.policy.rejects_outcome(txn, &self.preemptor_for(first), &had, &gone) {
            Some(reason) => Err(vec![reason]),
            None => Ok(()),
        }
    }

    pub fn take(
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
            let attempt = Search {
                policy,
                settings: self.request.settings,
                budget,
                preemptor,
                placement: *placement,
                had,
            };
            let taken = attempt.take(txn, rankings, &mut self.until, &mut self.record);
            let cut = |reason: &Reason| matches!(reason, Reason::NotAttempted { .. });
            self.record.work.cut_short =
                taken.as_ref().is_err_and(|refused| refused.iter().any(cut));
            self.causes = taken?;
            return Ok(());
        }
        let force = &mut |txn: &mut Txn, rankings: &mut Rankings, pod: PodId, left: u32| {
            self.one(txn, rankings, pod, left)
        };
        place_gang_with(txn, policy, rankings, placement, force)?;
        let gone = txn.evicted().into_iter().map(|(pod, _)| vec![(pod, self.gang)]);
        self.record.work.reprieved += give_back_by_worth(txn, rankings, policy, gone);
        Ok(())
    }
}

/// Makes room for what a gang lacks, all of it or nothing; or for one pod more. Counts the moves
/// that were tried.
pub fn serve(
    session: &mut Session,
    gang: GangId,
    request: EvictionRequest,
    failed_searches: &mut FailedSearches,
    steps: &mut u64,
) -> bool {
    let more = grows(session, gang);
    let (pods, missing) = turn_of(session, gang);
    if more && !anyone_spares(session, gang, request) {
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
    let lack = SearchKey { signature: signature.clone(), pods: pods.len(), missing: missing.total };
    let mut attempt = Attempt::new(session, gang, request, None);
    attempt.record.progress = failed_searches.resume(&session.cluster.gangs[gang].key, &lack);
    let mut txn = Txn::begin(session.cluster);
    let placement = PlacementRequest {
        gang,
        pods: &pods,
        missing: &missing,
        room: Room::FutureIdle,
        avoid: &[],
        near: None,
    };
    let result = attempt.preemptor(&mut txn, session.rankings, &placement);
    *steps += txn.steps();
    if let Err(refused) = result {
        let first = txn.mark() == Mark::START;
        let Attempt { until, record, .. } = attempt;
        drop(txn);
        session.plan.wake_at_any(until);
        let cut = refused.iter().any(|reason| matches!(reason, Reason::NotAttempted { .. }));
        if cut {
            failed_searches.cut_short(
                session.cluster.gangs[gang].key.clone(),
                lack,
                record.progress,
            );
            session.plan.wake_at(session.now);
        }
        tell_search(session, gang, request, record.work.in_vain(), false);
        let nobody = |reason: &Reason| matches!(reason, Reason::NothingToTake { .. });
        let telling = request.settings.mode == Mode::Scenario && !cut || refused.iter().all(nobody);
        if let Some(signature) = signature.filter(|_| first && telling) {
            failed_searches.note(session.cluster, gang, signature, (refused.clone(), until));
        }
        refuse(session, gang, request.purpose, refused);
        return false;
    }
    // Room that is free is for `allocate` to give, which asks whether the queue may have it.
    if more && (!txn.displaces() || gave_too_much(session.policy, &txn, request, &pods)) {
        drop(txn);
        tell_search(session, gang, request, attempt.record.work.in_vain(), false);
        return false;
    }
    let Attempt { mut causes, record, .. } = attempt;
    let until = session.now.plus_ms(session.settings.reservation_limit_ms);
    reserve_for_moved(&mut txn, &mut causes, until);
    let moves = txn.commit();
    tell_search(session, gang, request, record.work, true);
    commit(session, gang, request, &moves, &causes);
    failed_searches.forget(session.cluster);
    true
}

/// Makes room for one pod of a gang that runs, by pods of its own that matter less.
pub fn serve_within(
    session: &mut Session,
    gang: GangId,
    pod: PodId,
    request: EvictionRequest,
) -> bool {
    let request = EvictionRequest { purpose: Purpose::Within, ..request };
    let mut attempt = Attempt::new(session, gang, request, None);
    let mut txn = Txn::begin(session.cluster);
    if attempt.one(&mut txn, session.rankings, pod, 1).is_err() {
        drop(txn);
        session.plan.wake_at_any(attempt.until);
        session.plan.search_counters.add(&attempt.record.work.in_vain());
        return false;
    }
    let moves = txn.commit();
    session.plan.search_counters.add(&attempt.record.work);
    commit(session, gang, request, &moves, &Causes::new());
    true
}

fn tell_search(
    session: &mut Session,
    gang: GangId,
    request: EvictionRequest,
    work: SearchCounters,
    found: bool,
) {
    session.plan.search_counters.add(&work);
    session.plan.searches.push(SearchRecord { gang, action: request.action, work, found });
}
