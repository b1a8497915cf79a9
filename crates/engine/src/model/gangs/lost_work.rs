//! How much work is lost if a gang is broken: what it has done since it last saved, and more the
//! nearer it is to its end.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::model::Cluster;
use crate::model::pods::PodState;

/// Whether a gang reports when it last saved its work, or when it will finish.
pub fn says_how_far(cluster: &Cluster, gang: GangId) -> bool {
    let says = cluster.gangs[gang].rare.as_ref();
    says.is_some_and(|says| says.last_checkpoint.is_some() || says.expected_end.is_some())
}

/// What is lost if a gang is broken now, in milliseconds of its work.
pub fn lost_with(cluster: &Cluster, gang: GangId, now: Time) -> i64 {
    // A gang that has not started has nothing to lose.
    let Some(began) = began(cluster, gang) else { return 0 };
    let says = cluster.gangs[gang].rare.as_deref();
    let saved = says.and_then(|says| says.last_checkpoint);
    let end = says.and_then(|says| says.expected_end);
    lost(began, saved, end, now)
}

fn lost(began: Time, saved: Option<Time>, end: Option<Time>, now: Time) -> i64 {
    let since = |time: Time| now.0.saturating_sub(time.0).max(0);
    let unsaved = since(saved.map_or(began, |saved| saved.max(began)));
    let elapsed = i128::from(since(began));
    // Of its run time the part of the whole that is done: nothing for a gang that has just started,
    // everything for one that is about to finish.
    let ahead = end.map(|end| end.0.saturating_sub(now.0)).filter(|&left| left > 0);
    let nearly = ahead.map_or(0, |left| elapsed * elapsed / (elapsed + i128::from(left)));
    unsaved.saturating_add(nearly as i64)
}

/// When the gang had its minimum, those of its roles and its subgroups; none if it never had.
/// Attempts within a cycle do not change it: an evicted pod counts until its object says that it
/// terminates, and one that is nominated has started only if it moves.
pub fn began(cluster: &Cluster, gang: GangId) -> Option<Time> {
    let gang = &cluster.gangs[gang];
    let counts = |pod: &&PodId| match cluster.pods.state[**pod] {
        PodState::Running(_) | PodState::Nominated(_) | PodState::Succeeded => true,
        PodState::Releasing(_) => !cluster.pods.fact[**pod].leaves,
        _ => false,
    };
    let started = |&pod: &PodId| Some((pod, cluster.pods.fact[pod].started?));
    let starts: Vec<(PodId, Time)> = gang.pods.iter().filter(counts).filter_map(started).collect();
    let of = |belongs: &dyn Fn(PodId) -> bool| -> Vec<Time> {
        starts.iter().filter(|(pod, _)| belongs(*pod)).map(|&(_, time)| time).collect()
    };
    let mut last = nth(of(&|_| true), gang.minimum.max(1))?;
    for (at, role) in gang.roles.iter().enumerate().filter(|_| gang.enforces_roles()) {
        if role.minimum > 0 {
            last = last.max(nth(of(&|pod| cluster.pods.role[pod] as usize == at), role.minimum)?);
        }
    }
    for (rule, at) in gang.rules().iter().zip(0..).filter(|(rule, _)| rule.minimum > 0) {
        let groups =
            gang.subgroups().iter().enumerate().filter(|(_, group)| group.rule == Some(at));
        let whole =
            |(place, _)| nth(of(&|pod| cluster.pods.subgroup[pod] as usize == place), rule.size);
        last = last.max(nth(groups.filter_map(whole).collect(), rule.minimum)?);
    }
    Some(last)
}

/// The time by which there were `count` of them.
fn nth(mut times: Vec<Time>, count: u32) -> Option<Time> {
    times.sort_unstable();
    times.get((count as usize).saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_after(began: i64, saved: Option<i64>, end: Option<i64>, now: i64) -> i64 {
        lost(Time(began), saved.map(Time), end.map(Time), Time(now))
    }

    #[test]
    fn what_was_saved_is_not_lost() {
        assert_eq!(lost_after(100, None, None, 900), 800);
        assert_eq!(lost_after(100, Some(700), None, 900), 200);
        // What it saved before it began again is of another life.
        assert_eq!(lost_after(100, Some(50), None, 900), 800);
        // Clocks differ.
        assert_eq!(lost_after(100, Some(950), None, 900), 0);
        assert_eq!(lost_after(950, None, Some(2000), 900), 0);
    }

    #[test]
    fn a_gang_that_is_nearly_done_costs_more_than_one_that_has_just_begun() {
        let at = |now| lost_after(0, Some(now), Some(1000), now);
        assert_eq!([10, 100, 500, 900, 990].map(at), [0, 10, 250, 810, 980]);
        // An end that has passed says nothing any more.
        assert_eq!(at(1000), 0);
    }

    #[test]
    fn times_at_the_ends_of_the_world_are_no_trouble() {
        assert_eq!(lost_after(i64::MIN, None, Some(i64::MAX), 0), i64::MAX);
    }
}
