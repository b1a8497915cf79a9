//! What must hold for every run. Each rule is derived from the manifests and the output alone,
//! slowly and obviously; none knows how the scheduler decides.

mod binds;
mod breaking;
mod budgets;
pub mod choice;
pub mod keeping;
mod purpose;
pub mod quotas;
mod sums;
mod victims;

use crate::timeline::Story;

#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: &'static str,
    pub cycle: usize,
    pub text: String,
}

pub struct Rule {
    pub name: &'static str,
    /// The rule in one sentence.
    pub says: &'static str,
    pub broken: fn(&Story) -> Vec<(usize, String)>,
}

/// All rules.
pub const RULES: &[Rule] = &[
    sums::ADDS_UP,
    sums::NODES,
    sums::NOMINATIONS_FIT,
    binds::MINIMUM,
    binds::TOPOLOGY,
    binds::NODE_TAKES_POD,
    binds::POD_RULES,
    quotas::CAPABILITY,
    victims::PROTECTED,
    victims::PREEMPT,
    victims::RECLAIM,
    victims::GUARANTEE,
    budgets::BUDGETS,
    breaking::WHOLE,
    breaking::RUN_TIME,
    breaking::STALE,
    purpose::BENEFICIARY,
    purpose::NEEDED,
    keeping::NO_BIND_IN_VAIN,
    keeping::NOMINATED_ROOM,
    choice::CHOICE,
    choice::REFUSAL_TOLD,
];

/// What a run breaks.
pub fn violations(story: &Story) -> Vec<Violation> {
    let of = |rule: &'static Rule| {
        let broken = (rule.broken)(story).into_iter();
        broken.map(|(cycle, text)| Violation { rule: rule.name, cycle, text })
    };
    RULES.iter().flat_map(of).collect()
}
