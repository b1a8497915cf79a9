//! The virtual cluster: objects, a clock, and a kubelet that runs what is bound. Every change comes
//! out as an event, as an API server's watch would tell it.

mod departures;
mod objects;

use std::collections::BTreeMap;

use muster_api::core::{Node, NodeStatus, Pod};
use muster_api::keys::{CARD_NOTES, EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS};
use muster_api::kinds::{Kind, Object};
use muster_api::simulated::ending;
use muster_api::{HyperNode, PodGroup, PodGroupStatus, Queue, Time};
use muster_engine::Event;
use muster_write_order::{AnnotationWrite, ObjectName};

pub use departures::Departure;
use departures::Departures;

/// Annotations that a plan wants on a pod.
pub type Notes<'n> = &'n [(&'static str, String)];

/// Why the server does not take a write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the pod is gone")]
    PodIsGone,
    #[error("the object is gone")]
    ObjectIsGone,
    #[error("the pod is bound already")]
    PodIsBound,
    #[error("the pod is being deleted")]
    PodIsDeleted,
    #[error("node {0} is gone")]
    NodeIsGone(String),
    #[error("the API server refuses to evict the pod ({0} of {1} times)")]
    EvictionRefused(u32, u32),
}

#[derive(Clone, Default)]
pub struct World {
    pub now: Time,
    pub nodes: BTreeMap<String, Node>,
    pub pods: BTreeMap<String, Pod>,
    pub groups: BTreeMap<String, PodGroup>,
    pub queues: BTreeMap<String, Queue>,
    pub domains: BTreeMap<String, HyperNode>,
    /// Evicted pods take their own grace period to terminate, instead of a second.
    pub grace: bool,
    departures: Departures,
    /// Objects of all other kinds.
    others: BTreeMap<(Kind, String), Object>,
    /// The version of the newest change, as an API server counts.
    version: u64,
    /// Pods that come back under another uid.
    incarnations: u64,
}

impl World {
    pub fn at(now: Time) -> World {
        World { now, ..World::default() }
    }

    /// Takes in an object. Nothing here does the work of controllers.
    pub fn insert(&mut self, mut object: Object) {
        let (kind, key) = (object.kind(), object.key());
        object.forget_controllers();
        let version = self.next_version();
        let meta = object.meta_mut();
        meta.resource_version = version;
        if kind == Kind::Pod {
            self.departures.forget(&key);
        }
        if meta.uid.is_empty() {
            objects::give_uid(kind, &key, meta);
        }
        match object {
            Object::Node(node) => drop(self.nodes.insert(key, *node)),
            Object::Pod(pod) => drop(self.pods.insert(key, *pod)),
            Object::PodGroup(group) => drop(self.groups.insert(key, *group)),
            Object::Queue(queue) => drop(self.queues.insert(key, *queue)),
            Object::HyperNode(domain) => drop(self.domains.insert(key, *domain)),
            other => drop(self.others.insert((kind, key), other)),
        }
    }

    /// Takes in an object that comes now, and says whether it takes the place of another of its
    /// kind and name. That one leaves it its age, and its status where the new one says nothing
    /// of it. A pod in the place of another is a new pod.
    pub fn replace(&mut self, mut object: Object) -> bool {
        let key = object.key();
        let replaced = match &mut object {
            Object::Node(new) => self.nodes.get(&key).map(|old| {
                if new.status == NodeStatus::default() {
                    new.status = old.status.clone();
                }
                old.metadata.creation_timestamp
            }),
            Object::PodGroup(new) => self.groups.get(&key).map(|old| {
                new.status = new.status.take().or_else(|| old.status.clone());
                old.metadata.creation_timestamp
            }),
            Object::Queue(new) => self.queues.get(&key).map(|old| {
                new.status = new.status.take().or_else(|| old.status.clone());
                old.metadata.creation_timestamp
            }),
            Object::HyperNode(_) => {
                self.domains.get(&key).map(|old| old.metadata.creation_timestamp)
            }
            Object::Pod(_) => self.pods.get(&key).map(|_| Some(self.now)),
            other => {
                let old = self.others.get(&(other.kind(), key));
                old.map(|old| old.meta().creation_timestamp)
            }
        };
        // One that was there without an age is older than all that have one.
        if let Some(created) = replaced.unwrap_or(Some(self.now)) {
            object.date(created);
        }
        self.insert(object);
        replaced.is_some()
    }

    /// Everything there is, as a list call at start-up would tell it.
    pub fn list(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.others.values().cloned().map(Event::from).collect();
        events.extend(self.queues.values().cloned().map(Event::from));
        events.extend(self.domains.values().cloned().map(Event::from));
        events.extend(self.nodes.values().cloned().map(Event::from));
        events.extend(self.groups.values().cloned().map(Event::from));
        events.extend(self.pods.values().cloned().map(Event::from));
        events
    }

    fn next_version(&mut self) -> Option<String> {
        self.version += 1;
        Some(self.version.to_string())
    }

    /// Changes a pod and tells of it.
    pub fn change_pod(&mut self, key: &str, change: impl FnOnce(&mut Pod)) -> Option<Event> {
        let version = self.next_version();
        let pod = self.pods.get_mut(key)?;
        change(pod);
        pod.metadata.resource_version = version;
        Some(Event::from(pod.clone()))
    }

    /// Binds a pod, if it is still the one that was meant and no other writer was faster. What is
    /// noted of its cards is written with it.
    pub fn bind(
        &mut self,
        key: &str,
        uid: &str,
        node: &str,
        notes: Notes,
    ) -> Result<Event, Refusal> {
        let pod =
            self.pods.get(key).filter(|pod| pod.metadata.uid == uid).ok_or(Refusal::PodIsGone)?;
        if pod.spec.node_name.is_some() {
            return Err(Refusal::PodIsBound);
        }
        if pod.metadata.deletion_timestamp.is_some() {
            return Err(Refusal::PodIsDeleted);
        }
        if !self.nodes.contains_key(node) {
            return Err(Refusal::NodeIsGone(node.to_owned()));
        }
        let bound = self.change_pod(key, |pod| {
            pod.spec.node_name = Some(node.to_owned());
            clear_nomination(pod);
            let notes = notes.iter().map(|(key, text)| ((*key).to_owned(), text.clone()));
            pod.metadata.annotations.extend(notes);
        });
        Ok(bound.expect("looked up above"))
    }

    /// Writes what a pod or PodGroup should say, if it is still the one that was meant.
    pub fn annotate(&mut self, write: &AnnotationWrite) -> Option<Event> {
        let AnnotationWrite { object, uid, desired, .. } = write;
        match object {
            ObjectName::Pod(key) => {
                self.pods.get(key).filter(|pod| pod.metadata.uid == *uid)?;
                self.change_pod(key, |pod| {
                    desired.put_on(&mut pod.metadata.annotations);
                    pod.status.nominated_node_name.clone_from(&desired.nominated_node);
                })
            }
            ObjectName::PodGroup(key) => {
                let version = self.next_version();
                let group = self.groups.get_mut(key).filter(|group| group.metadata.uid == *uid)?;
                desired.put_on(&mut group.metadata.annotations);
                group.metadata.resource_version = version;
                Some(Event::from(group.clone()))
            }
        }
    }

    /// Asks a pod to leave, if it is still the one that was meant: it goes with the next tick unless
    /// it says otherwise, and comes back pending if something recreates it.
    pub fn evict(&mut self, key: &str, uid: &str) -> Result<Event, Refusal> {
        let pod =
            self.pods.get(key).filter(|pod| pod.metadata.uid == uid).ok_or(Refusal::PodIsGone)?;
        let deleted = match pod.metadata.deletion_timestamp {
            Some(deleted) => deleted,
            None => {
                if let Some((count, limit)) = self.departures.refuse(pod) {
                    return Err(Refusal::EvictionRefused(count, limit));
                }
                self.departures.evict(pod, self.now, self.grace)
            }
        };
        let evicted = self.change_pod(key, |pod| {
            pod.metadata.deletion_timestamp = Some(deleted);
            pod.metadata.annotations.insert(EVICTED.into(), "true".into());
        });
        Ok(evicted.expect("looked up above"))
    }

    /// When an evicted pod leaves, if its manifest or `grace` says so.
    pub fn departure(&self, key: &str) -> Option<Departure> {
        self.departures.stated(key)
    }

    /// The pods on nodes that are being deleted and leave later than now, by name.
    pub fn terminating(&self) -> impl Iterator<Item = (&str, &str, Departure)> {
        self.pods.iter().filter_map(|(key, pod)| {
            let departure = self.departures.of(key, pod)?;
            let node = pod.spec.node_name.as_deref()?;
            (departure.gone > self.now).then_some((&**key, node, departure))
        })
    }

    pub fn remove_pod(&mut self, key: &str) -> Option<Event> {
        self.version += 1;
        self.departures.forget(key);
        let pod = self.pods.remove(key)?;
        Some(Event::Gone { kind: Kind::Pod, key: key.to_owned(), uid: pod.metadata.uid })
    }

    pub fn remove_group(&mut self, key: &str) -> Option<Event> {
        self.version += 1;
        let group = self.groups.remove(key)?;
        Some(Event::Gone { kind: Kind::PodGroup, key: key.to_owned(), uid: group.metadata.uid })
    }

    pub fn remove_node(&mut self, name: &str) -> Option<Event> {
        self.version += 1;
        self.nodes.remove(name).map(|_| Event::gone(Kind::Node, name))
    }

    pub fn put_node(&mut self, mut node: Node) -> Event {
        node.metadata.resource_version = self.next_version();
        self.nodes.insert(node.metadata.name.clone(), node.clone());
        Event::from(node)
    }

    pub fn put_pod(&mut self, mut pod: Pod) -> Event {
        self.incarnations += 1;
        pod.metadata.uid = format!("uid-{}-{}", pod.metadata.key(), self.incarnations);
        pod.metadata.resource_version = self.next_version();
        self.pods.insert(pod.metadata.key(), pod.clone());
        Event::from(pod)
    }

    pub fn put_group(&mut self, mut group: PodGroup) -> Event {
        self.incarnations += 1;
        group.metadata.uid = format!("uid-{}", self.incarnations);
        group.metadata.resource_version = self.next_version();
        self.groups.insert(group.metadata.key(), group.clone());
        Event::from(group)
    }

    pub fn put_domain(&mut self, mut domain: HyperNode) -> Event {
        domain.metadata.resource_version = self.next_version();
        self.domains.insert(domain.metadata.name.clone(), domain.clone());
        Event::from(domain)
    }

    pub fn remove_domain(&mut self, name: &str) -> Option<Event> {
        self.version += 1;
        self.domains.remove(name).map(|_| Event::gone(Kind::HyperNode, name))
    }

    /// Writes a PodGroup's status.
    pub fn report(&mut self, key: &str, status: PodGroupStatus) -> Option<Event> {
        let version = self.next_version();
        let group = self.groups.get_mut(key)?;
        group.status = Some(status);
        group.metadata.resource_version = version;
        Some(Event::from(group.clone()))
    }

    /// The kubelet's turn: runs what is bound, ends what is over or leaving, recreates what was
    /// evicted.
    pub fn tick(&mut self, recreate: bool) -> Vec<Event> {
        let now = self.now;
        let keys: Vec<String> = self
            .pods
            .iter()
            .filter(|(key, pod)| self.has_news(key, pod))
            .map(|(key, _)| key.clone())
            .collect();
        let mut events = Vec::new();
        for key in keys {
            let pod = &self.pods[&key];
            if let Some(departure) = self.departures.of(&key, pod) {
                if departure.gone > now {
                    // Its containers have been stopped; only a finalizer keeps the object.
                    events.extend(self.change_pod(&key, |pod| pod.status.phase = "Failed".into()));
                    continue;
                }
                // The pods of a Job are created again by its controller.
                let again = recreate
                    && pod.metadata.annotations.contains_key(EVICTED)
                    && !objects::is_of_job(pod);
                let pod = pod.clone();
                events.extend(self.remove_pod(&key));
                if again {
                    events.push(self.put_pod(reborn(pod, now)));
                }
            } else if pod.status.phase == "Running" {
                let succeeds = ending(pod).is_some_and(|ending| ending.exit_code == Some(0));
                let phase = if succeeds { "Succeeded" } else { "Failed" };
                events.extend(self.change_pod(&key, |pod| pod.status.phase = phase.into()));
            } else {
                events.extend(self.change_pod(&key, |pod| {
                    pod.status.phase = "Running".into();
                    pod.status.start_time = Some(now);
                }));
            }
        }
        events
    }

    fn has_news(&self, key: &str, pod: &Pod) -> bool {
        let on_live_node =
            || pod.spec.node_name.as_ref().is_some_and(|name| self.nodes.contains_key(name));
        if let Some(moment) = self.next_of(key, pod) {
            return moment <= self.now;
        }
        match pod.status.phase.as_str() {
            "Succeeded" | "Failed" | "Running" => false,
            _ => pod.metadata.deletion_timestamp.is_none() && on_live_node(),
        }
    }

    /// When a pod leaves or ends, if it will.
    fn next_of(&self, key: &str, pod: &Pod) -> Option<Time> {
        let is_over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        match self.departures.of(key, pod) {
            Some(departure) if is_over => Some(departure.gone),
            Some(departure) => Some(departure.terminated),
            None if pod.status.phase == "Running" => ending(pod).map(|ending| ending.at),
            None => None,
        }
    }

    /// When the next pod will end or leave, if any will.
    pub fn next_end(&self) -> Option<Time> {
        self.pods.iter().filter_map(|(key, pod)| self.next_of(key, pod)).min()
    }
}

/// Marks a pod that the scheduler asked to leave, so that it is recreated.
const EVICTED: &str = "muster.sh/evicted";

fn clear_nomination(pod: &mut Pod) {
    for key in [PIPELINED_STATUS, PIPELINED_NODE, EVICTION_OCCURRED] {
        pod.metadata.annotations.remove(key);
    }
    pod.status.nominated_node_name = None;
}

/// The same pod as its controller makes it again: pending, new, without a nomination.
fn reborn(mut pod: Pod, now: Time) -> Pod {
    pod.metadata.creation_timestamp = Some(now);
    pod.metadata.deletion_timestamp = None;
    clear_nomination(&mut pod);
    for key in [EVICTED].iter().chain(&CARD_NOTES) {
        pod.metadata.annotations.remove(*key);
    }
    pod.spec.node_name = None;
    pod.status = muster_api::core::PodStatus { phase: "Pending".into(), ..Default::default() };
    pod
}
