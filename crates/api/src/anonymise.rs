//! Gives every name a pseudonym, so that a cluster can be shown to others. The scheduler decides
//! the same: equal names stay equal, and names that are compared keep their order, since names
//! break ties.

mod names;
mod pseudonyms;

use std::collections::BTreeSet;

use crate::core::NodeTerm;
use crate::keys::TASK_INDEX;
use crate::kinds::{Kind, Object};
use muster_goregex::GoRegex;

use crate::{ExactMatch, Member, MemberKind, MemberSelector};
pub(crate) use names::{Walk, tidy};
pub use pseudonyms::{Class, Pseudonyms};

/// Replaces all names in the objects, and returns which name became which.
pub fn anonymise(objects: &mut [Object]) -> Pseudonyms {
    expand_patterns(objects);
    write_indices(objects);
    let compared = compared_keys(objects);
    let mut found: BTreeSet<(Class, String)> = BTreeSet::new();
    let mut collect = |class: Class, name: &mut String| {
        found.insert((class, name.clone()));
    };
    for object in objects.iter_mut() {
        object.visit_names(&mut Walk { compared: &compared, visit: &mut collect });
    }
    let pseudonyms = Pseudonyms::new(found);
    let mut replace = |class: Class, name: &mut String| {
        *name = pseudonyms.of(class, name).to_owned();
    };
    for object in objects {
        object.visit_names(&mut Walk { compared: &compared, visit: &mut replace });
    }
    pseudonyms
}

/// Labels of nodes that are compared as numbers, and so must stay numbers.
fn compared_keys(objects: &[Object]) -> BTreeSet<String> {
    let mut terms: Vec<&NodeTerm> = Vec::new();
    for object in objects {
        match object {
            Object::Pod(pod) => {
                let affinity =
                    pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
                let required = affinity.and_then(|affinity| affinity.required.as_ref());
                terms.extend(required.iter().flat_map(|required| &required.node_selector_terms));
                let preferred = affinity.iter().flat_map(|affinity| &affinity.preferred);
                terms.extend(preferred.map(|preferred| &preferred.preference));
            }
            Object::PersistentVolume(volume) => {
                let affinity = volume.spec.node_affinity.as_ref();
                let required = affinity.and_then(|affinity| affinity.required.as_ref());
                terms.extend(required.iter().flat_map(|required| &required.node_selector_terms));
            }
            _ => {}
        }
    }
    let requirements = terms.into_iter().flat_map(|term| &term.match_expressions);
    let compared =
        requirements.filter(|requirement| ["Gt", "Lt"].contains(&requirement.operator.as_str()));
    compared.map(|requirement| requirement.key.clone()).collect()
}

/// The number at the end of a pod's name orders the pods of a gang. It is lost with the name.
fn write_indices(objects: &mut [Object]) {
    for object in objects {
        if let Object::Pod(pod) = object
            && pod.metadata.annotation_or_label(TASK_INDEX).is_none()
        {
            let index = pod.metadata.task_index().to_string();
            pod.metadata.annotations.insert(TASK_INDEX.to_owned(), index);
        }
    }
}

/// The pattern was written for the old names, so it is replaced by the members that it selects now.
fn expand_patterns(objects: &mut [Object]) {
    let names = |kind: Kind| -> Vec<String> {
        objects.iter().filter(|object| object.kind() == kind).map(Object::key).collect()
    };
    let (nodes, domains) = (names(Kind::Node), names(Kind::HyperNode));
    for object in objects.iter_mut() {
        let Object::HyperNode(hyper_node) = object else { continue };
        let spec = &mut hyper_node.spec;
        let members = std::mem::take(&mut spec.members);
        for member in members {
            let Some(pattern) = &member.selector.regex_match else {
                spec.members.push(member);
                continue;
            };
            let among = if member.kind == MemberKind::Node { &nodes } else { &domains };
            let pattern = GoRegex::new(&pattern.pattern);
            let mut selected: Vec<String> = among
                .iter()
                .filter(|name| pattern.as_ref().is_ok_and(|p| p.is_match(name)))
                .cloned()
                .collect();
            selected.sort();
            if selected.is_empty() {
                // A HyperNode must have a member. No node has this name; it gets a pseudonym like
                // all others.
                selected.push("~no-node".to_owned());
            }
            let exact = |name| Member {
                kind: member.kind,
                selector: MemberSelector {
                    exact_match: Some(ExactMatch { name }),
                    ..MemberSelector::default()
                },
            };
            spec.members.extend(selected.into_iter().map(exact));
        }
    }
}

#[cfg(test)]
mod tests;
