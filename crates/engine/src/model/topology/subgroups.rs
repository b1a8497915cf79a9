//! Gangs inside a gang: which pods belong together, how many of them must start at once, and how
//! near they must be.

use std::sync::Arc;

use muster_api::core::Meta;
use muster_api::keys::{TOPOLOGY_HIGHEST_TIER, TOPOLOGY_MODE};
use muster_api::{NetworkTopologyMode, NetworkTopologySpec, SubGroupPolicy};
use serde::{Deserialize, Serialize};

use crate::base::ids::Symbol;
use crate::base::names::Names;
use crate::model::pods::Counts;
use crate::model::selectors::{Selector, Tags, tag};
use crate::model::topology::domains;
use crate::model::topology::domains::Domains;

/// How close to each other pods must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierLimit {
    /// Whether the limit is hard: otherwise pods may be farther apart.
    pub hard: bool,
    pub highest: Highest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Highest {
    /// Any tier of a HyperNode.
    Any,
    Tier(u32),
    Name(Arc<str>),
}

impl TierLimit {
    pub fn of(spec: &NetworkTopologySpec) -> TierLimit {
        let tier = spec.highest_tier_allowed.map(|tier| Highest::Tier(tier.max(0) as u32));
        let name = spec.highest_tier_name.as_deref().filter(|name| !name.is_empty());
        let name = name.map(|name| Highest::Name(name.into()));
        TierLimit {
            hard: spec.mode == NetworkTopologyMode::Hard,
            highest: tier.or(name).unwrap_or(Highest::Any),
        }
    }

    /// The limit of a pod without a PodGroup, from its annotations.
    pub fn of_pod(meta: &Meta) -> Option<TierLimit> {
        let mode = meta.annotations.get(TOPOLOGY_MODE)?;
        // A value that is no tier allows none.
        let tier = meta
            .annotations
            .get(TOPOLOGY_HIGHEST_TIER)
            .map(|tier| tier.trim().parse().unwrap_or(0));
        let hard = !mode.trim().eq_ignore_ascii_case("soft");
        Some(TierLimit { hard, highest: tier.map_or(Highest::Any, Highest::Tier) })
    }

    /// The highest tier of a domain that may hold the pods. The error is the name of an unknown
    /// tier.
    pub fn limit(&self, domains: &Domains) -> Result<u32, Arc<str>> {
        let root = domains[domains::ROOT].tier;
        let tier = match &self.highest {
            Highest::Tier(tier) => *tier,
            Highest::Name(name) => domains.tier_called(name).ok_or_else(|| name.clone())?,
            Highest::Any if domains.are_planted() => root - 1,
            Highest::Any => root,
        };
        Ok(if self.hard { tier } else { root })
    }
}

/// A rule that makes subgroups of a gang's pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub name: Arc<str>,
    /// None selects every pod.
    selector: Option<Selector>,
    keys: Vec<Symbol>,
    /// How many pods of a subgroup start together.
    pub size: u32,
    /// How many subgroups the gang needs to start.
    pub minimum: u32,
    #[serde(alias = "closeness")]
    pub tier_limit: Option<TierLimit>,
}

impl Rule {
    pub fn of(names: &mut Names, policy: &SubGroupPolicy) -> Rule {
        let selector = policy.label_selector.as_ref();
        Rule {
            name: policy.name.as_str().into(),
            selector: selector.map(|selector| Selector::compile(names, Some(selector))),
            keys: policy.match_label_keys.iter().map(|key| names.intern(key)).collect(),
            size: policy.sub_group_size.max(1) as u32,
            minimum: policy.min_sub_groups.max(0) as u32,
            tier_limit: policy.network_topology.as_ref().map(TierLimit::of),
        }
    }

    /// Why the rule applies to none of the pods with these labels.
    pub fn mismatch<'t>(
        &self,
        names: &Names,
        pods: impl Iterator<Item = &'t [(Symbol, Symbol)]>,
    ) -> Mismatch {
        let selects = |tags: &&[(Symbol, Symbol)]| {
            self.selector.as_ref().is_none_or(|selector| selector.matches(tags))
        };
        let selected: Vec<&[(Symbol, Symbol)]> = pods.filter(selects).collect();
        let has = |tags: &[(Symbol, Symbol)], key: Symbol| {
            tag(tags, key).is_some_and(|value| !names.text(value).is_empty())
        };
        if selected.is_empty() {
            return Mismatch::Selector;
        }
        let missing = self.keys.iter().find(|&&key| !selected.iter().any(|tags| has(tags, key)));
        if let Some(&key) = missing {
            return Mismatch::Label(names.text(key).clone());
        }
        if !selected.iter().any(|tags| self.keys.iter().all(|&key| has(tags, key))) {
            let keys = self.keys.iter().map(|&key| names.text(key).clone());
            return Mismatch::Labels(keys.collect());
        }
        Mismatch::Earlier
    }

    /// The values that determine a pod's subgroup, if the rule applies to the pod.
    fn values(&self, names: &Names, tags: &Tags) -> Option<Vec<Symbol>> {
        let selected = self.selector.as_ref().is_none_or(|selector| selector.matches(tags));
        let value = |key: &Symbol| tag(tags, *key).filter(|value| !names.text(*value).is_empty());
        selected.then(|| self.keys.iter().map(value).collect()).flatten()
    }
}

/// Why a rule applies to none of a gang's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Its selector matches none.
    Selector,
    /// None of the selected pods has this label of its `matchLabelKeys`.
    Label(Arc<str>),
    /// None of the selected pods has all of these.
    Labels(Vec<Arc<str>>),
    /// An earlier rule applies to all pods that it selects.
    Earlier,
}

/// Pods of a gang that start together; the first subgroup of a gang with rules has the pods that
/// match no rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subgroup {
    /// Its index in the list of rules.
    pub rule: Option<u32>,
    values: Vec<Symbol>,
    /// `rule-value-value`
    pub name: Arc<str>,
    /// The first value as a number, 0 if it isn't one. Subgroups are placed in this order.
    pub index: i64,
    pub counts: Counts,
}

impl Subgroup {
    fn rest() -> Subgroup {
        Subgroup {
            rule: None,
            values: Vec::new(),
            name: "".into(),
            index: 0,
            counts: Counts::default(),
        }
    }
}

/// The topology limit of a gang, and its subgroups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyRules {
    #[serde(alias = "closeness")]
    pub tier_limit: Option<TierLimit>,
    pub rules: Vec<Rule>,
    /// Empty without rules; otherwise the first one has the pods that match no rule.
    pub subgroups: Vec<Subgroup>,
}

impl TopologyRules {
    /// None for a gang without any.
    pub fn new(tier_limit: Option<TierLimit>, rules: Vec<Rule>) -> Option<Box<TopologyRules>> {
        let asks = tier_limit.is_some() || !rules.is_empty();
        asks.then(|| Box::new(TopologyRules { tier_limit, rules, subgroups: Vec::new() }))
    }

    /// The index of a pod's subgroup in the list, which is created if needed.
    pub fn assign(&mut self, names: &Names, tags: &Tags) -> u32 {
        assign(&self.rules, &mut self.subgroups, names, tags)
    }
}

fn assign(rules: &[Rule], subgroups: &mut Vec<Subgroup>, names: &Names, tags: &Tags) -> u32 {
    if rules.is_empty() {
        return 0;
    }
    if subgroups.is_empty() {
        subgroups.push(Subgroup::rest());
    }
    let found = rules
        .iter()
        .enumerate()
        .find_map(|(at, rule)| Some((at as u32, rule.values(names, tags)?)));
    let Some((rule, values)) = found else { return 0 };
    let known =
        subgroups.iter().position(|group| group.rule == Some(rule) && group.values == values);
    let place = known.unwrap_or_else(|| {
        let texts = values.iter().map(|&value| names.text(value).as_ref());
        let name: Vec<&str> =
            std::iter::once(rules[rule as usize].name.as_ref()).chain(texts).collect();
        let index = values.first().and_then(|&value| names.text(value).parse().ok()).unwrap_or(0);
        let name = name.join("-").into();
        subgroups.push(Subgroup {
            rule: Some(rule),
            values,
            name,
            index,
            counts: Counts::default(),
        });
        subgroups.len() - 1
    });
    place as u32
}
