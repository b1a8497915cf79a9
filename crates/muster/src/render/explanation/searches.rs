//! The nominations of a starving gang, and the evictions that could make room for it.

use std::collections::BTreeMap;

use muster_engine::explain::{counted, grouped};
use muster_facts::{GangFacts, NodeTrial, NominationFacts, SearchFacts};

use super::Page;
use crate::render::text::{BOLD, DIM, GOOD, cut_middle, styled, width};

/// How many pods are named on a node.
const PODS: usize = 4;
/// How many nominations are shown.
const NOMINATIONS: usize = 10;

impl Page {
    pub(super) fn nominations(&mut self, gang: &GangFacts) {
        if gang.nominations.is_empty() {
            return;
        }
        self.line("");
        self.line(&styled(BOLD, "nominations"));
        let space = space_of(gang);
        gang.nominations
            .iter()
            .take(NOMINATIONS)
            .for_each(|nomination| self.nomination(nomination, space));
        let more = gang.nominations.len().saturating_sub(NOMINATIONS);
        if more > 0 {
            self.line(&styled(
                DIM,
                format!("  … {} more, use -o json", counted(more as u64, "pod")),
            ));
        }
    }

    pub(super) fn searches(&mut self, gang: &GangFacts) {
        if gang.searches.is_empty() {
            return;
        }
        self.line("");
        self.line(&styled(BOLD, "evictions that could make room"));
        gang.searches.iter().for_each(|search| self.search(search, space_of(gang)));
    }

    /// "urgent-0 on node-a; pods were evicted for it", and the pods that are still there.
    fn nomination(&mut self, nomination: &NominationFacts, space: &str) {
        let made = if nomination.evicted { "; pods were evicted for it" } else { "" };
        let since =
            nomination.since.as_ref().map_or(String::new(), |since| format!(" since {since}"));
        let name = short(&nomination.pod, space);
        let text = format!("{name} on {}{since}{made}", nomination.node);
        for (at, text) in self.screen.beside(4).wrap(&text).iter().enumerate() {
            self.line(&format!("{}{text}", if at == 0 { "  " } else { "    " }));
        }
        if nomination.leaving.is_empty() {
            self.line(
                "    no pod is terminating there: it waits for the rest of its gang, or for its queue",
            );
        }
        for leaving in nomination.leaving.iter().take(PODS) {
            let gang = leaving.gang.as_ref().map_or("another scheduler", |gang| short(gang, space));
            let until = match (&leaving.until, leaving.grace_seconds) {
                (Some(until), Some(grace)) => format!("gone by {until}, grace {grace}s"),
                _ if leaving.deleted => "being deleted".to_owned(),
                _ => "evicted".to_owned(),
            };
            let text = format!("{} of {gang} is terminating: {until}", short(&leaving.pod, space));
            self.line(&format!("    {}", self.screen.beside(4).cut(&text)));
        }
        let more = nomination.leaving.len().saturating_sub(PODS);
        if more > 0 {
            self.line(&styled(DIM, format!("    … {} more", counted(more as u64, "pod"))));
        }
    }

    /// Pod by pod, the nodes on which evictions could make room for it; or domain by domain for the
    /// whole gang.
    fn search(&mut self, search: &SearchFacts, space: &str) {
        let found = format!(
            "{} of {} would be placed",
            search.placed,
            counted(search.wanted as u64, "pod")
        );
        self.entry(&label(search.action), &found);
        self.passes(search, space);
        for pod in &search.pods {
            let name = short(&pod.pod, space);
            let text = match (&pod.node, &pod.reason) {
                (Some(node), _) => format!("for {name}, {node} is cheapest:"),
                (None, Some(reason)) if pod.nodes.is_empty() => {
                    format!("for {name}, no node: {reason}")
                }
                (None, _) => format!("for {name}, no node would have enough room:"),
            };
            self.entry("", &text);
            let trials = pod.nodes.iter();
            self.trials(
                trials
                    .map(|trial| (&*trial.node, trial.chosen, trial_text(trial, space)))
                    .collect(),
            );
            let rest = [
                (pod.more_nodes, "more, use --all"),
                (pod.without_candidates, "with no pod that may be evicted"),
                (pod.closed_nodes, "closed to it, even without other pods"),
            ];
            for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
                self.line(&styled(DIM, format!("    {} {what}", counted(count as u64, "node"))));
            }
        }
    }

    /// Nodes or domains, each with its trial; an arrow before the chosen one.
    pub(super) fn trials(&mut self, trials: Vec<(&str, bool, String)>) {
        let most = self.screen.name();
        let longest = trials.iter().map(|(place, ..)| width(place)).max().unwrap_or(0).min(most);
        for (place, chosen, text) in trials {
            let mark = if chosen { styled(GOOD, "→") } else { " ".to_owned() };
            let place = format!("{:<longest$}", cut_middle(place, most));
            for (at, text) in self.screen.beside(6 + longest).wrap(&text).iter().enumerate() {
                match at {
                    0 => self.line(&format!("  {mark} {}  {text}", styled(BOLD, &place))),
                    _ => self.line(&format!("{}{text}", " ".repeat(longest + 6))),
                }
            }
        }
    }
}

/// Beside the text there is only room for a short name.
fn label(action: &str) -> String {
    format!("  {}", action.strip_prefix("gang").unwrap_or(action))
}

fn space_of(gang: &GangFacts) -> &str {
    gang.line.name.split_once('/').map_or("", |(space, _)| space)
}

/// The trial of a node: "evict search-1, search-0: highest priority 10, sum 20".
fn trial_text(trial: &NodeTrial, space: &str) -> String {
    let pods = |pods: Vec<&str>| {
        let shown: Vec<&str> = pods.iter().take(PODS).map(|pod| short(pod, space)).collect();
        let more = pods.len().saturating_sub(PODS);
        let more =
            if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    let leave: Vec<&str> = trial.leave.iter().map(|victim| victim.pod.as_str()).collect();
    let mut text = match (&trial.cost, &trial.why) {
        (Some(cost), _) => {
            let what = if leave.is_empty() {
                "no eviction needed".to_owned()
            } else {
                format!("evict {}", pods(leave))
            };
            let budgets = (cost.against_budgets > 0)
                .then(|| format!("{} against budgets", cost.against_budgets));
            let price = cost.price.map(|price| format!("price {price}"));
            let highest =
                cost.highest_priority.map(|highest| format!("highest priority {highest}"));
            let sum = (cost.pods > 1).then(|| format!("sum {}", cost.sum_of_priorities));
            let keys: Vec<String> = [budgets, price, highest, sum].into_iter().flatten().collect();
            if keys.is_empty() { what } else { format!("{what}: {}", keys.join(", ")) }
        }
        (None, Some(why)) if leave.is_empty() => why.clone(),
        (None, why) => {
            let why = why.as_deref().unwrap_or_default();
            format!("evicting {} is not enough: {why}", pods(leave))
        }
    };
    if !trial.released.is_empty() {
        let lost = pods(trial.released.iter().map(String::as_str).collect());
        text += &format!("; the nominations of {lost} are released");
    }
    let mut rules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kept in &trial.kept {
        rules.entry(kept.rule).or_default().push(&kept.pod);
    }
    for (rule, kept) in rules {
        text += &format!("; {} kept by {rule}", pods(kept));
    }
    text
}

/// Without the namespace, if it is `space`.
pub(super) fn short<'n>(name: &'n str, space: &str) -> &'n str {
    name.strip_prefix(space).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name)
}
