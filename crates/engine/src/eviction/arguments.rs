//! Arguments that the evicting actions share.

use crate::settings::argument::Argument;

pub const EVICTION_METHOD: Argument = Argument {
    name: "evictionMethod",
    default: "eviction",
    meaning: "eviction: through the Eviction API, no PodDisruptionBudget is broken; delete: pods \
              are deleted, and budgets are broken where no other pods could make room",
};
pub const MAX_DOMAINS: Argument = Argument {
    name: "maxDomains",
    default: "8",
    meaning: "modes gang and scenario: how many domains that can be cleared are tried for a gang; \
              in mode scenario and for consolidate per cycle, and the next cycle tries the others",
};
pub const ALLOW_WHOLE_BUNDLE: Argument = Argument {
    name: "allowWholeBundle",
    default: "true",
    meaning: "modes gang and scenario: gangs may be broken",
};
pub const EVICT_BROKEN_GANG: Argument = Argument {
    name: "evictBrokenGang",
    default: "false",
    meaning: "modes gang and scenario: the remaining pods of a broken gang are evicted too",
};
pub const ROI_THRESHOLD: Argument = Argument {
    name: "roiThreshold",
    default: "0.05",
    meaning: "modes gang and scenario: returns that differ by no more than this are equal",
};
pub const ORDER: Argument = Argument {
    name: "order",
    default: "safe-first",
    meaning: "modes gang and scenario, preempt: safe-first evicts pods that break no gang first, \
              priority-first evicts the gang of lowest priority first",
};
pub const MODE: Argument = Argument {
    name: "mode",
    default: "task",
    meaning: "task: pod by pod, as few as needed on the cheapest node; gang: pods above the \
              minimum of gangs, then whole gangs; scenario: the same in the order of fair shares \
              and priorities, and victims are moved to other nodes if there is room",
};

pub const ALLOW_CONSOLIDATING_RECLAIM: Argument = Argument {
    name: "allowConsolidatingReclaim",
    default: "true",
    meaning: "scenario: pods that are moved to another node in the same plan do not count as \
              taken from their queue",
};
pub const MAX_STEPS_PER_GANG: Argument = Argument {
    name: "maxStepsPerGang",
    default: "1000000",
    meaning: "scenario: how many moves of pods are tried for a gang in a cycle; the next cycle \
              continues, with twice as many if one domain took them all",
};
pub const MAX_STEPS: Argument = Argument {
    name: "maxSteps",
    default: "4000000",
    meaning: "scenario: the same for all gangs of a cycle",
};

/// The arguments of actions that only evict bundles of gangs.
pub const BY_GANG: &[Argument] =
    &[MAX_DOMAINS, ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, ROI_THRESHOLD, ORDER, EVICTION_METHOD];
