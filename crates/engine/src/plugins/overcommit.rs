//! Admits gangs as long as the requests of admitted gangs fit into the cluster, multiplied by a
//! factor.

use crate::base::ids::GangId;
use crate::decision::reason::{Lack, Limit, Reason};
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, Vote, answers};
use crate::settings::argument::Argument;
use crate::shares::admission::Admission;

pub static ENTRY: Entry = Entry {
    name: "overcommit",
    summary: "admits gangs while their requests fit into the cluster times a factor",
    arguments: &[
        Argument {
            name: "overcommit-factor",
            default: "1.2",
            meaning: "how much may be admitted, relative to the cluster; less than 1 counts as 1.2",
        },
        Argument {
            name: "overcommit-factor.<resource>",
            default: "overcommit-factor",
            meaning: "the same for one resource, for example overcommit-factor.nvidia.com/gpu",
        },
    ],
    differs: "",
    build: |args, _| {
        let sane = |factor: i64| if factor < ONE { DEFAULT } else { factor };
        let factor = sane(args.millionths("overcommit-factor", DEFAULT));
        let named = args.prefixed_millionths("overcommit-factor.");
        let named = named.into_iter().map(|(name, factor)| (name, sane(factor))).collect();
        Box::new(Overcommit { factor, named })
    },
};

const ONE: i64 = 1_000_000;
const DEFAULT: i64 = 1_200_000;

/// Factors in millionths.
struct Overcommit {
    factor: i64,
    named: Vec<(String, i64)>,
}

#[answers]
impl Plugin for Overcommit {
    fn enqueue(&self, cluster: &Cluster, admission: &Admission, gang: GangId) -> Vote {
        for (resource, want) in cluster.gangs[gang].awaited() {
            let name = cluster.dimensions.name(resource);
            let factor =
                self.named.iter().find(|(named, _)| named == name).map_or(self.factor, |&(_, f)| f);
            let limit =
                i128::from(cluster.total.get(resource)) * i128::from(factor) / i128::from(ONE);
            let limit = limit.min(i128::from(i64::MAX)) as i64;
            let used = admission.used.get(resource) + admission.cluster.get(resource);
            if want > limit - used {
                let lack = Lack { resource, want, used, limit };
                return Vote::Reject(Reason::NotAdmitted {
                    plugin: ENTRY.name.into(),
                    limit: Limit::Cluster,
                    lack,
                });
            }
        }
        Vote::Permit
    }
}
