//! The network domains that came closest to holding a gang, and what each lacks.

use muster_engine::ids::{GangId, PodId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;
use muster_engine::model::pods::PodState;
use muster_engine::search::domain_of;
use muster_engine::{Near, Reason};
use muster_text::counted;
use serde::Serialize;

#[derive(Serialize)]
pub struct ClosestDomain {
    pub domain: String,
    pub tier: u32,
    pub nodes: u32,
    /// How many of the wanted pods it had room for.
    pub holds: u32,
    pub wanted: u32,
    /// The scarcest resource that the gang's pods request, and how much of it the domain has free.
    pub resource: String,
    pub free: String,
    pub total: String,
    /// How much more of it the wanted pods request than is free; none if enough is free, but in
    /// pieces that are too small.
    pub lacks: Option<String>,
}

pub fn closest(cluster: &Cluster, id: GangId) -> Vec<ClosestDomain> {
    let mut found = Vec::new();
    for reason in &cluster.gangs[id].reasons {
        if let Reason::NoDomain { wanted, subgroup, near, .. } = reason
            && let Some(ask) = ask(cluster, id, *wanted, subgroup.as_deref())
        {
            found.extend(near.iter().filter_map(|near| domain(cluster, near, *wanted, ask)));
        }
    }
    found
}

/// What a user could do so that one domain holds the wanted pods.
pub fn help(
    cluster: &Cluster,
    id: GangId,
    (wanted, subgroup): (u32, Option<&str>),
    near: &[Near],
) -> String {
    let large = |near: &&Near| {
        let (resource, asked) = ask(cluster, id, wanted, subgroup)?;
        Some(cluster.domains.room(cluster.domains.find(&near.domain)?, resource).1 >= asked)
    };
    match near.iter().find(|near| large(near).unwrap_or(true)) {
        Some(near) => {
            let lack = counted(u64::from(wanted.saturating_sub(near.holds)), "pod");
            format!("free room for {lack} in {}, or allow a higher tier", near.domain)
        }
        None if near.is_empty() => match domain_of(cluster, id).filter(|&domain| domain != ROOT) {
            Some(domain) => {
                format!("free room in {}, where its other pods are", cluster.domains[domain].name)
            }
            None => "add HyperNodes with room for it, or allow a higher tier".to_owned(),
        },
        None => "allow a higher tier: the domains that came closest are too small even if empty"
            .to_owned(),
    }
}

/// The scarcest resource that these pods of the gang, or of a subgroup, request, and how much of it.
fn ask(
    cluster: &Cluster,
    id: GangId,
    wanted: u32,
    subgroup: Option<&str>,
) -> Option<(ResourceId, i64)> {
    let waits = |pod: &&PodId| cluster.pods.state[**pod] == PodState::Pending;
    let gang = &cluster.gangs[id];
    let place = |name: &str| gang.subgroups().iter().position(|group| *group.name == *name);
    let place = subgroup.and_then(place);
    let is_of_it =
        |pod: &&PodId| place.is_none_or(|place| cluster.pods.subgroup[**pod] as usize == place);
    let pods = gang.pods.iter().filter(waits).filter(is_of_it).take(wanted as usize);
    let requests: Vec<_> =
        pods.map(|&pod| &cluster.shapes[cluster.pods.shape[pod]].request).collect();
    // Scarce resources come first.
    let (resource, _) = requests.first()?.iter().next()?;
    Some((resource, requests.iter().filter_map(|request| request.get(resource)).sum()))
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
