//! Label selectors over interned labels, compiled once.

use muster_api::core::{LabelSelector, Requirement};
use serde::{Deserialize, Serialize};

use crate::base::ids::Symbol;
use crate::base::names::Names;

/// Sorted by key.
pub type Tags = Box<[(Symbol, Symbol)]>;

pub fn tags(names: &mut Names, labels: &muster_api::core::Labels) -> Tags {
    let mut tags: Vec<_> =
        labels.iter().map(|(key, value)| (names.intern(key), names.intern(value))).collect();
    tags.sort_unstable();
    tags.into()
}

pub fn tag(tags: &[(Symbol, Symbol)], key: Symbol) -> Option<Symbol> {
    tags.binary_search_by_key(&key, |&(key, _)| key).ok().map(|place| tags[place].1)
}

/// All checks must hold; none matches everything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector(Vec<Check>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Check {
    key: Symbol,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Operator {
    In(Vec<Symbol>),
    NotIn(Vec<Symbol>),
    Exists,
    Absent,
    /// An operator that Kubernetes does not know.
    Never,
}

impl Selector {
    pub fn nothing(names: &mut Names) -> Selector {
        Selector(vec![Check { key: names.intern(""), operator: Operator::Never }])
    }

    /// No selector at all selects nothing, an empty one everything.
    pub fn compile(names: &mut Names, selector: Option<&LabelSelector>) -> Selector {
        let Some(selector) = selector else { return Selector::nothing(names) };
        let mut checks: Vec<Check> = Vec::new();
        for (key, value) in &selector.match_labels {
            let operator = Operator::In(vec![names.intern(value)]);
            checks.push(Check { key: names.intern(key), operator });
        }
        for Requirement { key, operator, values } in &selector.match_expressions {
            let values: Vec<Symbol> = values.iter().map(|value| names.intern(value)).collect();
            let operator = match operator.as_str() {
                "In" => Operator::In(values),
                "NotIn" => Operator::NotIn(values),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::Absent,
                _ => Operator::Never,
            };
            checks.push(Check { key: names.intern(key), operator });
        }
        Selector(checks)
    }

    /// Also demands (or excludes) one value of a label.
    pub fn with(mut self, key: Symbol, value: Symbol, equal: bool) -> Selector {
        let operator = if equal { Operator::In(vec![value]) } else { Operator::NotIn(vec![value]) };
        self.0.push(Check { key, operator });
        self
    }

    pub fn keys(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.0.iter().map(|check| check.key)
    }

    pub fn matches(&self, tags: &[(Symbol, Symbol)]) -> bool {
        self.0.iter().all(|check| {
            let value = tag(tags, check.key);
            match &check.operator {
                Operator::In(values) => value.is_some_and(|value| values.contains(&value)),
                Operator::NotIn(values) => value.is_none_or(|value| !values.contains(&value)),
                Operator::Exists => value.is_some(),
                Operator::Absent => value.is_none(),
                Operator::Never => false,
            }
        })
    }
}
