//! The table of fields: one line per type, with the names of its fields. If a field has fields
//! itself, its type follows after a colon, in brackets if the field is a list.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

const HEADER: &str = "\
# The fields of the kinds that people write by hand: `type field field:type field:[type of items] …`.
# Derived from the types: `cargo run -p muster-xtask` writes this file.
";

/// Every object has these; the API server knows their fields.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub fn table(definitions: &[CustomResourceDefinition]) -> String {
    let mut types = Types::default();
    types.add("Node", &of_type::<k8s_openapi::api::core::v1::Node>());
    types.add("Pod", &of_type::<k8s_openapi::api::core::v1::Pod>());
    for definition in definitions {
        types.add(&definition.spec.names.kind, &of_definition(definition));
    }
    let mut text = HEADER.to_owned();
    for (name, fields) in types.0 {
        text.push_str(&name);
        for (field, inner) in fields {
            text.push(' ');
            text.push_str(&field);
            if let Some(inner) = inner {
                text.push(':');
                text.push_str(&inner);
            }
        }
        text.push('\n');
    }
    text
}

fn of_type<T: schemars::JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

fn of_definition(definition: &CustomResourceDefinition) -> Value {
    let version = &definition.spec.versions[0];
    let mut schema = serde_json::to_value(&version.schema).expect("a schema is JSON");
    let mut schema = schema["openAPIV3Schema"].take();
    for common in COMMON {
        schema["properties"][common] = Value::Object(Map::new());
    }
    schema
}

/// The fields of each type, and the types of those that have fields themselves.
#[derive(Default)]
struct Types(BTreeMap<String, BTreeMap<String, Option<String>>>);

impl Types {
    /// Adds the type that a schema describes; types of its fields are named after it.
    fn add(&mut self, name: &str, root: &Value) {
        self.add_type(name, root, root);
    }

    fn add_type(&mut self, name: &str, schema: &Value, root: &Value) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        if self.0.contains_key(name) {
            return;
        }
        // Types may contain themselves.
        self.0.insert(name.to_owned(), BTreeMap::new());
        let fields: BTreeMap<_, _> = properties
            .iter()
            .map(|(field, schema)| (field.clone(), self.inner(name, field, schema, root)))
            .collect();
        self.0.insert(name.to_owned(), fields);
    }

    /// The type of a field, if it has fields itself, or is a list of such.
    fn inner(&mut self, owner: &str, field: &str, schema: &Value, root: &Value) -> Option<String> {
        let (reference, schema) = resolved(schema, root);
        if let Some(items) = schema.get("items") {
            let inner = self.inner(owner, field, items, root)?;
            return Some(format!("[{inner}]"));
        }
        schema.get("properties")?;
        let name = match reference {
            Some(reference) => type_name(reference).to_owned(),
            None => format!("{owner}.{field}"),
        };
        self.add_type(&name, schema, root);
        Some(name)
    }
}

/// The schema that lists fields or items, and the last reference on the way to it.
fn resolved<'s>(mut schema: &'s Value, root: &'s Value) -> (Option<&'s str>, &'s Value) {
    let mut last = None;
    // A schema is wrapped a few times at most.
    for _ in 0..8 {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let inner = match reference {
            Some(reference) => root.pointer(reference.trim_start_matches('#')),
            None => ["allOf", "anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.get(0)),
        };
        match inner {
            Some(inner) if schema.get("properties").is_none() => {
                (last, schema) = (reference.or(last), inner);
            }
            _ => break,
        }
    }
    (last, schema)
}

/// `PodSpec` of `#/$defs/io.k8s.api.core.v1.PodSpec`.
fn type_name(reference: &str) -> &str {
    reference.rsplit(['.', '/']).next().unwrap_or(reference)
}
