//! An explanation in a few lines.

mod gang_searches;
mod searches;

use std::collections::BTreeMap;

use muster_engine::explain::{counted, duration, grouped};
use muster_engine::model::domains::ROOT_NAME;
use muster_facts::{
    ClosestDomain, Explanation, GangFacts, NodesLine, PodFacts, QueueFacts, ReasonLine, ShareOf,
    Subject, TakesBack,
};

use super::gangs::phase_style;
use super::queues::scarcity;
use super::screen::Screen;
use super::text::{BAD, BOLD, DIM, WAITS, bar, cut_middle, readable, styled, width};
use crate::failure::Failure;
use crate::terminal;

/// The column in which the text starts.
const MARGIN: usize = 12;
const BAR: usize = 12;

pub fn print(explanation: &Explanation) -> Result<(), Failure> {
    let mut page = Page::new(Screen::of_output());
    match &explanation.subject {
        Subject::Pod(pod) => page.pod(pod),
        Subject::Gang(gang) => page.gang(gang),
        Subject::Queue(queue) => page.queue(queue),
    }
    Ok(terminal::print(&page.text)?)
}

struct Page {
    text: String,
    screen: Screen,
}

impl Page {
    fn new(screen: Screen) -> Page {
        Page { text: String::new(), screen }
    }

    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// A label in the margin and text beside it; below it, if the label is too long for that.
    fn entry(&mut self, label: &str, text: &str) {
        let beside = width(label) < MARGIN;
        if !beside {
            self.line(&styled(DIM, label));
        }
        for (at, line) in self.screen.beside(MARGIN).wrap(text).iter().enumerate() {
            let label = if at == 0 && beside { label } else { "" };
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
            None => self.entry("scheduler", "another one: here its pod only uses room"),
        }
    }

    fn gang(&mut self, gang: &GangFacts) {
        let line = &gang.line;
        let name = styled(BOLD, format!("gang {}", line.name));
        self.line(&format!("{name} is {}", styled(phase_style(&line.phase), &line.phase)));
        self.entry("queue", &format!("{}, priority {}", line.queue, line.priority));
        let mut counts = vec![running(line.running, gang.starting)];
        counts.push(format!("{} pending", line.pending));
        let rest = [
            (gang.gated, "gated"),
            (line.nominated, "nominated"),
            (line.terminating, "terminating"),
            (line.succeeded, "succeeded"),
            (line.failed, "failed"),
        ];
        counts.extend(
            rest.iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}")),
        );
        self.entry("pods", &format!("{}; starts with {}", counts.join(", "), line.min_member));
        for role in gang
            .roles
            .iter()
            .filter(|_| gang.roles.len() > 1 || gang.roles.iter().any(|role| role.min_member > 0))
        {
            let name = role.name.as_deref().unwrap_or("(no role)");
            let text = format!(
                "{name}: {}, {} pending; starts with {}",
                running(role.running, role.starting),
                role.pending,
                role.min_member
            );
            self.entry("role", &text);
        }
        if !gang.places.is_empty() {
            let places: Vec<String> = gang
                .places
                .iter()
                .take(8)
                .map(|(node, count)| format!("{node} ×{count}"))
                .collect();
            let more = gang.places.len().saturating_sub(8);
            let more = if more > 0 {
                format!(", {} more", counted(more as u64, "node"))
            } else {
                String::new()
            };
            self.entry("on", &(places.join(", ") + &more));
        }
        if let (Some(since), Some(waited)) = (&gang.waiting_since, gang.waiting_ms) {
            self.entry("waits since", &format!("{since} ({})", duration(waited)));
        }
        if let Some(stale) = &gang.stale {
            self.entry(
                "stale since",
                &format!("{} ({}): {}", stale.since, duration(stale.stale_ms), stale.lacks),
            );
            self.entry("", &stale.fate);
        }
        self.why_it_waits(gang);
        self.nominations(gang);
        self.searches(gang);
        if !gang.help.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "what would help"));
            for help in &gang.help {
                for (at, line) in self.screen.beside(4).wrap(help).iter().enumerate() {
                    self.line(&format!("  {} {line}", if at == 0 { "•" } else { " " }));
                }
            }
        }
    }

    fn why_it_waits(&mut self, gang: &GangFacts) {
        let line = &gang.line;
        if !line.reasons.is_empty() {
            self.line("");
            self.line(&styled(WAITS, "why it waits"));
            line.reasons.iter().for_each(|reason| self.reason(reason));
        }
        if !gang.closest.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "where it came closest"));
            let most = self.screen.name();
            let longest =
                gang.closest.iter().map(|node| width(&node.node)).max().unwrap_or(0).min(most);
            for node in &gang.closest {
                let name = format!("{:<longest$}", cut_middle(&node.node, most));
                let lacks = if node.lacks.is_empty() {
                    "has room".to_owned()
                } else {
                    format!("lacks {}", amounts(&node.lacks))
                };
                self.line(&format!(
                    "  {name}  {}",
                    self.screen.beside(4 + width(&name)).cut(&lacks)
                ));
            }
        }
        if !gang.closest_domains.is_empty() {
            self.line("");
            self.line(&styled(BOLD, "the domains that came closest"));
            gang.closest_domains.iter().for_each(|domain| self.domain(domain));
        }
    }

    fn domain(&mut self, near: &ClosestDomain) {
        let ClosestDomain { holds, wanted, resource, free, total, .. } = near;
        let name = if near.domain == ROOT_NAME { "the cluster" } else { &near.domain };
        let lacks = match &near.lacks {
            Some(lacks) => format!("lacks {lacks}"),
            None => "not in one piece".to_owned(),
        };
        let text = format!(
            "{name} (tier {}, {}): room for {holds} of {wanted}; {free} of {total} {resource} free, {lacks}",
            near.tier,
            counted(u64::from(near.nodes), "node")
        );
        for (at, line) in self.screen.beside(4).wrap(&text).iter().enumerate() {
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
            let text = self.screen.beside(MARGIN + BAR + digits + 2).cut(&line.why);
            self.line(&format!(
                "{}{drawn} {:>digits$} {text}",
                " ".repeat(MARGIN),
                count(line.nodes)
            ));
        }
    }

    /// Whether a queue takes back what it deserves, and from which queues.
    fn takes_back(&mut self, reclaim: &TakesBack) {
        let for_gang = format!("for {} by {}", reclaim.gang, reclaim.action);
        match (&reclaim.refused, &reclaim.from[..]) {
            (Some(refused), _) => self.entry("reclaims", &format!("nothing {for_gang}: {refused}")),
            (None, []) => {
                self.entry("reclaims", &format!("nothing {for_gang}: no queue uses too much"))
            }
            (None, from) => self.entry("reclaims", &format!("{for_gang} from {}", from.join(", "))),
        }
        for (queue, rule) in &reclaim.kept {
            self.entry("", &format!("not from {queue}: kept by {rule}"));
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
        let of = match line.share_of {
            ShareOf::FairShare => "of its fair share",
            ShareOf::Deserved => "of what it deserves",
            ShareOf::Cluster => "of the cluster",
        };
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
        if !line.nominated.is_empty() {
            self.entry("", &format!("{} of that nominated", or_nothing(&line.nominated)));
        }
        if !line.deserved.is_empty() {
            self.entry("deserves", &or_nothing(&line.deserved));
        }
        if let Some(fair) = &line.fair_share {
            self.entry("fair share", &or_nothing(fair));
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
        if let Some(takes_back) = &queue.takes_back {
            self.takes_back(takes_back);
        }
        if !queue.waiting.is_empty() {
            self.line("");
            self.line(&styled(WAITS, "waiting gangs, in order"));
            let most = self.screen.name();
            let longest =
                queue.waiting.iter().map(|wait| width(&wait.gang)).max().unwrap_or(0).min(most);
            for wait in &queue.waiting {
                let name = format!("{:<longest$}", cut_middle(&wait.gang, most));
                let text = self.screen.beside(4 + width(&name)).cut(&wait.message);
                self.line(&format!("  {}  {}", styled(BOLD, name), text));
            }
            let more = queue.waiting_in_all - queue.waiting.len();
            if more > 0 {
                self.line(&styled(
                    DIM,
                    format!("  … {} more, use -o json", counted(more as u64, "gang")),
                ));
            }
        }
    }
}

/// "3 running", or "1 running, 2 starting" while some are bound and not started yet.
fn running(all: u32, starting: u32) -> String {
    match starting {
        0 => format!("{all} running"),
        starting => format!("{} running, {starting} starting", all.saturating_sub(starting)),
    }
}

fn amounts(amounts: &BTreeMap<String, String>) -> String {
    let mut named: Vec<(&String, &String)> =
        amounts.iter().filter(|(name, _)| *name != "pods").collect();
    named.sort_by_key(|(name, _)| scarcity(name));
    let parts: Vec<String> =
        named.iter().map(|(name, amount)| format!("{} {name}", readable(amount))).collect();
    parts.join(", ")
}

fn or_nothing(of: &BTreeMap<String, String>) -> String {
    if of.is_empty() { "nothing".to_owned() } else { amounts(of) }
}
