//! Gangs with a time by which they should have started go first, the earliest time first.

use std::cmp::Ordering;

use muster_api::Time;

use crate::base::ids::GangId;
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, answers};
use crate::settings::argument::Argument;

pub static ENTRY: Entry = Entry {
    name: "sla",
    summary: "orders gangs by the time by which they should have started",
    arguments: &[Argument {
        name: "sla-waiting-time",
        default: "",
        meaning: "how long any gang may wait; a gang's annotation `sla-waiting-time` takes \
                  precedence",
    }],
    differs: "A gang whose time is up does not count as complete before its minimum is placed, \
              and it does not override a quota at admission.",
    build: |args, _| Box::new(Sla { wait: args.duration_ms("sla-waiting-time", None) }),
};

struct Sla {
    wait: Option<i64>,
}

impl Sla {
    fn deadline(&self, cluster: &Cluster, gang: GangId) -> Option<Time> {
        let gang = &cluster.gangs[gang];
        let own = gang.rare.as_ref().and_then(|rare| rare.sla_wait);
        own.or(self.wait).map(|wait| gang.created.plus_ms(wait))
    }
}

#[answers]
impl Plugin for Sla {
    fn gang_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        match (self.deadline(cluster, a), self.deadline(cluster, b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }
}
