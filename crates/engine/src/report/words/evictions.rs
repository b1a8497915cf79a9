//! Why pods are evicted, and the search for victims, as text.

use muster_text::{counted, duration};

use crate::base::ids::{PodId, QueueId, Symbol};
use crate::decision::cause::Cause;
use crate::decision::choice::{Choice, Line, NextChoice};
use crate::decision::counters::SearchRecord;
use crate::decision::decisions::{Decisions, Eviction};
use crate::decision::staleness::{Fate, Staleness};
use crate::model::Cluster;

/// Why a pod is evicted, in a sentence, and whether the API server will refuse that.
pub fn cause(cluster: &Cluster, eviction: &Eviction, will_be_refused: bool) -> String {
    let refused = match will_be_refused {
        true => "; the API server will refuse it: a PodDisruptionBudget needs the pod",
        false => "",
    };
    format!("{}{refused}", why(cluster, eviction))
}

fn why(cluster: &Cluster, eviction: &Eviction) -> String {
    let name = |queue: QueueId| &cluster.queues[queue].name;
    let preemptor = eviction.preemptor.map_or("", |gang| &cluster.gangs[gang].key);
    match eviction.cause {
        Cause::Stale { subgroup, role, lacks, minimum, for_ms } => {
            let (span, of) = (duration(for_ms), if subgroup { "subgroup" } else { "gang" });
            format!(
                "its {of} has been broken for {span}: it lacks {}",
                lacking(cluster, role, lacks, minimum)
            )
        }
        Cause::Outranked { priority, preemptor: other, next } => {
            format!(
                "makes room for {preemptor}, which has priority {other}; its own priority is {priority}{}",
                next_choice(cluster, next)
            )
        }
        Cause::OutrankedWithin { priority } => {
            format!(
                "makes room for a more urgent pod of its own gang (its own priority is {priority})"
            )
        }
        Cause::ZoneClosed => {
            let zone = cluster.nodes.fact[eviction.node].zone().unwrap_or_default();
            format!("its node is in zone {zone}, which is closed now")
        }
        Cause::Bundle { whole, broken, pods, roi, next } => {
            let gang = cluster.pods.gang[eviction.pod].map_or("", |gang| &cluster.gangs[gang].key);
            let roi = roi.map(|roi| format!(", ROI {}", returns(roi))).unwrap_or_default();
            let priority =
                cluster.pods.gang[eviction.pod].map_or(0, |gang| cluster.gangs[gang].priority);
            let pods = counted(u64::from(pods), "pod");
            let what = match (whole, broken) {
                (true, _) => {
                    format!(
                        "gang {gang} is evicted as a whole, {pods} here{roi}, priority {priority}"
                    )
                }
                (false, true) => format!("{pods} of gang {gang}, which is broken already"),
                (false, false) => format!("{pods} above the minimum of gang {gang}"),
            };
            format!("makes room for {preemptor}: {what}{}", next_choice(cluster, next))
        }
        Cause::Moved { to } => {
            let name = &cluster.nodes.name[to];
            let cards = if to == eviction.node { "other cards of " } else { "" };
            format!(
                "makes room for {preemptor}: moves to {cards}node {name}, where room is reserved for it"
            )
        }
        Cause::Reclaimed { from, to, next } => {
            let (from, to) = (name(from), name(to));
            format!(
                "makes room for {preemptor}: queue {from} has more than it deserves, and queue {to} less{}",
                next_choice(cluster, next)
            )
        }
    }
}

fn returns(ppm: i64) -> String {
    match ppm / 1_000_000 {
        // Nothing is lost.
        0..1_000 => format!("{}.{:02}", ppm / 1_000_000, ppm % 1_000_000 / 10_000),
        _ => "unlimited".to_owned(),
    }
}

/// What would have been chosen next, and the line of the table that decided; nothing if there was
/// no other choice.
fn next_choice(cluster: &Cluster, next: Option<NextChoice>) -> String {
    let Some(NextChoice { choice, line, figures: (ours, theirs) }) = next else {
        return String::new();
    };
    let what = match choice {
        Choice::Gang(gang) => format!("gang {}", cluster.gangs[gang].key),
        Choice::Domain(domain) => format!("domain {}", cluster.domains[domain].name),
        Choice::Node(node) => format!("node {}", cluster.nodes.name[node]),
    };
    let why = match line {
        Line::Budgets => "more evictions beyond PodDisruptionBudgets".to_owned(),
        Line::Breaks => "a gang would break".to_owned(),
        Line::Tier => "a farther tier".to_owned(),
        Line::Priority => format!("priority {theirs} instead of {ours}"),
        Line::Queue => "a queue that gives later".to_owned(),
        Line::Return => {
            let word = if matches!(choice, Choice::Gang(_)) { "ROI" } else { "return" };
            format!("{word} {} instead of {}", returns(theirs), returns(ours))
        }
        Line::LostWork => {
            format!("{} of work lost instead of {}", duration(theirs), duration(ours))
        }
        Line::ServedLast => "served earlier".to_owned(),
        Line::Youngest => "older".to_owned(),
        Line::Plugin => "a plugin prefers it less".to_owned(),
        Line::SumOfPriorities => format!("sum of priorities {theirs} instead of {ours}"),
        Line::Pods => format!("{} instead of {ours}", counted(theirs.max(0) as u64, "pod")),
        Line::TimeRun => "its pods have run for longer".to_owned(),
        Line::Moves => "more moves".to_owned(),
        Line::Place => "equal in all".to_owned(),
    };
    format!("; next choice {what}: {why}")
}

/// "1 of the 2 pods of role master that it needs"
fn lacking(cluster: &Cluster, role: Option<Symbol>, lacks: u32, minimum: u32) -> String {
    let role = role.map_or(String::new(), |role| format!(" of role {}", cluster.names.text(role)));
    match minimum {
        1 => format!("the one pod{role} it needs"),
        _ => format!("{lacks} of the {minimum} pods{role} it needs"),
    }
}

/// What a stale gang lacks, in a sentence that begins with its subject.
pub fn staleness(cluster: &Cluster, stale: &Staleness) -> String {
    match stale.cause {
        Cause::Stale { subgroup, role, lacks, minimum, .. } => {
            let what = if subgroup { "a subgroup of it" } else { "it" };
            format!("{what} lacks {}", lacking(cluster, role, lacks, minimum))
        }
        _ => String::new(),
    }
}

/// What becomes of a stale gang.
pub fn fate(fate: Fate) -> String {
    match fate {
        Fate::NotWatched => "stays: the action stalegangeviction is not configured".to_owned(),
        Fate::ForEver => "stays: its grace period has no end".to_owned(),
        Fate::Kept(rule) => format!("stays: kept by {rule}"),
        Fate::Leaves(time) => format!("is evicted at {time}, unless it is complete by then"),
    }
}

/// How many victims are named.
const VICTIMS: usize = 4;

/// The search for victims for a gang and its outcome, line by line. Nothing if no search was
/// needed.
pub fn search(cluster: &Cluster, plan: &Decisions, search: &SearchRecord) -> Vec<String> {
    let SearchRecord { gang, action, work, found } = search;
    if work.scenarios + work.simulations == 0 {
        return Vec::new();
    }
    let scenarios = counted(u64::from(work.scenarios), "scenario");
    let outcome = match (*found, work.cut_short) {
        (true, _) => "",
        (false, true) => ", cut short",
        (false, false) => ", none makes enough room",
    };
    // The outcome comes before the numbers, which may be cut off.
    let tried = match (work.domains, work.scenarios) {
        // Mode `task` has no scenarios.
        (0, 0) => {
            format!("{action} simulated {}{outcome}", counted(u64::from(work.simulations), "way"))
        }
        (_, 0) if !found && !work.cut_short => format!("{action} found no pod that it may evict"),
        _ => format!(
            "{action} tried {scenarios}{outcome}: {} filtered, {} simulated",
            work.filtered, work.simulations
        ),
    };
    let own =
        |eviction: &&Eviction| eviction.preemptor == Some(*gang) && eviction.action == *action;
    let name =
        |pod: PodId| cluster.pods.name(pod).rsplit('/').next().unwrap_or_default().to_owned();
    let told = |eviction: &Eviction| match eviction.cause {
        Cause::Moved { to } => {
            format!("{} moves to {}", name(eviction.pod), cluster.nodes.name[to])
        }
        _ => format!("{} is evicted", name(eviction.pod)),
    };
    let all: Vec<String> = plan.evictions.iter().filter(own).map(told).collect();
    let more = all.len().saturating_sub(VICTIMS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let taken = format!("{action} chose one: {}{more}", all[..all.len().min(VICTIMS)].join(", "));
    [Some(tried), (!all.is_empty()).then_some(taken)].into_iter().flatten().collect()
}
