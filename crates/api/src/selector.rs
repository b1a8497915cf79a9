//! Which labels, nodes and taints a selector or a toleration matches, with the exact meaning of
//! Kubernetes.

use crate::core::{LabelSelector, Labels, NodeSelector, NodeTerm, Requirement, Taint, Toleration};

impl LabelSelector {
    /// Whether all conditions hold; a selector without conditions matches everything.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    /// Whether the condition holds for the labels of a pod or a namespace.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }

    /// Whether the condition holds for the labels of a node. Only these can be compared as numbers.
    pub fn matches_node(&self, labels: &Labels) -> bool {
        let compare = |holds: fn(i64, i64) -> bool| {
            let (Some(label), [bound]) = (labels.get(&self.key), &self.values[..]) else {
                return false;
            };
            let (Ok(label), Ok(bound)) = (label.parse(), bound.parse()) else { return false };
            holds(label, bound)
        };
        match self.operator.as_str() {
            "Gt" => compare(|label, bound| label > bound),
            "Lt" => compare(|label, bound| label < bound),
            _ => self.matches(labels),
        }
    }
}

impl NodeSelector {
    /// Whether any of the terms matches the node.
    pub fn matches(&self, labels: &Labels, node_name: &str) -> bool {
        self.node_selector_terms.iter().any(|term| term.matches(labels, node_name))
    }
}

impl NodeTerm {
    /// Whether all conditions hold; a term without conditions matches no node.
    pub fn matches(&self, labels: &Labels, node_name: &str) -> bool {
        if self.match_expressions.is_empty() && self.match_fields.is_empty() {
            return false;
        }
        self.match_expressions.iter().all(|requirement| requirement.matches_node(labels))
            && self.match_fields.iter().all(|requirement| field_matches(requirement, node_name))
    }
}

/// The name is the only field of a node that can be selected by.
fn field_matches(requirement: &Requirement, node_name: &str) -> bool {
    let named = requirement.values.iter().any(|value| value == node_name);
    match (requirement.key.as_str(), requirement.operator.as_str()) {
        ("metadata.name", "In") => named,
        ("metadata.name", "NotIn") => !named,
        _ => false,
    }
}

impl Toleration {
    /// Whether a pod with this toleration may ignore the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let same_effect = self.effect.is_empty() || self.effect == taint.effect;
        let same_key = self.key.is_empty() || self.key == taint.key;
        let value_fits = match self.operator.as_str() {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            _ => false,
        };
        same_effect && same_key && value_fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        text.split_whitespace()
            .map(|pair| pair.split_once('=').expect("key=value"))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    fn requirement(key: &str, operator: &str, values: &[&str]) -> Requirement {
        Requirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|value| value.to_string()).collect(),
        }
    }

    #[test]
    fn an_empty_label_selector_matches_everything() {
        assert!(LabelSelector::default().matches(&labels("")));
        assert!(LabelSelector::default().matches(&labels("a=1")));
    }

    #[test]
    fn every_condition_of_a_label_selector_must_hold() {
        let selector = LabelSelector {
            match_labels: labels("app=web"),
            match_expressions: vec![requirement("tier", "In", &["front", "edge"])],
        };
        assert!(selector.matches(&labels("app=web tier=edge")));
        assert!(!selector.matches(&labels("app=web tier=back")));
        assert!(!selector.matches(&labels("tier=edge")));
    }

    #[test]
    fn operators_have_their_kubernetes_meaning() {
        for (operator, values, given, expected) in [
            ("In", &["1", "2"][..], "a=2", true),
            ("In", &["1"], "b=1", false),
            ("NotIn", &["1"], "a=1", false),
            ("NotIn", &["1"], "b=1", true),
            ("Exists", &[], "a=", true),
            ("Exists", &[], "b=", false),
            ("DoesNotExist", &[], "a=", false),
            ("DoesNotExist", &[], "b=", true),
            ("Gt", &["5"], "a=6", true),
            ("Gt", &["5"], "a=5", false),
            ("Lt", &["5"], "a=-6", true),
            ("Lt", &["5"], "a=five", false),
            ("Lt", &["5", "6"], "a=1", false),
            ("Gt", &["5"], "b=6", false),
            ("in", &["1"], "a=1", false),
        ] {
            let holds = requirement("a", operator, values).matches_node(&labels(given));
            assert_eq!(holds, expected, "a {operator} {values:?} on {given}");
        }
        assert!(
            !requirement("a", "Gt", &["5"]).matches(&labels("a=6")),
            "only nodes compare as numbers"
        );
    }

    #[test]
    fn node_terms_are_alternatives_and_an_empty_term_matches_nothing() {
        let term = |expressions: &[Requirement], fields: &[Requirement]| NodeTerm {
            match_expressions: expressions.to_vec(),
            match_fields: fields.to_vec(),
        };
        let by_label = term(&[requirement("zone", "In", &["a"])], &[]);
        let by_name = term(&[], &[requirement("metadata.name", "In", &["n1"])]);
        let either = NodeSelector { node_selector_terms: vec![by_label, by_name] };
        assert!(either.matches(&labels("zone=a"), "n2"));
        assert!(either.matches(&labels("zone=b"), "n1"));
        assert!(!either.matches(&labels("zone=b"), "n2"));
        let empty = NodeSelector { node_selector_terms: vec![term(&[], &[])] };
        assert!(!empty.matches(&labels("zone=a"), "n1"));
        assert!(!NodeSelector::default().matches(&labels("zone=a"), "n1"));
        let other_name = term(&[], &[requirement("metadata.name", "NotIn", &["n1"])]);
        assert!(other_name.matches(&labels(""), "n2"));
        assert!(!other_name.matches(&labels(""), "n1"));
    }

    #[test]
    fn tolerations_match_by_key_value_and_effect() {
        let taint = Taint {
            key: "gpu".to_owned(),
            value: "yes".to_owned(),
            effect: "NoSchedule".to_owned(),
        };
        for (key, operator, value, effect, expected) in [
            ("gpu", "Equal", "yes", "NoSchedule", true),
            ("gpu", "", "yes", "", true),
            ("gpu", "Equal", "no", "", false),
            ("gpu", "Exists", "", "NoSchedule", true),
            ("gpu", "Exists", "", "NoExecute", false),
            ("", "Exists", "", "", true),
            ("cpu", "Exists", "", "", false),
            ("gpu", "exists", "", "", false),
        ] {
            let toleration = Toleration {
                key: key.to_owned(),
                operator: operator.to_owned(),
                value: value.to_owned(),
                effect: effect.to_owned(),
            };
            assert_eq!(toleration.tolerates(&taint), expected, "{toleration:?}");
        }
    }
}
