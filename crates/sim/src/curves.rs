//! What queues use, should have and have used of late, as it changes in a run.

use muster_api::Time;
use muster_engine::Engine;
use muster_engine::ids::{QueueId, ResourceId};
use muster_engine::shares::{self, PPM};

/// One resource, in order of time. Nothing is kept between two changes.
pub struct Curves {
    pub resource: ResourceId,
    pub begin: Time,
    pub end: Time,
    pub samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub now: Time,
    /// What there is to divide.
    pub total: i64,
    /// In no particular order.
    pub queues: Vec<QueueSample>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct QueueSample {
    pub queue: QueueId,
    pub used: i64,
    pub fair: i64,
    /// In parts per million of all there was.
    pub usage_ppm: i64,
}

impl Curves {
    pub fn new(resource: ResourceId, begin: Time) -> Curves {
        Curves { resource, begin, end: begin, samples: Vec::new() }
    }

    pub(crate) fn look(&mut self, engine: &Engine, now: Time) {
        self.end = now;
        let (cluster, rules) = (engine.cluster(), engine.policy().fairness());
        let (tree, k_ppm) = rules.map_or((false, PPM), |rules| (rules.tree, rules.k_ppm));
        let divisions = shares::trace(cluster, tree, k_ppm, self.resource);
        let portions = divisions.iter().flat_map(|division| &division.portions);
        let queues = portions.map(|portion| QueueSample {
            queue: portion.queue,
            used: cluster.queues[portion.queue].taken(self.resource),
            fair: portion.fair,
            usage_ppm: portion.usage_ppm,
        });
        let sample =
            Sample { now, total: shares::total(cluster, self.resource), queues: queues.collect() };
        let same = |last: &Sample| (last.total, &last.queues) == (sample.total, &sample.queues);
        if !self.samples.last().is_some_and(same) {
            self.samples.push(sample);
        }
    }
}
