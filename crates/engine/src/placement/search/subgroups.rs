//! A gang with subgroups: each is placed in a domain of its own, as near as its rule says.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::base::ids::{DomainId, NodeId, PodId, ShapeId};
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::model::gangs::missing::{Missing, missing_after_nominations};
use crate::model::pods::Counts;
use crate::model::shapes::shapes;
use crate::model::topology::domains::ROOT;
use crate::model::topology::places::{PlacedPods, place_of};
use crate::model::topology::subgroups::{Subgroup, TierLimit};
use crate::model::txn::Txn;
use crate::placement::domains::steps;
use crate::placement::search::{Search, Set, Steps};

/// What decides where a subgroup without placed pods fits: its rule, how many pods it lacks, and
/// how many wait of each shape.
type Kind = (Option<u32>, u32, Vec<(ShapeId, u32)>);

/// A subgroup with waiting pods.
struct Group {
    /// Its index in the gang's list.
    at: usize,
    waiting: Vec<PodId>,
    others: PlacedPods,
}

impl Search<'_, '_> {
    /// Places what a gang with subgroups needs into a domain: the subgroups that it must have, then
    /// others and single pods up to its minimum; above it, one subgroup or pod.
    pub(super) fn place_groups(
        &mut self,
        txn: &mut Txn,
        pods: &[PodId],
        domain: DomainId,
    ) -> Result<(), Vec<Reason>> {
        let mut groups = self.groups(txn, pods);
        let mut reasons: Vec<Reason> = Vec::new();
        let starting =
            self.missing(txn).total > 0 || groups.iter().any(|group| self.is_required(txn, group));
        if starting {
            self.place_some(txn, &mut groups, domain, &mut reasons, Search::is_required);
            // Pods above the size of their subgroup come after all subgroups have their size.
            groups.sort_by_key(|group| self.is_ready(txn, group.at));
        }
        let mut placed = true;
        while placed && self.missing(txn).total > 0 {
            placed = self.place_some(txn, &mut groups, domain, &mut reasons, Search::helps);
        }
        if starting {
            let complete = self.missing(txn).total == 0 && !self.lacks_subgroups(txn);
            return if complete { Ok(()) } else { Err(reasons) };
        }
        for group in &mut groups {
            match self.place_group(txn, group, domain) {
                Ok(()) => return Ok(()),
                Err(why) if reasons.is_empty() => reasons = why,
                Err(_) => {}
            }
        }
        Err(reasons)
    }

    /// Places each of the subgroups that `wanted` selects when its turn comes. A subgroup that
    /// cannot be placed does not stop the others. Returns whether any was placed.
    fn place_some(
        &mut self,
        txn: &mut Txn,
        groups: &mut [Group],
        domain: DomainId,
        reasons: &mut Vec<Reason>,
        wanted: fn(&Self, &Txn, &Group) -> bool,
    ) -> bool {
        let mut placed = false;
        for group in groups {
            if wanted(self, txn, group) {
                match self.place_group(txn, group, domain) {
                    Ok(()) => placed = true,
                    Err(why) if reasons.is_empty() => *reasons = why,
                    Err(_) => {}
                }
            }
        }
        placed
    }

    /// What is missing to the gang's minimum.
    fn missing(&self, txn: &Txn) -> Missing {
        let (gang, whole) = (&txn.gangs[self.gang], self.policy.enforces_minimum());
        if self.room == Room::FutureIdle {
            missing_after_nominations(gang, whole)
        } else {
            gang.missing(whole)
        }
    }

    /// Whether some of the pods that would be placed next count for what is missing.
    fn helps(&self, txn: &Txn, group: &Group) -> bool {
        let missing = self.missing(txn);
        let counts = |pod: &PodId| missing.wants(txn.pods.role[*pod] as usize);
        missing.total > 0
            && group.waiting.iter().take(self.lacks(txn, group.at) as usize).any(counts)
    }

    /// How many pods of a subgroup are placed next: what it lacks to its size, otherwise one.
    fn lacks(&self, txn: &Txn, at: usize) -> u32 {
        let gang = &txn.gangs[self.gang];
        let subgroup = &gang.subgroups()[at];
        gang.size_of(subgroup).saturating_sub(self.taken(&subgroup.counts)).max(1)
    }

    fn lacks_subgroups(&self, txn: &Txn) -> bool {
        let rules = txn.gangs[self.gang].rules().len() as u32;
        self.policy.enforces_minimum() && (0..rules).any(|rule| self.lacks_subgroup_of(txn, rule))
    }

    /// Whether fewer subgroups of a rule are ready than the gang needs.
    fn lacks_subgroup_of(&self, txn: &Txn, rule: u32) -> bool {
        let gang = &txn.gangs[self.gang];
        let of_rule = |at: &usize| gang.subgroups()[*at].rule == Some(rule);
        let ready = (0..gang.subgroups().len())
            .filter(of_rule)
            .filter(|&at| self.is_ready(txn, at))
            .count();
        ready < gang.rules()[rule as usize].minimum as usize
    }

    /// Whether the gang cannot start without this subgroup or another one of its rule.
    fn is_required(&self, txn: &Txn, group: &Group) -> bool {
        let rule = txn.gangs[self.gang].subgroups()[group.at].rule;
        !self.is_ready(txn, group.at) && rule.is_some_and(|rule| self.lacks_subgroup_of(txn, rule))
    }

    /// How many pods hold room that counts in this placement.
    fn taken(&self, counts: &Counts) -> u32 {
        counts.ready() + if self.room == Room::FutureIdle { counts.nominated } else { 0 }
    }

    /// The subgroups with pods that wait, in the order in which they are placed: those that don't
    /// run before those that only grow, single pods last, then by priority, number and name.
    fn groups(&self, txn: &Txn, pods: &[PodId]) -> Vec<Group> {
        let gang = &txn.gangs[self.gang];
        let subgroups = gang.subgroups();
        let mut groups: Vec<Group> = (0..subgroups.len())
            .map(|at| Group { at, waiting: Vec::new(), others: PlacedPods::default() })
            .collect();
        let mut highest: Vec<i32> = vec![i32::MIN; subgroups.len()];
        let mut places: Vec<Vec<NodeId>> = vec![Vec::new(); subgroups.len()];
        for &pod in pods.iter().filter(|&&pod| txn.pods.state[pod].needs_node()) {
            groups[txn.pods.subgroup[pod] as usize].waiting.push(pod);
        }
        for &pod in gang.pods.iter().filter(|&&pod| !txn.pods.state[pod].finished()) {
            let at = txn.pods.subgroup[pod] as usize;
            highest[at] = highest[at].max(txn.pods.order[pod]);
            places[at].extend(place_of(txn, pod));
        }
        for reserved in gang.reserved() {
            let is_of = |group: &Subgroup| Some(&group.name) == reserved.subgroup.as_ref();
            let at = subgroups.iter().position(is_of);
            at.into_iter().for_each(|at| places[at].push(reserved.node));
        }
        for (group, places) in groups.iter_mut().zip(places) {
            group.others = PlacedPods::on(&txn.domains, places.into_iter());
        }
        groups.retain(|group| !group.waiting.is_empty());
        let key = |group: &Group| {
            let subgroup = &subgroups[group.at];
            let (ready, single) = (self.is_ready(txn, group.at), subgroup.rule.is_none());
            (ready, single, Reverse(highest[group.at]), subgroup.index, &subgroup.name)
        };
        groups.sort_by(|a, b| key(a).cmp(&key(b)));
        groups
    }

    fn is_ready(&self, txn: &Txn, at: usize) -> bool {
        let gang = &txn.gangs[self.gang];
        let group = &gang.subgroups()[at];
        self.taken(&group.counts) >= gang.size_of(group)
    }

    /// Places what a subgroup lacks to its size, all of it or nothing; one pod if it lacks nothing.
    fn place_group(
        &mut self,
        txn: &mut Txn,
        group: &mut Group,
        domain: DomainId,
    ) -> Result<(), Vec<Reason>> {
        let lacks = self.lacks(txn, group.at);
        let gang = &txn.gangs[self.gang];
        let subgroup = &gang.subgroups()[group.at];
        let have = group.waiting.len() as u32;
        if have < lacks {
            let subgroup = subgroup.name.clone();
            return Err(vec![Reason::NotEnoughOfSubgroup { subgroup, have, need: lacks }]);
        }
        let (rule, roles, name) = (subgroup.rule, gang.roles.len(), subgroup.name.clone());
        let tier_limit = rule.and_then(|rule| gang.rules()[rule as usize].tier_limit.clone());
        let missing = Missing { total: lacks, roles: vec![0; roles] };
        let mark = txn.mark();
        let result = if self.force.is_some() {
            self.force_all(txn, &group.waiting, &missing).map_err(|reason| vec![reason])
        } else {
            let steps = self.group_steps(
                txn,
                rule,
                tier_limit.as_ref(),
                group.others.common_domain,
                domain,
            )?;
            let set = Set {
                subgroup: rule.is_some().then_some(&name),
                inside: domain,
                pods: &group.waiting,
                missing: &missing,
                others: &group.others,
            };
            self.place_set(txn, &steps, &set, tier_limit.as_ref())
        };
        if result.is_err() {
            txn.rewind(mark);
            return result;
        }
        group.others.join(&txn.domains, txn.since(mark).iter().filter_map(|step| step.to.node()));
        group.waiting.retain(|&pod| txn.pods.state[pod].needs_node());
        result
    }

    /// The first of the subgroups to be placed that none of its domains holds, even if the gang
    /// places nothing else. The domains are those that the gang and the subgroup may use.
    pub(super) fn subgroup_without_domain(
        &mut self,
        txn: &Txn,
        pods: &[PodId],
        of_gang: &[Vec<DomainId>],
    ) -> Option<Reason> {
        let groups = self.groups(txn, pods);
        let is_needed = |group: &Group| self.is_required(txn, group) || self.helps(txn, group);
        let starting = self.missing(txn).total > 0 || groups.iter().any(is_needed);
        let wanted: Vec<Group> =
            groups.into_iter().filter(|group| !starting || is_needed(group)).collect();
        let allowed: BTreeSet<DomainId> = of_gang.iter().flatten().copied().collect();
        let mut held: Vec<Kind> = Vec::new();
        for group in &wanted {
            let (gang, lacks) = (&txn.gangs[self.gang], self.lacks(txn, group.at));
            let Subgroup { rule, name, .. } = &gang.subgroups()[group.at];
            let tier_limit = rule.and_then(|rule| gang.rules()[rule as usize].tier_limit.clone());
            let kind: Kind = (*rule, lacks, shapes(txn, &group.waiting));
            let alike = group.others.common_domain.is_none() && held.contains(&kind);
            if alike || rule.is_none() || group.waiting.len() < lacks as usize {
                continue;
            }
            let common_domain = group.others.common_domain;
            let mut steps = match &tier_limit {
                Some(limit) => steps(&txn.domains, Some(limit), common_domain, ROOT).ok()?,
                None => of_gang.to_vec(),
            };
            steps.iter_mut().for_each(|step| step.retain(|domain| allowed.contains(domain)));
            let missing = Missing { total: lacks, roles: vec![0; gang.roles.len()] };
            let set = Set {
                subgroup: Some(name),
                inside: ROOT,
                pods: &group.waiting,
                missing: &missing,
                others: &group.others,
            };
            if steps.iter().all(|step| self.scores(txn, step, &set, &kind.2).is_empty()) {
                let limit = tier_limit.or_else(|| gang.tier_limit().cloned());
                return Some(self.too_small(txn, &steps, &set, limit.as_ref()));
            }
            held.push(kind);
        }
        None
    }

    fn group_steps(
        &mut self,
        txn: &Txn,
        rule: Option<u32>,
        tier_limit: Option<&TierLimit>,
        common_domain: Option<DomainId>,
        domain: DomainId,
    ) -> Result<Steps, Vec<Reason>> {
        let key = (rule.unwrap_or(u32::MAX), domain);
        if common_domain.is_none()
            && let Some((_, known)) = self.open_steps.iter().find(|(of, _)| *of == key)
        {
            return Ok(known.clone());
        }
        let found: Steps = steps(&txn.domains, tier_limit, common_domain, domain)
            .map_err(|reason| vec![reason])?
            .into();
        if common_domain.is_none() {
            self.open_steps.push((key, found.clone()));
        }
        Ok(found)
    }
}
