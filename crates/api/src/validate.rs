//! What is wrong with one object, found without looking at any other: all problems at once, each
//! with its field and what to write instead. References to other objects (a queue that does not
//! exist) are not checked here.

mod custom_kinds;
mod job;
mod pod;

pub use custom_kinds::validate_hyper_node;
pub(crate) use custom_kinds::{validate_pod_group, validate_queue};
pub(crate) use job::{validate_cron_job, validate_job, validate_job_flow, validate_job_spec};
pub(crate) use pod::{check_node_term, validate_pod};

use crate::core::{LabelSelector, Meta, Requirement};
use crate::{Portion, ResourceList, Time, keys, parse_duration};

/// The longest name of most objects, and of fields that hold one.
const NAME_LENGTH: usize = 253;
/// The longest name of a namespace or a container.
const LABEL_LENGTH: usize = 63;

/// Something that must be changed before an object can be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The field, for example `spec.members[1].selector`.
    pub path: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// Collects problems while an object is checked.
#[derive(Default)]
pub(crate) struct Problems(pub Vec<Problem>);

impl Problems {
    /// For kinds of which only the metadata is read.
    pub fn of_meta(meta: &Meta) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.meta(meta);
        problems.0
    }

    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem { path: path.into(), message: message.into() });
    }

    pub fn check(&mut self, holds: bool, path: impl Into<String>, message: impl Into<String>) {
        if !holds {
            self.add(path, message);
        }
    }

    /// The name and namespace that every object has.
    pub fn meta(&mut self, meta: &Meta) {
        if meta.name.is_empty() {
            self.add("metadata.name", "is missing; give the object a name");
        } else {
            self.name("metadata.name", &meta.name);
        }
        if !meta.namespace.is_empty() && !is_dns_label(&meta.namespace) {
            self.add(
                "metadata.namespace",
                format!(
                    "{:?} is not a valid namespace; use up to {LABEL_LENGTH} lower case letters, digits and -, \
                     starting and ending with a letter or a digit",
                    meta.namespace
                ),
            );
        }
    }

    /// The name of an object.
    fn name(&mut self, path: impl Into<String>, name: &str) {
        if !is_dns_subdomain(name) {
            self.add(
                path,
                format!(
                    "{name:?} is not a valid name; use up to {NAME_LENGTH} lower case letters, digits, - and ., \
                     starting and ending with a letter or a digit"
                ),
            );
        }
    }

    pub fn one_of(&mut self, path: impl Into<String>, value: &str, allowed: &[&str]) {
        if !allowed.contains(&value) {
            let known: Vec<&str> =
                allowed.iter().copied().filter(|name| !name.is_empty()).collect();
            let written = if value.is_empty() {
                "is missing".to_owned()
            } else {
                format!("{value:?} is not known")
            };
            self.add(path, format!("{written}; write one of {}", known.join(", ")));
        }
    }

    pub fn at_least(&mut self, path: impl Into<String>, least: i64, number: impl Into<i64>) {
        let number = number.into();
        self.check(number >= least, path, format!("{number} is too small; write {least} or more"));
    }

    fn at_most_long(&mut self, path: impl Into<String>, longest: usize, text: &str) {
        let length = text.len();
        self.check(
            length <= longest,
            path,
            format!("is {length} characters long; write at most {longest}"),
        );
    }

    pub fn amounts(&mut self, path: &str, amounts: &ResourceList) {
        for (name, amount) in amounts {
            let at = format!("{path}[{name}]");
            self.check(
                !name.is_empty(),
                at.clone(),
                "has no name; write the name of a resource, for example cpu",
            );
            if amount.is_negative() {
                self.add(at, format!("{amount} is negative; write 0 or more"));
            } else if amount.is_capped() {
                let message = format!("is larger than {}, the largest amount there is", i64::MAX);
                self.add(at, format!("{message}; write a smaller one"));
            }
        }
    }

    /// Every amount is at most the bound for the same resource; a resource without a bound is
    /// unlimited.
    fn within(
        &mut self,
        path: &str,
        amounts: &ResourceList,
        bound_name: &str,
        bounds: &ResourceList,
    ) {
        for (name, amount) in amounts {
            if let Some(bound) = bounds.get(name).filter(|bound| amount > bound) {
                self.add(
                    format!("{path}[{name}]"),
                    format!("{amount} is more than {bound} in {bound_name}; lower it or raise {bound_name}"),
                );
            }
        }
    }

    pub fn label_selector(&mut self, path: &str, selector: &LabelSelector) {
        for (index, requirement) in selector.match_expressions.iter().enumerate() {
            self.requirement(&format!("{path}.matchExpressions[{index}]"), requirement, false);
        }
    }

    fn requirement(&mut self, path: &str, requirement: &Requirement, on_node: bool) {
        let Requirement { key, operator, values } = requirement;
        self.check(!key.is_empty(), format!("{path}.key"), "is missing; write the key of a label");
        let at = format!("{path}.values");
        match operator.as_str() {
            "In" | "NotIn" => {
                self.check(
                    !values.is_empty(),
                    at,
                    format!("is empty; {operator} needs at least one value"),
                );
            }
            "Exists" | "DoesNotExist" => {
                self.check(
                    values.is_empty(),
                    at,
                    format!("must be left out; {operator} takes no values"),
                );
            }
            "Gt" | "Lt" if on_node => {
                let is_number = matches!(&values[..], [bound] if bound.parse::<i64>().is_ok());
                self.check(
                    is_number,
                    at,
                    format!("{operator} needs exactly one whole number, in quotes"),
                );
            }
            _ if on_node => {
                let known = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
                self.one_of(format!("{path}.operator"), operator, &known);
            }
            _ => self.one_of(
                format!("{path}.operator"),
                operator,
                &["In", "NotIn", "Exists", "DoesNotExist"],
            ),
        }
    }

    /// The annotations of plugin `tdm`, on pods and groups alike.
    fn revocable(&mut self, meta: &Meta) {
        let zone = meta.annotations.get(keys::REVOCABLE_ZONE).filter(|zone| !zone.is_empty());
        if let Some(zone) = zone.filter(|zone| *zone != "*") {
            let at = format!("metadata.annotations[{}]", keys::REVOCABLE_ZONE);
            self.add(at, format!("{zone:?} names a zone; write \"*\", which means all of them"));
        }
        for key in [keys::JDB_MIN_AVAILABLE, keys::JDB_MAX_UNAVAILABLE] {
            if let Some(Err(error)) = meta.annotations.get(key).map(|text| Portion::parse(text)) {
                self.add(format!("metadata.annotations[{key}]"), error.to_string());
            }
        }
    }

    /// Annotations that hold a point in time, of pods and groups alike.
    fn times(&mut self, meta: &Meta) {
        for key in [keys::LAST_CHECKPOINT_TIME, keys::EXPECTED_END_TIME, keys::STALE_SINCE] {
            if let Some(Err(error)) = meta.annotations.get(key).map(|text| Time::parse(text)) {
                self.add(format!("metadata.annotations[{key}]"), error.to_string());
            }
        }
    }

    /// Annotations and labels that hold a duration, of pods and groups alike.
    fn durations(&mut self, meta: &Meta) {
        let [sla, sla_short] = keys::SLA_WAITING_TIME;
        let annotations = [
            keys::RUNNING_ESTIMATE,
            keys::SIMULATED_DURATION,
            keys::SIMULATED_FINALIZER,
            keys::COOLDOWN_TIME,
            sla,
            sla_short,
        ];
        let annotations = annotations.map(|key| (key, "annotations", meta.annotations.get(key)));
        let label = (keys::COOLDOWN_TIME, "labels", meta.labels.get(keys::COOLDOWN_TIME));
        for (key, place, text) in annotations.into_iter().chain([label]) {
            self.duration(format!("metadata.{place}[{key}]"), text);
        }
    }

    /// How pods end in the embedded cluster.
    fn exits(&mut self, meta: &Meta) {
        let text = meta.annotations.get(keys::SIMULATED_EXIT);
        if let Some(error) = text.and_then(|text| crate::simulated::exit_error(text)) {
            self.add(format!("metadata.annotations[{}]", keys::SIMULATED_EXIT), error.to_string());
        }
    }

    /// How long gangs of a queue run at least.
    fn min_runtimes(&mut self, meta: &Meta) {
        for key in [keys::PREEMPT_MIN_RUNTIME, keys::RECLAIM_MIN_RUNTIME] {
            self.duration(format!("metadata.annotations[{key}]"), meta.annotations.get(key));
        }
    }

    fn duration(&mut self, at: String, text: Option<&String>) {
        let Some(text) = text else { return };
        match parse_duration(text) {
            Ok(milliseconds) if milliseconds < 0 => {
                self.add(at, format!("{text:?} is negative; write 0s or more"));
            }
            Ok(_) => {}
            Err(error) => self.add(at, error.to_string()),
        }
    }
}

fn is_dns_label(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LABEL_LENGTH).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Whether it can be the name of an object.
pub fn is_dns_subdomain(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(allowed)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.len() <= NAME_LENGTH && name.split('.').all(is_part)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde::Deserialize;

    use super::*;

    /// The problems of the object that the YAML describes, one line each.
    pub fn problems<T: for<'de> Deserialize<'de>>(
        text: &str,
        validate: fn(&T) -> Vec<Problem>,
    ) -> Vec<String> {
        let tree = muster_yaml::parse(text).expect("valid YAML");
        let object = T::deserialize(&tree).unwrap_or_else(|error| panic!("{error}"));
        validate(&object)
            .iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect()
    }

    #[test]
    fn names_follow_dns() {
        for name in ["a", "a.b", "a-b.c1", "0", &"a".repeat(253)] {
            assert!(is_dns_subdomain(name), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "é", "a b", &"a".repeat(254)]
        {
            assert!(!is_dns_subdomain(name), "{name}");
        }
        assert!(
            is_dns_label("kube-system") && !is_dns_label("a.b") && !is_dns_label(&"a".repeat(64))
        );
    }
}
