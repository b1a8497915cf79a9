//! Plans on their way to the server: binds, nominations and evictions that arrive late, are
//! refused, get lost, or succeed without an answer. What must be written before what is decided as
//! on Kubernetes (`crates/write-order`).

use muster_api::PodGroupStatus;
use muster_api::kinds::Kind;
use muster_engine::plan::{Placement, Update};
use muster_engine::{Event, Plan};
use muster_write_order::{
    AnnotationWrite, Dropped, EvictionGroup, Freed, Nominations, ObjectName, Outcome,
    RefusedNomination, WriteOrder,
};

use super::Day;
use crate::world::Refusal;

/// The key and uid of an object.
type Name = (String, String);

#[derive(Default)]
pub struct Writes {
    under_way: Vec<Write>,
    order: WriteOrder<Name>,
    pub nominations: Nominations,
}

struct Write {
    due: u64,
    request: Request,
    fate: Fate,
    /// The scheduler that wrote it still waits for the answer.
    awaited: bool,
}

enum Request {
    Bind { pod: Name, node: String, notes: Vec<(&'static str, String)> },
    Evict { pod: Name },
    Annotate(AnnotationWrite),
}

#[derive(Copy, Clone, PartialEq)]
enum Fate {
    Arrives,
    /// Arrives, but the answer is lost; the watch will tell.
    HalfKnown,
    Refused,
    Lost,
    /// An answer is overdue: the scheduler looks at the server before it says that it failed.
    Look,
}

impl Writes {
    pub fn orphan(&mut self) {
        self.nominations = Nominations::default();
        self.order = WriteOrder::default();
        self.under_way.retain(|write| matches!(write.fate, Fate::Arrives | Fate::HalfKnown));
        self.under_way.iter_mut().for_each(|write| write.awaited = false);
    }

    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.order.is_empty()
    }

    /// How long until the last of them is due.
    pub fn last_due(&self) -> Option<u64> {
        self.under_way.iter().map(|write| write.due).max()
    }
}

impl Day<'_> {
    pub(super) fn execute(&mut self, plan: &Plan) {
        for bind in &plan.binds {
            self.writes.order.bind(&bind.pod);
            let notes = plan.card_note(&bind.pod).to_vec();
            self.send(Request::Bind { pod: name(bind), node: bind.node.to_string(), notes });
        }
        let nominations = self.writes.nominations.compare(&self.engine, plan);
        let notes = plan.notes.iter().map(AnnotationWrite::group);
        for write in nominations.into_iter().chain(notes) {
            self.writes.order.write(write);
        }
        for group in &plan.eviction_groups {
            let victim = |at: usize| name(&plan.evictions[at].place);
            self.writes.order.evict(EvictionGroup::of(group, victim));
        }
        self.go_on();
        self.report(plan);
    }

    fn report(&mut self, plan: &Plan) {
        let said = |update: &Update| {
            let uid = self.engine.gang(&update.gang)?.uid.to_string();
            Some((update.gang.to_string(), uid, update.status()?))
        };
        let groups: Vec<(String, String, PodGroupStatus)> =
            plan.updates.iter().filter_map(said).collect();
        for (key, uid, status) in groups {
            let current =
                self.world.groups.get(&key).is_some_and(|group| group.metadata.uid == uid);
            if let Some(event) = current.then(|| self.world.report(&key, status)).flatten() {
                self.tell(event);
            }
        }
    }

    /// Sends what may be written now, and tells what will not be.
    fn go_on(&mut self) {
        let Freed { evictions, dropped, refused } = self.writes.order.take_freed();
        while let Some(write) = self.writes.order.next_write() {
            self.send(Request::Annotate(write));
        }
        for pod in evictions {
            self.send(Request::Evict { pod });
        }
        let at = self.world.now;
        for Dropped { evictions, cause } in dropped {
            for (key, uid) in evictions {
                self.tell(Event::EvictionRefused { key, uid, cause: cause.clone(), at });
            }
        }
        for RefusedNomination { pod, uid, cause } in refused {
            self.history.refused += 1;
            self.tell(Event::NominationRefused { key: pod, uid, cause, at });
        }
    }

    fn send(&mut self, request: Request) {
        let fate = self.dice.pick(&[
            (82, Fate::Arrives),
            (7, Fate::HalfKnown),
            (6, Fate::Refused),
            (5, Fate::Lost),
        ]);
        let fate = match (&request, fate) {
            // Only what keeps room is refused for good.
            (Request::Annotate(write), Fate::Refused) if !nominates(write) => Fate::Lost,
            _ => fate,
        };
        match &request {
            Request::Bind { .. } => self.history.binds += 1,
            Request::Annotate(write) => self.history.nominations += u64::from(nominates(write)),
            Request::Evict { .. } => self.history.evictions += 1,
        }
        let due = self.step + self.dice.pick(&[(70, 0), (20, 1), (10, 4)]);
        self.writes.under_way.push(Write { due, request, fate, awaited: true });
    }

    /// Writes that are due reach the server, or don't.
    pub(super) fn write_due(&mut self) {
        let due = self.writes.under_way.extract_if(.., |write| write.due <= self.step);
        for write in due.collect::<Vec<_>>() {
            self.write(write);
        }
        self.go_on();
    }

    fn write(&mut self, write: Write) {
        let Write { request, fate, awaited, .. } = write;
        let failure = match fate {
            Fate::Arrives | Fate::HalfKnown => {
                self.arrive(&request, fate).err().map(|refusal| refusal.to_string())
            }
            Fate::Refused => Some("refused by admission".to_owned()),
            Fate::Lost => {
                self.history.lost += 1;
                Some("no answer".to_owned())
            }
            Fate::Look => return self.look(request),
        };
        let unknown = matches!(fate, Fate::HalfKnown | Fate::Lost);
        match (request, failure) {
            _ if !awaited => {}
            (Request::Annotate(write), _) if unknown => {
                self.writes.order.done(write, Outcome::Again);
            }
            (Request::Annotate(write), failure) => {
                let outcome = failure.map_or(Outcome::Written, Outcome::Refused);
                self.writes.order.done(write, outcome);
            }
            (request, _) if unknown => {
                let due = self.step + 1 + self.dice.below(6);
                self.writes.under_way.push(Write { due, request, fate: Fate::Look, awaited });
            }
            (request, Some(cause)) => self.refuse(request, cause),
            (Request::Bind { pod: (key, uid), node, .. }, None) => {
                self.tell(Event::Bound { key, uid, node });
            }
            // The watch alone tells of an eviction.
            (Request::Evict { .. }, None) => {}
        }
    }

    fn arrive(&mut self, request: &Request, fate: Fate) -> Result<(), Refusal> {
        let event = match request {
            Request::Bind { pod: (key, uid), node, notes } => {
                self.world.bind(key, uid, node, notes)
            }
            Request::Evict { pod: (key, uid) } => self.world.evict(key, uid),
            Request::Annotate(write) => self.world.annotate(write).ok_or(Refusal::ObjectIsGone),
        }?;
        self.history.half_known += u64::from(fate == Fate::HalfKnown);
        self.tell(event);
        Ok(())
    }

    /// What has become of a bind or an eviction without an answer?
    fn look(&mut self, request: Request) {
        let (Request::Bind { pod: (key, uid), .. } | Request::Evict { pod: (key, uid) }) = &request
        else {
            return;
        };
        let Some(pod) = self.world.pods.get(key).filter(|pod| pod.metadata.uid == *uid) else {
            let (key, uid) = (key.clone(), uid.clone());
            return self.tell(Event::Gone { kind: Kind::Pod, key, uid });
        };
        let arrived = match &request {
            Request::Bind { .. } => pod.spec.node_name.is_some(),
            _ => pod.metadata.deletion_timestamp.is_some(),
        };
        match arrived {
            true => self.tell(Event::from(pod.clone())),
            false => self.refuse(request, "it never arrived".to_owned()),
        }
    }

    fn refuse(&mut self, request: Request, cause: String) {
        let at = self.world.now;
        let event = match request {
            Request::Bind { pod: (key, uid), .. } => Event::BindFailed { key, uid, cause, at },
            Request::Evict { pod: (key, uid) } => Event::EvictionRefused { key, uid, cause, at },
            Request::Annotate(_) => return,
        };
        self.history.refused += 1;
        self.tell(event);
    }
}

/// Writes a nomination on a pod, rather than the end of one.
fn nominates(write: &AnnotationWrite) -> bool {
    matches!(write.object, ObjectName::Pod(_)) && write.desired.keeps_room()
}

fn name(place: &Placement) -> Name {
    (place.pod.to_string(), place.uid.to_string())
}
