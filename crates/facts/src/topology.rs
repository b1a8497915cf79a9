//! What is wrong with HyperNodes and with gangs that rely on them, found by looking at all objects
//! together.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::core::Labels;
use muster_api::manifest::Object;
use muster_api::{
    HyperNode, Matcher, Member, MemberKind, NetworkTopologyMode, NetworkTopologySpec, PodGroup,
};
use muster_engine::config::Config;
use muster_engine::explain;
use muster_engine::ids::GangId;
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;
use muster_engine::{Engine, Event};
use muster_text::counted;

pub struct Finding {
    /// The kind and key of the object, if it is about one.
    about: Option<(&'static str, String)>,
    text: String,
    pub class: Class,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Something does not work at all.
    Error,
    /// Something has no effect.
    Warning,
    /// It may well be intended.
    Note,
}

impl Finding {
    /// The finding after the object that it is about, which `title` names by its kind and key.
    pub fn tell(&self, title: impl Fn(&'static str, &str) -> String) -> String {
        match &self.about {
            Some((kind, key)) => format!("{}: {}", title(kind, key), self.text),
            None => self.text.clone(),
        }
    }

    fn warning(hyper: &HyperNode, text: String) -> Finding {
        let about = Some(("HyperNode", name(hyper).to_owned()));
        Finding { about, text, class: Class::Warning }
    }
}

/// The HyperNodes that have no place in the tree.
pub fn faults(objects: &[Object]) -> Vec<Finding> {
    if !objects.iter().any(|object| matches!(object, Object::HyperNode(_))) {
        return Vec::new();
    }
    faults_of(settled(objects).cluster())
}

/// The policies of PodGroups that hold for no pod although all their pods exist.
pub fn idle_policies(objects: &[Object]) -> Vec<Finding> {
    let with_policies = |object: &&Object| matches!(object, Object::PodGroup(group) if !group.spec.sub_group_policy.is_empty());
    if !objects.iter().any(|object| with_policies(&object)) {
        return Vec::new();
    }
    let pods = objects.iter().filter(|object| matches!(object, Object::Pod(_)));
    let schedulers: BTreeSet<&str> = pods
        .clone()
        .filter_map(|object| match object {
            Object::Pod(pod) => Some(pod.spec.scheduler_name.as_str()),
            _ => None,
        })
        .collect();
    let schedulers = schedulers.into_iter().map(str::to_owned).collect();
    let mut engine = Engine::new(Config::builtin(), schedulers);
    let groups = objects.iter().filter(with_policies);
    groups.chain(pods).for_each(|object| engine.apply(Event::from(object.clone())));
    engine.settle();
    let cluster = engine.cluster();
    let mut gangs: Vec<GangId> = cluster.gangs.ids().collect();
    gangs.sort_by(|&a, &b| cluster.gangs[a].key.cmp(&cluster.gangs[b].key));
    let finding = |gang: GangId| {
        let key = cluster.gangs[gang].key.to_string();
        cluster.idle_policies(gang).into_iter().map(move |idle| Finding {
            about: Some(("PodGroup", key.clone())),
            text: explain::idle_policy(&idle),
            class: Class::Warning,
        })
    };
    gangs.into_iter().flat_map(finding).collect()
}

/// All findings.
pub fn all(objects: &[Object]) -> Vec<Finding> {
    let engine = settled(objects);
    let cluster = engine.cluster();
    let mut found = faults_of(cluster);
    let parts = Parts::new(objects);
    for hyper in parts.hypers.values() {
        found.extend(parts.members(hyper));
        found.extend(empty(cluster, hyper));
    }
    found.extend(outside(cluster));
    found.extend(parts.groups.iter().flat_map(|group| group_findings(cluster, group)));
    found.extend(idle_policies(objects));
    found
}

/// The tree that the scheduler would build; pods don't matter for it.
fn settled(objects: &[Object]) -> Engine {
    let mut engine = Engine::new(Config::builtin(), Vec::new());
    for object in objects {
        match object {
            Object::Node(_) | Object::HyperNode(_) => engine.apply(Event::from(object.clone())),
            _ => {}
        }
    }
    engine.settle();
    engine
}

fn faults_of(cluster: &Cluster) -> Vec<Finding> {
    let told = cluster.domains.faults().iter().map(|(name, fault)| Finding {
        about: Some(("HyperNode", name.to_string())),
        text: format!("is left out: {}", explain::fault(fault)),
        class: Class::Error,
    });
    told.collect()
}

/// The objects that refer to each other.
struct Parts<'o> {
    nodes: BTreeMap<&'o str, &'o Labels>,
    hypers: BTreeMap<&'o str, &'o HyperNode>,
    groups: Vec<&'o PodGroup>,
}

impl<'o> Parts<'o> {
    fn new(objects: &'o [Object]) -> Parts<'o> {
        let mut parts =
            Parts { nodes: BTreeMap::new(), hypers: BTreeMap::new(), groups: Vec::new() };
        for object in objects {
            match object {
                Object::Node(node) => {
                    parts.nodes.insert(&node.metadata.name, &node.metadata.labels);
                }
                Object::HyperNode(hyper) => drop(parts.hypers.insert(name(hyper), &**hyper)),
                Object::PodGroup(group) => parts.groups.push(group),
                _ => {}
            }
        }
        parts
    }

    /// Members that match nothing that exists.
    fn members(&self, hyper: &HyperNode) -> Vec<Finding> {
        let mut found = Vec::new();
        for (at, member) in hyper.spec.members.iter().enumerate() {
            let kind = if member.kind == MemberKind::Node { "Node" } else { "HyperNode" };
            let text = match Matcher::compile(&member.selector) {
                Ok(Matcher::Exact(name)) if !self.exists(member, &name) => {
                    format!("spec.members[{at}]: there is no {kind} {name}")
                }
                Ok(Matcher::Exact(_)) | Err(_) => continue,
                Ok(matcher) if self.means_any(hyper, member, &matcher) => continue,
                Ok(_) => format!("spec.members[{at}]: matches no {kind}"),
            };
            found.push(Finding::warning(hyper, text));
        }
        found
    }

    fn exists(&self, member: &Member, name: &str) -> bool {
        match member.kind {
            MemberKind::Node => self.nodes.contains_key(name),
            MemberKind::HyperNode => self.hypers.contains_key(name),
        }
    }

    fn means_any(&self, hyper: &HyperNode, member: &Member, matcher: &Matcher) -> bool {
        match member.kind {
            MemberKind::Node => {
                self.nodes.iter().any(|(name, labels)| matcher.matches(name, labels))
            }
            MemberKind::HyperNode => self.hypers.iter().any(|(&other, object)| {
                let labels = &object.metadata.labels;
                other != name(hyper) && matcher.matches(other, labels)
            }),
        }
    }
}

fn name(hyper: &HyperNode) -> &str {
    &hyper.metadata.name
}

fn empty(cluster: &Cluster, hyper: &HyperNode) -> Option<Finding> {
    let domain = cluster.domains.find(name(hyper))?;
    let empty = cluster.domains.node_count(domain) == 0;
    empty.then(|| Finding::warning(hyper, "has no nodes: nothing can be placed there".to_owned()))
}

fn outside(cluster: &Cluster) -> Option<Finding> {
    let mut outside =
        cluster.nodes.live().filter(|&node| cluster.domains.smallest_around(node) == ROOT);
    let first = outside.next()?;
    let count = counted(1 + outside.count() as u64, "node");
    let text = if cluster.hyper_nodes.is_empty() {
        format!("there are no HyperNodes: all of {count} count as equally close")
    } else {
        let name = &cluster.nodes.name[first];
        format!(
            "{count} in no HyperNode, for example {name}: hard networkTopology keeps gangs away from there"
        )
    };
    Some(Finding { about: None, text, class: Class::Note })
}

fn group_findings(cluster: &Cluster, group: &PodGroup) -> Vec<Finding> {
    let mut found = Vec::new();
    let key = group.metadata.key();
    let mut add = |path: String, text: &str, class| {
        found.push(Finding {
            about: Some(("PodGroup", key.clone())),
            text: format!("{path}: {text}"),
            class,
        });
    };
    let own = group.spec.network_topology.iter().map(|spec| ("spec".to_owned(), spec));
    let policies = group.spec.sub_group_policy.iter().enumerate();
    let subgroups = policies.filter_map(|(at, policy)| {
        Some((format!("spec.subGroupPolicy[{at}]"), policy.network_topology.as_ref()?))
    });
    for (path, spec) in own.chain(subgroups) {
        if let Some((field, text)) = tier_problem(cluster, spec) {
            // With a soft limit nothing waits. It is reported only if it can't be interpreted.
            let stops = spec.mode == NetworkTopologyMode::Hard || spec.highest_tier_name.is_some();
            let class = if stops { Class::Error } else { Class::Warning };
            add(format!("{path}.networkTopology.{field}"), &text, class);
        }
    }
    found
}

/// A tier that no domain has, with the field that names it.
fn tier_problem(cluster: &Cluster, spec: &NetworkTopologySpec) -> Option<(&'static str, String)> {
    let domains = &cluster.domains;
    if let Some(tier) = spec.highest_tier_allowed {
        // Without HyperNodes the cluster itself is the lowest domain.
        let lowest = domains.ids().map(|id| domains[id].tier).min().unwrap_or_default();
        if i64::from(tier) >= i64::from(lowest) {
            return None;
        }
        let text = format!("{tier} is below the lowest tier: write {lowest} or more");
        return Some(("highestTierAllowed", text));
    }
    let wanted = spec.highest_tier_name.as_deref().filter(|name| !name.is_empty())?;
    if domains.tier_called(wanted).is_some() {
        return None;
    }
    let rows = domains.ids().map(|id| &domains[id]);
    let known: BTreeSet<(u32, &str)> =
        rows.filter_map(|row| Some((row.tier, row.tier_name.as_deref()?))).collect();
    let known: Vec<&str> = known.into_iter().map(|(_, name)| name).collect();
    let known = match known.as_slice() {
        [] => "no tier has a name; give HyperNodes a tierName".to_owned(),
        known => format!("write one of {}", known.join(", ")),
    };
    Some(("highestTierName", format!("no HyperNode has a tier named {wanted}: {known}")))
}
