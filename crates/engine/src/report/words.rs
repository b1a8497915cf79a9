//! Reasons as text. Nothing else turns a reason into words.

mod evictions;
mod faults;
mod nodes;

use muster_api::QueueState;

use crate::base::ids::ResourceId;
use crate::base::purpose::Purpose;
use crate::base::resources::Dimensions;
use crate::decision::reason::{BrokenLine, Found, Lack, Limit, Loss, Near, Reason};
use crate::model::topology::idle_policies::IdlePolicy;
use crate::model::topology::subgroups::Mismatch;

pub use evictions::{cause, fate, search, staleness};
pub use faults::{fault, fault_word};
pub use muster_text::{counted, duration, grouped};
pub use nodes::{histogram_text, shown_text};

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
        Reason::NotAttempted { .. } | Reason::DomainsNotTried { .. } => "NotAttempted",
        Reason::Behind { .. } => "BehindHeadOfQueue",
        Reason::Backoff { .. } => "BackingOff",
        Reason::NeverPreempts { .. } => "PreemptionNotAllowed",
        Reason::NeverMoves { .. } => "NobodyMovesForIt",
        Reason::NothingToTake { .. } => "NothingToEvict",
        Reason::NotBound { .. } => "WouldBeEvicted",
        Reason::Nominated { .. } => "WaitingForRoom",
        Reason::NominationsLost { .. } => "NominationsLost",
        Reason::NoNodes { .. } => "NotEnoughResources",
    }
}

/// The reason in a sentence.
pub fn message(reason: &Reason, dimensions: &Dimensions) -> String {
    match reason {
        Reason::GroupMissing { group } => format!("PodGroup {group} does not exist"),
        Reason::QueueMissing { queue } => format!("queue {queue} does not exist"),
        Reason::QueueClosed { queue, state } => format!("queue {queue} is {}", state_word(*state)),
        Reason::QueueBroken { queue, line } => broken_line(queue, line),
        Reason::QueueHasChildren { queue } => {
            format!("queue {queue} has queues below it; only leaf queues take work")
        }
        Reason::ResourceClaims { pod } => uses_resource_claims(pod),
        Reason::NotAdmitted { limit, lack, .. } => {
            format!("not admitted: {}", over(limit, lack, dimensions))
        }
        Reason::NotAdmittedBehind { head } => {
            format!("not admitted: {head} is ahead of it in the fifo queue")
        }
        Reason::GaveAdmissionBack { after_ms } => gave_admission_back(*after_ms),
        Reason::Gated { pods } => {
            format!("{} held by scheduling gates", counted(u64::from(*pods), "pod"))
        }
        Reason::NoBackfill { pods } => no_backfill(*pods),
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
        Reason::NoDomain { wanted, subgroup, inside, domains, limit, near } => {
            let (subgroup, inside) = (subgroup.as_deref(), inside.as_deref());
            no_domain((*wanted, subgroup), (*domains, *limit, inside), near)
        }
        Reason::OverLimit { limit, lack, .. } => over(limit, lack, dimensions),
        Reason::OutdoesSibling { queue, sibling, resource, after, fair, left, sibling_fair } => {
            let (own, other) = ((&**queue, *after, *fair), (&**sibling, *left, *sibling_fair));
            outdoes_sibling(own, other, *resource, dimensions)
        }
        Reason::LikeAnother { purpose, gang } => like_another(*purpose, gang),
        // Reported for the gang at which the search stopped, and for those behind it.
        Reason::NotAttempted { purpose, steps } => format!(
            "{} stopped after {} in this cycle and continues in the next",
            action(*purpose),
            counted(*steps, "tried move")
        ),
        Reason::DomainsNotTried { purpose, left, of, limit, most } => {
            domains_not_tried(*purpose, (*left, *of), (limit, *most))
        }
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
        Reason::NeverMoves { gang } => never_moves(gang),
        Reason::NothingToTake { purpose, nodes, kept, found } => {
            nothing_to_take(*purpose, *nodes, kept, *found)
        }
        Reason::NotBound { action, preemptor } => not_bound(action, preemptor),
        Reason::Nominated { places } => nominated(*places),
        Reason::NominationsLost { pods, loss } => nominations_lost(*pods, loss, dimensions),
        Reason::NoNodes { placed, wanted, pod, histogram } => {
            no_nodes(*placed, *wanted, pod, &histogram_text(histogram, dimensions))
        }
    }
}

/// That a policy holds for no pod, and why.
pub fn idle_policy(idle: &IdlePolicy) -> String {
    let IdlePolicy { policy, pods, why, .. } = idle;
    let pods = counted(u64::from(*pods), "pod");
    let why = match why {
        Mismatch::Selector => format!("its labelSelector matches none of {pods}"),
        Mismatch::Label(key) => format!("none of {pods} that it selects has the label {key}"),
        Mismatch::Labels(keys) => {
            format!("none of {pods} that it selects has all of the labels {}", keys.join(", "))
        }
        Mismatch::Earlier => "an earlier policy holds for all pods that it selects".to_owned(),
    };
    format!("subGroupPolicy {policy} holds for no pod: {why}")
}

fn not_bound(action: &str, preemptor: &str) -> String {
    format!("not bound, because {action} would evict it for {preemptor} in the next cycle")
}

fn nominated(places: u32) -> String {
    let pods = counted(u64::from(places), "pod");
    format!("{pods} nominated, waiting for other pods to terminate")
}

fn nominations_lost(pods: u32, loss: &Loss, dimensions: &Dimensions) -> String {
    let lost = counted(u64::from(pods), "nomination");
    match loss {
        Loss::To { gang, priority } => {
            format!("{lost} released for {gang}, which has priority {priority}")
        }
        Loss::Node { node, why } => {
            format!("{lost} could not be kept (node {node}: {})", shown_text(why, dimensions))
        }
        Loss::Unkept => format!("{lost} could not be kept"),
    }
}

fn uses_resource_claims(pod: &str) -> String {
    format!(
        "pod {pod} uses resourceClaims (dynamic resource allocation), which Muster does not support"
    )
}

fn broken_line(queue: &str, line: &BrokenLine) -> String {
    match line {
        BrokenLine::UnknownParent(parent) => {
            format!("queue {queue} is under a queue that does not exist: {parent}")
        }
        BrokenLine::Cycle => format!("queue {queue} is its own ancestor"),
    }
}

fn gave_admission_back(after_ms: i64) -> String {
    format!("did not start within {} of its admission, so others go first", duration(after_ms))
}

fn no_backfill(pods: u32) -> String {
    let pods = counted(u64::from(pods), "pod");
    format!(
        "{pods} without requests: only the action backfill places these, and it is not configured"
    )
}

fn outdoes_sibling(
    (queue, after, fair): (&str, i64, i64),
    (sibling, left, sibling_fair): (&str, i64, i64),
    resource: ResourceId,
    dimensions: &Dimensions,
) -> String {
    let amount = |amount| dimensions.show(resource, amount);
    format!(
        "queue {queue} would have {} {} of a fair share of {}, and leave queue {sibling} only {} of {}",
        amount(after),
        dimensions.name(resource),
        amount(fair),
        amount(left),
        amount(sibling_fair)
    )
}

fn domains_not_tried(
    purpose: Purpose,
    (left, of): (u32, u32),
    (limit, most): (&str, u32),
) -> String {
    let of = counted(u64::from(of), "domain");
    format!("{}: {left} of {of} not tried: {limit} {most}", action(purpose))
}

fn never_moves(gang: &str) -> String {
    format!(
        "consolidate moves no pods for {gang}, because it is not preemptable itself (volcano.sh/preemptable: \"false\")"
    )
}

fn like_another(purpose: Purpose, gang: &str) -> String {
    format!("{} did not try: it found no room for {gang}, which needs the same", action(purpose))
}

fn no_nodes(placed: u32, wanted: u32, pod: &str, text: &str) -> String {
    match (wanted, placed) {
        (1, _) => text.to_owned(),
        (_, 0) => format!("0 of {wanted} pods fit: {text}"),
        _ => format!("only {placed} of {wanted} pods fit; for {pod} {text}"),
    }
}

fn action(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Preempt | Purpose::Within => "preempt",
        Purpose::Reclaim => "reclaim",
        Purpose::Consolidate => "consolidate",
    }
}

fn nothing_to_take(purpose: Purpose, nodes: u32, kept: &[(String, u32)], found: Found) -> String {
    let action = action(purpose);
    let outcome = match (found, purpose, kept.is_empty()) {
        (Found::TooSmall, ..) => {
            format!("{action}: nothing that it could use is large enough, even without other pods")
        }
        (Found::NoRule, ..) => format!("{action}: no plugin says what its queue may take back"),
        (Found::Nothing, Purpose::Consolidate, false) => format!("{action}: it may move no pod"),
        (Found::Nothing, _, false) => format!("{action}: it may evict no pod"),
        (Found::Nothing, _, true) => {
            format!("{action}: there are no {} on nodes that it could use", candidates(purpose))
        }
        (Found::TooFew, Purpose::Consolidate, true) => {
            format!("{action}: moving pods to other nodes would not free enough room")
        }
        (Found::TooFew, Purpose::Consolidate, false) => {
            format!("{action}: moving all pods that it may move would not free enough room")
        }
        (Found::TooFew, _, true) => {
            format!("{action}: evicting {} would not free enough room", candidates(purpose))
        }
        (Found::TooFew, _, false) => {
            format!("{action}: evicting all pods that it may evict would not free enough room")
        }
    };
    let nodes = match nodes {
        0 => String::new(),
        _ if found == Found::Nothing && kept.is_empty() => String::new(),
        nodes => format!(" ({} tried)", counted(u64::from(nodes), "node")),
    };
    let kept: Vec<String> = kept
        .iter()
        .map(|(rule, pods)| format!("{} kept by {rule}", counted(u64::from(*pods), "pod")))
        .collect();
    let kept = if kept.is_empty() { kept.join("") } else { format!("; {}", kept.join(", ")) };
    format!("{outcome}{nodes}{kept}")
}

/// The pods that an action may evict, or move, unless a rule protects them.
fn candidates(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Preempt => "lower-priority pods in its queue",
        Purpose::Within => "less urgent pods of its own",
        Purpose::Reclaim => "pods of other queues",
        Purpose::Consolidate => "pods to move",
    }
}

fn no_domain(
    (wanted, subgroup): (u32, Option<&str>),
    (domains, limit, inside): (u32, Option<u32>, Option<&str>),
    near: &[Near],
) -> String {
    let tier = limit.map_or(String::new(), |tier| format!(" of tier {tier} or below"))
        + &inside.map_or(String::new(), |domain| format!(" in {domain}"));
    let pods = counted(u64::from(wanted), "more pod")
        + &subgroup.map_or(String::new(), |subgroup| format!(" of subgroup {subgroup}"));
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
        Limit::Deserved(queue) | Limit::DeservedBelow { queue, .. } => {
            format!("queue {queue} deserves {most} {name} and uses {used}")
        }
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
    // The request of the next gang is unknown here, since the queue is full.
    let reached =
        if lack.want == 0 { reached } else { format!("{reached}, want {}", show(lack.want)) };
    match limit {
        Limit::DeservedBelow { above, levels, .. } => format!(
            "{reached}; what queue {above} above it deserves does not count (ancestorReclaimLevel: {levels})"
        ),
        _ => reached,
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
