//! Plans on their way to the server: binds and evictions that arrive late, are refused, get lost, or succeed without
//! anyone hearing of it.

use muster_api::PodGroupStatus;
use muster_api::core::Pod;
use muster_api::keys::{PIPELINED_NODE, PIPELINED_STATUS};
use muster_engine::ids::GangId;
use muster_engine::model::pods::PodState;
use muster_engine::{CardNote, Event, Plan, status};

use super::Day;
use crate::world;

#[derive(Default)]
pub struct Writes {
    under_way: Vec<Write>,
}

struct Write {
    due: u64,
    key: String,
    uid: String,
    wish: Wish,
    fate: Fate,
    /// The scheduler that wrote it still waits for the answer.
    awaited: bool,
}

enum Wish {
    Bind { node: String, notes: Vec<(&'static str, String)> },
    Evict,
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

impl Wish {
    fn has_come_true(&self, pod: &Pod) -> bool {
        match self {
            Wish::Bind { .. } => pod.spec.node_name.is_some(),
            Wish::Evict => pod.metadata.deletion_timestamp.is_some(),
        }
    }
}

impl Writes {
    pub fn orphan(&mut self) {
        self.under_way.retain(|write| matches!(write.fate, Fate::Arrives | Fate::HalfKnown));
        self.under_way.iter_mut().for_each(|write| write.awaited = false);
    }

    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// How long until the last of them is due.
    pub fn last_due(&self) -> Option<u64> {
        self.under_way.iter().map(|write| write.due).max()
    }
}

impl Day<'_> {
    pub(super) fn carry_out(&mut self, plan: &Plan) {
        let cluster = self.engine.cluster();
        let names: Vec<(String, String, String, bool)> = plan
            .binds
            .iter()
            .map(|bind| (bind, true))
            .chain(plan.nominations.iter().map(|bind| (bind, false)))
            .map(|(bind, now)| {
                let pod = &cluster.pods.fact[bind.pod];
                (pod.key.to_string(), pod.uid.to_string(), cluster.nodes.name[bind.node].to_string(), now)
            })
            .collect();
        let leaving: Vec<(String, String)> = plan
            .evictions
            .iter()
            .map(|eviction| &cluster.pods.fact[eviction.pod])
            .map(|pod| (pod.key.to_string(), pod.uid.to_string()))
            .collect();
        let said = |&gang: &GangId| {
            let status = status::of(cluster, gang)?;
            Some((cluster.gangs[gang].key.to_string(), cluster.gangs[gang].uid.to_string(), status))
        };
        let groups: Vec<(String, String, PodGroupStatus)> = plan.updates.iter().filter_map(said).collect();
        let promised = |note: &&CardNote| matches!(cluster.pods.state[note.pod], PodState::Nominated(_));
        let notes: Vec<(String, String, &CardNote)> = plan
            .card_notes
            .iter()
            .filter(promised)
            .map(|note| (&cluster.pods.fact[note.pod], note))
            .map(|(pod, note)| (pod.key.to_string(), pod.uid.to_string(), note))
            .collect();
        for ((key, uid, node, now), bind) in names.into_iter().zip(plan.binds.iter().chain(&plan.nominations))
        {
            match now {
                true => self.bind(key, uid, node, plan.note_of(bind.pod).to_vec()),
                false => self.promise(&key, &uid, &node),
            }
        }
        for (key, uid, note) in notes {
            self.change_known(&key, &uid, |pod| world::note(pod, &note.annotations));
        }
        for (key, uid) in leaving {
            self.history.evictions += 1;
            self.send(key, uid, Wish::Evict);
        }
        self.take_promises_back();
        for (key, uid, status) in groups {
            let current =
                self.world.groups.get(&key).is_some_and(|group| group.metadata.uid.as_deref() == Some(&uid));
            if let Some(event) = current.then(|| self.world.report(&key, status)).flatten() {
                self.tell(event);
            }
        }
    }

    fn bind(&mut self, key: String, uid: String, node: String, notes: Vec<(&'static str, String)>) {
        self.history.binds += 1;
        self.send(key, uid, Wish::Bind { node, notes });
    }

    fn send(&mut self, key: String, uid: String, wish: Wish) {
        let fate =
            self.dice.pick(&[(82, Fate::Arrives), (7, Fate::HalfKnown), (6, Fate::Refused), (5, Fate::Lost)]);
        let due = self.step + self.dice.pick(&[(70, 0), (20, 1), (10, 4)]);
        self.writes.under_way.push(Write { due, key, uid, wish, fate, awaited: true });
    }

    /// Promises are written on the pod, so that they outlive the scheduler.
    fn promise(&mut self, key: &str, uid: &str, node: &str) {
        self.history.nominations += 1;
        self.change_known(key, uid, |pod| {
            pod.metadata.annotations.insert(PIPELINED_STATUS.into(), "true".into());
            pod.metadata.annotations.insert(PIPELINED_NODE.into(), node.into());
        });
    }

    /// Changes a pod, if it is still the one that was meant, and tells of it.
    fn change_known(&mut self, key: &str, uid: &str, change: impl FnOnce(&mut Pod)) {
        let known = self.world.pods.get(key).is_some_and(|pod| pod.metadata.uid == uid);
        if let Some(event) = known.then(|| self.world.change_pod(key, change)).flatten() {
            self.tell(event);
        }
    }

    /// A promise that the scheduler no longer holds is taken off the pod.
    pub(super) fn take_promises_back(&mut self) {
        let cluster = self.engine.cluster();
        let ended = |pod: &Pod| {
            let known = cluster
                .pods
                .find(&pod.metadata.key())
                .filter(|&id| *cluster.pods.fact[id].uid == *pod.metadata.uid);
            let waits = known.is_some_and(|id| cluster.pods.state[id] == PodState::Pending);
            waits && pod.metadata.annotations.contains_key(PIPELINED_NODE)
        };
        let ended = self.world.pods.iter().filter(|(_, pod)| ended(pod)).map(|(key, _)| key.clone());
        for key in ended.collect::<Vec<String>>() {
            let event = self.world.change_pod(&key, |pod| {
                pod.metadata.annotations.remove(PIPELINED_STATUS);
                pod.metadata.annotations.remove(PIPELINED_NODE);
            });
            self.tell(event.expect("just found"));
        }
    }

    /// Writes that are due reach the server, or don't.
    pub(super) fn write_due(&mut self) {
        let (due, later) =
            std::mem::take(&mut self.writes.under_way).into_iter().partition(|w| w.due <= self.step);
        self.writes.under_way = later;
        let due: Vec<Write> = due;
        for write in due {
            self.write(write);
        }
    }

    fn write(&mut self, mut write: Write) {
        let failure = match write.fate {
            Fate::Arrives | Fate::HalfKnown => match self.arrive(&write) {
                Ok(event) => {
                    self.history.half_known += u64::from(write.fate == Fate::HalfKnown);
                    self.tell(event);
                    // An eviction that was taken is told by the watch alone.
                    if let Wish::Bind { node, .. } = &write.wish
                        && write.awaited
                        && write.fate == Fate::Arrives
                    {
                        let (key, uid) = (write.key.clone(), write.uid.clone());
                        self.tell(Event::Bound { key, uid, node: node.clone() });
                    }
                    None
                }
                Err(cause) => Some(cause),
            },
            Fate::Refused => Some("refused by admission".to_owned()),
            Fate::Lost => {
                self.history.lost += 1;
                Some("no answer".to_owned())
            }
            Fate::Look => match self.world.pods.get(&write.key).filter(|pod| pod.metadata.uid == write.uid) {
                Some(pod) if !write.wish.has_come_true(pod) => Some("it never arrived".to_owned()),
                Some(pod) => {
                    self.tell(Event::Pod(Box::new(pod.clone())));
                    None
                }
                None => {
                    self.tell(Event::PodGone { key: write.key.clone(), uid: write.uid.clone() });
                    None
                }
            },
        };
        let Some(cause) = failure.filter(|_| write.awaited) else { return };
        if matches!(write.fate, Fate::HalfKnown | Fate::Lost) {
            write.due = self.step + 1 + self.dice.below(6);
            write.fate = Fate::Look;
            self.writes.under_way.push(write);
            return;
        }
        self.history.refused += 1;
        let Write { key, uid, wish, .. } = write;
        let at = self.world.now;
        self.tell(match wish {
            Wish::Bind { .. } => Event::BindFailed { key, uid, cause, at },
            Wish::Evict => Event::EvictionRefused { key, uid, cause, at },
        });
    }

    fn arrive(&mut self, write: &Write) -> Result<Event, String> {
        match &write.wish {
            Wish::Bind { node, notes } => self.world.bind(&write.key, &write.uid, node, notes),
            Wish::Evict => self.world.evict(&write.key, &write.uid),
        }
    }
}
