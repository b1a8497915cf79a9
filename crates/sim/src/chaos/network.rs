//! HyperNodes as people write them, right and wrong, and how close gangs want to be. They change
//! while gangs run.

use std::fmt::Write;

use muster_api::manifest::Object;
use muster_api::{HyperNode, Time};
use muster_engine::Event;

use super::dice::Dice;
use super::{Day, work};
use crate::World;

/// Racks of two or three nodes, lines of racks, and the whole.
const DOMAINS: [&str; 7] = ["rack0", "rack1", "rack2", "rack3", "line0", "line1", "whole"];

impl Day<'_> {
    pub(super) fn domain_comes_or_changes(&mut self) {
        let name = *self.dice.one_of(&DOMAINS).expect("seven");
        let created = self.world.domains.get(name).map(|domain| domain.metadata.creation_timestamp);
        let mut domain = if self.dice.chance(60) {
            right(name, self.world.now, &mut self.dice)
        } else {
            any(name, self.world.now, &mut self.dice)
        };
        if let Some(created) = created {
            domain.metadata.creation_timestamp = created;
        }
        if self.dice.chance(4)
            && let Some(pattern) =
                domain.spec.members.iter_mut().find_map(|m| m.selector.regex_match.as_mut())
        {
            pattern.pattern = "n(".to_owned();
        }
        let event = self.world.put_domain(domain);
        self.tell(event);
    }

    pub(super) fn domain_goes(&mut self) {
        let names: Vec<String> = self.world.domains.keys().cloned().collect();
        let Some(name) = self.dice.one_of(&names) else { return };
        let event = self.world.remove_domain(name).expect("just listed");
        self.tell(event);
    }

    pub(super) fn group_moves_closer_or_apart(&mut self) {
        let Some(key) = self.any_group() else { return };
        let text = format!(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: any, namespace: any}}\n\
             spec: {{minMember: 1{}}}\n",
            tier_limit(&mut self.dice)
        );
        let Some(Object::PodGroup(wish)) = work::objects(&text).pop() else { panic!("a PodGroup") };
        let mut group = self.world.groups[&key].clone();
        group.spec.network_topology = wish.spec.network_topology;
        group.spec.sub_group_policy = wish.spec.sub_group_policy;
        self.world.insert(Object::from(group));
        let event = Event::from(self.world.groups[&key].clone());
        self.tell(event);
    }
}

/// A network for most histories; some begin without one.
pub fn furnish(world: &mut World, dice: &mut Dice) {
    if dice.chance(75) {
        for name in DOMAINS.iter().filter(|name| **name != "whole") {
            world.insert(Object::from(right(name, world.now, dice)));
        }
    }
}

/// The HyperNode of this name as it should be: every node is in one rack, every rack in one line.
fn right(name: &str, now: Time, dice: &mut Dice) -> HyperNode {
    let member = |kind: &str, selector: &str| format!("{{type: {kind}, selector: {{{selector}}}}}");
    let pattern = |pattern: &str| format!("regexMatch: {{pattern: '{pattern}'}}");
    let (kind, names): (&str, &[&str]) = match name {
        "rack0" => ("Node", &["n0", "n1", "n8"]),
        "rack1" => ("Node", &["n2", "n3"]),
        "rack2" => ("Node", &["n4", "n5"]),
        "rack3" => ("Node", &["n6", "n7"]),
        "line0" => ("HyperNode", &["rack0", "rack1"]),
        "line1" => ("HyperNode", &["rack2", "rack3"]),
        _ => ("HyperNode", &["line0", "line1"]),
    };
    let members = match dice.chance(70) {
        true => names
            .iter()
            .map(|name| member(kind, &format!("exactMatch: {{name: {name}}}")))
            .collect(),
        false => vec![member(kind, &pattern(&format!("^({})$", names.join("|"))))],
    };
    let (tier, tier_name) = match &name[..4] {
        "rack" => (1, "rack"),
        "line" => (2, "line"),
        _ => (3, ""),
    };
    let tier_name = if dice.chance(80) { tier_name } else { "" };
    made(name, tier, tier_name, &members, now)
}

/// A HyperNode that may claim anything: nodes of others, itself, what is above it, in any tier and
/// under any name of one.
fn any(name: &str, now: Time, dice: &mut Dice) -> HyperNode {
    let mut members = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let node = dice.chance(if name.starts_with("rack") { 80 } else { 25 });
        let selector = match (node, dice.below(3)) {
            (true, 0) => format!("exactMatch: {{name: n{}}}", dice.below(10)),
            (true, 1) => {
                format!("regexMatch: {{pattern: '^n[{}{}]$'}}", dice.below(9), dice.below(9))
            }
            (true, _) => format!(
                "labelMatch: {{matchLabels: {{zone: {}}}}}",
                dice.pick(&[(1, "a"), (1, "b"), (1, "c"), (1, "nowhere")])
            ),
            (false, 0) => {
                format!("exactMatch: {{name: {}}}", dice.one_of(&DOMAINS).expect("seven"))
            }
            (false, 1) => format!(
                "regexMatch: {{pattern: '{}'}}",
                dice.pick(&[(2, "rack[01]"), (2, "[13]$"), (1, "line"), (1, ".")])
            ),
            (false, _) => format!(
                "labelMatch: {{matchExpressions: [{{key: tier, operator: {}, values: ['1', '7']}}]}}",
                dice.pick(&[(1, "In"), (1, "NotIn")])
            ),
        };
        let kind = if node { "Node" } else { "HyperNode" };
        members.push(format!("{{type: {kind}, selector: {{{selector}}}}}"));
    }
    let tier = dice.below(4);
    let tier_name = dice.pick(&[(3, ""), (2, "rack"), (2, "line")]);
    made(name, tier, tier_name, &members, now)
}

fn made(name: &str, tier: u64, tier_name: &str, members: &[String], now: Time) -> HyperNode {
    let tier_name =
        if tier_name.is_empty() { String::new() } else { format!(", tierName: {tier_name}") };
    let text = format!(
        "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}, creationTimestamp: \
         \"{now}\", labels: {{tier: '{tier}'}}}}\nspec: {{tier: {tier}{tier_name}, members: [{}]}}\n",
        members.join(", ")
    );
    match work::objects(&text).pop() {
        Some(Object::HyperNode(domain)) => *domain,
        other => panic!("expected a HyperNode, found {other:?}"),
    }
}

/// How close a gang and its parts want to be, as fields of a PodGroup's spec. The parts are pods
/// with the same label `part`.
pub fn tier_limit(dice: &mut Dice) -> String {
    let mut spec = String::new();
    if dice.chance(45) {
        spec += ", networkTopology: ";
        spec += wish(dice);
    }
    if dice.chance(30) {
        let (size, least) = (1 + dice.below(3), dice.below(3));
        let topology = if dice.chance(70) {
            format!(", networkTopology: {}", wish(dice))
        } else {
            String::new()
        };
        let selector = if dice.chance(25) {
            ", labelSelector: {matchLabels: {volcano.sh/task-spec: work}}"
        } else {
            ""
        };
        let keys = if dice.chance(85) { ", matchLabelKeys: [part]" } else { "" };
        write!(
            spec,
            ", subGroupPolicy: [{{name: part, subGroupSize: {size}, minSubGroups: {least}{topology}{selector}{keys}}}]"
        )
        .expect("a string");
    }
    spec
}

fn wish(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        (4, "{mode: hard, highestTierAllowed: 1}"),
        (4, "{mode: hard, highestTierAllowed: 2}"),
        (2, "{mode: hard}"),
        (3, "{mode: soft}"),
        (1, "{mode: soft, highestTierAllowed: 1}"),
        (2, "{mode: hard, highestTierName: rack}"),
        (2, "{mode: hard, highestTierName: line}"),
        (1, "{mode: hard, highestTierName: elsewhere}"),
        (1, "{mode: hard, highestTierAllowed: 0}"),
    ])
}
