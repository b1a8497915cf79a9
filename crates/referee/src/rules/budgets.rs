//! PodDisruptionBudgets.

use crate::cluster::Disruptions;
use crate::rules::Rule;
use crate::timeline::Story;

pub const BUDGETS: Rule = Rule {
    name: "budgets",
    says: "With the plugin pdb no more pods of a budget leave in a cycle than it allows, counted \
           over the whole plan, and a move counts as an eviction.",
    broken: budgets,
};

fn budgets(story: &Story) -> Vec<(usize, String)> {
    let mut broken = Vec::new();
    for moment in &story.moments {
        for budget in &story.cluster().budgets {
            let covers = |pod: &str| story.pod(pod).is_some_and(|pod| budget.covers(pod));
            let leaving: Vec<_> = moment.evictions.iter().filter(|one| covers(&one.pod)).collect();
            // An action that budgets do not hold may have come after one that kept them.
            let kept = leaving.iter().all(|one| story.case.config.keeps_budgets(&one.action));
            if leaving.is_empty() || !kept {
                continue;
            }
            let up = moment.staying().filter(|(pod, _)| covers(pod)).count();
            let waiting = moment.waiting.iter().filter(|pod| covers(pod)).count();
            let all = moment.placed.keys().filter(|pod| covers(pod)).count() + waiting;
            let least = match budget.limit {
                Disruptions::MinAvailable(count) => count,
                Disruptions::MaxUnavailable(count) => all.saturating_sub(count),
            };
            if up < least {
                let pods: Vec<String> =
                    leaving.iter().map(|one| format!("{} ({})", one.pod, one.action)).collect();
                let text = format!(
                    "budget {} is left {up} of {least} pods by {}",
                    budget.name,
                    pods.join(", ")
                );
                broken.push((moment.cycle, text));
            }
        }
    }
    broken
}
