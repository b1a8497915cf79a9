//! Whether a gang holds nodes for less than it needs, and since when.

use muster_api::Time;

use crate::base::ids::GangId;
use crate::model::Cluster;
use crate::model::gangs::Gang;
use crate::model::gangs::missing::{expected, will_be_ready};
use crate::model::notes::GroupAnnotations;
use crate::model::pods::Counts;

/// Whether a gang is broken and cannot be completed by its nominations: it, or one of its subgroups,
/// runs with fewer pods than it needs, and none has succeeded. A stale gang stays stale while its
/// pods terminate, since their evictions may be refused.
pub fn is_stale(gang: &Gang, whole: bool, was_stale: bool) -> bool {
    let Counts { allocated, running, releasing, succeeded, .. } = gang.counts;
    let holds = allocated + running > 0 || was_stale && releasing > 0;
    let lacks =
        || !gang.ready(whole) && !will_be_ready(gang, whole) || torn(gang, whole).next().is_some();
    holds && succeeded == 0 && lacks()
}

/// The subgroups that run with fewer pods than their size, whether the gang needs them or not.
pub fn torn(gang: &Gang, whole: bool) -> impl Iterator<Item = usize> + '_ {
    let subgroups = gang.subgroups().iter().enumerate().filter(move |_| whole);
    let torn = subgroups.filter(|(_, group)| {
        let Counts { allocated, running, releasing, .. } = group.counts;
        let holds = allocated + running + releasing > 0;
        holds && group.rule.is_some() && expected(gang, group) < gang.size_of(group)
    });
    torn.map(|(place, _)| place)
}

/// Sets since when a gang is stale: now, or the time on its PodGroup if an earlier process has seen
/// it stale.
pub fn time_staleness(cluster: &mut Cluster, id: GangId, whole: bool, now: Time) {
    let inherited = GroupAnnotations::take_inherited(&mut cluster.gangs[id].notes);
    let was_stale = inherited.is_some() || cluster.gangs.broken_since(id).is_some();
    let stale = is_stale(&cluster.gangs[id], whole, was_stale);
    cluster.gangs.note_broken(id, stale, inherited.map_or(now, |since| since.min(now)));
}
