//! The definitions that teach an API server our custom resources. `cargo run -p muster-xtask` writes
//! them from the types.

use serde::Deserialize;
use serde_json::Value;

/// Every custom resource that the scheduler reads, as YAML.
pub const CRDS: [&str; 3] = [
    include_str!("../crds/hypernodes.yaml"),
    include_str!("../crds/podgroups.yaml"),
    include_str!("../crds/queues.yaml"),
];

/// The same as JSON.
pub fn crds() -> Vec<Value> {
    let tree = |text: &&str| muster_yaml::parse(text).and_then(|tree| Value::deserialize(&tree));
    CRDS.iter().map(tree).map(|crd| crd.expect("a definition is YAML")).collect()
}
