//! A gang: its state, why it waits, and how room could be made for it.

use std::collections::BTreeMap;

use muster_api::Time;
use muster_engine::explain;
use muster_engine::ids::{GangId, NodeId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Role;
use muster_engine::{Engine, Fate, Reason, Staleness};
use muster_text::counted;
use serde::Serialize;

use crate::advice::help;
use crate::amounts::amounts;
use crate::domains::{self, ClosestDomain};
use crate::explanation::Look;
use crate::lines::{GangLine, gang_line};
use crate::nominations::{self, NominationFacts};
use crate::pods::starting;
use crate::room::{self, Shortage};
use crate::searches::{self, SearchFacts};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GangFacts {
    #[serde(flatten)]
    pub line: GangLine,
    pub gated: u32,
    /// The part of `running` that is bound and not started yet.
    pub starting: u32,
    pub waiting_since: Option<String>,
    pub waiting_ms: Option<i64>,
    /// Set if it is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleFacts>,
    pub roles: Vec<RoleFacts>,
    /// How many of its pods are on each node.
    pub places: BTreeMap<String, u32>,
    /// Where its first pod that fits on no node came closest.
    pub closest: Vec<ClosestNode>,
    /// Where its pods came closest to being together.
    pub closest_domains: Vec<ClosestDomain>,
    /// Its nominations.
    #[serde(rename = "promises")]
    pub nominations: Vec<NominationFacts>,
    /// Where evictions could make room for it, by action; only for a starving gang.
    #[serde(rename = "claims")]
    pub searches: Vec<SearchFacts>,
    pub help: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleFacts {
    pub since: String,
    pub stale_ms: i64,
    /// What it lacks, in words.
    pub lacks: String,
    /// What becomes of it, in words; and when it is evicted, or what keeps it.
    pub fate: String,
    pub leaves: Option<String>,
    pub kept_by: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleFacts {
    pub name: Option<String>,
    pub min_member: u32,
    pub running: u32,
    /// The part of `running` that is bound and not started yet.
    pub starting: u32,
    pub pending: u32,
}

#[derive(Serialize)]
pub struct ClosestNode {
    pub node: String,
    pub lacks: BTreeMap<String, String>,
}

pub fn gang_facts(engine: &mut Engine, id: GangId, look: &Look) -> GangFacts {
    let searches = searches::facts(engine, id, look.now, look.nodes);
    let (engine, now) = (&*engine, look.now);
    let cluster = engine.cluster();
    let gang = &cluster.gangs[id];
    let line = gang_line(cluster, id);
    let pods_of =
        |at: usize| gang.pods.iter().filter(move |&&pod| cluster.pods.role[pod] as usize == at);
    let role = |(at, role): (usize, &Role)| RoleFacts {
        starting: starting(engine, pods_of(at)),
        name: role.name.map(|name| cluster.names.text(name).to_string()),
        min_member: role.minimum,
        running: role.counts.running + role.counts.allocated,
        pending: role.counts.pending + role.counts.gated + role.counts.nominated,
    };
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for node in
        gang.pods.iter().map(|&pod| cluster.pods.state[pod]).filter(|state| state.occupies())
    {
        let node = node.node().expect("what occupies a node has one");
        *places.entry(cluster.nodes.name[node].to_string()).or_default() += 1;
    }
    let waits = !line.reasons.is_empty();
    let no_room =
        waits && gang.reasons.iter().any(|reason| matches!(reason, Reason::NoNodes { .. }));
    let shortage = if no_room { room::shortage(engine, id) } else { Shortage::default() };
    let since: Option<Time> = gang.waiting_since.or(gang.condition.since).filter(|_| waits);
    GangFacts {
        gated: gang.counts.gated,
        starting: starting(engine, &gang.pods),
        waiting_since: since.map(|time| time.to_string()),
        waiting_ms: since.map(|time| now.0 - time.0),
        stale: engine.staleness(id, now).map(|stale| stale_facts(cluster, &stale, now)),
        roles: gang.roles.iter().enumerate().map(role).collect(),
        places,
        closest: closest(cluster, &shortage),
        closest_domains: if waits { domains::closest(cluster, id) } else { Vec::new() },
        nominations: nominations::facts(cluster, id, look.find_pod),
        searches,
        help: match gang.counts.gated {
            _ if waits => help(engine, id, &shortage),
            0 => Vec::new(),
            gated => {
                vec![format!("remove the scheduling gates of {}", counted(u64::from(gated), "pod"))]
            }
        },
        line,
    }
}

fn stale_facts(cluster: &Cluster, stale: &Staleness, now: Time) -> StaleFacts {
    StaleFacts {
        since: stale.since.to_string(),
        stale_ms: now.0 - stale.since.0,
        lacks: explain::staleness(cluster, stale),
        fate: explain::fate(stale.fate),
        leaves: match stale.fate {
            Fate::Leaves(time) => Some(time.to_string()),
            _ => None,
        },
        kept_by: match stale.fate {
            Fate::Kept(rule) => Some(rule),
            _ => None,
        },
    }
}

fn closest(cluster: &Cluster, shortage: &Shortage) -> Vec<ClosestNode> {
    let node = |(node, lacks): &(NodeId, Vec<(ResourceId, i64)>)| ClosestNode {
        node: cluster.nodes.name[*node].to_string(),
        lacks: amounts(cluster, lacks.iter().copied()),
    };
    shortage.closest.iter().map(node).collect()
}
