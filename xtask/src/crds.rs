//! The definitions of our custom resources for an API server, derived and then brought as close to
//! Volcano's as possible, so that the objects of either project fit the definitions of the other.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSON, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use muster_api::kinds::{Kind, Scope};
use muster_api::{
    HyperNodeSpec, HyperNodeStatus, PodGroupSpec, PodGroupStatus, QueueSpec, QueueStatus,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use serde_json::json;

/// The fields that the API server fills in. The derive gives every optional field a default; many
/// of those would break a rule of their own schema, and a status must not look as if it had been
/// written.
const DEFAULTS: [&str; 7] = [
    "PodGroup.spec.queue",
    "PodGroup.spec.networkTopology.mode",
    "PodGroup.spec.subGroupPolicy.networkTopology.mode",
    "PodGroup.spec.subGroupPolicy.subGroupSize",
    "PodGroup.spec.subGroupPolicy.minSubGroups",
    "Queue.spec.weight",
    "Queue.spec.dequeueStrategy",
];

/// Every custom resource that the scheduler reads.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut group = definition::<PodGroupSpec, PodGroupStatus>(&POD_GROUP);
    let mut queue = definition::<QueueSpec, QueueStatus>(&QUEUE);
    for crd in [&mut group, &mut queue] {
        // Everything in these specs is optional, and so are they.
        spec(crd).default = Some(JSON(json!({})));
    }
    root(&mut queue).x_kubernetes_validations = Some(vec![ValidationRule {
        rule: "!has(self.spec.parent) || self.spec.parent != self.metadata.name".to_owned(),
        message: Some("a queue cannot be its own parent".to_owned()),
        ..ValidationRule::default()
    }]);
    vec![definition::<HyperNodeSpec, HyperNodeStatus>(&HYPER_NODE), group, queue]
}

/// The parts of a definition that neither the schema nor the table of kinds contains.
struct Resource {
    kind: Kind,
    short_names: &'static [&'static str],
    description: &'static str,
    columns: &'static [Column],
}

/// What `kubectl get` prints: a name, a type, a path, and whether only with `-o wide`.
struct Column(&'static str, &'static str, &'static str, Show);

#[derive(PartialEq)]
enum Show {
    Always,
    Wide,
}

static POD_GROUP: Resource = Resource {
    kind: Kind::PodGroup,
    short_names: &["pg", "podgroup-v1beta1"],
    description: "Pods that start together or not at all.",
    columns: &[
        Column("STATUS", "string", ".status.phase", Show::Always),
        Column("minMember", "integer", ".spec.minMember", Show::Always),
        Column("RUNNINGS", "integer", ".status.running", Show::Always),
        Column("AGE", "date", ".metadata.creationTimestamp", Show::Always),
        Column("QUEUE", "string", ".spec.queue", Show::Wide),
    ],
};

static QUEUE: Resource = Resource {
    kind: Kind::Queue,
    short_names: &["q", "queue-v1beta1"],
    description: "A share of the cluster.",
    columns: &[
        Column("PARENT", "string", ".spec.parent", Show::Always),
        Column("WEIGHT", "integer", ".spec.weight", Show::Always),
        Column("STATE", "string", ".status.state", Show::Always),
        Column("AGE", "date", ".metadata.creationTimestamp", Show::Always),
    ],
};

static HYPER_NODE: Resource = Resource {
    kind: Kind::HyperNode,
    short_names: &["hn"],
    description: "Nodes, or smaller HyperNodes, with equal network between them.",
    columns: &[
        Column("Tier", "integer", ".spec.tier", Show::Always),
        Column("TierName", "string", ".spec.tierName", Show::Always),
        Column("NodeCount", "integer", ".status.nodeCount", Show::Always),
        Column("Age", "date", ".metadata.creationTimestamp", Show::Always),
    ],
};

/// The validation of a custom resource by an API server. It knows the metadata itself.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is read")]
struct Root<Spec, Status> {
    spec: Spec,
    status: Option<Status>,
}

fn definition<Spec: JsonSchema, Status: JsonSchema>(
    resource: &Resource,
) -> CustomResourceDefinition {
    let mut schema = schema::<Root<Spec, Status>>();
    let kind = resource.kind;
    let (group, version) = kind.api_version().split_once('/').expect("custom kinds have a group");
    let scope = match kind.scope() {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    schema.title = Some(kind.name().to_owned());
    schema.description = Some(resource.description.to_owned());
    simplify(&mut schema, kind.name());
    let version = CustomResourceDefinitionVersion {
        name: version.to_owned(),
        served: true,
        storage: true,
        additional_printer_columns: Some(resource.columns.iter().map(Column::definition).collect()),
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema) }),
        subresources: Some(CustomResourceSubresources {
            scale: None,
            status: Some(CustomResourceSubresourceStatus(json!({}))),
        }),
        ..CustomResourceDefinitionVersion::default()
    };
    let names = CustomResourceDefinitionNames {
        kind: kind.name().to_owned(),
        plural: kind.plural().to_owned(),
        singular: Some(kind.name().to_ascii_lowercase()),
        short_names: Some(resource.short_names.iter().map(|&name| name.to_owned()).collect()),
        ..CustomResourceDefinitionNames::default()
    };
    let name = kind.resource();
    CustomResourceDefinition {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        spec: CustomResourceDefinitionSpec {
            group: group.to_owned(),
            names,
            scope: scope.to_owned(),
            versions: vec![version],
            ..CustomResourceDefinitionSpec::default()
        },
        ..CustomResourceDefinition::default()
    }
}

impl Column {
    fn definition(&self) -> CustomResourceColumnDefinition {
        CustomResourceColumnDefinition {
            name: self.0.to_owned(),
            type_: self.1.to_owned(),
            json_path: self.2.to_owned(),
            priority: (self.3 == Show::Wide).then_some(1),
            ..CustomResourceColumnDefinition::default()
        }
    }
}

/// A schema as API servers take it: without references, and structural.
fn schema<T: JsonSchema>() -> JSONSchemaProps {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generator = settings
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .into_generator();
    let schema = generator.into_root_schema_for::<T>().to_value();
    serde_json::from_value(schema).expect("a derived schema is an OpenAPI schema")
}

fn root(crd: &mut CustomResourceDefinition) -> &mut JSONSchemaProps {
    let schema = crd.spec.versions[0].schema.as_mut();
    schema
        .and_then(|schema| schema.open_api_v3_schema.as_mut())
        .expect("a derived definition has a schema")
}

fn spec(crd: &mut CustomResourceDefinition) -> &mut JSONSchemaProps {
    let properties = root(crd).properties.as_mut();
    properties
        .and_then(|properties| properties.get_mut("spec"))
        .expect("a derived definition has a spec")
}

/// Removes what the derive adds beyond Volcano's definitions.
fn simplify(schema: &mut JSONSchemaProps, path: &str) {
    schema.nullable = None;
    if !DEFAULTS.contains(&path) {
        schema.default = None;
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        simplify(property, &format!("{path}.{name}"));
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        simplify(items, path);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        simplify(values, path);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Every schema in the definition, with its path.
    fn schemas(crd: &CustomResourceDefinition) -> Vec<(String, Value)> {
        fn walk(path: String, schema: Value, all: &mut Vec<(String, Value)>) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                walk(format!("{path}.{name}"), property.clone(), all);
            }
            for inner in ["items", "additionalProperties"] {
                if schema[inner].is_object() {
                    walk(format!("{path}.{inner}"), schema[inner].clone(), all);
                }
            }
            all.push((path, schema));
        }
        let crd = serde_json::to_value(crd).unwrap();
        let mut all = Vec::new();
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        walk(kind, crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone(), &mut all);
        all
    }

    fn schema(path: &str) -> Value {
        let found = crds().iter().flat_map(schemas).find(|(name, _)| name == path);
        found.unwrap_or_else(|| panic!("no {path}")).1
    }

    #[test]
    fn every_schema_is_structural() {
        for (path, schema) in crds().iter().flat_map(schemas) {
            let int_or_string = schema["x-kubernetes-int-or-string"] == true;
            assert_ne!(
                schema["type"].is_string(),
                int_or_string,
                "{path} has a type or is int-or-string"
            );
            for key in
                ["$ref", "anyOf", "oneOf", "allOf", "not", "nullable", "definitions", "uniqueItems"]
            {
                assert!(schema.get(key).is_none(), "{path} has {key}");
            }
            let maps =
                schema.get("properties").is_some() && schema.get("additionalProperties").is_some();
            assert!(!maps, "{path} is a map and an object");
            let items = schema["type"] == "array";
            assert_eq!(schema.get("items").is_some(), items, "{path} has items only as a list");
        }
    }

    #[test]
    fn only_the_documented_fields_have_defaults() {
        let defaults: BTreeSet<(String, String)> = crds()
            .iter()
            .flat_map(schemas)
            .filter(|(_, schema)| schema.get("default").is_some())
            .map(|(path, schema)| (path, schema["default"].to_string()))
            .collect();
        let expected = [
            ("PodGroup.spec", "{}"),
            ("PodGroup.spec.networkTopology.mode", "\"hard\""),
            ("PodGroup.spec.queue", "\"default\""),
            ("PodGroup.spec.subGroupPolicy.items.minSubGroups", "0"),
            ("PodGroup.spec.subGroupPolicy.items.networkTopology.mode", "\"hard\""),
            ("PodGroup.spec.subGroupPolicy.items.subGroupSize", "1"),
            ("Queue.spec", "{}"),
            ("Queue.spec.dequeueStrategy", "\"traverse\""),
            ("Queue.spec.weight", "1"),
        ];
        assert_eq!(
            defaults,
            expected.map(|(path, value)| (path.to_owned(), value.to_owned())).into()
        );
    }

    #[test]
    fn limits_and_rules_are_in_the_schema() {
        for (path, key, value) in [
            ("Queue.spec.weight", "minimum", "1.0"),
            ("Queue.spec.weight", "maximum", "65535.0"),
            ("Queue.spec.priority", "minimum", "0.0"),
            ("Queue.spec.type", "maxLength", "253"),
            ("Queue.spec.parent", "maxLength", "253"),
            ("Queue.spec.dequeueStrategy", "enum", "[\"fifo\",\"traverse\"]"),
            ("PodGroup.spec.minMember", "minimum", "0.0"),
            ("PodGroup.spec.networkTopology.highestTierAllowed", "minimum", "0.0"),
            ("PodGroup.spec.subGroupPolicy.items.subGroupSize", "minimum", "1.0"),
            ("HyperNode.spec", "required", "[\"members\",\"tier\"]"),
            ("HyperNode.spec.tier", "minimum", "0.0"),
            ("HyperNode.spec.members", "minItems", "1"),
            ("HyperNode.spec.members.items.type", "enum", "[\"Node\",\"HyperNode\"]"),
            ("HyperNode.spec.members.items.selector.regexMatch.pattern", "minLength", "1"),
        ] {
            assert_eq!(schema(path)[key].to_string(), value, "{path} {key}");
        }
        for (path, rules) in [
            ("Queue", 1),
            ("Queue.spec", 3),
            ("PodGroup.spec.networkTopology", 1),
            ("PodGroup.spec.subGroupPolicy.items.networkTopology", 1),
            ("HyperNode.spec.members.items.selector", 1),
        ] {
            let found = schema(path)["x-kubernetes-validations"].as_array().map_or(0, Vec::len);
            assert_eq!(found, rules, "{path}");
        }
    }

    #[test]
    fn names_and_scopes_are_volcanos_and_every_kind_has_a_status_subresource() {
        let summary: Vec<String> = crds()
            .iter()
            .map(|crd| {
                let version = &crd.spec.versions[0];
                let status = if version.subresources.is_some() { "with" } else { "without" };
                let short = crd.spec.names.short_names.clone().unwrap_or_default().join(",");
                let name = crd.metadata.name.as_deref().unwrap_or_default();
                format!("{name} {} {} {short} {status} status", version.name, crd.spec.scope)
            })
            .collect();
        assert_eq!(
            summary,
            [
                "hypernodes.topology.volcano.sh v1alpha1 Cluster hn with status",
                "podgroups.scheduling.volcano.sh v1beta1 Namespaced pg,podgroup-v1beta1 with status",
                "queues.scheduling.volcano.sh v1beta1 Cluster q,queue-v1beta1 with status",
            ]
        );
    }
}
