//! The ports of an InfiniBand network, as listed by NVIDIA's UFM (`GET /ufmRest/resources/ports`).
//!
//! A leaf is a switch that a host is plugged into. Leaves that share hosts, as where each card of a
//! host has a switch of its own, form one domain. Each higher tier consists of the groups that
//! switches one step further up connect. Volcano's discoverer does the same for two tiers; neither
//! uses the tier that UFM writes to a port.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::{MemberKind, is_dns_subdomain};
use muster_text::counted;
use serde::Deserialize;
use thiserror::Error;

use crate::error::SourceError;
use crate::forest::{Domain, Forest, ForestMistake, left_out};
use crate::levels::level_names;
use crate::names::{Level, few, few_of, levels, natural};

/// The path under which UFM lists its ports.
pub const PATH: &str = "/ufmRest/resources/ports";

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UfmMistake {
    #[error("not a list of ports as GET {PATH} gives it: {reason}")]
    NotPorts { reason: String },
    #[error(
        "{} and none of a host that is plugged into a switch: there must be some with Computer in \
         their description, a system_name and a peer_node_name",
        counted(*ports, "port")
    )]
    NoHosts { ports: u64 },
    #[error("no host has a name that a node can have: {}", few_of(hosts))]
    NoNodeNames { hosts: Vec<String> },
}

/// The fields of a port that matter. UFM writes "N/A" for what it doesn't know.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Port {
    /// "Computer IB Port" or "Switch IB Port".
    description: Option<String>,
    /// The system that has the port.
    system_name: Option<String>,
    /// The port at the other end of its cable.
    peer_node_name: Option<String>,
}

impl Port {
    fn is_of_host(&self) -> bool {
        self.description.as_deref().is_some_and(|description| description.contains("Computer"))
    }

    /// Both ends of its cable.
    fn ends(&self) -> Option<(&str, &str)> {
        Some((known(&self.system_name)?, known(&self.peer_node_name)?))
    }
}

fn known(name: &Option<String>) -> Option<&str> {
    name.as_deref().map(str::trim).filter(|name| !["", "N/A", "None"].contains(name))
}

/// Reads the list. Hosts that are not nodes of the cluster, if those are known, don't count at all:
/// a storage server on a spine would turn the spine into a leaf.
pub fn read(
    source: &str,
    text: &str,
    cluster: Option<&BTreeSet<String>>,
    given: &[String],
) -> Result<Forest, SourceError> {
    let ports: Vec<Port> = serde_json::from_str(text).map_err(|error| {
        SourceError::of(source, UfmMistake::NotPorts { reason: error.to_string() })
    })?;
    let mut notes = Vec::new();
    let mut cables = cables(source, &ports, cluster, &mut notes)?;
    let heights = cables.heights();
    let leaves = groups(&cables.shared, &heights, 1);
    let highest = heights.values().copied().max().unwrap_or_default();
    // Leaves that no switch connects are connected somehow.
    let tiers = (highest + 1).max(if leaves.len() > 1 { 2 } else { 1 });
    if tiers > 1 && cables.between.is_empty() {
        notes.push(
            "no links between switches are in the list: all leaves are taken to be under one spine"
                .to_owned(),
        );
        cables.between = chain(heights.keys().copied()).collect();
    }
    let names = level_names(given, tiers).map_err(|mistake| SourceError::of(source, mistake))?;
    let levels = levels(&names);
    let mut domains: Vec<Domain> = Vec::new();
    // Domains that have no parent yet, by each of their leaves.
    let mut tops: BTreeMap<&str, (MemberKind, BTreeSet<String>)> = cables.hosts_by_leaf();
    for tier in 1..=tiers {
        let links =
            if tier == 1 { cables.shared.clone() } else { &cables.shared | &cables.between };
        for group in groups(&links, &heights, tier) {
            domains.extend(raise(&group, tier, &levels[tier - 1], &heights, &mut tops));
        }
    }
    Ok(Forest { domains, notes })
}

/// Makes one domain of the domains that a group of switches connects, and replaces them by it. A
/// single domain that is linked to nothing further up stays at the top.
fn raise<'p>(
    group: &BTreeSet<&'p str>,
    tier: usize,
    level: &Level,
    heights: &BTreeMap<&'p str, usize>,
    tops: &mut BTreeMap<&'p str, (MemberKind, BTreeSet<String>)>,
) -> Option<Domain> {
    let top = group.iter().map(|switch| heights[switch]).max()?;
    let below: Vec<&str> =
        group.iter().copied().filter(|switch| tops.contains_key(switch)).collect();
    if below.len() < 2 && top + 1 < tier {
        return None;
    }
    let members: Vec<(MemberKind, BTreeSet<String>)> =
        below.iter().filter_map(|leaf| tops.remove(leaf)).collect();
    let kind = members.first()?.0;
    let members = members.into_iter().flat_map(|(_, members)| members).collect();
    // It is named after the first of its highest switches, so that other groups don't change the
    // name.
    let first =
        group.iter().filter(|switch| heights[*switch] == top).min_by(|a, b| natural(a, b))?;
    let name = level.object(first);
    tops.insert(below[0], (MemberKind::HyperNode, [name.clone()].into()));
    Some(Domain { name, tier, tier_name: level.name.clone(), kind, members })
}

/// The cables.
struct Cables<'p> {
    /// The leaves of each host.
    hosts: BTreeMap<String, BTreeSet<&'p str>>,
    /// Leaves with the same hosts.
    shared: Links<'p>,
    /// Links between switches.
    between: Links<'p>,
}

/// Pairs of switches, in both directions.
type Links<'p> = BTreeSet<(&'p str, &'p str)>;

fn cables<'p>(
    source: &str,
    ports: &'p [Port],
    cluster: Option<&BTreeSet<String>>,
    notes: &mut Vec<String>,
) -> Result<Cables<'p>, SourceError> {
    let of_hosts = || ports.iter().filter(|port| port.is_of_host());
    let machines: BTreeSet<&str> = of_hosts().filter_map(|port| known(&port.system_name)).collect();
    let mut hosts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (host, leaf) in
        of_hosts().filter_map(Port::ends).filter(|(_, peer)| !machines.contains(peer))
    {
        // The kubelet derives the name of its node from the host name in the same way.
        hosts.entry(host.to_lowercase()).or_default().insert(leaf);
    }
    if hosts.is_empty() {
        return Err(SourceError::of(source, UfmMistake::NoHosts { ports: ports.len() as u64 }));
    }
    let loose: Vec<&str> = machines
        .iter()
        .copied()
        .filter(|machine| !hosts.contains_key(&machine.to_lowercase()))
        .collect();
    if !loose.is_empty() {
        let count = counted(loose.len() as u64, "host");
        notes.push(format!("left out: {count} not plugged into a switch: {}", few(loose)));
    }
    admit(source, &mut hosts, cluster, notes)?;
    let of_switches = ports.iter().filter(|port| !port.is_of_host()).filter_map(Port::ends);
    let between = of_switches.filter(|(a, b)| a != b && !machines.contains(b));
    let between = between.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let shared = hosts.values().flat_map(|leaves| chain(leaves.iter().copied())).collect();
    Ok(Cables { hosts, shared, between })
}

/// Keeps the hosts that are nodes, or can be.
fn admit(
    source: &str,
    hosts: &mut BTreeMap<String, BTreeSet<&str>>,
    cluster: Option<&BTreeSet<String>>,
    notes: &mut Vec<String>,
) -> Result<(), SourceError> {
    let is_node = |host: &str| {
        cluster.map_or_else(|| is_dns_subdomain(host), |cluster| cluster.contains(host))
    };
    let strangers: Vec<String> = hosts.keys().filter(|host| !is_node(host)).cloned().collect();
    match cluster {
        Some(cluster) if strangers.len() == hosts.len() => {
            return Err(SourceError::of(source, ForestMistake::none_in(cluster, strangers)));
        }
        None if strangers.len() == hosts.len() => {
            return Err(SourceError::of(source, UfmMistake::NoNodeNames { hosts: strangers }));
        }
        Some(_) => notes.extend(left_out(&strangers)),
        None if strangers.is_empty() => {}
        None => {
            let count = counted(strangers.len() as u64, "host");
            notes
                .push(format!("left out: {count} named as no node can be: {}", few_of(&strangers)));
        }
    }
    hosts.retain(|host, _| is_node(host));
    Ok(())
}

/// Each linked to the next.
fn chain<'p>(
    switches: impl Iterator<Item = &'p str> + Clone,
) -> impl Iterator<Item = (&'p str, &'p str)> {
    switches.clone().zip(switches.skip(1)).flat_map(|(a, b)| [(a, b), (b, a)])
}

fn linked<'l, 'p>(
    links: &'l Links<'p>,
    switch: &'p str,
) -> impl Iterator<Item = &'p str> + use<'l, 'p> {
    links.range((switch, "")..).take_while(move |(from, _)| *from == switch).map(|(_, to)| *to)
}

impl<'p> Cables<'p> {
    /// How many steps each switch is above a leaf.
    fn heights(&self) -> BTreeMap<&'p str, usize> {
        let mut heights: BTreeMap<&str, usize> =
            self.hosts.values().flatten().map(|leaf| (*leaf, 0)).collect();
        let mut edge: BTreeSet<&str> = heights.keys().copied().collect();
        for step in 1.. {
            let next = edge.iter().flat_map(|switch| linked(&self.between, switch));
            edge = next.filter(|switch| !heights.contains_key(switch)).collect();
            if edge.is_empty() {
                break;
            }
            heights.extend(edge.iter().map(|switch| (*switch, step)));
        }
        heights
    }

    fn hosts_by_leaf(&self) -> BTreeMap<&'p str, (MemberKind, BTreeSet<String>)> {
        let mut by_leaf: BTreeMap<&str, (MemberKind, BTreeSet<String>)> = BTreeMap::new();
        for (host, leaves) in &self.hosts {
            let leaf = leaves.first().expect("a host without a leaf is not kept");
            by_leaf.entry(leaf).or_default().1.insert(host.clone());
        }
        by_leaf
    }
}

/// The switches of this tier and below, grouped by the links between them.
fn groups<'p>(
    links: &Links<'p>,
    heights: &BTreeMap<&'p str, usize>,
    tier: usize,
) -> Vec<BTreeSet<&'p str>> {
    let mut left: BTreeSet<&str> =
        heights.iter().filter(|(_, height)| **height < tier).map(|(switch, _)| *switch).collect();
    let mut groups = Vec::new();
    while let Some(first) = left.pop_first() {
        let (mut group, mut edge) = (BTreeSet::from([first]), vec![first]);
        while let Some(switch) = edge.pop() {
            let next: Vec<&str> = linked(links, switch).filter(|next| left.remove(next)).collect();
            group.extend(&next);
            edge.extend(next);
        }
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One cable per line, from a host (n…) or a switch to a switch.
    fn ports(text: &str) -> String {
        let port = |line: &str| {
            let (from, to) = line.split_once(' ').expect("two ends");
            let what = if from.to_lowercase().starts_with('n') { "Computer" } else { "Switch" };
            serde_json::json!({
                "description": format!("{what} IB Port"), "system_name": from, "peer_node_name": to,
                "tier": 3, "logical_state": "Active", "enabled_speed": ["NDR"],
            })
        };
        let ports: Vec<serde_json::Value> = text.lines().map(|line| port(line.trim())).collect();
        serde_json::to_string(&ports).expect("it is JSON")
    }

    fn lines(
        text: &str,
        cluster: Option<&[&str]>,
    ) -> Result<(Vec<String>, Vec<String>), SourceError> {
        let cluster = cluster.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let forest = read("t", &ports(text), cluster.as_ref(), &[])?;
        let line = |domain: Domain| {
            let members: Vec<String> = domain.members.into_iter().collect();
            format!("{} {}: {}", domain.tier, domain.name, members.join(" "))
        };
        Ok((forest.domains.into_iter().map(line).collect(), forest.notes))
    }

    const FAT_TREE: &str = "n1 l1
        n2 l1
        n3 l2
        N4 l3
        n5 l4
        l1 s1
        l2 s1
        s2 l1
        l3 s3
        s3 l4
        s1 c1
        c1 s3
        l1 n1";

    #[test]
    fn each_tier_joins_domains_that_the_next_switches_connect() {
        let (found, notes) = lines(FAT_TREE, None).expect("it is a tree");
        assert_eq!(
            found,
            [
                "1 leaf-l1: n1 n2",
                "1 leaf-l2: n3",
                "1 leaf-l3: n4",
                "1 leaf-l4: n5",
                "2 spine-s1: leaf-l1 leaf-l2",
                "2 spine-s3: leaf-l3 leaf-l4",
                "3 core-c1: spine-s1 spine-s3",
            ]
        );
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn leaves_that_share_hosts_are_one_domain() {
        let rails = "n1 l1\nn1 l2\nn2 l2\nn2 l1\nn3 l3\nn3 l4\nn4 l4\nl1 s1\nl2 s2\nl3 s1\nl4 s2";
        let (found, _) = lines(rails, None).expect("it is a tree");
        assert_eq!(found, ["1 leaf-l1: n1 n2", "1 leaf-l3: n3 n4", "2 spine-s1: leaf-l1 leaf-l3"]);
    }

    #[test]
    fn without_links_between_switches_there_is_one_spine_as_with_volcano() {
        let (found, notes) = lines("n1 l1\nn2 l2\nn3 l3", None).expect("it is a tree");
        assert_eq!(found[3..], ["2 spine-l1: leaf-l1 leaf-l2 leaf-l3"]);
        assert!(notes[0].contains("under one spine"), "{notes:?}");
        let (found, notes) = lines("n1 l1\nn2 l1", None).expect("it is a leaf");
        assert_eq!(
            (found.as_slice(), notes.len()),
            (["1 leaf-l1: n1 n2".to_owned()].as_slice(), 0)
        );
    }

    #[test]
    fn a_domain_without_links_stays_separate() {
        let (found, _) = lines("n1 l1\nn2 l2\nn3 l3\nl1 s1\nl2 s1", None).expect("it is a forest");
        assert_eq!(
            found,
            ["1 leaf-l1: n1", "1 leaf-l2: n2", "1 leaf-l3: n3", "2 spine-s1: leaf-l1 leaf-l2"]
        );
        let (found, _) =
            lines("n1 l1\nn2 l2\nl1 l2", None).expect("leaves may be linked with each other");
        assert_eq!(found[2..], ["2 spine-l1: leaf-l1 leaf-l2"]);
    }

    #[test]
    fn hosts_outside_the_cluster_do_not_make_leaves() {
        let text = format!("{FAT_TREE}\nnas s1\nnowhere N/A\nn9 n8\nn8 n9");
        let (found, notes) =
            lines(&text, Some(&["n1", "n2", "n3", "n4", "n5"])).expect("it is a tree");
        assert_eq!(found.len(), 7, "{found:?}");
        assert_eq!(
            notes,
            [
                "left out: 3 hosts not plugged into a switch: n8, n9, nowhere",
                "left out: 1 host not among the nodes of the cluster: nas"
            ]
        );
        let problem =
            lines(FAT_TREE, Some(&["gpu1"])).expect_err("no name is the same").to_string();
        assert!(problem.contains("found n1, n2, n3, n4, n5, the cluster has gpu1"), "{problem}");
    }

    #[test]
    fn lists_without_hosts_have_an_error_that_says_what_is_missing() {
        for (text, hint) in
            [("[]", "0 ports"), ("{}", "not a list of ports"), ("<html>", "line 1 column 1")]
        {
            let problem = read("t", text, None, &[]).expect_err(text).to_string();
            assert!(problem.starts_with("t: ") && problem.contains(hint), "{problem}");
        }
    }

    /// Switches that compute on the way ("SHARP") have a host inside.
    #[test]
    fn hosts_with_invalid_node_names_are_left_out() {
        let (found, notes) = lines("n1 l1\nn_2 l1", None).expect("one is a node");
        assert_eq!(found, ["1 leaf-l1: n1"]);
        assert_eq!(notes, ["left out: 1 host named as no node can be: n_2"]);
        assert!(lines("n_1 l1", None).expect_err("none is a node").to_string().contains("n_1"));
    }
}
