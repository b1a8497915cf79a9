//! The cards in the plan: annotations that tell a node's device plugin which cards a pod has.

use muster_api::Time;

use crate::decision::decisions::{CardNote, Decisions};
use crate::model::Cluster;
use crate::model::devices::notes::{note_of_bound, note_of_nominated};
use crate::model::pods::PodState;

/// Notes in the plan which cards its bound and nominated pods have.
pub fn note_cards(cluster: &Cluster, now: Time, plan: &mut Decisions) {
    if cluster.devices.sharing().is_none() {
        return;
    }
    let note = |pod, annotations| CardNote { pod, annotations };
    let mut notes: Vec<CardNote> = plan
        .binds
        .iter()
        .map(|bind| note(bind.pod, note_of_bound(cluster, bind.pod, now)))
        .collect();
    if cluster.nominated_count > 0 {
        let is_nominated = |pod| matches!(cluster.pods.state[pod], PodState::Nominated(_));
        let holders = cluster.devices.all_held().into_iter().map(|(pod, _)| pod);
        let nominated = holders.filter(|&pod| is_nominated(pod));
        notes.extend(nominated.map(|pod| note(pod, note_of_nominated(cluster, pod))));
    }
    notes.retain(|note| !note.annotations.is_empty());
    notes.sort_unstable_by_key(|note| note.pod);
    plan.card_notes = notes;
}
