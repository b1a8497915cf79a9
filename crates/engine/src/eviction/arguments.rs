//! The arguments that the actions which take room have in common.

use crate::settings::argument::Argument;

pub const EVICTION_METHOD: Argument = Argument {
    name: "evictionMethod",
    default: "eviction",
    meaning: "eviction: through the Eviction API, no PodDisruptionBudget is broken; delete: pods are deleted, and budgets \
              are broken where nobody else could make room",
};
pub const MAX_DOMAINS: Argument = Argument {
    name: "maxDomains",
    default: "8",
    meaning: "whole gangs: how many domains are tried for a gang; in the mode scenario and for consolidate in a cycle, and the next one \
              goes on with the others",
};
pub const ALLOW_WHOLE_BUNDLE: Argument = Argument {
    name: "allowWholeBundle",
    default: "true",
    meaning: "whole gangs: gangs may be broken",
};
pub const EVICT_BROKEN_GANG: Argument = Argument {
    name: "evictBrokenGang",
    default: "false",
    meaning: "whole gangs: what is left elsewhere of a gang that is broken leaves too",
};
pub const ROI_THRESHOLD: Argument = Argument {
    name: "roiThreshold",
    default: "0.05",
    meaning: "whole gangs: returns that differ by no more than this are equal",
};
pub const ORDER: Argument = Argument {
    name: "order",
    default: "safe-first",
    meaning: "whole gangs, preempt: safe-first takes what breaks nobody before anything else, priority-first goes by the \
              gang's priority first",
};
pub const MODE: Argument = Argument {
    name: "mode",
    default: "task",
    meaning: "task: pod by pod, exactly as many as needed on the cheapest node; gang: by what gangs can lose, then whole gangs; \
              scenario: the same in the order of queues and priorities by fair shares, with whoever leaves placed elsewhere if \
              there is room",
};

pub const ALLOW_CONSOLIDATING_RECLAIM: Argument = Argument {
    name: "allowConsolidatingReclaim",
    default: "true",
    meaning: "scenario: who leaves and has another place in the same plan does not count as taken from its queue",
};
pub const MAX_STEPS_PER_GANG: Argument = Argument {
    name: "maxStepsPerGang",
    default: "1000000",
    meaning: "scenario: how many moves of pods are tried for a gang in a cycle; what was not attempted is said, and goes on \
              in the next one, with twice as many where they ended within one domain",
};
pub const MAX_STEPS: Argument = Argument {
    name: "maxSteps",
    default: "4000000",
    meaning: "scenario: the same for all gangs of a cycle",
};

/// Those of actions that take whole gangs and nothing else.
pub const BY_GANG: &[Argument] =
    &[MAX_DOMAINS, ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, ROI_THRESHOLD, ORDER, EVICTION_METHOD];
