//! Events: what can happen to the cluster. Objects come whole; the same one may come twice, an
//! older version after a newer one, and a pod before its node, queue or PodGroup.

use std::fmt;
use std::marker::PhantomData;

use muster_api::Time;
use muster_api::kinds::{Kind, Object, Resource, WithType};
use serde::de::value::EnumAccessDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::usage::record::Record;

/// In files an object is called by its kind: `{"Pod": {…}}`. Everything else has the name of its
/// variant, which the derived functions write and read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Event {
    /// An object as it is now. Kinds that the engine has no use for change nothing.
    #[serde(skip)]
    Object(Object),
    /// Keys are `namespace/name`; a uid that isn't the current one's belongs to the past and
    /// changes nothing. Without a uid it is the one of that name.
    Gone { kind: Kind, key: String, uid: String },
    /// What queues used before this process started.
    Usage(Box<Record>),
    /// The cluster took a bind of ours.
    Bound { key: String, uid: String, node: String },
    /// The cluster refused to record a nomination of ours.
    NominationRefused { key: String, uid: String, cause: String, at: Time },
    /// The cluster refused an eviction of ours, for now.
    EvictionRefused { key: String, uid: String, cause: String, at: Time },
    /// The cluster refused a bind of ours, or we know that it never arrived.
    BindFailed { key: String, uid: String, cause: String, at: Time },
}

impl Event {
    /// The object of that name is gone.
    pub fn gone(kind: Kind, key: impl Into<String>) -> Event {
        Event::Gone { kind, key: key.into(), uid: String::new() }
    }
}

impl<T: Into<Object>> From<T> for Event {
    fn from(object: T) -> Event {
        Event::Object(object.into())
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Event::Object(object) => object.serialize(serializer),
            other => Event::serialize(other, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        deserializer.deserialize_enum("Event", &[], EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Event, A::Error> {
        let (name, content) = data.variant::<String>()?;
        if let Some(kind) = Kind::named(&name) {
            return kind.with_type(ReadObject(content, PhantomData)).map(Event::Object);
        }
        // Older journals have `{"NodeGone": "n"}` and `{"PodGone": {"key": …, "uid": …}}`.
        match name.strip_suffix("Gone").and_then(Kind::named) {
            Some(kind) => Ok(match content.newtype_variant()? {
                OldGone::Key(key) => Event::gone(kind, key),
                OldGone::Object { key, uid } => Event::Gone { kind, key, uid },
            }),
            None => Event::deserialize(EnumAccessDeserializer::new(Named(name, content))),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OldGone {
    Key(String),
    Object { key: String, uid: String },
}

struct ReadObject<'de, A>(A, PhantomData<&'de ()>);

impl<'de, A: VariantAccess<'de>> WithType for ReadObject<'de, A> {
    type Output = Result<Object, A::Error>;

    fn call<T: Resource>(self) -> Self::Output {
        self.0.newtype_variant::<T>().map(Into::into)
    }
}

/// An enum of which the name has been read.
struct Named<A>(String, A);

impl<'de, A: VariantAccess<'de>> EnumAccess<'de> for Named<A> {
    type Error = A::Error;
    type Variant = A;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, A), A::Error> {
        Ok((seed.deserialize(self.0.into_deserializer())?, self.1))
    }
}
