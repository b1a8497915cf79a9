//! Schemas of fields that the custom resources share.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::{Quantity, keys};

/// Amounts by resource name. The limits keep down the cost that the API server estimates for CEL
/// rules over them.
pub(crate) fn resources(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": generator.subschema_for::<Quantity>(),
    })
}

pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
            "matchExpressions": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string" },
                        "operator": { "type": "string" },
                        "values": {
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string" },
                        },
                    },
                },
            },
        },
    })
}

/// A list that is replaced as a whole.
pub(crate) fn atomic_strings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "x-kubernetes-list-type": "atomic", "items": { "type": "string" } })
}

/// The name of another object; empty means none.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 253,
        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
    })
}

/// The name of a queue.
pub(crate) fn queue_name(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = object_name(generator);
    schema.insert("default".to_owned(), keys::DEFAULT_QUEUE.into());
    schema
}

/// What another part of the system knows in detail: it is kept as it is.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 0 })
}

pub(crate) fn count64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0 })
}

pub(crate) fn positive(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 1 })
}

pub(crate) fn number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32" })
}

pub(crate) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

pub(crate) fn flag(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "boolean" })
}
