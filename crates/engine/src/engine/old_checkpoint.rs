//! Checkpoints of versions in which the failed searches were a field of the model: they are removed
//! from it while it is read, so that the model need not know them.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::model::Cluster;
use crate::order::failed_searches::Memory;

/// What the field of the model was called.
const OLD_FIELD: &str = "fruitless";

/// Reads a model, and the failed searches if they are in it.
pub fn read<'de, D: Deserializer<'de>>(source: D) -> Result<(Cluster, Memory), D::Error> {
    let mut memory = Memory::default();
    let cluster = Cluster::deserialize(WithOldField { inner: source, memory: &mut memory })?;
    Ok((cluster, memory))
}

/// Wraps a deserializer of a struct: `inner` is a deserializer, then a visitor, then the entries of
/// a map.
struct WithOldField<'m, T> {
    inner: T,
    memory: &'m mut Memory,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithOldField<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = WithOldField { inner: visitor, memory: self.memory };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for WithOldField<'_, V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        self.inner.expecting(out)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(WithOldField { inner: entries, memory: self.memory })
    }

    // Without names there is no field to look for.
    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(values)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithOldField<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.inner.next_key::<String>()? {
            if name != OLD_FIELD {
                let name: StringDeserializer<A::Error> = name.into_deserializer();
                return seed.deserialize(name).map(Some);
            }
            *self.memory = self.inner.next_value()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}
