//! Room for gangs of which a bind was refused, while they back off.

use crate::base::ids::GangId;
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::txn::Txn;
use crate::order::gates::gate;
use crate::order::pods::{Serving, in_order};
use crate::order::session::Session;
use crate::placement::request::PlacementRequest;
use crate::placement::search::place_gang;

/// Keeps room for gangs of which some binds succeeded and some were refused, while they back off.
/// If others took it, the bound pods of these gangs would hold their nodes for nothing. The room is
/// held for this cycle; [`release_backoff_room`] ends it.
pub fn hold_room_during_backoff(session: &mut Session) {
    let (cluster, whole) = (&*session.cluster, session.policy.enforces_minimum());
    let broken = |gang: &GangId| {
        cluster.gangs[*gang].is_broken(whole) && backs_off(session, *gang).is_some()
    };
    let mut gangs: Vec<GangId> = cluster.gangs.waiting().iter().copied().filter(broken).collect();
    gangs.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    for gang in gangs {
        let pods = in_order(session, gang, Serving::All);
        let missing = missing_after_nominations(&session.cluster.gangs[gang], whole);
        let mut txn = Txn::begin(session.cluster);
        let room = Room::FutureIdle;
        let placement =
            PlacementRequest { gang, pods: &pods, missing: &missing, room, avoid: &[], near: None };
        if missing.total > 0
            && place_gang(&mut txn, session.policy, session.rankings, &placement).is_ok()
        {
            let held = txn.commit();
            session.held_during_backoff.extend(held.iter().map(|step| step.pod));
        }
    }
}

/// Ends what [`hold_room_during_backoff`] began. Gangs that were refused because of it may try
/// again.
pub fn release_backoff_room(session: &mut Session) {
    let held = std::mem::take(&mut session.held_during_backoff);
    if held.is_empty() {
        return;
    }
    let mut txn = Txn::begin(session.cluster);
    held.iter().for_each(|&pod| txn.release(pod));
    let _ = txn.commit();
    session.cluster.freed += 1;
}

/// Why the gang is not tried, if that is because a bind of it was refused.
pub fn backs_off(session: &Session, gang: GangId) -> Option<Reason> {
    let reason = gate(session.cluster, session.policy, gang, session.now).err()?;
    matches!(reason, Reason::Backoff { .. }).then_some(reason)
}
