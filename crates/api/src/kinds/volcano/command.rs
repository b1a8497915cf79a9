//! The Command: tells a Job or a Queue what to do, once.

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{Meta, OwnerReference, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, Problems};

/// Tells a Job or a Queue what to do, and is deleted then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    pub metadata: Meta,
    /// AbortJob, ResumeJob, RestartJob, TerminateJob or CompleteJob for a Job; OpenQueue or
    /// CloseQueue for a Queue.
    #[serde(skip_serializing_if = "is_default")]
    pub action: String,
    /// The Job or Queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<OwnerReference>,
    /// One word for why the command was given.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// Why the command was given.
    #[serde(skip_serializing_if = "is_default")]
    pub message: String,
}

impl Contents for Command {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.meta(&self.metadata);
        let known = [
            "AbortJob",
            "ResumeJob",
            "RestartJob",
            "TerminateJob",
            "CompleteJob",
            "OpenQueue",
            "CloseQueue",
        ];
        problems.one_of("action", &self.action, &known);
        let named = self.target.as_ref().is_some_and(|target| !target.name.is_empty());
        problems.check(named, "target.name", "is missing; write the name of a Job or a Queue");
        problems.0
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let Command { metadata, action: _, target, reason, message } = self;
        walk.meta(Class::Work, metadata);
        if let Some(target) = target {
            let class = if target.kind == "Queue" { Class::Queue } else { Class::Work };
            walk.name(class, &mut target.name);
            target.uid.clear();
        }
        reason.clear();
        message.clear();
    }
}
