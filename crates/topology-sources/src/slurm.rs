//! Slurm's `topology.conf`: `SwitchName=s0 Nodes=node[0-15]` and `SwitchName=s4 Switches=s[0-3]`.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::MemberKind;
use thiserror::Error;

use crate::error::{Mistake, SourceError};
use crate::forest::{Domain, Forest};
use crate::hostlist::{HostListError, expand};
use crate::levels::level_names;
use crate::names::named;
use crate::places::bad_node;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SlurmMistake {
    #[error("no switches; write lines like SwitchName=leaf1 Nodes=node[0-15]")]
    NoSwitches,
    #[error("{key}: {error}")]
    Names { key: String, error: HostListError },
    #[error(
        "blocks have no tree of switches; describe them as a table with a line for each node: node block"
    )]
    Blocks,
    #[error("{word:?} is not known here; write SwitchName=, Nodes=, Switches= or LinkSpeed=")]
    UnknownWord { word: String },
    #[error("SwitchName= is missing; write SwitchName=leaf1 Nodes=node[0-15]")]
    NoName,
    #[error("switch {switch} has neither nodes nor switches; write Nodes= or Switches=")]
    EmptySwitch { switch: String },
    #[error(
        "switch {switch} has both nodes and switches; write a switch of their own for the nodes"
    )]
    MixedSwitch { switch: String },
    #[error("switch {switch} is there twice, first at line {first}; join the two lines")]
    SwitchTwice { switch: String, first: usize },
    #[error(
        "switch {switch} has switch {below} below it, which has no line; write SwitchName={below} Nodes=…"
    )]
    MissingSwitch { switch: String, below: String },
    #[error("{what} {name} is there twice under switch {switch}; delete one")]
    MemberTwice { what: &'static str, name: String, switch: String },
    #[error(
        "{what} {name} is under switch {here}, and under switch {there} at line {line}: there is one way up; delete it from one of the two"
    )]
    SecondParent { what: &'static str, name: String, here: String, there: String, line: usize },
    #[error(
        "switches below each other in a circle: {}; delete one of these Switches=",
        switches.join(" > ")
    )]
    Circle { switches: Vec<String> },
}

struct Switch {
    name: String,
    line: usize,
    nodes: Vec<String>,
    switches: Vec<String>,
}

/// The switches by name.
type Switches = BTreeMap<String, Switch>;

/// Whether the line looks like one of such a file.
pub fn is_line(line: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    ["switchname=", "blockname="].iter().any(|start| line.starts_with(start))
}

pub fn read(file: &str, text: &str, given: &[String]) -> Result<Forest, Vec<SourceError>> {
    let mut problems = Vec::new();
    let mut switches = Switches::new();
    for (line, statement) in statements(text) {
        match switch(line, &statement) {
            Ok(switch) => problems.extend(add(file, switch, &mut switches)),
            Err(found) => problems
                .extend(found.into_iter().map(|mistake| SourceError::at(file, line, mistake))),
        }
    }
    if switches.is_empty() && problems.is_empty() {
        problems.push(SourceError::of(file, SlurmMistake::NoSwitches));
    }
    // Switches in lines that could not be read are unknown.
    if problems.is_empty() {
        problems.extend(missing(file, &switches));
    }
    problems.extend(second_parents(file, &switches));
    let heights = heights(&switches);
    problems.extend(circles(file, &switches, &heights));
    if !problems.is_empty() {
        return Err(problems);
    }
    let count = heights.values().copied().max().unwrap_or_default();
    let levels =
        level_names(given, count).map_err(|mistake| vec![SourceError::of(file, mistake)])?;
    let name = |switch: &str| named(switch, true, &[switch]);
    let domain = |switch: &Switch| {
        let tier = heights[switch.name.as_str()];
        let (kind, members) = match switch.nodes.is_empty() {
            true => {
                (MemberKind::HyperNode, switch.switches.iter().map(|below| name(below)).collect())
            }
            false => (MemberKind::Node, switch.nodes.iter().cloned().collect()),
        };
        Domain {
            name: name(&switch.name),
            tier,
            tier_name: levels[tier - 1].clone(),
            kind,
            members,
        }
    };
    Ok(Forest { domains: switches.values().map(domain).collect(), notes: Vec::new() })
}

/// The lines without comments, those that end in a backslash joined with the next.
fn statements(text: &str) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match statements.last_mut().filter(|_| goes_on) {
            Some((_, statement)) => statement.push_str(part),
            None => statements.push((index + 1, part.to_owned())),
        }
        goes_on = more;
    }
    statements.retain(|(_, statement)| !statement.trim().is_empty());
    statements
}

fn switch(line: usize, statement: &str) -> Result<Switch, Vec<Mistake>> {
    let mut switch = Switch { name: String::new(), line, nodes: Vec::new(), switches: Vec::new() };
    let mut problems: Vec<Mistake> = Vec::new();
    for word in statement.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let mut many = |value| {
            expand(value)
                .map_err(|error| {
                    problems.push(SlurmMistake::Names { key: key.to_owned(), error }.into());
                })
                .unwrap_or_default()
        };
        match key.to_lowercase().as_str() {
            "switchname" => switch.name = value.to_owned(),
            "nodes" => switch.nodes.extend(many(value).into_iter().map(|node| node.to_lowercase())),
            "switches" => switch.switches.extend(many(value)),
            "linkspeed" => {}
            "blockname" | "blocksizes" => problems.push(SlurmMistake::Blocks.into()),
            _ => problems.push(SlurmMistake::UnknownWord { word: word.to_owned() }.into()),
        }
    }
    problems.extend(switch.nodes.iter().filter_map(|node| Some(bad_node(node)?.into())));
    let name = || switch.name.clone();
    let wrong = match (switch.nodes.is_empty(), switch.switches.is_empty()) {
        _ if !problems.is_empty() => None,
        _ if switch.name.is_empty() => Some(SlurmMistake::NoName),
        (true, true) => Some(SlurmMistake::EmptySwitch { switch: name() }),
        (false, false) => Some(SlurmMistake::MixedSwitch { switch: name() }),
        _ => None,
    };
    problems.extend(wrong.map(Mistake::from));
    if problems.is_empty() { Ok(switch) } else { Err(problems) }
}

fn add(file: &str, switch: Switch, switches: &mut Switches) -> Option<SourceError> {
    let Switch { name, line, .. } = &switch;
    if let Some(other) = switches.get(name) {
        let mistake = SlurmMistake::SwitchTwice { switch: name.clone(), first: other.line };
        return Some(SourceError::at(file, *line, mistake));
    }
    switches.insert(name.clone(), switch);
    None
}

fn missing(file: &str, switches: &Switches) -> Vec<SourceError> {
    let below = switches
        .values()
        .flat_map(|switch| switch.switches.iter().map(move |below| (switch, below)));
    let missing = below.filter(|(_, below)| !switches.contains_key(*below));
    let tell = |(switch, below): (&Switch, &String)| {
        let (name, below) = (switch.name.clone(), below.clone());
        let mistake = SlurmMistake::MissingSwitch { switch: name, below };
        SourceError::at(file, switch.line, mistake)
    };
    missing.map(tell).collect()
}

/// Each node is under one switch, each switch under one other.
fn second_parents(file: &str, switches: &Switches) -> Vec<SourceError> {
    let mut in_order: Vec<&Switch> = switches.values().collect();
    in_order.sort_by_key(|switch| switch.line);
    let mut first: BTreeMap<(&str, &str), &Switch> = BTreeMap::new();
    let mut problems = Vec::new();
    for switch in in_order {
        let nodes = switch.nodes.iter().map(|node| ("node", node.as_str()));
        let below = nodes.chain(switch.switches.iter().map(|below| ("switch", below.as_str())));
        for (what, name) in below {
            let Some(other) = first.insert((what, name), switch) else { continue };
            let (name, here, there) = (name.to_owned(), switch.name.clone(), other.name.clone());
            let mistake = match here == there {
                true => SlurmMistake::MemberTwice { what, name, switch: here },
                false => SlurmMistake::SecondParent { what, name, here, there, line: other.line },
            };
            problems.push(SourceError::at(file, switch.line, mistake));
        }
    }
    problems
}

/// How far each switch is above its nodes: 1 if they are its own. Switches in a circle, and those
/// above, have no distance.
fn heights(switches: &Switches) -> BTreeMap<&str, usize> {
    let mut heights: BTreeMap<&str, usize> = BTreeMap::new();
    loop {
        let before = heights.len();
        for switch in switches
            .values()
            .filter(|switch| !switch.nodes.is_empty() || !switch.switches.is_empty())
        {
            // A missing switch is reported elsewhere.
            let below = switch.switches.iter().filter(|below| switches.contains_key(*below));
            let highest = below
                .map(|below| heights.get(below.as_str()).copied())
                .try_fold(0, |highest, height| Some(height?.max(highest)));
            if let Some(highest) = highest {
                heights.insert(&switch.name, highest + 1);
            }
        }
        if heights.len() == before {
            return heights;
        }
    }
}

fn circles(file: &str, switches: &Switches, heights: &BTreeMap<&str, usize>) -> Vec<SourceError> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut problems = Vec::new();
    for start in switches.keys().filter(|name| !heights.contains_key(name.as_str())) {
        let mut way: Vec<&str> = Vec::new();
        let mut next = Some(start.as_str());
        while let Some(name) = next.filter(|name| seen.insert(name)) {
            way.push(name);
            let mut below = switches[name].switches.iter().map(String::as_str);
            next =
                below.find(|below| switches.contains_key(*below) && !heights.contains_key(below));
        }
        // A path that reaches an earlier one leads to a known circle.
        let Some(at) = next.and_then(|name| way.iter().position(|step| *step == name)) else {
            continue;
        };
        let circle = [&way[at..], &way[at..=at]].concat();
        let line = switches[circle[0]].line;
        let switches = circle.into_iter().map(str::to_owned).collect();
        problems.push(SourceError::at(file, line, SlurmMistake::Circle { switches }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Vec<String>, Vec<String>> {
        let line = |domain: Domain| {
            let members: Vec<String> = domain.members.into_iter().collect();
            format!("{} {} {}: {}", domain.tier, domain.tier_name, domain.name, members.join(" "))
        };
        let told = |problems: Vec<SourceError>| -> Vec<String> {
            problems.iter().map(ToString::to_string).collect()
        };
        Ok(read("t", text, &[]).map_err(told)?.domains.into_iter().map(line).collect())
    }

    #[test]
    fn the_tier_of_a_domain_is_the_height_of_its_switch() {
        let text = "
# Slurm's topology/tree
SwitchName=core Switches=spine[1-2],lone LinkSpeed=400
SwitchName=spine1 Switches=leaf[1-2]
switchname=leaf1 nodes=Tux[08-09] # two
SwitchName=leaf2 Nodes=tux10,\\
tux11
SwitchName=spine2 \\
  Switches=leaf3
SwitchName=leaf3 Nodes=tux12
SwitchName=lone Nodes=tux13";
        assert_eq!(
            lines(text).expect("it is a tree"),
            [
                "3 core core: lone spine1 spine2",
                "1 leaf leaf1: tux08 tux09",
                "1 leaf leaf2: tux10 tux11",
                "1 leaf leaf3: tux12",
                "1 leaf lone: tux13",
                "2 spine spine1: leaf1 leaf2",
                "2 spine spine2: leaf3",
            ]
        );
    }

    #[test]
    fn each_mistake_is_reported_with_its_cause() {
        for (text, expected) in [
            ("", "t: no switches; write lines like SwitchName=leaf1 Nodes=node[0-15]"),
            (
                "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2",
                "t:2: switch a is there twice, first at line 1; join the two lines",
            ),
            (
                "SwitchName=a",
                "t:1: switch a has neither nodes nor switches; write Nodes= or Switches=",
            ),
            ("Nodes=n1", "t:1: SwitchName= is missing; write SwitchName=leaf1 Nodes=node[0-15]"),
            (
                "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 Switches=a",
                "t:2: switch b has both nodes and switches; write a switch of their own for the nodes",
            ),
            (
                "SwitchName=a Switches=b,c\nSwitchName=b Nodes=n1",
                "t:1: switch a has switch c below it, which has no line; write SwitchName=c Nodes=…",
            ),
            (
                "SwitchName=a Nodes=n[1-2]\n\nSwitchName=b Nodes=n[2-3]",
                "t:3: node n2 is under switch b, and under switch a at line 1: there is one way up; delete it from one of the two",
            ),
            ("SwitchName=a Nodes=n1,n1", "t:1: node n1 is there twice under switch a; delete one"),
            (
                "SwitchName=l Nodes=n1\nSwitchName=a Switches=l\nSwitchName=b Switches=l",
                "t:3: switch l is under switch b, and under switch a at line 2: there is one way up; delete it from one of the two",
            ),
            (
                "SwitchName=top Switches=a\nSwitchName=b Switches=c\nSwitchName=c Switches=b\nSwitchName=a Nodes=n1",
                "t:2: switches below each other in a circle: b > c > b; delete one of these Switches=",
            ),
            (
                "SwitchName=a Switches=a",
                "t:1: switches below each other in a circle: a > a; delete one of these Switches=",
            ),
            (
                "SwitchName=a Node=n1",
                "t:1: \"Node=n1\" is not known here; write SwitchName=, Nodes=, Switches= or LinkSpeed=",
            ),
            (
                "SwitchName=a Nodes=n[1-",
                "t:1: Nodes: \"n[1-\" has a [ without a ]; write for example node[0-3,7]",
            ),
            (
                "BlockName=a Nodes=n1",
                "t:1: blocks have no tree of switches; describe them as a table with a line for each node: node block",
            ),
            (
                "SwitchName=a Nodes=n_1",
                "t:1: \"n_1\" is no name of a node; write it as kubectl get nodes does: lower case letters, digits, - and .",
            ),
        ] {
            assert_eq!(lines(text).expect_err(text), [expected], "{text}");
        }
    }

    #[test]
    fn mistakes_in_several_lines_are_reported_at_once() {
        let text =
            "SwitchName=a\nSwitchName=b Nodes=n1\nSwitchName=c Nodes=n1\nSwitchName=d Switches=d";
        assert_eq!(lines(text).expect_err("three are wrong").len(), 3);
    }
}
