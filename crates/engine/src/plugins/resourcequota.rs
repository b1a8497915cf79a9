//! Admits gangs only within the ResourceQuotas of their namespace.

use crate::base::ids::GangId;
use crate::decision::reason::{Lack, Limit, Reason};
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, Vote, answers};
use crate::shares::admission::Admission;

pub static ENTRY: Entry = Entry {
    name: "resourcequota",
    summary: "admits gangs only within the ResourceQuotas of their namespace",
    arguments: &[],
    differs: "Usage is what the pods of the namespace hold on nodes and what admitted gangs still \
              need, not `status.used`, which would count pending pods twice. Quotas with scopes \
              are ignored.",
    build: |_, _| Box::new(ResourceQuota),
};

struct ResourceQuota;

#[answers]
impl Plugin for ResourceQuota {
    fn enqueue(&self, cluster: &Cluster, admission: &Admission, gang: GangId) -> Vote {
        let row = &cluster.gangs[gang];
        let space = &cluster.spaces[row.space];
        for (resource, want) in row.awaited() {
            let used = space.held.get(resource) + admission.space[row.space].get(resource);
            for limit in space.quotas.iter().filter_map(|(_, hard)| hard.get(resource)) {
                if used + want > limit {
                    let lack = Lack { resource, want, used, limit };
                    let name = cluster.names.text(space.name).clone();
                    return Vote::Reject(Reason::NotAdmitted {
                        plugin: ENTRY.name.into(),
                        limit: Limit::Namespace(name),
                        lack,
                    });
                }
            }
        }
        if space.quotas.is_empty() { Vote::Abstain } else { Vote::Permit }
    }
}
