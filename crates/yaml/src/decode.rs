//! Decodes a tree into a type with serde. Every error names the field, the position and what was
//! expected.
//!
//! As strict as Kubernetes: a number is not a string. A map entry whose value is null counts as
//! absent.

use std::fmt;

use serde::Deserializer;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeSeed, Expected, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::{Key, Value, Yaml, YamlError, prefixed};

impl YamlError {
    fn without_place(message: impl Into<String>) -> YamlError {
        YamlError { line: 0, column: 0, path: String::new(), message: message.into() }
    }

    /// Keeps the innermost position: the first that an error gets on its way out.
    fn at(mut self, node: &Yaml) -> YamlError {
        if self.line == 0 {
            (self.line, self.column) = (node.line, node.column);
        }
        self
    }

    fn under(mut self, segment: &str) -> YamlError {
        self.path = prefixed(segment, &self.path);
        self
    }
}

impl de::Error for YamlError {
    fn custom<T: fmt::Display>(message: T) -> YamlError {
        YamlError::without_place(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> YamlError {
        YamlError::without_place(format!("expected {}, found {found}", in_words(expected)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> YamlError {
        YamlError::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> YamlError {
        // Some enums read an unset value from the empty name.
        let known: Vec<&str> = expected.iter().copied().filter(|name| !name.is_empty()).collect();
        YamlError::without_place(format!(
            "{found:?} is not known; write one of {}",
            known.join(", ")
        ))
    }

    fn missing_field(field: &'static str) -> YamlError {
        YamlError::without_place(format!("{field} is missing"))
    }
}

/// The types of Rust in the words of a manifest.
fn in_words(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "i32" => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        "i64" => "a whole number that fits 64 bits".to_owned(),
        "a sequence" => "a list".to_owned(),
        text if text.starts_with("struct ") || text == "a map" => "a mapping".to_owned(),
        text => text.to_owned(),
    }
}

impl Yaml {
    fn wrong(&self, expected: &str) -> YamlError {
        YamlError::without_place(format!("expected {expected}, found {}", self.description()))
            .at(self)
    }

    /// The value as a whole number; 1e3 and 2.0 are whole numbers too.
    fn integer(&self) -> Result<i64, YamlError> {
        match self.value {
            Value::Int(number) => Ok(number),
            Value::Float(number) if number.fract() == 0.0 && number.abs() < i64::MAX as f64 => {
                Ok(number as i64)
            }
            _ => Err(self.wrong("an integer")),
        }
    }

    fn string(&self) -> Result<&str, YamlError> {
        match &self.value {
            Value::String(text) => Ok(text),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Err(self.wrong("a string (in quotes)"))
            }
            _ => Err(self.wrong("a string")),
        }
    }
}

/// Whole numbers of every width are checked here and narrowed by the visitor.
macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
            visitor.visit_i64(self.integer()?).map_err(|error: YamlError| error.at(self))
        })*
    };
}

impl<'de> Deserializer<'de> for &'de Yaml {
    type Error = YamlError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Seq(items) => visitor.visit_seq(Items { rest: items.iter().enumerate() }),
            Value::Map(entries) => {
                visitor.visit_map(Entries { rest: entries.iter(), current: None })
            }
        }
        .map_err(|error: YamlError| error.at(self))
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match self.value {
            Value::Bool(value) => {
                visitor.visit_bool(value).map_err(|error: YamlError| error.at(self))
            }
            _ => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        visitor.visit_borrowed_str(self.string()?).map_err(|error: YamlError| error.at(self))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match self.value {
            Value::Seq(_) => self.deserialize_any(visitor),
            _ => Err(self.wrong("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match self.value {
            Value::Map(_) => self.deserialize_any(visitor),
            _ => Err(self.wrong("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        visitor
            .visit_enum(BorrowedStrDeserializer::new(self.string()?))
            .map_err(|error: YamlError| error.at(self))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Items<'de> {
    rest: std::iter::Enumerate<std::slice::Iter<'de, Yaml>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = YamlError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, YamlError> {
        let Some((index, item)) = self.rest.next() else { return Ok(None) };
        let value = seed.deserialize(item).map_err(|error| error.at(item).under_index(index))?;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

impl YamlError {
    fn under_index(mut self, index: usize) -> YamlError {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, (Key, Yaml)>,
    current: Option<&'de (Key, Yaml)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = YamlError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, YamlError> {
        self.current = self.rest.by_ref().find(|(_, value)| value.value != Value::Null);
        let Some((key, _)) = self.current else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(&key.name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, YamlError> {
        let (key, value) = self.current.take().expect("serde asks for a key before its value");
        seed.deserialize(value).map_err(|error| error.at(value).under(&key.name))
    }
}
