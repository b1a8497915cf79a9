//! Policies that make no subgroup although all pods of their gang exist: the gang runs, or waits,
//! as if it had no such policy.

use std::sync::Arc;

use crate::base::ids::{GangId, PodId};
use crate::model::Cluster;
use crate::model::topology::subgroups::Mismatch;

/// A policy of `subGroupPolicy` that holds for no pod.
pub struct IdlePolicy {
    pub policy: Arc<str>,
    /// How many pods the gang has.
    pub pods: u32,
    pub why: Mismatch,
}

impl Cluster {
    /// The policies of a gang that hold for none of its pods, once as many pods exist as it needs.
    pub fn idle_policies(&self, gang: GangId) -> Vec<IdlePolicy> {
        let row = &self.gangs[gang];
        let pods: Vec<PodId> =
            row.pods.iter().copied().filter(|&pod| !self.pods.state[pod].finished()).collect();
        if pods.is_empty() || (pods.len() as u32) < row.minimum {
            return Vec::new();
        }
        let subgroups = row.subgroups();
        let is_idle = |at: u32| {
            !subgroups.iter().any(|group| group.rule == Some(at) && group.counts.all() > 0)
        };
        let idle = (0..).zip(row.rules()).filter(|(at, _)| is_idle(*at));
        let tags = || pods.iter().map(|&pod| &*self.pods.fact[pod].labels);
        idle.map(|(_, rule)| IdlePolicy {
            policy: rule.name.clone(),
            pods: pods.len() as u32,
            why: rule.mismatch(&self.names, tags()),
        })
        .collect()
    }
}
