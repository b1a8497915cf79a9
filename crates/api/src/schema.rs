//! Schemas of fields that the custom resources share.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::Quantity;

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
