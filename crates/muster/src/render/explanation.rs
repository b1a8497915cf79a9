//! An explanation in a few lines.

use std::collections::BTreeMap;
use std::io::Write;

use muster_engine::explain::{counted, duration, grouped};
use muster_engine::model::domains::ROOT_NAME;
use muster_sim::report::{NodesLine, ReasonLine};

use super::gangs::phase_style;
use super::queues::scarcity;
use super::text::{BAD, BOLD, DIM, GOOD, WAITS, bar, cut_end, cut_middle, styled, width, wrap};
use crate::commands::explain::{
    ClaimFacts, ClosestDomain, Explanation, GangFacts, NodeTrial, PodFacts, PromiseFacts, QueueFacts, Subject,
};
use crate::failure::Failure;

const COLUMNS: usize = 80;
/// The column in which the text starts.
const MARGIN: usize = 12;
const BAR: usize = 12;
/// So many pods are named on a node.
const PODS: usize = 4;
/// So many promises are shown.
const PROMISES: usize = 10;

pub fn print(explanation: &Explanation) -> Result<(), Failure> {
    let mut page = Page::default();
    match &explanation.subject {
        Subject::Pod(pod) => page.pod(pod),
        Subject::Gang(gang) => page.gang(gang),
        Subject::Queue(queue) => page.queue(queue),
    }
    let mut out = anstream::stdout();
    out.write_all(page.text.as_bytes())?;
    Ok(out.flush()?)
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// A label in the margin and text beside it.
    fn entry(&mut self, label: &str, text: &str) {
        for (at, line) in wrap(text, COLUMNS - MARGIN).iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let space = " ".repeat(MARGIN - width(label));
            self.line(&format!("{}{space}{line}", styled(DIM, label)));
        }
    }

    fn pod(&mut self, pod: &PodFacts) {
        let on = pod.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        self.line(&format!(
            "{} is {}{on}",
            styled(BOLD, format!("pod {}", pod.name)),
            styled(phase_style(pod.state), pod.state)
        ));
        if let Some(since) = &pod.since {
            let ran = pod.running_ms.map(|ran| format!(" ({})", duration(ran))).unwrap_or_default();
            self.entry("since", &format!("{since}{ran}"));
        }
        if let Some(ends) = &pod.ends {
            self.entry("ends", &format!("{ends}, by its estimate"));
        }
        if pod.since.is_some() || pod.state == "Bound" {
            let text = match pod.protected_by {
                Some(rule) => format!("protected by {rule}"),
                None => "nothing protects it".to_owned(),
            };
            self.entry("eviction", &text);
        }
        match &pod.gang {
            Some(gang) => {
                self.line("");
                self.gang(gang);
            }
            None => self.entry("scheduler", "another one: here it only uses room"),
        }
    }

    fn gang(&mut self, gang: &GangFacts) {
        let line = &gang.line;
        let name = styled(BOLD, format!("gang {}", line.name));
        self.line(&format!("{name} is {}", styled(phase_style(&line.phase), &line.phase)));
        self.entry("queue", &format!("{}, priority {}", line.queue, line.priority));
        let mut counts = vec![format!("{} running", line.running), format!("{} pending", line.pending)];
        let rest = [
            (gang.gated, "gated"),
            (line.nominated, "promised a place"),
            (line.succeeded, "succeeded"),
            (line.failed, "failed"),
        ];
        counts.extend(
            rest.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        self.entry("pods", &format!("{}; starts with {}", counts.join(", "), line.min_member));
        for role in gang
            .roles
            .iter()
            .filter(|_| gang.roles.len() > 1 || gang.roles.iter().any(|role| role.min_member > 0))
        {
            let name = role.name.as_deref().unwrap_or("(no role)");
            let text = format!(
                "{name}: {} running, {} pending; starts with {}",
                role.running, role.pending, role.min_member
            );
            self.entry("role", &text);
        }
        if !gang.places.is_empty() {
            let places: Vec<String> =
                gang.places.iter().take(8).map(|(node, count)| format!("{node} ×{count}")).collect();
            let more = gang.places.len().saturating_sub(8);
            let more =
                if more > 0 { format!(", {} more", counted(more as u64, "node")) } else { String::new() };
            self.entry("on", &(places.join(", ") + &more));
        }
        if let (Some(since), Some(waited)) = (&gang.waiting_since, gang.waiting_ms) {
            self.entry("waits since", &format!("{since} ({})", duration(waited)));
        }
        if !line.reasons.is_empty() {
            self.line("");
            self.line(&styled(WAITS, "why it waits"));
            line.reasons.iter().for_each(|reason| self.reason(reason));
        }
        if !gang.closest.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "where it came closest"));
            let longest = gang.closest.iter().map(|node| width(&node.node)).max().unwrap_or(0).min(30);
            for node in &gang.closest {
                let name = format!("{:<longest$}", cut_middle(&node.node, 30));
                let lacks = if node.lacks.is_empty() {
                    "has room".to_owned()
                } else {
                    format!("lacks {}", amounts(&node.lacks))
                };
                self.line(&format!("  {name}  {}", cut_end(&lacks, COLUMNS - 4 - width(&name))));
            }
        }
        if !gang.closest_domains.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "the domains that came closest"));
            gang.closest_domains.iter().for_each(|domain| self.domain(domain));
        }
        let space = line.name.split_once('/').map_or("", |(space, _)| space);
        if !gang.promises.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "promised places"));
            gang.promises.iter().take(PROMISES).for_each(|promise| self.promise(promise, space));
            let more = gang.promises.len().saturating_sub(PROMISES);
            if more > 0 {
                self.line(&styled(DIM, format!("  … {} more, use -o json", counted(more as u64, "pod"))));
            }
        }
        if !gang.claims.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "who could make room"));
            gang.claims.iter().for_each(|claim| self.claim(claim, space));
        }
        if !gang.help.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "what would help"));
            for help in &gang.help {
                for (at, line) in wrap(help, COLUMNS - 4).iter().enumerate() {
                    self.line(&format!("  {} {line}", if at == 0 { "•" } else { " " }));
                }
            }
        }
    }

    /// "urgent-0 on node-a, for which others were asked to leave", and who is still there.
    fn promise(&mut self, promise: &PromiseFacts, space: &str) {
        let made = match promise.evicted {
            Some(true) => ", which others were asked to leave for it",
            Some(false) | None => "",
        };
        let name = short(&promise.pod, space);
        for (at, text) in wrap(&format!("{name} on {}{made}", promise.node), COLUMNS - 4).iter().enumerate() {
            self.line(&format!("{}{text}", if at == 0 { "  " } else { "    " }));
        }
        if promise.leaving.is_empty() {
            self.line("    nobody is leaving there: it waits for the rest of its gang, or for its queue");
        }
        for leaving in promise.leaving.iter().take(PODS) {
            let gang = leaving.gang.as_ref().map_or("another scheduler", |gang| short(gang, space));
            let until = match (&leaving.until, leaving.grace_seconds) {
                (Some(until), Some(grace)) => format!("gone by {until}, grace {grace}s"),
                _ if leaving.deleted => "being deleted".to_owned(),
                _ => "asked to leave".to_owned(),
            };
            let text = format!("{} of {gang} leaves: {until}", short(&leaving.pod, space));
            self.line(&format!("    {}", cut_end(&text, COLUMNS - 4)));
        }
        let more = promise.leaving.len().saturating_sub(PODS);
        if more > 0 {
            self.line(&styled(DIM, format!("    … {} more", counted(more as u64, "pod"))));
        }
    }

    fn claim(&mut self, claim: &ClaimFacts, space: &str) {
        let found = format!("{} of {} would get a place", claim.placed, counted(claim.wanted as u64, "pod"));
        self.entry(&format!("  {}", claim.action), &found);
        for pod in &claim.pods {
            let name = short(&pod.pod, space);
            let text = match (&pod.node, &pod.reason) {
                (Some(node), _) => format!("for {name}, {node} is cheapest:"),
                (None, Some(reason)) if pod.nodes.is_empty() => format!("for {name}, no node: {reason}"),
                (None, _) => format!("for {name}, no node would do:"),
            };
            self.entry("", &text);
            let longest = pod.nodes.iter().map(|trial| width(&trial.node)).max().unwrap_or(0).min(30);
            for trial in &pod.nodes {
                let mark = if trial.chosen { styled(GOOD, "→") } else { " ".to_owned() };
                let node = format!("{:<longest$}", cut_middle(&trial.node, 30));
                let lines = wrap(&trial_text(trial, space), COLUMNS - 6 - longest);
                for (at, text) in lines.iter().enumerate() {
                    match at {
                        0 => self.line(&format!("  {mark} {}  {text}", styled(BOLD, &node))),
                        _ => self.line(&format!("{}{text}", " ".repeat(longest + 6))),
                    }
                }
            }
            let rest = [
                (pod.more_nodes, "more, use --all"),
                (pod.nobody_nodes, "with nobody who may be asked to leave"),
                (pod.closed_nodes, "closed to it, whoever leaves"),
            ];
            for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
                self.line(&styled(DIM, format!("    {} {what}", counted(count as u64, "node"))));
            }
        }
    }

    fn domain(&mut self, near: &ClosestDomain) {
        let ClosestDomain { holds, wanted, resource, free, total, .. } = near;
        let name = if near.domain == ROOT_NAME { "the cluster" } else { &near.domain };
        let lacks = match &near.lacks {
            Some(lacks) => format!("lacks {lacks}"),
            None => "not where they fit".to_owned(),
        };
        let text = format!(
            "{name} (tier {}, {}): room for {holds} of {wanted}; {free} of {total} {resource} free, {lacks}",
            near.tier,
            counted(u64::from(near.nodes), "node")
        );
        for (at, line) in wrap(&text, COLUMNS - 4).iter().enumerate() {
            self.line(&format!("{}{line}", if at == 0 { "  " } else { "    " }));
        }
    }

    fn reason(&mut self, reason: &ReasonLine) {
        match &reason.nodes {
            None => self.entry(&format!("  {}", reason.stage), &reason.message),
            Some(nodes) => {
                let text = reason.message.split(": ").next().unwrap_or(&reason.message);
                let text = if nodes.unfit.is_empty() { &reason.message } else { text };
                self.entry(&format!("  {}", reason.stage), text);
                self.histogram(nodes);
            }
        }
    }

    fn histogram(&mut self, nodes: &NodesLine) {
        let count = |nodes: u32| grouped(u64::from(nodes));
        let digits = nodes.unfit.iter().map(|bar| width(&count(bar.nodes))).max().unwrap_or(1);
        for line in &nodes.unfit {
            let drawn = styled(BAD, bar(u64::from(line.nodes), u64::from(nodes.total), BAR));
            let room = COLUMNS - MARGIN - BAR - digits - 2;
            let text = cut_end(&line.why, room);
            self.line(&format!("{}{drawn} {:>digits$} {text}", " ".repeat(MARGIN), count(line.nodes)));
        }
    }

    fn queue(&mut self, queue: &QueueFacts) {
        let line = &queue.line;
        let style = if queue.state == "Open" { phase_style("Running") } else { BAD };
        self.line(&format!(
            "{} is {}",
            styled(BOLD, format!("queue {}", line.name)),
            styled(style, &queue.state)
        ));
        let percent = (line.share * 100.0).round();
        let of = if line.deserved.is_empty() { "of the cluster" } else { "of what it deserves" };
        self.entry("share", &format!("{} {percent:.0}% {of}", bar(percent as u64, 100, BAR)));
        self.entry(
            "order",
            &format!("{}, weight {}, priority {}", queue.strategy, line.weight, queue.priority),
        );
        self.entry("gangs", &format!("{} running, {} waiting", line.running, queue.waiting_in_all));
        if !queue.children.is_empty() {
            self.entry("above", &queue.children.join(", "));
        }
        self.entry("has", &or_nothing(&line.allocated));
        if !line.deserved.is_empty() {
            self.entry("deserves", &or_nothing(&line.deserved));
        }
        for level in &queue.lineage {
            let limits = [("at most", &level.capability), ("kept for it", &level.guarantee)];
            for (what, limit) in limits.into_iter().filter(|(_, limit)| !limit.is_empty()) {
                let whose = if level.name == line.name {
                    String::new()
                } else {
                    format!(" ({}, which has {})", level.name, or_nothing(&level.allocated))
                };
                self.entry(what, &format!("{}{whose}", or_nothing(limit)));
            }
        }
        if !queue.waiting.is_empty() {
            self.line("");
            self.line(&styled(WAITS, "who waits, first in line first"));
            let longest = queue.waiting.iter().map(|wait| width(&wait.gang)).max().unwrap_or(0).min(30);
            for wait in &queue.waiting {
                let name = format!("{:<longest$}", cut_middle(&wait.gang, 30));
                let text = cut_end(&wait.message, COLUMNS - 4 - width(&name));
                self.line(&format!("  {}  {}", styled(BOLD, name), text));
            }
            let more = queue.waiting_in_all - queue.waiting.len();
            if more > 0 {
                self.line(&styled(DIM, format!("  … {} more, use -o json", counted(more as u64, "gang"))));
            }
        }
    }
}

/// What would happen on a node: "search-1 and search-0 leave: highest priority 10, sum 20".
fn trial_text(trial: &NodeTrial, space: &str) -> String {
    let pods = |pods: Vec<&str>| {
        let shown: Vec<&str> = pods.iter().take(PODS).map(|pod| short(pod, space)).collect();
        let more = pods.len().saturating_sub(PODS);
        let more = if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    let leave: Vec<&str> = trial.leave.iter().map(|victim| victim.pod.as_str()).collect();
    let verb = if leave.len() == 1 { "leaves" } else { "leave" };
    let mut text = match (&trial.cost, &trial.why) {
        (Some(cost), _) => {
            let who =
                if leave.is_empty() { "nobody leaves".to_owned() } else { format!("{} {verb}", pods(leave)) };
            let price = cost.price.map(|price| format!("price {price}"));
            let highest = cost.highest_priority.map(|highest| format!("highest priority {highest}"));
            let sum = (cost.pods > 1).then(|| format!("sum {}", cost.sum_of_priorities));
            let keys: Vec<String> = [price, highest, sum].into_iter().flatten().collect();
            if keys.is_empty() { who } else { format!("{who}: {}", keys.join(", ")) }
        }
        (None, Some(why)) if leave.is_empty() => why.clone(),
        (None, why) => format!("if {} {verb}: {}", pods(leave), why.as_deref().unwrap_or_default()),
    };
    if !trial.unpromised.is_empty() {
        let lost = pods(trial.unpromised.iter().map(String::as_str).collect());
        text += &format!("; the promises of {lost} are taken back");
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

/// Without the namespace, if it is this one.
fn short<'n>(name: &'n str, space: &str) -> &'n str {
    name.strip_prefix(space).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name)
}

fn amounts(amounts: &BTreeMap<String, String>) -> String {
    let mut named: Vec<(&String, &String)> = amounts.iter().filter(|(name, _)| *name != "pods").collect();
    named.sort_by_key(|(name, _)| scarcity(name));
    let parts: Vec<String> = named.iter().map(|(name, amount)| format!("{amount} {name}")).collect();
    parts.join(", ")
}

fn or_nothing(of: &BTreeMap<String, String>) -> String {
    if of.is_empty() { "nothing".to_owned() } else { amounts(of) }
}
