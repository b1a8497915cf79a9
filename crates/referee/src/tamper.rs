//! Ways to make a true output false, so that a test can tell that the rules see. Each change is false
//! for certain, by the manifests and the true output.

mod binds;
mod evictions;
mod nominations;

use crate::output::{Eviction, Output, Placement};
use crate::timeline::{Moment, Story};

/// A kind of falsehood.
pub struct Tampering {
    pub name: &'static str,
    /// The rule that must see it.
    pub seen_by: &'static str,
    /// None where the output has nothing that could be changed like this.
    pub change: fn(&Story) -> Option<Output>,
}

/// All kinds.
pub fn all() -> impl Iterator<Item = &'static Tampering> {
    binds::KINDS.iter().chain(evictions::KINDS).chain(nominations::KINDS)
}

/// The output after a change, with counts that agree with its lists.
fn changed(story: &Story, change: impl FnOnce(&mut Output)) -> Option<Output> {
    let mut output = story.output.clone();
    change(&mut output);
    for line in &mut output.cycles {
        line.binds = output.binds.iter().filter(|one| one.cycle == line.cycle).count();
        line.evictions = output.evictions.iter().filter(|one| one.cycle == line.cycle).count();
        line.nominations = output.nominations.iter().filter(|one| one.cycle == line.cycle).count();
    }
    Some(output)
}

/// The output with another node for a bind.
fn bind_elsewhere(story: &Story, bind: &Placement, node: &str) -> Option<Output> {
    changed(story, |output| {
        for other in output.binds.iter_mut().filter(|other| *other == bind) {
            other.node = node.to_owned();
        }
    })
}

/// An eviction like another, of another pod.
fn eviction_like(one: &Eviction, moment: &Moment, pod: &str) -> Eviction {
    let node = moment.placed[pod].node.clone();
    Eviction { pod: pod.to_owned(), node, moves_to: None, ..one.clone() }
}

/// Pods that run when a cycle begins and are not asked to leave in it.
fn stays(moment: &Moment) -> impl Iterator<Item = &str> {
    moment.placed.keys().map(String::as_str).filter(|pod| !moment.evicts(pod))
}
