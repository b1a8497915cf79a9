//! The gang table. A gang is a PodGroup with its pods, or one pod without a PodGroup.

pub mod broken;
pub mod lost_work;
pub mod missing;
mod table;

pub use missing::Missing;
pub use table::Gangs;

use std::sync::Arc;

use muster_api::{PodGroupPhase, Portion, Time};
use serde::{Deserialize, Serialize};

use crate::base::ids::{PodId, QueueId, SpaceId, Symbol};
use crate::base::resources::{Amounts, Sparse};
use crate::decision::reason::Reason;
use crate::model::notes::GroupAnnotations;
use crate::model::pods::{Counts, Sum};
use crate::model::reservations::Reservation;
use crate::model::topology::subgroups::{Rule, Subgroup, TierLimit, TopologyRules};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Gang {
    /// `namespace/name` of the PodGroup, or of the pod that is a gang of one.
    pub key: Arc<str>,
    lookup: Arc<str>,
    pub space: SpaceId,
    pub origin: Origin,
    pub live: bool,
    pub uid: Arc<str>,
    pub version: u64,
    pub queue: QueueId,
    /// Otherwise it follows its namespace.
    pub names_queue: bool,
    pub priority: i32,
    pub priority_class: Option<Symbol>,
    pub created: Time,
    /// How many pods must run for any to run. Without the `gang` plugin it is not asked.
    pub minimum: u32,
    pub roles: Vec<Role>,
    /// Where its pods go, or which of them go together, if that matters.
    #[serde(alias = "choosy")]
    pub topology_rules: Option<Box<TopologyRules>>,
    pub min_resources: Option<Sparse>,
    pub estimate: Option<i64>,
    pub protected: bool,
    /// Its places may be taken back.
    pub revocable: bool,
    /// What few gangs say of how long they may wait, of when their pods may be taken, and of what
    /// is lost then.
    #[serde(alias = "allowance")]
    pub rare: Option<Box<RareGangFields>>,
    pub phase: PodGroupPhase,
    pub condition: Condition,
    /// What was last put into a plan.
    pub reported: Option<Reported>,
    /// Its pods in the order of their role's index, creation and name.
    pub pods: Vec<PodId>,
    pub counts: Counts,
    /// Requests of its pods: bound, nominated, terminating; and of all that are not finished.
    pub held: Amounts,
    pub nominated: Amounts,
    pub leaving: Amounts,
    pub requested: Amounts,
    /// When it was admitted, as far as this process knows.
    pub admitted: Option<Time>,
    /// When it gave an admission back; later comers go first.
    pub gave_back: Option<Time>,
    /// Since when it waits with all that it needs to be tried.
    pub waiting_since: Option<Time>,
    /// A write for it failed: not tried again before this time.
    pub backoff_until: Option<Time>,
    pub failures: u32,
    /// What is written on its PodGroup.
    #[serde(default)]
    pub(crate) notes: Option<Box<GroupAnnotations>>,
    /// Why it waits, as decided when it was last tried.
    pub reasons: Vec<Reason>,
    /// It fitted nowhere when this much room had been freed; until more is, it is not tried again.
    #[serde(alias = "hopeless")]
    pub did_not_fit_at: Option<u64>,
    /// Its place in the list of those that wait.
    waiting_at: Option<u32>,
    dirty: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RareGangFields {
    /// How long its pods are protected from eviction, unless they say so themselves, in
    /// milliseconds.
    pub cooldown: Option<i64>,
    /// How many of its pods must stay, and may be missing.
    pub min_available: Option<Portion>,
    pub max_unavailable: Option<Portion>,
    /// When it last saved its work, and when it is expected to be done.
    #[serde(default)]
    pub last_checkpoint: Option<Time>,
    #[serde(default)]
    pub expected_end: Option<Time>,
    /// How long it may hold places for less than its minimum, in milliseconds; negative is for
    /// ever.
    #[serde(default)]
    pub staleness_grace: Option<i64>,
    /// How long it may wait to be admitted, in milliseconds.
    #[serde(default)]
    pub sla_wait: Option<i64>,
}

impl RareGangFields {
    /// In a box, if there is anything in it.
    pub(super) fn boxed(self) -> Option<Box<RareGangFields>> {
        (self != RareGangFields::default()).then(|| Box::new(self))
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A PodGroup object.
    Group,
    /// Named by a pod, but the PodGroup isn't there (yet, or any more).
    Missing,
    /// A pod that names no PodGroup.
    Solo,
}

/// Pods of one task template, with a minimum of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub name: Option<Symbol>,
    pub minimum: u32,
    pub counts: Counts,
}

/// The PodGroup condition as last written or read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub scheduled: Option<bool>,
    pub reason: String,
    pub message: String,
    pub since: Option<Time>,
}

/// A PodGroup's phase, and how many of its pods have started, succeeded and failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    pub phase: PodGroupPhase,
    pub running: u32,
    pub succeeded: u32,
    pub failed: u32,
}

impl Gang {
    pub(super) fn new(key: Arc<str>, space: SpaceId, origin: Origin, queue: QueueId) -> Gang {
        Gang {
            lookup: key.clone(),
            key,
            space,
            origin,
            live: true,
            uid: "".into(),
            version: 0,
            queue,
            names_queue: false,
            priority: 0,
            priority_class: None,
            created: Time::default(),
            minimum: 1,
            roles: Vec::new(),
            topology_rules: None,
            min_resources: None,
            estimate: None,
            protected: false,
            revocable: false,
            rare: None,
            phase: PodGroupPhase::Pending,
            condition: Condition::default(),
            reported: None,
            pods: Vec::new(),
            counts: Counts::default(),
            held: Amounts::default(),
            nominated: Amounts::default(),
            leaving: Amounts::default(),
            requested: Amounts::default(),
            admitted: None,
            gave_back: None,
            waiting_since: None,
            backoff_until: None,
            failures: 0,
            reasons: Vec::new(),
            did_not_fit_at: None,
            notes: None,
            waiting_at: None,
            dirty: false,
        }
    }

    /// Its PodGroup is gone: back to what a gang is before its PodGroup is known. Pods and sums
    /// stay.
    pub(super) fn forget(&mut self) {
        let blank = Gang::new(self.key.clone(), self.space, Origin::Missing, self.queue);
        let old = std::mem::replace(self, blank.clone());
        let Gang { lookup, pods, counts, mut roles, held, nominated, leaving, requested, .. } = old;

        let Gang { waiting_at, dirty, .. } = old;
        roles.iter_mut().for_each(|role| role.minimum = 0);
        let known =
            Gang { lookup, pods, counts, roles, held, nominated, leaving, requested, ..blank };
        *self = Gang { waiting_at, dirty, ..known };
    }

    #[inline]
    pub(super) fn sum_mut(&mut self, sum: Sum) -> &mut Amounts {
        match sum {
            Sum::Held => &mut self.held,
            Sum::Nominated => &mut self.nominated,
            Sum::Leaving => &mut self.leaving,
        }
    }

    /// Roles bind only when the gang's own minimum leaves room for all of theirs (Volcano's rule).
    pub fn enforces_roles(&self) -> bool {
        self.minimum >= self.roles.iter().map(|role| role.minimum).sum()
    }

    /// What is missing to the minimum: pods in all, and pods of each role.
    pub fn missing(&self, whole: bool) -> Missing {
        let minimum = if whole { self.minimum } else { 1 };
        let roles: Vec<u32> = if whole && self.enforces_roles() {
            self.roles.iter().map(|role| role.minimum.saturating_sub(role.counts.ready())).collect()
        } else {
            vec![0; self.roles.len()]
        };
        let total = minimum.saturating_sub(self.counts.ready()).max(roles.iter().sum());
        Missing { total, roles }
    }

    /// Runs with its minimum: nothing is missing.
    pub fn ready(&self, whole: bool) -> bool {
        let minimum = if whole { self.minimum } else { 1 };
        let filled = |role: &Role| role.counts.ready() >= role.minimum;
        self.counts.ready() >= minimum
            && (!whole || !self.enforces_roles() || self.roles.iter().all(filled))
            && (!whole || self.has_its_subgroups(|group| group.counts.ready()))
    }

    /// Whether the gang has its minimum without a pod of this role and subgroup that holds a place.
    pub fn can_spare(&self, (role, subgroup): (usize, usize)) -> bool {
        let role = self.roles.get(role).filter(|_| self.enforces_roles());
        let subgroup = self.subgroups().get(subgroup);
        self.counts.ready() > self.minimum
            && role.is_none_or(|role| role.counts.ready() > role.minimum)
            && subgroup.is_none_or(|group| {
                group.rule.is_none() || group.counts.ready() > self.size_of(group)
            })
    }

    /// Whether the gang has its minimum, its roles' and as many subgroups as it needs without a pod
    /// of this role and subgroup that holds a place; a subgroup that it doesn't need may lose
    /// some of its pods.
    pub fn runs_without(&self, (role, subgroup): (usize, usize)) -> bool {
        let role = self.roles.get(role).filter(|_| self.enforces_roles());
        let group = self.subgroups().get(subgroup);
        let rule = group.and_then(|group| Some((group, &self.rules()[group.rule? as usize])));
        let spares = |(group, rule): (&Subgroup, &Rule)| {
            group.counts.ready() > rule.size || self.others_ready(subgroup) >= rule.minimum as usize
        };
        self.counts.ready() > self.minimum
            && role.is_none_or(|role| role.counts.ready() > role.minimum)
            && rule.is_none_or(spares)
    }

    /// How many other subgroups of the same rule have what they need.
    fn others_ready(&self, place: usize) -> usize {
        let rule = self.subgroups()[place].rule;
        let ready =
            |group: &Subgroup| group.rule == rule && group.counts.ready() >= self.size_of(group);
        let others = self.subgroups().iter().enumerate().filter(|(other, _)| *other != place);
        others.filter(|(_, group)| ready(group)).count()
    }

    /// Whether so many pods are all of a subgroup, and the gang has as many others of its kind as
    /// it needs.
    pub fn can_spare_subgroup(&self, place: usize, pods: u32) -> bool {
        let group = &self.subgroups()[place];
        let Some(rule) = group.rule else { return false };
        pods > 0
            && group.counts.ready() == pods
            && self.others_ready(place) >= self.rules()[rule as usize].minimum as usize
            && self.counts.ready() >= self.minimum + pods
    }

    /// Of each rule, as many subgroups as it needs have as many pods as they should, counted like
    /// this.
    pub(crate) fn has_its_subgroups(&self, pods: impl Fn(&Subgroup) -> u32) -> bool {
        self.rules().iter().zip(0..).all(|(rule, at)| {
            let ready = |group: &&Subgroup| group.rule == Some(at) && pods(group) >= rule.size;
            rule.minimum == 0
                || self.subgroups().iter().filter(ready).count() >= rule.minimum as usize
        })
    }

    /// How many pods are missing in the subgroups that it needs, the fullest first, and how many it
    /// needs in them.
    pub fn missing_in_subgroups(&self) -> (u32, u32) {
        let lacks = self.rules().iter().zip(0..).map(|(rule, at)| {
            let groups = self.subgroups().iter().filter(|group| group.rule == Some(at));
            let mut ready: Vec<u32> =
                groups.map(|group| group.counts.ready().min(rule.size)).collect();
            ready.sort_unstable_by(|a, b| b.cmp(a));
            let has: u32 = ready.iter().take(rule.minimum as usize).sum();
            (rule.minimum * rule.size - has, rule.minimum * rule.size)
        });
        lacks.fold((0, 0), |(lacks, needs), (lack, need)| (lacks + lack, needs + need))
    }

    pub fn tier_limit(&self) -> Option<&TierLimit> {
        self.topology_rules.as_ref()?.tier_limit.as_ref()
    }

    pub fn rules(&self) -> &[Rule] {
        self.topology_rules.as_ref().map_or(&[], |topology_rules| &topology_rules.rules)
    }

    /// Empty without rules; else the first is of pods that no rule is about.
    pub fn subgroups(&self) -> &[Subgroup] {
        self.topology_rules.as_ref().map_or(&[], |topology_rules| &topology_rules.subgroups)
    }

    #[inline]
    fn subgroup_mut(&mut self, place: usize) -> Option<&mut Subgroup> {
        self.topology_rules.as_mut()?.subgroups.get_mut(place)
    }

    /// How many pods of a subgroup start together.
    pub fn size_of(&self, subgroup: &Subgroup) -> u32 {
        subgroup.rule.map_or(1, |rule| self.rules()[rule as usize].size)
    }

    /// The part of `min_resources` for which its pods are neither bound nor nominated; nothing once
    /// the gang has started.
    pub fn awaited(&self) -> Vec<(crate::base::ids::ResourceId, i64)> {
        let started = self.counts.ready() > 0 && self.ready(true);
        self.min_resources
            .iter()
            .filter(|_| !started)
            .flat_map(Sparse::iter)
            .map(|(resource, amount)| {
                (resource, (amount - self.held.get(resource) - self.nominated.get(resource)).max(0))
            })
            .filter(|&(_, amount)| amount > 0)
            .collect()
    }

    /// Has been let into the line for room.
    pub fn admitted(&self) -> bool {
        self.phase != PodGroupPhase::Pending || self.origin == Origin::Solo
    }

    /// Has something to wait for: its admission, its start, or a place for good for some of its
    /// pods.
    pub fn waits(&self) -> bool {
        let not_started = matches!(self.phase, PodGroupPhase::Pending | PodGroupPhase::Inqueue);
        self.live
            && (self.origin == Origin::Group && not_started
                || self.counts.pending + self.counts.nominated + self.counts.gated > 0)
    }

    /// Some of its pods hold places, and they are too few.
    pub fn is_broken(&self, whole: bool) -> bool {
        self.counts.allocated + self.counts.running > 0 && !self.ready(whole)
    }

    /// The places that are kept for pods of it that will be made again.
    pub fn reserved(&self) -> &[Reservation] {
        self.notes.as_ref().map_or(&[], |notes| notes.reserved())
    }

    /// What its PodGroup says under our keys, or will once all that was told is written; of others
    /// nothing.
    pub fn noted(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        self.notes.iter().flat_map(|notes| notes.written())
    }

    /// All that its PodGroup says of whether and when its pods may be taken, and of what is lost
    /// with them.
    pub(super) fn taken_as(&self) -> impl PartialEq + use<> {
        let roles: Vec<_> = self.roles.iter().map(|role| (role.name, role.minimum)).collect();
        let topology_rules = (self.tier_limit().cloned(), self.rules().to_vec());
        let terms =
            (self.origin, self.queue, self.priority, self.created, self.minimum, self.estimate);
        (terms, (self.protected, self.revocable, self.rare.clone()), roles, topology_rules)
    }

    /// Waits with nothing placed.
    pub fn idle(&self) -> bool {
        self.counts.allocated + self.counts.running + self.counts.nominated + self.counts.releasing
            == 0
    }
}

#[cfg(test)]
mod tests {
    use muster_api::SubGroupPolicy;
    use proptest::prelude::*;

    use super::super::selectors::tags;
    use super::*;
    use crate::base::ids::NodeId;
    use crate::base::names::Names;
    use crate::model::pods::PodState;

    fn missing(total: u32, roles: &[u32]) -> Missing {
        Missing { total, roles: roles.to_vec() }
    }

    #[test]
    fn pods_of_a_role_are_kept_for_its_minimum() {
        let mut left = missing(3, &[1, 1]);
        assert!(left.wants(0), "the first of role 0 fills its minimum");
        left.take(0);
        assert!(left.wants(0), "one place is open to any role");
        left.take(0);
        assert!(!left.wants(0) && left.wants(1), "the last place is kept for role 1");
        left.take(1);
        assert_eq!(left, missing(0, &[0, 0]));
    }

    /// A gang whose pods run, each of a role and a part; parts have a size, and so many of them are
    /// needed.
    fn running(
        minimum: u32,
        roles: [u32; 2],
        (size, least): (u32, u32),
        pods: &[(usize, u32)],
    ) -> Gang {
        let mut names = Names::default();
        let policy = SubGroupPolicy {
            sub_group_size: size as i32,
            min_sub_groups: least as i32,
            match_label_keys: vec!["part".into()],
            ..SubGroupPolicy::default()
        };
        let rule = Rule::of(&mut names, &policy);
        let mut topology_rules = TopologyRules::new(None, vec![rule]).expect("it has a rule");
        let mut gang = Gang::new("g".into(), SpaceId(0), Origin::Group, QueueId(0));
        gang.minimum = minimum;
        gang.roles = roles
            .map(|minimum| Role { name: None, minimum, counts: Counts::default() })
            .into_iter()
            .collect();
        for &(role, part) in pods {
            let labels =
                [("part".to_owned(), part.to_string())].into_iter().filter(|_| part > 0).collect();
            let tags = tags(&mut names, &labels);
            let place = topology_rules.assign(&names, &tags) as usize;
            gang.topology_rules = Some(topology_rules);
            count(&mut gang, (role, place), 1);
            topology_rules = gang.topology_rules.take().expect("it was given");
        }
        gang.topology_rules = Some(topology_rules);
        gang
    }

    fn count(gang: &mut Gang, (role, subgroup): (usize, usize), sign: i64) {
        let state = PodState::Running(NodeId(0));
        gang.counts.add(state, false, sign);
        gang.roles[role].counts.add(state, false, sign);
        gang.subgroup_mut(subgroup).expect("a subgroup").counts.add(state, false, sign);
    }

    proptest! {
        #[test]
        fn a_gang_runs_without_a_pod_if_it_is_ready_when_that_has_left(
            minimum in 0u32..6,
            roles in [0u32..3, 0u32..3],
            parts in (1u32..3, 0u32..3),
            pods in proptest::collection::vec((0usize..2, 0u32..4), 1..9),
        ) {
            let gang = running(minimum, roles, parts, &pods);
            for role in 0..2 {
                for place in 0..gang.subgroups().len() {
                    let here = gang.roles[role].counts.running.min(gang.subgroups()[place].counts.running);
                    if here == 0 || !gang.ready(true) {
                        continue;
                    }
                    let mut without = gang.clone();
                    count(&mut without, (role, place), -1);
                    prop_assert_eq!(gang.runs_without((role, place)), without.ready(true));
                    prop_assert!(gang.runs_without((role, place)) || !gang.can_spare((role, place)));
                }
            }
        }
    }
}
