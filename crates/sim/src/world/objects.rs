//! What controllers do to objects: create, change and delete them, and what belongs to an object
//! goes with it.

use muster_api::core::{Meta, Pod};
use muster_api::kinds::{Kind, Object};
use muster_engine::Event;
use serde_json::Value;

use super::World;

/// Whether the controller of a Job creates the pod again.
pub fn is_of_job(pod: &Pod) -> bool {
    let owner = pod.metadata.controller();
    owner.is_some_and(|owner| {
        owner.kind == Kind::Job.name() && owner.api_version == Kind::Job.api_version()
    })
}

/// Gives an object of a manifest the UID that an API server would have given it. That of a Job is
/// short, since its PodGroup is named after it.
pub fn give_uid(kind: Kind, key: &str, meta: &mut Meta) {
    meta.uid = match kind {
        Kind::Node | Kind::Pod | Kind::PodGroup => format!("uid-{key}"),
        Kind::Job | Kind::CronJob | Kind::JobFlow | Kind::JobTemplate | Kind::Command => {
            let hash =
                key.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
            format!("{hash:08x}")
        }
        _ => return,
    };
}

impl World {
    /// The object of that kind and name.
    pub fn get(&self, kind: Kind, key: &str) -> Option<Object> {
        match kind {
            Kind::Node => self.nodes.get(key).cloned().map(Object::from),
            Kind::Pod => self.pods.get(key).cloned().map(Object::from),
            Kind::PodGroup => self.groups.get(key).cloned().map(Object::from),
            Kind::Queue => self.queues.get(key).cloned().map(Object::from),
            Kind::HyperNode => self.domains.get(key).cloned().map(Object::from),
            kind => self.others.get(&(kind, key.to_owned())).cloned(),
        }
    }

    /// The objects of a kind that the scheduler does not act on, by name.
    pub fn others(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.others.iter().filter(move |((its, _), _)| *its == kind).map(|(_, object)| object)
    }

    /// Takes in a new object.
    pub fn create(&mut self, mut object: Object) -> Event {
        object.meta_mut().creation_timestamp = Some(self.now);
        match object {
            Object::Pod(mut pod) => {
                pod.status.phase = "Pending".to_owned();
                self.put_pod(*pod)
            }
            Object::PodGroup(group) => self.put_group(*group),
            other => {
                let (kind, key) = (other.kind(), other.key());
                self.insert(other);
                Event::Object(self.get(kind, &key).expect("it was just taken in"))
            }
        }
    }

    /// Changes the JSON of an object, if it is there.
    pub fn change(
        &mut self,
        kind: Kind,
        key: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Event, serde_json::Error> {
        let Some(object) = self.get(kind, key) else {
            return Err(serde::de::Error::custom("the object is gone"));
        };
        let mut fields = object.fields()?;
        change(&mut fields);
        let object = kind.with_type(Read(&fields))?;
        self.insert(object);
        Ok(Event::Object(self.get(kind, key).expect("it was just taken in")))
    }

    /// Asks an object to leave. A pod goes with the next tick, everything else at once, and what
    /// belongs to it goes too.
    pub fn delete(&mut self, kind: Kind, key: &str) -> Vec<Event> {
        let now = self.now;
        match kind {
            Kind::Pod => {
                let Some(pod) = self.pods.get(key) else { return Vec::new() };
                if pod.metadata.deletion_timestamp.is_some() {
                    return Vec::new();
                }
                let deleted = self.departures.evict(pod, now, self.grace);
                let leaves = |pod: &mut Pod| pod.metadata.deletion_timestamp = Some(deleted);
                self.change_pod(key, leaves).into_iter().collect()
            }
            Kind::PodGroup => self.remove_group(key).into_iter().collect(),
            kind => {
                self.version += 1;
                let Some(object) = self.others.remove(&(kind, key.to_owned())) else {
                    return Vec::new();
                };
                let uid = object.meta().uid.clone();
                let mut events = self.collect(&uid);
                events.push(Event::Gone { kind, key: key.to_owned(), uid });
                events
            }
        }
    }

    /// Deletes everything that belongs to an object.
    fn collect(&mut self, owner: &str) -> Vec<Event> {
        let belongs = |meta: &Meta| meta.owner_references.iter().any(|its| its.uid == owner);
        let pods = self.pods.iter().map(|(key, pod)| (Kind::Pod, key, &pod.metadata));
        let groups = self.groups.iter().map(|(key, group)| (Kind::PodGroup, key, &group.metadata));
        let others = self.others.iter().map(|((kind, key), object)| (*kind, key, object.meta()));
        let below: Vec<(Kind, String)> = pods
            .chain(groups)
            .chain(others)
            .filter(|(_, _, meta)| belongs(meta))
            .map(|(kind, key, _)| (kind, key.clone()))
            .collect();
        below.into_iter().flat_map(|(kind, key)| self.delete(kind, &key)).collect()
    }
}

struct Read<'v>(&'v Value);

impl muster_api::kinds::WithType for Read<'_> {
    type Output = Result<Object, serde_json::Error>;

    fn call<T: muster_api::kinds::Resource>(self) -> Self::Output {
        T::deserialize(self.0).map(Into::into)
    }
}
