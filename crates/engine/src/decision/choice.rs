//! What decided between two choices.

use crate::base::ids::{DomainId, GangId, NodeId};

/// A line of the table of what decides between victims (docs/evictions.md). A line is asked only
/// where all before it are equal.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Evictions beyond what PodDisruptionBudgets allow: the fewest.
    Budgets,
    /// Whether a gang breaks.
    Breaks,
    /// How near the domain is.
    Tier,
    /// The highest priority that leaves.
    Priority,
    /// The queue that gives last of those that leave.
    Queue,
    /// The return of all that leaves.
    Return,
    /// The work that is lost, if a gang says when it last saved.
    LostWork,
    /// The gang that would be served last.
    ServedLast,
    /// The youngest gang.
    Youngest,
    /// The order or the price that a plugin says.
    Plugin,
    SumOfPriorities,
    Pods,
    /// How long the pods have run.
    TimeRun,
    /// How many pods move.
    Moves,
    /// All lines are equal: the place in the network tree, or the name.
    Place,
}

/// What would have been chosen next, and why it was not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NextChoice {
    pub choice: Choice,
    /// The line that decided.
    pub line: Line,
    /// The figure of the choice that was made, and that of the next, where the line has figures.
    pub figures: (i64, i64),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Gang(GangId),
    Domain(DomainId),
    Node(NodeId),
}
