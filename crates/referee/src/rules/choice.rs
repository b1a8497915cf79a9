//! Which of several racks is cleared, where each is held by one gang and one is enough.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{CPU, Pod};
use crate::config::Mode;
use crate::generate::racks::{FAMILY, NEED};
use crate::output::Eviction;
use crate::rules::Rule;
use crate::timeline::Story;

pub const CHOICE: Rule = Rule {
    name: "choice",
    says: "If a rack can be cleared, one is, and of those that can be cleared it is the first by \
           the table of what decides.",
    broken: choice,
};

/// What an eviction says if the API server will refuse it.
pub const REFUSED: &str = "the API server will refuse it";

pub const REFUSAL_TOLD: Rule = Rule {
    name: "refusal-told",
    says: "An eviction beyond what a budget allows says that the API server will refuse it, and no \
           other says so.",
    broken: refusal_told,
};

fn refusal_told(story: &Story) -> Vec<(usize, String)> {
    if story.case.family != FAMILY {
        return Vec::new();
    }
    let wrong = |eviction: &&Eviction| {
        let pod = story.pod(&eviction.pod);
        // In this family a budget allows no eviction at all.
        let refused = pod.is_some_and(|pod| is_kept(story, pod));
        refused != eviction.reason.contains(REFUSED)
    };
    let found = story.output.evictions.iter().filter(wrong);
    found.map(|one| (one.cycle, format!("{} says: {}", one.pod, one.reason))).collect()
}

/// A way to make room: a rack, and the pods that hold it.
struct Way<'c> {
    rack: String,
    pods: Vec<&'c Pod>,
    /// Whether its gang breaks without these pods.
    whole: bool,
}

fn choice(story: &Story) -> Vec<(usize, String)> {
    if story.case.family != FAMILY {
        return Vec::new();
    }
    let leaving = story.output.evictions.iter();
    let cleared: BTreeSet<&str> = leaving.map(|eviction| eviction.pod.as_str()).collect();
    let ways: Vec<Way> = racks(story).into_iter().filter(|way| may_leave(story, way)).collect();
    let best = ways.iter().map(|way| key(story, way)).min();
    let taken = ways.iter().find(|way| {
        let pods: BTreeSet<String> = way.pods.iter().map(|pod| pod.key()).collect();
        pods.iter().map(String::as_str).collect::<BTreeSet<&str>>() == cleared
    });
    let text = match (best, taken) {
        (None, _) if cleared.is_empty() => return Vec::new(),
        (None, _) => format!("no rack can be cleared, but {cleared:?} leave"),
        (Some(best), Some(taken)) if key(story, taken) == best => return Vec::new(),
        (Some(best), taken) => {
            let first = ways.iter().filter(|way| key(story, way) == best);
            let first: Vec<&str> = first.map(|way| way.rack.as_str()).collect();
            let what = match taken {
                Some(taken) => format!("{} {:?}", taken.rack, key(story, taken)),
                None => format!("{cleared:?} leave"),
            };
            format!("{} of {} racks, best {best:?}; {what}", first.join(", "), ways.len())
        }
    };
    vec![(1, text)]
}

fn racks<'c>(story: &Story<'c>) -> Vec<Way<'c>> {
    let mut racks: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in &story.cluster().pods {
        if let Some((rack, _)) = pod.runs.as_ref().and_then(|(node, _)| node.split_once('-')) {
            racks.entry(rack).or_default().push(pod);
        }
    }
    let way = |(rack, pods): (&str, Vec<&'c Pod>)| {
        let key = pods[0].gang_key();
        let all = story.cluster().pods.iter().filter(|pod| pod.gang_key() == key).count();
        let least = story.cluster().gang(&key).map_or(1, |gang| gang.min_member);
        Way { rack: rack.to_owned(), whole: all - pods.len() < least, pods }
    };
    racks.into_iter().map(way).collect()
}

fn mode(story: &Story) -> (Mode, bool) {
    let config = &story.case.config;
    match config.acts("reclaim") {
        true => (config.reclaim, true),
        false => (config.preempt, false),
    }
}

fn refused(story: &Story, way: &Way) -> usize {
    way.pods.iter().filter(|pod| is_kept(story, pod)).count()
}

fn is_kept(story: &Story, pod: &Pod) -> bool {
    story.cluster().budgets.iter().any(|budget| budget.covers(pod))
}

fn priority(story: &Story, way: &Way) -> i64 {
    story.cluster().priority(&way.pods[0].gang_key())
}

/// The first line of the table.
fn may_leave(story: &Story, way: &Way) -> bool {
    let (mode, reclaims) = mode(story);
    let gang = story.cluster().gang_of(way.pods[0]);
    gang.is_some_and(|gang| gang.preemptable != Some(false))
        && (reclaims || priority(story, way) < story.cluster().priority(NEED))
        && !(story.case.config.pdb && refused(story, way) > 0)
        // A gang of one may leave even so.
        && !(mode == Mode::Task && way.whole && way.pods.len() > 1)
}

/// The other lines, as far as they can be told without the return of a gang.
fn key(story: &Story, way: &Way) -> Vec<i64> {
    let (mode, reclaims) = mode(story);
    // The return is equal where racks are.
    let nodes = story.cluster().nodes.iter().filter(|node| node.name.starts_with('r'));
    let sizes: BTreeSet<i64> = nodes.map(|node| node.allocatable.0[CPU]).collect();
    let equal = sizes.len() == 1;
    // The youngest is served last, and has run for the shortest time.
    let age = -story.cluster().gang(&way.pods[0].gang_key()).map_or(0, |gang| gang.created);
    let (whole, priority) = (i64::from(way.whole), priority(story, way));
    let mut key = vec![refused(story, way) as i64];
    match (mode, reclaims) {
        (Mode::Task, _) => key.extend([priority, age]),
        (Mode::Scenario, _) => key.extend([priority, whole, age]),
        (Mode::Gang, false) if story.case.config.priority_first => key.extend([priority, whole]),
        (Mode::Gang, false) => key.extend([whole, priority]),
        (Mode::Gang, true) => key.extend([whole, queue_gives(story, way)]),
    }
    if mode == Mode::Gang && equal {
        key.extend(reclaims.then_some(priority));
        key.push(age);
    }
    key
}

/// The place of its queue among those that give, the one that has most of what it deserves first.
fn queue_gives(story: &Story, way: &Way) -> i64 {
    let mut shares: Vec<(Reverse<i64>, &str)> = Vec::new();
    for queue in &story.cluster().queues {
        let own = story.cluster().pods.iter().filter(|pod| pod.runs.is_some());
        let own = own.filter(|pod| story.cluster().queue_of(pod) == queue.name);
        let used: i64 = own.map(|pod| pod.request.0[CPU]).sum();
        let deserved = queue.deserved[CPU].unwrap_or(0).max(1);
        shares.push((Reverse(used * 1_000_000 / deserved), queue.name.as_str()));
    }
    let queue = story.cluster().queue_of(way.pods[0]);
    let own = shares.iter().find(|(_, name)| *name == queue).map(|(share, _)| *share);
    let better: BTreeSet<Reverse<i64>> =
        shares.iter().map(|(share, _)| *share).filter(|share| Some(*share) < own).collect();
    better.len() as i64
}
