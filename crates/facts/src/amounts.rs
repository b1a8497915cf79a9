//! Amounts of resources with their names.

use std::collections::BTreeMap;

use muster_engine::Sparse;
use muster_engine::ids::ResourceId;
use muster_engine::model::Cluster;

pub fn sparse(cluster: &Cluster, amounts_of: &Sparse) -> BTreeMap<String, String> {
    amounts(cluster, amounts_of.iter())
}

pub fn amounts(
    cluster: &Cluster,
    pairs: impl Iterator<Item = (ResourceId, i64)>,
) -> BTreeMap<String, String> {
    let dimensions = &cluster.dimensions;
    pairs
        .map(|(id, amount)| (dimensions.name(id).to_owned(), dimensions.show(id, amount)))
        .collect()
}

pub fn listed(cluster: &Cluster, pairs: impl Iterator<Item = (ResourceId, i64)>) -> String {
    let dimensions = &cluster.dimensions;
    let parts: Vec<String> = pairs
        .map(|(id, amount)| format!("{} {}", dimensions.show(id, amount), dimensions.name(id)))
        .collect();
    parts.join(" and ")
}
