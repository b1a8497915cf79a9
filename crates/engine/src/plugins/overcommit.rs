//! Admits gangs as long as what they await fits into the cluster, stretched by a factor.

use super::{Argument, Entry};
use crate::admission::Admission;
use crate::ids::GangId;
use crate::model::Cluster;
use crate::model::queues::ROOT;
use crate::policy::{Plugin, Question, Vote};
use crate::reason::{Lack, Limit, Reason};

pub static ENTRY: Entry = Entry {
    name: "overcommit",
    summary: "admits gangs while what they await fits into the cluster times a factor",
    arguments: &[Argument {
        name: "overcommit-factor",
        default: "1.2",
        meaning: "how much of the cluster may be spoken for; less than 1 is taken as 1.2",
    }],
    differs: "",
    answers: &[Question::Enqueue],
    build: |args, _| {
        let factor = args.millionths("overcommit-factor", 1_200_000);
        Box::new(Overcommit { factor: if factor < 1_000_000 { 1_200_000 } else { factor } })
    },
};

struct Overcommit {
    factor: i64,
}

impl Plugin for Overcommit {
    fn enqueue(&self, cluster: &Cluster, admission: &Admission, gang: GangId) -> Vote {
        let taken = &cluster.queues[ROOT];
        for (resource, want) in cluster.gangs[gang].awaited() {
            let limit = i128::from(cluster.total.get(resource)) * i128::from(self.factor) / 1_000_000;
            let limit = limit.min(i128::from(i64::MAX)) as i64;
            let used = taken.taken(resource) + admission.cluster.get(resource);
            if want > limit - used {
                let lack = Lack { resource, want, used, limit };
                return Vote::Reject(Reason::NotAdmitted {
                    plugin: "overcommit",
                    limit: Limit::Cluster,
                    lack,
                });
            }
        }
        Vote::Permit
    }
}
