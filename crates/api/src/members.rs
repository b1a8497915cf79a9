//! Which nodes or HyperNodes a member selector selects, compiled once.

use crate::MemberSelector;
use crate::core::{LabelSelector, Labels};
use muster_goregex::{GoRegex, GoRegexError};

#[derive(Clone, Debug)]
pub enum Matcher {
    Exact(String),
    Pattern(GoRegex),
    Labels(LabelSelector),
    /// Selects nothing, or sets more than one of the three.
    Nothing,
}

impl Matcher {
    /// Fails if the pattern is invalid.
    pub fn compile(selector: &MemberSelector) -> Result<Matcher, GoRegexError> {
        let MemberSelector { exact_match, regex_match, label_match } = selector;
        match (exact_match, regex_match, label_match) {
            (Some(exact), None, None) => Ok(Matcher::Exact(exact.name.clone())),
            (None, Some(pattern), None) => GoRegex::new(&pattern.pattern).map(Matcher::Pattern),
            (None, None, Some(labels)) => Ok(Matcher::Labels(labels.clone())),
            _ => Ok(Matcher::Nothing),
        }
    }

    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        match self {
            Matcher::Exact(exact) => exact == name,
            Matcher::Pattern(pattern) => pattern.is_match(name),
            Matcher::Labels(selector) => selector.matches(labels),
            Matcher::Nothing => false,
        }
    }
}
