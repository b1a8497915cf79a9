//! Reasons as text. The only place where a reason becomes words.

use muster_api::QueueState;

use crate::base::cards::{ALL_CORES, Ask, Memory};
use crate::base::ids::{PodId, QueueId, Symbol};
use crate::base::purpose::Purpose;
use crate::base::resources::Dimensions;
use crate::decision::cause::Cause;
use crate::decision::counters::SearchRecord;
use crate::decision::node_reason::{Histogram, Shown, Why};
use crate::decision::plan::{Eviction, Plan};
use crate::decision::reason::{BrokenLine, Lack, Limit, Near, Reason};
use crate::decision::staleness::{Fate, Staleness};
use crate::model::Cluster;
use crate::model::topology::domains::Fault;

/// The reason in one CamelCase word, for conditions.
pub fn word(reason: &Reason) -> &'static str {
    match reason {
        Reason::GroupMissing { .. } => "PodGroupNotFound",
        Reason::QueueMissing { .. } => "QueueNotFound",
        Reason::QueueClosed { .. } => "QueueNotOpen",
        Reason::QueueBroken { .. } => "QueueHierarchyBroken",
        Reason::QueueHasChildren { .. } => "QueueNotLeaf",
        Reason::ResourceClaims { .. } => "ResourceClaimsNotSupported",
        Reason::NotAdmitted { .. } | Reason::NotAdmittedBehind { .. } => "NotAdmitted",
        Reason::GaveAdmissionBack { .. } => "AdmissionGivenBack",
        Reason::Gated { .. } => "SchedulingGated",
        Reason::NoBackfill { .. } => "NoBackfill",
        Reason::NotEnoughPods { .. } => "NotEnoughPods",
        Reason::NotEnoughOfRole { .. } => "NotEnoughPodsOfTask",
        Reason::NotEnoughSubgroups { .. } => "NotEnoughSubgroups",
        Reason::NotEnoughOfSubgroup { .. } => "NotEnoughPodsOfSubgroup",
        Reason::NoSuchTier { .. } => "TierNotFound",
        Reason::TooFarApart { .. } => "TooFarApart",
        Reason::NoDomain { .. } => "NotEnoughResourcesInDomain",
        Reason::OverLimit { .. } | Reason::OutdoesSibling { .. } => "QueueQuotaReached",
        Reason::LikeAnother { .. } => "LikeAnotherGang",
        Reason::NotAttempted { .. } => "NotAttempted",
        Reason::Behind { .. } => "BehindHeadOfQueue",
        Reason::Backoff { .. } => "BackingOff",
        Reason::NeverPreempts { .. } => "PreemptionNotAllowed",
        Reason::NeverMoves { .. } => "NobodyMovesForIt",
        Reason::NothingToTake { .. } => "NothingToEvict",
        Reason::Nominated { .. } => "WaitingForRoom",
        Reason::NoNodes { .. } => "NotEnoughResources",
    }
}

/// Why a HyperNode is not in the tree, in one CamelCase word.
pub fn fault_word(fault: &Fault) -> &'static str {
    match fault {
        Fault::BadMember { .. } => "MemberInvalid",
        Fault::TierName { .. } => "TierNameAmbiguous",
        Fault::Cycle { .. } => "MemberOfItself",
        Fault::SharedChild { .. } => "HyperNodeClaimedTwice",
        Fault::NotBelow { .. } => "TierNotBelowParent",
        Fault::SharedNode { .. } => "NodeClaimedTwice",
        Fault::Above { .. } => "ParentNotInTree",
    }
}

/// Why a HyperNode is not in the tree, in a sentence that goes on after its name and says what to
/// change.
pub fn fault(fault: &Fault) -> String {
    match fault {
        Fault::BadMember { why } => format!("a member can't be understood: {why}"),
        Fault::TierName { name, tier, other, other_tier } => format!(
            "its tier {tier} is named {name}, as tier {other_tier} is in {other}: give each tier a name of its own"
        ),
        Fault::Cycle { through } => {
            let steps: Vec<&str> =
                through.iter().chain(through.first()).map(AsRef::as_ref).collect();
            format!("it is below itself ({}): remove one of these members", steps.join(" > "))
        }
        Fault::SharedChild { child, with } => {
            format!("its member {child} is in {with} already: remove it from one of the two")
        }
        Fault::NotBelow { tier, parent, parent_tier } => format!(
            "it is of tier {tier} below {parent} of tier {parent_tier}: give it a lower tier, or {parent} a higher one"
        ),
        Fault::SharedNode { node, with } => {
            format!("its node {node} is in {with} already: remove it from one of the two")
        }
        Fault::Above { parent } => {
            format!("{parent} above it is not in the tree: correct that one")
        }
    }
}

/// Why a pod has to leave, in a sentence.
pub fn cause(cluster: &Cluster, eviction: &Eviction) -> String {
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
        Cause::Outranked { priority, preemptor: other } => {
            format!(
                "makes room for {preemptor}, which has priority {other}; its own priority is {priority}"
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
        Cause::Bundle { whole, broken, pods, roi, against } => {
            let gang = cluster.pods.gang[eviction.pod].map_or("", |gang| &cluster.gangs[gang].key);
            let returns = |roi: i64| format!("{}.{:02}", roi / 1_000_000, roi % 1_000_000 / 10_000);
            let against = against.map(|(gang, roi)| {
                format!(" against {} of gang {}", returns(roi), cluster.gangs[gang].key)
            });
            let roi =
                roi.map(|roi| format!(", ROI {}{}", returns(roi), against.unwrap_or_default()));
            let priority =
                cluster.pods.gang[eviction.pod].map_or(0, |gang| cluster.gangs[gang].priority);
            let pods = counted(u64::from(pods), "pod");
            match (whole, broken) {
                (true, _) => format!(
                    "makes room for {preemptor}: gang {gang} is evicted as a whole, {pods} here{}, priority {priority}",
                    roi.unwrap_or_default()
                ),
                (false, true) => {
                    format!(
                        "makes room for {preemptor}: {pods} of gang {gang}, which is broken already"
                    )
                }
                (false, false) => {
                    format!("makes room for {preemptor}: {pods} above the minimum of gang {gang}")
                }
            }
        }
        Cause::Moved { to } => {
            let to = &cluster.nodes.name[to];
            format!("makes room for {preemptor}: moves to node {to}, where room is reserved for it")
        }
        Cause::Reclaimed { from, to } => {
            let (from, to) = (name(from), name(to));
            format!(
                "makes room for {preemptor}: queue {from} has more than it deserves, and queue {to} less"
            )
        }
    }
}

/// "1 of the 2 pods of role master that it needs"
fn lacking(cluster: &Cluster, role: Option<Symbol>, lacks: u32, minimum: u32) -> String {
    let role = role.map_or(String::new(), |role| format!(" of role {}", cluster.names.text(role)));
    match minimum {
        1 => format!("the one pod{role} it needs"),
        _ => format!("{lacks} of the {minimum} pods{role} it needs"),
    }
}

/// What a stale gang lacks, in a sentence that begins with what lacks it.
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

/// How many of those that leave are named.
const LEAVERS: usize = 4;

/// What was tried to make others leave for a gang, and what came of it, line by line. Nothing if
/// nothing had to be tried.
pub fn search(cluster: &Cluster, plan: &Plan, search: &SearchRecord) -> Vec<String> {
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
    // What comes of it goes before the numbers, which may be cut off.
    let tried = match (work.domains, work.scenarios) {
        // Pod by pod there are no scenarios.
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
        _ => format!("{} leaves", name(eviction.pod)),
    };
    let all: Vec<String> = plan.evictions.iter().filter(own).map(told).collect();
    let more = all.len().saturating_sub(LEAVERS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let taken = format!("{action} takes one: {}{more}", all[..all.len().min(LEAVERS)].join(", "));
    [Some(tried), (!all.is_empty()).then_some(taken)].into_iter().flatten().collect()
}

/// The reason in a sentence.
pub fn message(reason: &Reason, dimensions: &Dimensions) -> String {
    match reason {
        Reason::GroupMissing { group } => format!("PodGroup {group} does not exist"),
        Reason::QueueMissing { queue } => format!("queue {queue} does not exist"),
        Reason::QueueClosed { queue, state } => format!("queue {queue} is {}", state_word(*state)),
        Reason::QueueBroken { queue, line } => match line {
            BrokenLine::UnknownParent(parent) => {
                format!("queue {queue} is under a queue that does not exist: {parent}")
            }
            BrokenLine::Cycle => format!("queue {queue} is its own ancestor"),
        },
        Reason::QueueHasChildren { queue } => {
            format!("queue {queue} has queues below it; only leaf queues take work")
        }
        Reason::ResourceClaims { pod } => {
            format!(
                "pod {pod} uses resourceClaims (dynamic resource allocation), which Muster does not support"
            )
        }
        Reason::NotAdmitted { limit, lack, .. } => {
            format!("not admitted: {}", over(limit, lack, dimensions))
        }
        Reason::NotAdmittedBehind { head } => {
            format!("not admitted: {head} is ahead of it in the fifo queue")
        }
        Reason::GaveAdmissionBack { after_ms } => {
            format!(
                "did not start within {} of its admission, so others go first",
                duration(*after_ms)
            )
        }
        Reason::Gated { pods } => {
            format!("{} held by scheduling gates", counted(u64::from(*pods), "pod"))
        }
        Reason::NoBackfill { pods } => {
            let pods = counted(u64::from(*pods), "pod");
            format!(
                "{pods} without requests: only the action backfill places these, and it is not configured"
            )
        }
        Reason::NotEnoughPods { have, need, gated: 0 } => format!("{have} of {need} pods exist"),
        Reason::NotEnoughPods { have, need, gated } => {
            format!("{have} of {need} pods can be scheduled, {gated} held by scheduling gates")
        }
        Reason::NotEnoughOfRole { role, have, need } => {
            format!("{have} of {need} pods of role {role} exist")
        }
        Reason::NotEnoughSubgroups { rule, have, need } => {
            format!("{have} of {need} subgroups of {rule} have all their pods")
        }
        Reason::NotEnoughOfSubgroup { subgroup, have, need } => {
            format!("{have} of {need} pods of subgroup {subgroup} exist")
        }
        Reason::NoSuchTier { tier } => format!("no HyperNode has a tier named {tier}"),
        Reason::TooFarApart { domain, tier, limit } => {
            format!(
                "its running pods span {domain} of tier {tier}, above its limit of tier {limit}"
            )
        }
        Reason::NoDomain { wanted, domains, limit, near } => {
            no_domain(*wanted, *domains, *limit, near)
        }
        Reason::OverLimit { limit, lack, .. } => over(limit, lack, dimensions),
        Reason::OutdoesSibling { queue, sibling, resource, after, fair, left, sibling_fair } => {
            let amount = |amount: &i64| dimensions.show(*resource, *amount);
            format!(
                "queue {queue} would have {} {} of a fair share of {}, and leave queue {sibling} only {} of {}",
                amount(after),
                dimensions.name(*resource),
                amount(fair),
                amount(left),
                amount(sibling_fair)
            )
        }
        Reason::LikeAnother { purpose, gang } => {
            format!(
                "{} did not try: it found no room for {gang}, which needs the same",
                action(*purpose)
            )
        }
        // Said of the gang at which it stopped and of those behind it.
        Reason::NotAttempted { purpose, steps } => format!(
            "{} stopped after {} in this cycle and continues in the next",
            action(*purpose),
            counted(*steps, "tried move")
        ),
        Reason::Behind { head, since: None } => format!("{head} is ahead of it in the fifo queue"),
        Reason::Behind { head, since: Some(since) } => {
            format!("{head} has waited since {since} and goes first")
        }
        Reason::Backoff { until, failures } => {
            format!("a write for it failed ({failures} in a row), next try at {until}")
        }
        Reason::NeverPreempts { pod } => {
            format!("{pod} waits for free room only (preemptionPolicy Never)")
        }
        Reason::NeverMoves { gang } => format!(
            "consolidate moves no pods for {gang}, because it is not preemptable itself (volcano.sh/preemptable: \"false\")"
        ),
        Reason::NothingToTake { purpose, nodes, kept } => nothing_to_take(*purpose, *nodes, kept),
        Reason::Nominated { places } => {
            format!(
                "{} nominated, waiting for other pods to terminate",
                counted(u64::from(*places), "pod")
            )
        }
        Reason::NoNodes { placed, wanted, pod, histogram } => {
            let text = histogram_text(histogram, dimensions);
            match (wanted, placed) {
                (1, _) => text,
                (_, 0) => format!("0 of {wanted} pods fit: {text}"),
                _ => format!("only {placed} of {wanted} pods fit; for {pod} {text}"),
            }
        }
    }
}

fn action(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Preempt | Purpose::Within => "preempt",
        Purpose::Reclaim => "reclaim",
        Purpose::Consolidate => "consolidate",
    }
}

fn nothing_to_take(purpose: Purpose, nodes: u32, kept: &[(String, u32)]) -> String {
    let outcome = match purpose {
        Purpose::Preempt => {
            "preempt: evicting lower-priority pods in its queue would not free enough room"
        }
        Purpose::Within => {
            "preempt: evicting less urgent pods of its own would not free enough room"
        }
        Purpose::Reclaim => "reclaim: evicting pods of other queues would not free enough room",
        Purpose::Consolidate => {
            "consolidate: moving pods to other nodes would not free enough room"
        }
    };
    let nodes = match nodes {
        0 => String::new(),
        nodes => format!(" ({} tried)", counted(u64::from(nodes), "node")),
    };
    let kept: Vec<String> = kept
        .iter()
        .map(|(rule, pods)| format!("{} kept by {rule}", counted(u64::from(*pods), "pod")))
        .collect();
    let kept = if kept.is_empty() { kept.join("") } else { format!("; {}", kept.join(", ")) };
    format!("{outcome}{nodes}{kept}")
}

fn no_domain(wanted: u32, domains: u32, limit: Option<u32>, near: &[Near]) -> String {
    let tier = limit.map_or(String::new(), |tier| format!(" of tier {tier} or below"));
    let pods = counted(u64::from(wanted), "more pod");
    if domains == 0 {
        return format!("there is no HyperNode{tier} for {pods}");
    }
    let near: Vec<String> =
        near.iter().map(|near| format!("{} has room for {}", near.domain, near.holds)).collect();
    let near = if near.is_empty() { "none has room for any".to_owned() } else { near.join(", ") };
    let domains = counted(u64::from(domains), "domain")
        + &tier
        + if domains == 1 { " holds" } else { " hold" };
    format!("0/{domains} {pods} together: {near}")
}

fn over(limit: &Limit, lack: &Lack, dimensions: &Dimensions) -> String {
    let show = |amount| dimensions.show(lack.resource, amount);
    let (used, most) = (show(lack.used), show(lack.limit));
    let name = dimensions.name(lack.resource);
    let reached = match limit {
        Limit::Cluster => format!("the cluster admits up to {most} {name}, {used} admitted"),
        Limit::Capability(queue) => format!("queue {queue} may use {most} {name} and uses {used}"),
        Limit::Deserved(queue) => format!("queue {queue} deserves {most} {name} and uses {used}"),
        Limit::FairShare(queue) => {
            format!("the fair share of queue {queue} is {most} {name}, and it uses {used}")
        }
        Limit::DeservedForGood(queue) => {
            format!(
                "queue {queue} deserves {most} {name}, and its non-preemptable gangs use {used}"
            )
        }
        Limit::Namespace(space) => {
            format!("the resource quota of namespace {space} is {most} {name}, {used} used")
        }
    };
    // A queue that has all it deserves is not asked what the next gang wants.
    if lack.want == 0 { reached } else { format!("{reached}, want {}", show(lack.want)) }
}

/// "0/5,000 nodes fit: 3,200 short of nvidia.com/gpu (want 8, best has 6), 1,800 tainted (infra)".
pub fn histogram_text(histogram: &Histogram, dimensions: &Dimensions) -> String {
    if histogram.nodes == 0 {
        return "the cluster has no nodes".to_owned();
    }
    let bars: Vec<String> = histogram
        .bars
        .iter()
        .map(|bar| {
            format!("{} {}", grouped(u64::from(bar.nodes)), shown_text(&bar.why, dimensions))
        })
        .collect();
    let fit = format!(
        "{}/{} nodes fit",
        grouped(u64::from(histogram.fit)),
        grouped(u64::from(histogram.nodes))
    );
    if bars.is_empty() { fit } else { format!("{fit}: {}", bars.join(", ")) }
}

pub fn shown_text(shown: &Shown, dimensions: &Dimensions) -> String {
    match shown {
        Shown::Short { resource, want, best } => format!(
            "short of {} (want {}, best has {})",
            dimensions.name(*resource),
            dimensions.show(*resource, *want),
            dimensions.show(*resource, *best)
        ),
        Shown::Card { ask, picky, best, free } => card_text(ask, *picky, *best, *free),
        Shown::Tainted(key) => format!("tainted ({key})"),
        Shown::Zone(why, zone) => format!("in zone {zone} {}", why_text(*why)),
        Shown::Rule(why, key) => format!("{} (by {key})", why_text(*why)),
        Shown::Plain(why) => why_text(*why).to_owned(),
    }
}

/// "without a card that has 8,000 MiB free (most free 4,000)", "without 2 cards that no pod uses
/// (best has 1)".
fn card_text(ask: &Ask, picky: bool, best: u32, free: i64) -> String {
    let its = if ask.cards == 1 { "its" } else { "their" };
    let alone = ask.cores >= ALL_CORES;
    let memory = match ask.memory {
        Memory::Mib(0) | Memory::Percent(0) => None,
        // A pod that gets the whole card has its memory.
        Memory::Percent(_) if alone => None,
        Memory::Mib(amount) => Some(format!("{} MiB", grouped(amount.unsigned_abs()))),
        Memory::Percent(percent) => Some(format!("{percent}% of {its} memory")),
    };
    let cores = (ask.cores > 0 && !alone).then(|| format!("{}% of {its} cores", ask.cores));
    let wants: Vec<String> = memory.into_iter().chain(cores).collect();
    let (cards, verb) = match ask.cards {
        1 => ("a card".to_owned(), "has"),
        cards => (format!("{} cards", grouped(u64::from(cards))), "have"),
    };
    let wanted = if picky { " of the wanted kind" } else { "" };
    let unused = if alone { " that no pod uses" } else { "" };
    let room = match wants.as_slice() {
        [] if alone => String::new(),
        [] => format!(" that {verb} room"),
        wants if alone => format!(" and {verb} {}", wants.join(" and ")),
        wants => format!(" that {verb} {} free", wants.join(" and ")),
    };
    let most = match ask.memory {
        Memory::Mib(amount) if ask.cards == 1 && !alone && free < amount => {
            format!(" (most free {})", grouped(free.max(0).unsigned_abs()))
        }
        _ if ask.cards > 1 => format!(" (best has {})", grouped(u64::from(best))),
        _ => String::new(),
    };
    format!("without {cards}{wanted}{unused}{room}{most}")
}

fn why_text(why: Why) -> &'static str {
    match why {
        Why::Fits => "fit",
        Why::Gone => "gone",
        Why::NotReady => "not ready",
        Why::Cordoned => "unschedulable",
        Why::Tainted => "tainted",
        Why::Affinity => "not matching the node selector or affinity",
        Why::Volume => "out of reach of a volume",
        Why::ClaimMissing => "without a volume claim that exists",
        Why::NodeGroup => "outside the queue's node groups",
        Why::RevocableOnly => "for preemptable pods only",
        Why::ZoneClosed => "that is closed now",
        Why::ZoneUnknown => "that tdm has no window for",
        Why::Port => "with a host port in use",
        Why::Short(_) => "short of a resource",
        Why::Card => "without a card that has room",
        Why::Together(_) => "without the pods it wants to be with",
        Why::Apart(_) => "with pods it keeps away from",
        Why::Avoided(_) => "with pods that keep away from it",
        Why::Spread(_) => "breaking the topology spread",
    }
}

fn state_word(state: QueueState) -> &'static str {
    match state {
        QueueState::Open => "open",
        QueueState::Closed => "closed",
        QueueState::Closing => "closing",
        QueueState::Unknown => "in an unknown state",
    }
}

/// 5000 → "5,000".
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// The two largest units of a time span: "45s", "12m", "3h20m", "2d4h".
pub fn duration(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|(_, size)| seconds >= *size).unwrap_or(3);
    let mut left = seconds;
    let mut text = String::new();
    for (unit, size) in &units[first..(first + 2).min(4)] {
        let count = left / size;
        left %= size;
        if count > 0 || text.is_empty() {
            text += &format!("{count}{unit}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::node_reason::Bar;

    #[test]
    fn a_histogram_reads_like_a_sentence() {
        let mut dimensions = Dimensions::default();
        let resource = dimensions.intern("nvidia.com/gpu");
        let bars = vec![
            Bar { nodes: 3200, why: Shown::Short { resource, want: 8, best: 6 } },
            Bar { nodes: 1800, why: Shown::Tainted("infra".into()) },
        ];
        assert_eq!(
            histogram_text(&Histogram { nodes: 5000, fit: 0, bars }, &dimensions),
            "0/5,000 nodes fit: 3,200 short of nvidia.com/gpu (want 8, best has 6), 1,800 tainted (infra)"
        );
    }

    #[test]
    fn every_fault_of_the_tree_says_what_to_change() {
        let faults = [
            Fault::BadMember { why: "missing argument to repetition operator at byte 0".into() },
            Fault::TierName { name: "rack".into(), tier: 2, other: "s0".into(), other_tier: 1 },
            Fault::Cycle { through: vec!["s4".into(), "s5".into()] },
            Fault::SharedChild { child: "s1".into(), with: "s4".into() },
            Fault::NotBelow { tier: 2, parent: "s4".into(), parent_tier: 2 },
            Fault::SharedNode { node: "node2".into(), with: "s1".into() },
            Fault::Above { parent: "s6".into() },
        ];
        assert_eq!(
            faults.each_ref().map(fault),
            [
                "a member can't be understood: missing argument to repetition operator at byte 0",
                "its tier 2 is named rack, as tier 1 is in s0: give each tier a name of its own",
                "it is below itself (s4 > s5 > s4): remove one of these members",
                "its member s1 is in s4 already: remove it from one of the two",
                "it is of tier 2 below s4 of tier 2: give it a lower tier, or s4 a higher one",
                "its node node2 is in s1 already: remove it from one of the two",
                "s6 above it is not in the tree: correct that one",
            ]
        );
    }

    #[test]
    fn durations_show_two_units() {
        let shown: Vec<String> = [0, 45_000, 720_000, 12_000_000, 187_200_000].map(duration).into();
        assert_eq!(shown, ["0s", "45s", "12m", "3h20m", "2d4h"]);
    }
}
