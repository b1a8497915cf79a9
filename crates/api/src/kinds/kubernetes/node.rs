//! The Node: what scheduling reads of it.

use serde::{Deserialize, Serialize};

use crate::ResourceList;
use crate::anonymise::{Class, Walk};
use crate::core::{Condition, Meta, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, Problems};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: NodeSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: NodeStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    #[serde(skip_serializing_if = "is_default")]
    pub unschedulable: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    #[serde(skip_serializing_if = "is_default")]
    pub key: String,
    #[serde(skip_serializing_if = "is_default")]
    pub value: String,
    #[serde(skip_serializing_if = "is_default")]
    pub effect: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// Used for `allocatable` if that is missing.
    #[serde(skip_serializing_if = "is_default")]
    pub capacity: ResourceList,
    #[serde(skip_serializing_if = "is_default")]
    pub allocatable: ResourceList,
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "is_default")]
    pub images: Vec<Image>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    #[serde(skip_serializing_if = "is_default")]
    pub names: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub size_bytes: i64,
}

impl Contents for Node {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.meta(&self.metadata);
        for (index, taint) in self.spec.taints.iter().enumerate() {
            let path = format!("spec.taints[{index}]");
            problems.check(
                !taint.key.is_empty(),
                format!("{path}.key"),
                "is missing; write the key of the taint",
            );
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            problems.one_of(format!("{path}.effect"), &taint.effect, &effects);
            let same = |other: &&Taint| other.key == taint.key && other.effect == taint.effect;
            if self.spec.taints[..index].iter().find(same).is_some() {
                problems.add(
                    path,
                    format!("{}:{} is given twice; remove one", taint.key, taint.effect),
                );
            }
        }
        problems.amounts("status.capacity", &self.status.capacity);
        problems.amounts("status.allocatable", &self.status.allocatable);
        problems.0
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let Node { metadata, spec, status } = self;
        let NodeSpec { unschedulable: _, taints } = spec;
        let NodeStatus { capacity: _, allocatable: _, conditions, images } = status;
        walk.meta(Class::Node, metadata);
        for Taint { key, value, effect: _ } in taints {
            walk.value(key, value);
            walk.name(Class::Key, key);
        }
        conditions.iter_mut().for_each(|condition| walk.condition(condition));
        images.iter_mut().flat_map(|image| &mut image.names).for_each(|name| walk.image(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::tests::problems;

    #[test]
    fn a_good_node_has_no_problem() {
        let text = "metadata: {name: n1}
spec: {taints: [{key: gpu, effect: NoSchedule}, {key: gpu, effect: NoExecute}]}
status: {allocatable: {cpu: 8, memory: 16Gi}}";
        assert_eq!(problems(text, Node::problems), [""; 0]);
    }

    #[test]
    fn an_amount_of_more_than_63_bits_is_a_problem() {
        let text = "metadata: {name: n1}
status: {allocatable: {cpu: 9223372036854775808, memory: 8Ei, pods: 9223372036854775807}}";
        let message =
            "is larger than 9223372036854775807, the largest amount there is; write a smaller one";
        assert_eq!(
            problems(text, Node::problems),
            ["cpu", "memory"].map(|name| format!("status.allocatable[{name}]: {message}"))
        );
    }

    #[test]
    fn every_problem_of_a_node_is_named() {
        let text = "metadata: {name: Node_1}
spec:
  taints:
  - {key: gpu, effect: Never}
  - {effect: NoSchedule}
  - {effect: NoSchedule, key: a}
  - {effect: NoSchedule, key: a}
status: {allocatable: {cpu: -1}, capacity: {memory: -1Gi}}";
        assert_eq!(
            problems(text, Node::problems),
            [
                "metadata.name: \"Node_1\" is not a valid name; use up to 253 lower case letters, digits, - and ., \
                 starting and ending with a letter or a digit",
                "spec.taints[0].effect: \"Never\" is not known; write one of NoSchedule, PreferNoSchedule, NoExecute",
                "spec.taints[1].key: is missing; write the key of the taint",
                "spec.taints[3]: a:NoSchedule is given twice; remove one",
                "status.capacity[memory]: -1Gi is negative; write 0 or more",
                "status.allocatable[cpu]: -1 is negative; write 0 or more",
            ]
        );
    }
}
