//! The domains that a gang may use, nearest first.

use crate::base::ids::{DomainId, GangId, PodId};
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::topology::domains::{Domains, ROOT};
use crate::model::topology::places::around;
use crate::model::topology::subgroups::TierLimit;

/// The domains that may hold pods with these topology rules inside another domain: in steps,
/// nearest to the other pods first, and among those the lowest tiers first. The error says why
/// there are none.
pub fn steps(
    domains: &Domains,
    tier_limit: Option<&TierLimit>,
    common_domain: Option<DomainId>,
    inside: DomainId,
) -> Result<Vec<Vec<DomainId>>, Reason> {
    let Some(tier_limit) = tier_limit else { return Ok(vec![vec![inside]]) };
    let limit = tier_limit.limit(domains).map_err(|tier| Reason::NoSuchTier { tier })?;
    let allowed = |domain: &DomainId| domains[*domain].tier <= limit;
    let top = match common_domain {
        // The highest allowed domain around the other pods, inside the domain that is searched.
        Some(common_domain) => {
            let around = domains.chain(common_domain).filter(|at| domains.holds(inside, *at));
            around.take_while(allowed).last().ok_or_else(|| Reason::TooFarApart {
                domain: domains[common_domain].name.clone(),
                tier: domains[common_domain].tier,
                limit,
            })?
        }
        None => inside,
    };
    let near = |domain: DomainId| {
        common_domain.map_or(0, |common_domain| domains[domains.common(common_domain, domain)].tier)
    };
    let below = domains.below(top).map(DomainId).filter(allowed);
    let mut keyed: Vec<((u32, u32), DomainId)> =
        below.map(|domain| ((near(domain), domains[domain].tier), domain)).collect();
    keyed.sort_unstable();
    let steps = keyed.chunk_by(|a, b| a.0 == b.0);
    Ok(steps.map(|step| step.iter().map(|&(_, domain)| domain).collect()).collect())
}

/// The largest domains in which a pod of the gang may be, given where others of the gang and of its
/// subgroup are. A gang that only prefers to be near may be anywhere.
pub fn allowed_domains(cluster: &Cluster, id: GangId, pod: PodId) -> Result<Vec<DomainId>, Reason> {
    let (gang, domains) = (&cluster.gangs[id], &cluster.domains);
    let place = cluster.pods.subgroup[pod];
    let rule = gang.subgroups().get(place as usize).and_then(|group| group.rule);
    let of_rule = rule.and_then(|rule| gang.rules()[rule as usize].tier_limit.as_ref());
    let of_gang = tops(domains, gang.tier_limit(), around(cluster, id, None))?;
    let of_group = tops(domains, of_rule, around(cluster, id, Some(place)))?;
    let both = |&a: &DomainId| {
        of_group.iter().copied().filter_map(move |b| {
            match (domains.holds(a, b), domains.holds(b, a)) {
                (true, _) => Some(b),
                (_, true) => Some(a),
                _ => None,
            }
        })
    };
    Ok(of_gang.iter().flat_map(both).collect())
}

/// Where room may be made for a gang by evictions, nearest first: in one domain if its pods must be
/// near each other, otherwise anywhere.
pub fn domains_for(cluster: &Cluster, id: GangId) -> Result<Vec<Vec<DomainId>>, Reason> {
    let gang = &cluster.gangs[id];
    let tier_limit = gang.tier_limit().filter(|tier_limit| tier_limit.hard);
    steps(&cluster.domains, tier_limit, around(cluster, id, None), ROOT)
}

pub fn tops(
    domains: &Domains,
    tier_limit: Option<&TierLimit>,
    common_domain: Option<DomainId>,
) -> Result<Vec<DomainId>, Reason> {
    let Some(tier_limit) = tier_limit.filter(|tier_limit| tier_limit.hard) else {
        return Ok(vec![ROOT]);
    };
    let limit = tier_limit.limit(domains).map_err(|tier| Reason::NoSuchTier { tier })?;
    let allowed = |domain: DomainId| domains[domain].tier <= limit;
    let is_top =
        |&domain: &DomainId| allowed(domain) && !domains[domain].parent.is_some_and(allowed);
    match common_domain {
        None => Ok(domains.ids().filter(is_top).collect()),
        Some(common_domain) => {
            domains.chain(common_domain).find(is_top).map(|top| vec![top]).ok_or_else(|| {
                Reason::TooFarApart {
                    domain: domains[common_domain].name.clone(),
                    tier: domains[common_domain].tier,
                    limit,
                }
            })
        }
    }
}
