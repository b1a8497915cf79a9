//! A gang starts with at least its minimum of pods, and the minimum of each role, or not at all.

use std::cmp::Ordering;

use crate::base::ids::{GangId, PodId};
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::gangs::Role;
use crate::model::topology::subgroups::Subgroup;
use crate::policy::bundle::GANG_AT_MINIMUM;
use crate::policy::plugin::{Entry, Plugin, answers};
use crate::policy::preemptor::Preemptor;

pub static ENTRY: Entry = Entry {
    name: "gang",
    summary: "all or nothing: a gang starts with its whole minimum, and each role's",
    arguments: &[],
    differs: "Pods with scheduling gates never count for the minimum. As there, the minimums of \
              roles hold only while minMember is at least their sum; `muster check` says where it \
              is not. A gang that is bound below its minimum is completed before another gang \
              starts. Of running gangs, those at their minimum grow first.",
    build: |_, _| Box::new(Gang),
};

struct Gang;

#[answers]
impl Plugin for Gang {
    /// Gangs that don't run yet go before those that only grow, and those that have just their
    /// minimum before those that have more.
    fn gang_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        let growth = |gang: GangId| {
            let gang = &cluster.gangs[gang];
            (gang.ready(true), gang.counts.ready() > gang.minimum)
        };
        growth(a).cmp(&growth(b))
    }

    /// A gang gives what it has above its minimum, its roles' and its subgroups'; a gang of one
    /// gives itself. In the modes that evict whole gangs, bundles take care of that.
    fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<&'static str> {
        if preemptor.by_gang() {
            return None;
        }
        let gang = &cluster.gangs[cluster.pods.gang[victim]?];
        let alone = gang.counts.all() == 1 && gang.minimum <= 1;
        (!alone && !gang.can_spare(cluster.pods.place(victim))).then_some(GANG_AT_MINIMUM)
    }

    fn enforces_minimum(&self) -> bool {
        true
    }

    fn gang_can_start(&self, cluster: &Cluster, gang: GangId) -> Result<(), Reason> {
        let gang = &cluster.gangs[gang];
        if gang.enforces_roles() {
            let name = |role: &Role| {
                role.name.map_or_else(|| "".into(), |name| cluster.names.text(name).clone())
            };
            // Of several the first by name, since the order of roles depends on the order of
            // events.
            let lacking = gang.roles.iter().filter(|role| role.counts.valid() < role.minimum);
            if let Some(role) = lacking.min_by_key(|role| name(role)) {
                let (have, need) = (role.counts.valid(), role.minimum);
                return Err(Reason::NotEnoughOfRole { role: name(role), have, need });
            }
        }
        for (rule, at) in gang.rules().iter().zip(0..) {
            let complete =
                |group: &&Subgroup| group.rule == Some(at) && group.counts.valid() >= rule.size;
            let (have, need) =
                (gang.subgroups().iter().filter(complete).count() as u32, rule.minimum);
            if have < need {
                return Err(Reason::NotEnoughSubgroups { rule: rule.name.clone(), have, need });
            }
        }
        let have = gang.counts.valid();
        if have < gang.minimum {
            return Err(Reason::NotEnoughPods {
                have,
                need: gang.minimum,
                gated: gang.counts.gated,
            });
        }
        Ok(())
    }
}
