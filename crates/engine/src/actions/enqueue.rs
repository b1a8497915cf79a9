//! Admits gangs to the line, one at a time and in order, as long as their minimum resources can be
//! expected. An admitted gang that can't start loses its admission after a while, if another gang
//! waits for admission.

use muster_api::{DequeueStrategy, PodGroupPhase};

use crate::base::ids::GangId;
use crate::decision::reason::Reason;
use crate::model::gangs::Origin;
use crate::order::gates::named;
use crate::order::line::Line;
use crate::order::session::{Action, Session};
use crate::settings::argument::Argument;
use crate::shares::admission::Admission;

pub static ACTION: Action = Action {
    name: "enqueue",
    summary: "admit gangs, so that they compete for room",
    arguments: &[Argument {
        name: "admissionTimeout",
        default: "5m",
        meaning: "an admitted gang that could not start loses its admission after this time, if \
                  another gang waits for admission (0s: never)",
    }],
    configure: |args, settings| {
        let timeout = args.duration_ms("admissionTimeout", Some(settings.admission_timeout_ms));
        settings.admission_timeout_ms = timeout.unwrap_or(0);
    },
    makes_room: None,
    run,
};

fn run(session: &mut Session) {
    let mut first = Vec::new();
    let mut later = Vec::new();
    let waiting: Vec<GangId> = session.cluster.gangs.waiting().to_vec();
    for id in waiting {
        let gang = &mut session.cluster.gangs[id];
        if gang.admitted() {
            gang.admitted.get_or_insert(session.now);
            continue;
        }
        if gang.origin == Origin::Missing && gang.pods.is_empty() {
            continue;
        }
        let gave_back = gang.gave_back.is_some();
        match named(session.cluster, session.policy, id) {
            Ok(()) if gave_back => later.push(id),
            Ok(()) => first.push(id),
            Err(reason) => session.cluster.gangs.explain(id, vec![reason]),
        }
    }
    if first.is_empty() && later.is_empty() {
        return;
    }
    let mut admission = Admission::count(session.cluster);
    let mut refused = vote(session, &mut admission, first);
    refused.extend(vote(session, &mut admission, later));
    if !refused.is_empty() {
        take_turns(session, &mut admission, refused);
    }
    admission.close(session.cluster);
}

/// Votes on each gang in order; returns the rejected ones.
fn vote(session: &mut Session, admission: &mut Admission, gangs: Vec<GangId>) -> Vec<GangId> {
    let mut refused = Vec::new();
    let mut line = Line::new(session.cluster, session.policy, gangs);
    while let Some((queue, gang)) = line.next_of_all(session.cluster, session.policy) {
        match verdict(session, admission, gang) {
            Ok(()) => admit(session, admission, gang),
            Err(reasons) => {
                session.cluster.gangs.explain(gang, reasons);
                refused.push(gang);
                if session.cluster.queues[queue].strategy == DequeueStrategy::Fifo {
                    let head = session.cluster.gangs[gang].key.clone();
                    for behind in line.stop(queue) {
                        session.cluster.gangs.explain(
                            behind,
                            vec![Reason::NotAdmittedBehind { head: head.clone() }],
                        );
                    }
                }
            }
        }
    }
    refused
}

/// A gang without minimum resources is always admitted.
fn verdict(session: &Session, admission: &Admission, gang: GangId) -> Result<(), Vec<Reason>> {
    match session.cluster.gangs[gang].min_resources {
        Some(_) => session.policy.enqueue(session.cluster, admission, gang),
        None => Ok(()),
    }
}

fn admit(session: &mut Session, admission: &mut Admission, gang: GangId) {
    admission.admit(session.cluster, gang);
    session.cluster.gangs[gang].admitted = Some(session.now);
    session.cluster.gangs.set_phase(gang, PodGroupPhase::Inqueue);
    // An earlier process may have nominated its pods.
    let places = session.cluster.gangs[gang].counts.nominated;
    let nominated = (places > 0).then_some(Reason::Nominated { places });
    session.cluster.gangs.explain(gang, nominated.into_iter().collect());
}

/// Gangs whose admission has expired compete for it again, after those that were rejected.
fn take_turns(session: &mut Session, admission: &mut Admission, refused: Vec<GangId>) {
    let timeout = session.settings.admission_timeout_ms;
    if timeout == 0 {
        return;
    }
    let mut expired = Vec::new();
    for (id, gang) in session.cluster.gangs.iter() {
        let Some(since) = gang.admitted else { continue };
        if gang.origin == Origin::Group
            && gang.admitted()
            && gang.idle()
            && !gang.awaited().is_empty()
        {
            let due = since.plus_ms(timeout);
            if due <= session.now { expired.push(id) } else { session.plan.wake_at(due) }
        }
    }
    if expired.is_empty() {
        return;
    }
    for &gang in &expired {
        admission.give_back(session.cluster, gang);
    }
    // Gangs that were admitted before come after those that never were.
    let gave_back = |gang: &GangId| session.cluster.gangs[*gang].gave_back.is_some();
    let (again, first): (Vec<GangId>, Vec<GangId>) = refused.into_iter().partition(gave_back);
    vote(session, admission, first);
    vote(session, admission, again);
    expired.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    for gang in expired {
        if verdict(session, admission, gang).is_ok() {
            admission.admit(session.cluster, gang);
            continue;
        }
        session.cluster.gangs[gang].admitted = None;
        session.cluster.gangs[gang].gave_back = Some(session.now);
        session.cluster.gangs.set_phase(gang, PodGroupPhase::Pending);
        session.cluster.gangs.explain(gang, vec![Reason::GaveAdmissionBack { after_ms: timeout }]);
    }
}
