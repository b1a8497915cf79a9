//! False nominations.

use crate::cluster::Node;
use crate::output::{Output, Placement};
use crate::tamper::{Tampering, changed};
use crate::timeline::Story;

pub const KINDS: &[Tampering] = &[
    Tampering { name: "nomination withdrawn", seen_by: "beneficiary", change: withdrawn },
    Tampering { name: "nomination that is not held", seen_by: "adds-up", change: not_held },
    Tampering {
        name: "nomination to a node without room",
        seen_by: "nominations-fit",
        change: without_room,
    },
    Tampering { name: "eviction left out", seen_by: "nominations-fit", change: not_cleared },
    Tampering { name: "nominated room given away", seen_by: "nominated-room", change: given_away },
    Tampering { name: "part of a nomination", seen_by: "minimum", change: in_part },
];

/// All nominations of a gang that pods leave for.
fn withdrawn(story: &Story) -> Option<Output> {
    let one = story.output.evictions.iter().find(|one| one.preemptor.is_some())?;
    let gang = one.preemptor.clone()?;
    let own = |pod: &str, cycle: usize| cycle == one.cycle && story.gang_key(pod) == gang;
    changed(story, |output| {
        output.nominations.retain(|other| !own(&other.pod, other.cycle));
        output.held_nominations.retain(|other| !own(&other.pod, other.cycle));
    })
}

fn not_held(story: &Story) -> Option<Output> {
    let first = story.output.nominations.first()?;
    let same = |pod: &str, cycle: usize| cycle == first.cycle && pod == first.pod;
    changed(story, |output| output.held_nominations.retain(|one| !same(&one.pod, one.cycle)))
}

fn without_room(story: &Story) -> Option<Output> {
    let (held, node) = story.output.held_nominations.iter().find_map(|held| {
        let moment = &story.moments[held.cycle - 1];
        let full = |node: &&Node| {
            let kept = moment.staying().chain(moment.kept());
            let used = story.used_on(&node.name, kept) + story.request(&held.pod);
            node.name != held.node && used.exceeds(&node.allocatable).is_some()
        };
        Some((held, story.cluster().nodes.iter().find(full)?))
    })?;
    changed(story, |output| {
        for one in output.held_nominations.iter_mut().filter(|one| *one == held) {
            one.node = node.name.clone();
        }
        let same = |one: &&mut Placement| one.pod == held.pod && one.cycle == held.cycle;
        for one in output.nominations.iter_mut().filter(same) {
            one.node = node.name.clone();
        }
    })
}

/// A pod that has to leave for a nomination stays.
fn not_cleared(story: &Story) -> Option<Output> {
    let eviction = story.output.evictions.iter().find(|one| {
        let moment = &story.moments[one.cycle - 1];
        let kept = moment.staying().chain(moment.kept());
        let used = story.used_on(&one.node, kept) + story.request(&one.pod);
        let node = story.cluster().node(&one.node);
        node.is_some_and(|node| used.exceeds(&node.allocatable).is_some())
    })?;
    changed(story, |output| output.evictions.retain(|one| one != eviction))
}

/// A pod of another gang is bound to room that was kept, and the nomination is gone.
fn given_away(story: &Story) -> Option<Output> {
    story
        .moments
        .iter()
        .skip(1)
        .find_map(|moment| {
            moment.held_before.iter().find_map(|(pod, name)| {
                let bound = |pod: &str| moment.binds.iter().any(|(bound, _)| bound == pod);
                let node = story.cluster().node(name)?;
                let used = story.used_on(name, moment.staying().chain(moment.kept()));
                let counted = bound(pod) || moment.held.get(pod) == Some(name);
                let rest = if counted { used - story.request(pod) } else { return None };
                let fits = |other: &&String| {
                    let with = rest + story.request(other);
                    story.gang_key(other) != story.gang_key(pod)
                        && !moment.held_before.contains_key(*other)
                        && !bound(other)
                        && with.exceeds(&node.allocatable).is_none()
                        && (with + story.request(pod)).exceeds(&node.allocatable).is_some()
                };
                let other = moment.waiting.iter().find(fits)?;
                let bind =
                    Placement { pod: other.clone(), node: name.clone(), cycle: moment.cycle };
                changed(story, |output| {
                    output
                        .held_nominations
                        .retain(|one| one.cycle != moment.cycle || one.pod != *pod);
                    output.binds.retain(|one| one.pod != *pod);
                    output.binds.push(bind);
                })
            })
        })
        .filter(|_| crate::rules::keeping::binds_come_first(story))
}

/// One nomination of a gang that needs all of them.
fn in_part(story: &Story) -> Option<Output> {
    let held = story.output.held_nominations.iter().find(|held| {
        let moment = &story.moments[held.cycle - 1];
        let gang = story.gang_key(&held.pod);
        let all = story.pods_of(&gang, moment.staying().chain(moment.kept())).len();
        let others =
            moment.held.keys().filter(|pod| **pod != held.pod && story.gang_key(pod) == gang);
        let least = story.cluster().gang(&gang).map_or(1, |gang| gang.min_member);
        let awaits = moment.awaited.keys().any(|pod| story.gang_key(pod) == gang);
        others.count() > 0 && all == least && !awaits
    })?;
    changed(story, |output| {
        output.held_nominations.retain(|one| one != held);
        output.nominations.retain(|one| one.pod != held.pod || one.cycle != held.cycle);
    })
}
