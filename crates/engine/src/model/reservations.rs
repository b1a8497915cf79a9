//! Room that is kept for pods which don't exist yet: a pod that is asked to leave for a better
//! place comes back as another pod, and finds room reserved for it. Reserved room counts like
//! nominated room, in every sum that counts nominations, and belongs to a gang. What becomes of it
//! is decided in `nomination/reservations.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_api::{Quantity, ResourceList, Time};
use serde::{Deserialize, Serialize};

use crate::base::ids::{GangId, NodeId, PodId, ResourceId, Symbol};
use crate::base::resources::{CPU, PODS, Sparse};
use crate::model::cluster::{Cluster, add_up};
use crate::model::notes::GroupAnnotations;
use crate::model::pods::{PodState, Sum};

/// A place for one pod of a gang. What survives of the pod that left is its role, its subgroup and
/// what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub node: NodeId,
    pub role: Option<Symbol>,
    pub subgroup: Option<Arc<str>>,
    pub request: Sparse,
    pub until: Time,
    /// The uid of the pod whose successor may have it.
    pub instead_of: Arc<str>,
}

/// A reservation that was made or ended in a transaction, and what is needed to undo that.
pub(super) struct Change {
    gang: GangId,
    /// Its place in the list of the gang.
    place: usize,
    /// None if it was made.
    ended: Option<Reservation>,
    /// The gang's size before.
    size: u32,
    outlook_changes: u64,
}

impl Cluster {
    /// Keeps room on a node for the pod that will be made again when this one of the gang has left.
    /// Only a gang with a PodGroup outlives its pods: of another the room is kept until the pod
    /// is gone.
    pub(super) fn reserve(
        &mut self,
        gang: GangId,
        pod: PodId,
        node: NodeId,
        until: Time,
    ) -> Change {
        let reservation = Reservation {
            node,
            role: self.pods.fact[pod].role,
            subgroup: self.subgroup_name(gang, pod),
            request: self.shapes[self.pods.shape[pod]].request.clone(),
            until,
            instead_of: self.pods.fact[pod].uid.clone(),
        };
        self.undoable(gang, |cluster| {
            let size = cluster.size_with(gang, cluster.gangs[gang].reserved());
            (cluster.add_reservation(gang, reservation, size), None)
        })
    }

    /// Ends a reservation of a gang, by its place in the list.
    pub(super) fn end_reservation(&mut self, gang: GangId, place: usize) -> Change {
        self.undoable(gang, |cluster| (place, Some(cluster.drop_reservation(gang, place))))
    }

    /// Changes a gang's reservations, and says how to undo that.
    fn undoable(
        &mut self,
        gang: GangId,
        change: impl FnOnce(&mut Cluster) -> (usize, Option<Reservation>),
    ) -> Change {
        let size = self.gangs[gang].notes.as_ref().map_or(0, |notes| notes.size);
        let outlook_changes = self.outlook_changes;
        let (place, ended) = change(self);
        Change { gang, place, ended, size, outlook_changes }
    }

    /// Undoes the last change of a gang's reservations.
    pub(super) fn undo_reservation(&mut self, change: Change) {
        let Change { gang, place, ended, size, outlook_changes } = change;
        match ended {
            Some(reservation) => self.insert_reservation(gang, place, reservation),
            None => drop(self.drop_reservation(gang, place)),
        }
        let notes = &mut self.gangs[gang].notes;
        notes.iter_mut().for_each(|notes| notes.size = size);
        notes.take_if(|notes| **notes == GroupAnnotations::default());
        self.outlook_changes = outlook_changes;
    }

    /// The places in a gang's list of the reservations for the successors of these pods.
    pub(super) fn reservations_for(&self, gang: GangId, pods: &[PodId]) -> Vec<usize> {
        let is_for = |place: &Reservation| {
            pods.iter().any(|&pod| self.pods.fact[pod].uid == place.instead_of)
        };
        let reserved = self.gangs[gang].reserved().iter().enumerate();
        reserved.filter(|(_, place)| is_for(place)).map(|(at, _)| at).collect()
    }

    /// How many pods a gang will have when all pods are back for which room is reserved.
    pub(crate) fn size_with(&self, gang: GangId, reserved: &[Reservation]) -> u32 {
        let gone =
            reserved.iter().filter(|place| !self.is_there(gang, &place.instead_of)).count() as u32;
        let counts = &self.gangs[gang].counts;
        counts.valid() - counts.succeeded + counts.gated + counts.releasing + gone
    }

    /// Whether a pod of the gang with this uid is there still. One that has failed counts as
    /// gone: its successor is awaited.
    pub(crate) fn is_there(&self, gang: GangId, uid: &str) -> bool {
        let is_there = |&pod: &PodId| {
            *self.pods.fact[pod].uid == *uid && self.pods.state[pod] != PodState::Failed
        };
        self.gangs[gang].pods.iter().any(is_there)
    }

    /// `size` is how many pods the gang will have when all are back. Returns the reservation's place
    /// in the list.
    pub(crate) fn add_reservation(
        &mut self,
        gang: GangId,
        reservation: Reservation,
        size: u32,
    ) -> usize {
        let key = |place: &Reservation| (&self.nodes.name[place.node], place.instead_of.clone());
        let reserved = self.gangs[gang].reserved();
        let place = reserved.partition_point(|place| key(place) <= key(&reservation));
        self.insert_reservation(gang, place, reservation);
        self.gangs[gang].notes.get_or_insert_default().size = size;
        place
    }

    fn insert_reservation(&mut self, gang: GangId, place: usize, reservation: Reservation) {
        self.tally_reservation(gang, &reservation, 1);
        let notes = self.gangs[gang].notes.get_or_insert_default();
        notes.reserved.insert(place, reservation);
        self.reserving.insert(gang);
        self.gangs.review(gang);
    }

    /// Ends a reservation of a gang, by its place in the list.
    pub(crate) fn drop_reservation(&mut self, gang: GangId, place: usize) -> Reservation {
        let notes = self.gangs[gang].notes.as_mut().expect("it has reservations");
        let reservation = notes.reserved.remove(place);
        if notes.reserved.is_empty() {
            notes.size = 0;
            self.reserving.remove(&gang);
            // Others may ask its pods to leave again.
            self.outlook_changes += 1;
        }
        self.tally_reservation(gang, &reservation, -1);
        self.gangs.review(gang);
        reservation
    }

    /// The gang is gone, so no pod will use its reservations.
    pub(super) fn end_reservations(&mut self, gang: GangId) {
        while !self.gangs[gang].reserved().is_empty() {
            self.drop_reservation(gang, 0);
            self.freed += 1;
        }
    }

    /// Adds a reservation to every sum, or takes it out.
    pub(super) fn tally_reservation(&mut self, gang: GangId, reservation: &Reservation, sign: i64) {
        let Reservation { node, request, .. } = reservation;
        add_up(
            &mut self.gangs,
            &mut self.queues,
            &mut self.guards,
            (gang, Sum::Nominated),
            request,
            sign,
        );
        for (resource, amount) in request.iter() {
            self.nodes.nominated[resource][*node] += sign * amount;
        }
        self.nominated_count = (i64::from(self.nominated_count) + sign) as u32;
        self.touched.push(*node);
        self.generation += 1;
    }

    /// Whether the pod is one that a reservation of its gang was made for.
    pub(crate) fn comes_for(&self, pod: PodId, reservation: &Reservation) -> bool {
        let Some(gang) = self.pods.gang[pod] else { return false };
        self.pods.fact[pod].role == reservation.role
            && self.subgroup_name(gang, pod) == reservation.subgroup
            && self.shapes[self.pods.shape[pod]].request == reservation.request
    }

    /// Whether the pod that was to leave for the reservation stays.
    pub(crate) fn victim_stays(&self, gang: GangId, reservation: &Reservation) -> bool {
        let stays = |&&pod: &&PodId| {
            self.pods.fact[pod].uid == reservation.instead_of
                && !matches!(self.pods.state[pod], PodState::Releasing(_) | PodState::Failed)
        };
        self.gangs[gang].pods.iter().any(|pod| stays(&pod))
    }

    fn subgroup_name(&self, gang: GangId, pod: PodId) -> Option<Arc<str>> {
        let place = self.pods.subgroup[pod] as usize;
        self.gangs[gang].subgroups().get(place).map(|group| group.name.clone())
    }

    /// What the PodGroup says of the places that are kept for its pods.
    pub(crate) fn reservations_text(&self, gang: GangId) -> Option<String> {
        let mut places: Vec<muster_api::Reserved> = Vec::new();
        for reservation in self.gangs[gang].reserved() {
            let place = self.written(gang, reservation);
            let alike = |other: &muster_api::Reserved| {
                (&other.node, &other.role, &other.subgroup, &other.requests, other.until)
                    == (&place.node, &place.role, &place.subgroup, &place.requests, place.until)
            };
            match places.iter_mut().find(|other| alike(other)) {
                Some(other) => other.pods.extend(place.pods),
                None => places.push(place),
            }
        }
        (!places.is_empty()).then(|| muster_api::Reserved::write(&places))
    }

    fn written(&self, gang: GangId, reservation: &Reservation) -> muster_api::Reserved {
        let Reservation { node, role, subgroup, request, until, instead_of } = reservation;
        let quantity = |id: ResourceId, amount| match id {
            CPU => Quantity::from_milli(amount),
            _ => Quantity::from_units(amount),
        };
        let requests: BTreeMap<String, Quantity> = request
            .iter()
            .filter(|&(id, _)| id != PODS)
            .map(|(id, amount)| (self.dimensions.name(id).to_owned(), quantity(id, amount)))
            .collect();
        muster_api::Reserved {
            node: self.nodes.name[*node].to_string(),
            role: role.map(|role| self.names.text(role).to_string()),
            subgroup: subgroup.as_ref().map(ToString::to_string),
            requests: requests as ResourceList,
            until: *until,
            pods: vec![instead_of.to_string()],
            gang_size: self.gangs[gang].notes.as_ref().map(|notes| notes.size),
        }
    }

    /// One reservation for each pod, if the node is known.
    pub(crate) fn read_reservation(&mut self, place: &muster_api::Reserved) -> Vec<Reservation> {
        let Some(node) = self.nodes.find(&place.node) else { return Vec::new() };
        let mut request = self.dimensions.sparse(&place.requests, false).0.to_vec();
        request.retain(|&(resource, _)| resource != PODS);
        request.push((PODS, 1));
        self.nodes.widen(self.dimensions.len());
        let reservation = Reservation {
            node,
            role: place.role.as_deref().map(|role| self.names.intern(role)),
            subgroup: place.subgroup.as_deref().map(Arc::from),
            request: Sparse(request.into()),
            until: place.until,
            instead_of: "".into(),
        };
        let of =
            |uid: &String| Reservation { instead_of: uid.as_str().into(), ..reservation.clone() };
        place.pods.iter().map(of).collect()
    }
}
