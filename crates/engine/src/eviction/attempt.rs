//! One gang that lacks room and makes others leave, all or nothing.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::resources::Amounts;
use crate::base::room::Room;
use crate::decision::counters::{Search, Work};
use crate::decision::reason::Reason;
use crate::eviction::causes::Causes;
use crate::eviction::commit::carry_out;
use crate::eviction::failed_searches::{Fruitless, Lack, Signature};
use crate::eviction::refusal::{Refusal, refuse};
use crate::eviction::request::Errand;
use crate::eviction::review::reprieve;
use crate::eviction::search::GangTaker;
use crate::eviction::search_log::Record;
use crate::eviction::trace::Trace;
use crate::eviction::turns::{anyone_spares, grows, turn_of};
use crate::eviction::verdict::gave_too_much;
use crate::model::shapes::one_shape;
use crate::model::txn::{Mark, Txn};
use crate::nomination::reaffirm::would_stand;
use crate::order::session::Session;
use crate::placement::rankings::Rankings;
use crate::placement::request::Wish;
use crate::placement::search::{seat, seat_by_force};
use crate::policy::answers::Policy;
use crate::policy::preemptor::Claim;

pub struct Taker<'t> {
    pub policy: &'t Policy,
    pub gang: GangId,
    pub errand: Errand<'t>,
    pub now: Time,
    /// Why each leaves, where that is known with the choice.
    pub causes: Causes,
    /// When a rule ends that stood in the way and that time alone ends.
    pub until: Option<Time>,
    pub record: Record<'t>,
}

impl<'t> Taker<'t> {
    pub fn new<'e: 't>(
        session: &Session<'e>,
        gang: GangId,
        errand: Errand<'t>,
        trace: Option<&'t mut Trace>,
    ) -> Taker<'t> {
        let (policy, now, causes) = (session.policy, session.now, Causes::new());
        let record = Record { trace, ..Record::default() };
        Taker { policy, gang, errand, now, causes, until: None, record }
    }

    pub fn claim_for(&self, pod: PodId) -> Claim {
        let Errand { purpose, taking, .. } = self.errand;
        Claim {
            mode: taking.mode,
            purpose,
            gang: self.gang,
            pod,
            now: self.now,
            method: taking.method,
        }
    }

    pub fn claim(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        wish: &Wish,
    ) -> Result<(), Vec<Reason>> {
        // What others have left is for those who may take back; the rest is lent by `allocate`.
        if let (Mode::Scenario, Purpose::Reclaim, Some(&first)) =
            (self.errand.taking.mode, self.errand.purpose, wish.pods.first())
        {
            self.policy.may_reclaim(txn, &self.claim_for(first)).map_err(|reason| vec![reason])?;
        }
        // Nobody leaves where nobody has to.
        let full = one_shape(txn, wish.pods).is_some_and(|shape| {
            rankings.of(txn, self.policy, shape, Room::Later).best(txn).is_none()
        });
        if !full && seat(txn, self.policy, rankings, wish).is_ok() {
            return Ok(());
        }
        txn.rewind(Mark::START);
        let queue = txn.gangs[self.gang].queue;
        let mut had = txn.queues[queue].held.clone();
        had.add_amounts(&txn.queues[queue].nominated, 1);
        self.take(txn, rankings, wish, &had)?;
        if self.errand.taking.mode == Mode::Scenario {
            // Pods that look at other nodes mind where others went.
            let far = wish.pods.iter().any(|&pod| txn.far_reaching(txn.pods.shape[pod]));
            return match !far || would_stand(txn, self.policy, rankings, self.gang) {
                true => Ok(()),
                false => Err(vec![Refusal::default().reason(self.errand.purpose)]),
            };
        }
        let gone: Vec<PodId> = txn.evicted().into_iter().map(|(pod, _)| pod).collect();
        // Who matters more in its queue goes before what queues deserve.
        let reclaims = self.errand.purpose == Purpose::Reclaim;
        let (Some(&first), false, true) = (wish.pods.first(), gone.is_empty(), reclaims) else {
            return Ok(());
        };
        match self.policy.objects(txn, &self.claim_for(first), &had, &gone) {
            Some(reason) => Err(vec![reason]),
            None => Ok(()),
        }
    }

    pub fn take(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        wish: &Wish,
        had: &Amounts,
    ) -> Result<(), Vec<Reason>> {
        let policy = self.policy;
        if let (Mode::Gang | Mode::Scenario, Some(&first)) =
            (self.errand.taking.mode, wish.pods.first())
        {
            let claim = self.claim_for(first);
            let doubled = 1_u64.checked_shl(self.record.progress.doubled).unwrap_or(u64::MAX);
            let budget = self.errand.taking.bundling.steps_per_gang.saturating_mul(doubled);
            let taker =
                GangTaker { policy, taking: self.errand.taking, budget, claim, wish: *wish, had };
            let taken = taker.take(txn, rankings, &mut self.until, &mut self.record);
            let cut = |reason: &Reason| matches!(reason, Reason::NotAttempted { .. });
            self.record.work.cut_short =
                taken.as_ref().is_err_and(|refused| refused.iter().any(cut));
            self.causes = taken?;
            return Ok(());
        }
        let force = &mut |txn: &mut Txn, rankings: &mut Rankings, pod: PodId, left: u32| {
            self.one(txn, rankings, pod, left)
        };
        seat_by_force(txn, policy, rankings, wish, force)?;
        let gone =
            txn.evicted().into_iter().map(|(pod, node)| vec![(pod, node, self.gang)]).collect();
        self.record.work.reprieved += reprieve(txn, policy, gone);
        Ok(())
    }
}

/// Makes room for what a gang lacks, all of it or nothing; or for one pod more. Counts the moves
/// that were tried.
pub fn serve(
    session: &mut Session,
    gang: GangId,
    errand: Errand,
    fruitless: &mut Fruitless,
    steps: &mut u64,
) -> bool {
    let more = grows(session, gang);
    let (pods, missing) = turn_of(session, gang);
    if more && !anyone_spares(session, gang, errand) {
        return false;
    }
    let signature = Signature::of(session.cluster, gang, &pods, &missing, errand.taking.mode);
    let known = signature.as_ref().and_then(|signature| fruitless.covers(signature, session.now));
    if let Some(failure) = known {
        if errand.taking.mode == Mode::Scenario {
            session.plan.wake_at_any(failure.until);
            let reasons = match failure.gang == session.cluster.gangs[gang].key {
                true => failure.reasons.clone(),
                false => vec![Reason::LikeAnother {
                    purpose: errand.purpose,
                    gang: failure.gang.clone(),
                }],
            };
            refuse(session, gang, errand.purpose, reasons);
        }
        return false;
    }
    let lack = Lack { signature: signature.clone(), pods: pods.len(), missing: missing.total };
    let mut taker = Taker::new(session, gang, errand, None);
    taker.record.progress = fruitless.resume(&session.cluster.gangs[gang].key, &lack);
    let mut txn = Txn::begin(session.cluster);
    let wish =
        Wish { gang, pods: &pods, missing: &missing, room: Room::Later, avoid: &[], near: None };
    let result = taker.claim(&mut txn, session.rankings, &wish);
    *steps += txn.steps();
    if let Err(refused) = result {
        let first = txn.mark() == Mark::START;
        let Taker { until, record, .. } = taker;
        drop(txn);
        session.plan.wake_at_any(until);
        let cut = refused.iter().any(|reason| matches!(reason, Reason::NotAttempted { .. }));
        if cut {
            fruitless.cut_short(session.cluster.gangs[gang].key.clone(), lack, record.progress);
            session.plan.wake_at(session.now);
        }
        tell_search(session, gang, errand, record.work.in_vain(), false);
        let nobody = |reason: &Reason| matches!(reason, Reason::NothingToTake { .. });
        let telling = errand.taking.mode == Mode::Scenario && !cut || refused.iter().all(nobody);
        if let Some(signature) = signature.filter(|_| first && telling) {
            fruitless.note(session.cluster, gang, signature, (refused.clone(), until));
        }
        refuse(session, gang, errand.purpose, refused);
        return false;
    }
    // Room that is free is for `allocate` to give, which asks whether the queue may have it.
    if more && (!txn.displaces() || gave_too_much(session.policy, &txn, errand, &pods)) {
        drop(txn);
        tell_search(session, gang, errand, taker.record.work.in_vain(), false);
        return false;
    }
    let moves = txn.commit();
    let Taker { causes, record, .. } = taker;
    tell_search(session, gang, errand, record.work, true);
    carry_out(session, gang, errand, &moves, &causes);
    fruitless.forget(session.cluster);
    true
}

/// Makes room for one pod of a gang that runs, by pods of its own that matter less.
pub fn serve_within(session: &mut Session, gang: GangId, pod: PodId, errand: Errand) -> bool {
    let errand = Errand { purpose: Purpose::Within, ..errand };
    let mut taker = Taker::new(session, gang, errand, None);
    let mut txn = Txn::begin(session.cluster);
    if taker.one(&mut txn, session.rankings, pod, 1).is_err() {
        drop(txn);
        session.plan.wake_at_any(taker.until);
        session.plan.taking.add(&taker.record.work.in_vain());
        return false;
    }
    let moves = txn.commit();
    session.plan.taking.add(&taker.record.work);
    carry_out(session, gang, errand, &moves, &Causes::new());
    true
}

fn tell_search(session: &mut Session, gang: GangId, errand: Errand, work: Work, found: bool) {
    session.plan.taking.add(&work);
    session.plan.searches.push(Search { gang, action: errand.action, work, found });
}
