//! The domains of the network that came closest to holding a gang, and what each lacks.

use muster_engine::ids::{GangId, PodId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::{Near, Reason};
use serde::Serialize;

#[derive(Serialize)]
pub struct ClosestDomain {
    pub domain: String,
    pub tier: u32,
    pub nodes: u32,
    /// How many of the wanted pods it had room for.
    pub holds: u32,
    pub wanted: u32,
    /// What the gang's pods ask for that is hardest to get, and how much of it the domain has free.
    pub resource: String,
    pub free: String,
    pub total: String,
    /// How much more of it the wanted pods ask for than is free; nothing if it is free, but not where they fit.
    pub lacks: Option<String>,
}

pub fn closest(cluster: &Cluster, id: GangId) -> Vec<ClosestDomain> {
    let mut found = Vec::new();
    for reason in &cluster.gangs[id].reasons {
        let Reason::NoDomain { wanted, near, .. } = reason else { continue };
        let waits = |pod: &&PodId| cluster.pods.state[**pod] == PodState::Pending;
        let pods = cluster.gangs[id].pods.iter().filter(waits).take(*wanted as usize);
        let requests: Vec<_> = pods.map(|&pod| &cluster.shapes[cluster.pods.shape[pod]].request).collect();
        // Scarce ones come first.
        let Some((resource, _)) = requests.first().and_then(|request| request.iter().next()) else { continue };
        let asked = requests.iter().filter_map(|request| request.get(resource)).sum();
        found.extend(near.iter().filter_map(|near| domain(cluster, near, *wanted, (resource, asked))));
    }
    found
}

fn domain(
    cluster: &Cluster,
    near: &Near,
    wanted: u32,
    (resource, asked): (ResourceId, i64),
) -> Option<ClosestDomain> {
    let domain = cluster.domains.find(&near.domain)?;
    let (free, total) = cluster.domains.room(domain, resource);
    let show = |amount: i64| cluster.dimensions.show(resource, amount);
    Some(ClosestDomain {
        domain: near.domain.to_string(),
        tier: cluster.domains[domain].tier,
        nodes: cluster.domains.node_count(domain),
        holds: near.holds,
        wanted,
        resource: cluster.dimensions.name(resource).to_owned(),
        free: show(free.max(0)),
        total: show(total),
        lacks: Some(asked - free.max(0)).filter(|&lacks| lacks > 0).map(show),
    })
}
