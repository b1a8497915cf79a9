//! What queues have held of late, in buckets of time. What is longer ago counts less
//! (`usage/decay.rs`), and what is longer ago than the window not at all. Shares go by figures that
//! change only when they have changed noticeably.

pub mod decay;
pub mod record;

use std::collections::{BTreeMap, VecDeque};

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::base::ids::{QueueId, ResourceId, Table};
use crate::base::parts_per_million::PPM;
use crate::base::resources::{Amounts, Dimensions, PODS};
use crate::model::Cluster;
use crate::model::queues;
use crate::model::queues::Queue;
use crate::model::usage::decay::{ONE, half_lives};

pub use crate::model::usage::record::Record;

/// How often the figures are looked at.
pub const LOOK_MS: i64 = 60_000;
/// Figures stay as they are while none would change by as much as this: half a percent of the
/// cluster.
const NOTICEABLE_PPM: i64 = 5_000;
/// The window is cut into so many buckets, so that what is kept, and written to the cluster, stays
/// small.
const BUCKETS: i64 = 32;
/// After so many half-lives only 1 / 65,536 is left.
const HALF_LIVES: i64 = 16;

/// How long what was used is remembered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What was used so long ago counts half; without it all of the window counts alike.
    pub half_life_ms: Option<i64>,
    pub window_ms: i64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Everything up to here is in the buckets.
    counted: Option<Time>,
    /// What was held and there then, and has been since.
    held: Vec<(QueueId, Amounts)>,
    total: Amounts,
    /// The oldest first.
    buckets: VecDeque<Bucket>,
    /// When the figures were last looked at, and what they are: of all there was in parts per
    /// million.
    looked: Option<Time>,
    figures: Table<QueueId, Amounts>,
}

/// What was held in a span of time, in amounts times seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    from: Time,
    to: Time,
    total: Amounts,
    queues: BTreeMap<QueueId, Amounts>,
}

impl Memory {
    /// What is longer ago doesn't count.
    fn reach_ms(self) -> i64 {
        let forgotten = self.half_life_ms.map_or(i64::MAX, |half| half.saturating_mul(HALF_LIVES));
        self.window_ms.min(forgotten).max(1000)
    }

    /// How long a bucket is, in whole seconds.
    fn bucket_ms(self) -> i64 {
        (self.reach_ms() / BUCKETS + 999) / 1000 * 1000
    }

    /// How much a bucket counts, in parts of [`ONE`]: all of it by the age of its middle, and no
    /// more than is in the window.
    fn weight(self, bucket: &Bucket, now: Time) -> i64 {
        let (from, to) = (bucket.from.0, bucket.to.0.min(now.0));
        let seen = to - from.max(now.0 - self.reach_ms());
        if seen <= 0 {
            return 0;
        }
        let age = now.0 - (from + to) / 2;
        let weight = self.half_life_ms.map_or(ONE, |half| half_lives(age, half));
        (i128::from(weight) * i128::from(seen) / i128::from(to - from)) as i64
    }
}

impl Usage {
    /// How much of all there was a queue has used of late, as far as shares go by it.
    pub fn ppm(&self, queue: QueueId, resource: ResourceId) -> i64 {
        self.figures.rows().get(usize::from(queue)).map_or(0, |figures| figures.get(resource))
    }

    pub fn is_empty(&self) -> bool {
        self.counted.is_none() && self.buckets.is_empty()
    }

    /// When the figures are to be looked at again: they change while anything is held, or has not
    /// been forgotten.
    pub fn next_look(&self) -> Option<Time> {
        let changes =
            !self.held.is_empty() || self.figures.rows().iter().any(|figures| !figures.is_zero());
        self.looked.filter(|_| changes).map(|looked| looked.plus_ms(LOOK_MS))
    }

    /// Time has passed with what was held at its beginning.
    fn pass(&mut self, now: Time, memory: Memory, dimensions: &Dimensions) {
        let end = Time(now.0 - now.0.rem_euclid(1000));
        let begin = self.counted.unwrap_or(end);
        // A clock that is put back doesn't count the same time twice.
        self.counted = Some(begin.max(end));
        let mut at = begin.max(Time(end.0 - memory.reach_ms()));
        while at < end {
            let bucket = self.bucket_at(at, memory.bucket_ms());
            let until = self.buckets[bucket].to.min(end);
            let seconds = (until.0 - at.0) / 1000;
            let Bucket { total, queues, .. } = &mut self.buckets[bucket];
            accrue(total, &self.total, seconds, dimensions);
            for (queue, held) in &self.held {
                accrue(queues.entry(*queue).or_default(), held, seconds, dimensions);
            }
            at = until;
        }
        let oldest = end.0 - memory.reach_ms();
        self.buckets.retain(|bucket| bucket.to.0 > oldest);
    }

    /// The place of the bucket in which a time counts. Buckets begin at the same times everywhere.
    fn bucket_at(&mut self, at: Time, width_ms: i64) -> usize {
        let last = self.buckets.back().map_or(Time(i64::MIN), |bucket| bucket.to);
        if at >= last {
            let from = Time(at.0 - at.0.rem_euclid(width_ms));
            let (total, queues) = Default::default();
            self.buckets.push_back(Bucket {
                from: from.max(last),
                to: from.plus_ms(width_ms),
                total,
                queues,
            });
        }
        self.buckets.len() - 1
    }

    /// What each queue has used, with all that is remembered weighed as of now.
    fn weighed(&self, now: Time, memory: Memory, queues: usize) -> Table<QueueId, Amounts> {
        let mut sums: BTreeMap<(QueueId, ResourceId), i128> = BTreeMap::new();
        let mut totals: BTreeMap<ResourceId, i128> = BTreeMap::new();
        for bucket in &self.buckets {
            let weight = i128::from(memory.weight(bucket, now));
            for (resource, amount) in bucket.total.iter() {
                *totals.entry(resource).or_default() += weight * i128::from(amount);
            }
            for (&queue, held) in &bucket.queues {
                for (resource, amount) in held.iter() {
                    *sums.entry((queue, resource)).or_default() += weight * i128::from(amount);
                }
            }
        }
        let mut figures: Table<QueueId, Amounts> = Table::default();
        figures.grow(queues, Amounts::default());
        for ((queue, resource), sum) in sums {
            let total = totals.get(&resource).copied().unwrap_or(0).max(1);
            figures[queue]
                .add(resource, (sum * i128::from(PPM) / total).min(i128::from(PPM)) as i64);
        }
        figures
    }

    /// Looks at the figures if it is time to. True if they have changed noticeably.
    fn look(&mut self, now: Time, memory: Memory, queues: usize) -> bool {
        if self.looked.is_some_and(|looked| now >= looked && now < looked.plus_ms(LOOK_MS)) {
            return false;
        }
        self.looked = Some(now);
        let figures = self.weighed(now, memory, queues);
        let changed = |(queue, found): (QueueId, &Amounts)| {
            let known = self.figures.rows().get(usize::from(queue));
            let resources = found.iter().chain(known.into_iter().flat_map(Amounts::iter));
            resources.map(|(resource, _)| resource).any(|resource| {
                (found.get(resource) - self.ppm(queue, resource)).abs() >= NOTICEABLE_PPM
            })
        };
        let noticed = figures.iter().any(changed);
        if noticed {
            self.figures = figures;
        }
        noticed
    }
}

/// Adds amounts times seconds. Bytes count as mebibytes, so that a bucket of any cluster fits into
/// its numbers.
fn accrue(sum: &mut Amounts, held: &Amounts, seconds: i64, dimensions: &Dimensions) {
    for (resource, amount) in held.iter() {
        let amount = if dimensions.counts_bytes(resource) { amount >> 20 } else { amount };
        let room = i64::MAX - sum.get(resource);
        sum.add(resource, amount.saturating_mul(seconds).min(room));
    }
}

impl Cluster {
    /// Time has passed. What shares go by may have changed by it; then whatever was found out about
    /// them is to be found anew.
    pub(crate) fn recall_usage(&mut self, now: Time, memory: Option<Memory>) {
        let Some(memory) = memory else {
            if !self.usage.is_empty() {
                self.usage = Usage::default();
                self.shares_changed();
            }
            return;
        };
        self.usage.pass(now, memory, &self.dimensions);
        if self.usage.look(now, memory, self.queues.len()) {
            self.shares_changed();
        }
    }

    /// What is held now counts until the next cycle.
    pub(crate) fn note_usage(&mut self) {
        let holds = |(id, queue): (QueueId, &Queue)| {
            let mut held = queue.held.clone();
            held.add(PODS, -held.get(PODS));
            (!held.is_zero()).then_some((id, held))
        };
        self.usage.held = self.queues.iter().filter_map(holds).collect();
        let mut total = Amounts::default();
        for resource in queues::divided(self) {
            total.add(resource, queues::total(self, resource));
        }
        self.usage.total = total;
    }

    fn shares_changed(&mut self) {
        self.generation += 1;
        self.events += 1;
        self.freed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::resources::CPU;
    use crate::base::resources::MEMORY;

    const HOUR: i64 = 3_600_000;
    const QUEUE: QueueId = QueueId(1);

    fn amounts(resource: ResourceId, amount: i64) -> Amounts {
        let mut amounts = Amounts::default();
        amounts.add(resource, amount);
        amounts
    }

    /// A queue that holds so much of ten from hour to hour, beginning at none.
    fn after(memory: Memory, hours: &[i64]) -> Usage {
        let mut usage = Usage { total: amounts(CPU, 10), ..Usage::default() };
        for (hour, &held) in (0..).zip(hours) {
            usage.pass(Time(hour * HOUR), memory, &Dimensions::default());
            usage.held = vec![(QUEUE, amounts(CPU, held))];
        }
        usage.pass(Time(hours.len() as i64 * HOUR), memory, &Dimensions::default());
        usage
    }

    fn ppm(usage: &Usage, hour: i64, memory: Memory) -> i64 {
        usage.weighed(Time(hour * HOUR), memory, 2)[QUEUE].get(CPU)
    }

    #[test]
    fn without_a_half_life_all_of_the_window_counts_alike() {
        let memory = Memory { half_life_ms: None, window_ms: 4 * HOUR };
        assert_eq!(ppm(&after(memory, &[10, 0]), 2, memory), 500_000);
        assert_eq!(ppm(&after(memory, &[10, 0, 0, 0]), 4, memory), 250_000);
    }

    #[test]
    fn what_is_longer_ago_than_the_window_is_forgotten() {
        let memory = Memory { half_life_ms: None, window_ms: 2 * HOUR };
        let usage = after(memory, &[10, 10, 0]);
        assert_eq!(ppm(&usage, 3, memory), 500_000, "of the last two hours one was used");
        assert_eq!(ppm(&after(memory, &[10, 10, 0, 0]), 4, memory), 0);
        assert!(usage.buckets.len() <= BUCKETS as usize + 1, "{}", usage.buckets.len());
    }

    #[test]
    fn what_was_used_a_half_life_ago_counts_half() {
        let memory = Memory { half_life_ms: Some(HOUR), window_ms: 168 * HOUR };
        // An hour long all, then an hour long nothing: a half of the first against the second,
        // which is a third.
        let found = ppm(&after(memory, &[10, 0]), 2, memory);
        assert!((found - 333_333).abs() < 1_500, "{found}");
        let found = ppm(&after(memory, &[10, 0, 0]), 3, memory);
        assert!((found - 1_000_000 / 7).abs() < 1_500, "{found}");
    }

    #[test]
    fn usage_is_forgotten_without_being_asked_for_in_between() {
        let memory = Memory { half_life_ms: None, window_ms: 2 * HOUR };
        let mut usage = after(memory, &[10]);
        usage.held.clear();
        usage.pass(Time(1_000_000 * HOUR), memory, &Dimensions::default());
        assert!(usage.buckets.len() <= BUCKETS as usize + 1);
        assert_eq!(ppm(&usage, 1_000_000, memory), 0);
    }

    #[test]
    fn memory_of_any_cluster_fits() {
        let memory = Memory { half_life_ms: None, window_ms: 168 * HOUR };
        let mut usage = Usage { total: amounts(MEMORY, i64::MAX), ..Usage::default() };
        usage.held = vec![(QUEUE, amounts(MEMORY, i64::MAX / 2))];
        usage.pass(Time(0), memory, &Dimensions::default());
        usage.pass(Time(24 * HOUR), memory, &Dimensions::default());
        let found = usage.weighed(Time(24 * HOUR), memory, 2)[QUEUE].get(MEMORY);
        assert!((found - 500_000).abs() < 10, "{found}");
    }

    #[test]
    fn figures_stay_until_they_would_change_noticeably() {
        let memory = Memory { half_life_ms: None, window_ms: 10 * HOUR };
        let mut usage = after(memory, &[10, 10]);
        assert!(usage.look(Time(2 * HOUR), memory, 2));
        assert_eq!(usage.ppm(QUEUE, CPU), 1_000_000);
        usage.held.clear();
        let mut pass = |minutes: i64| {
            let now = Time(2 * HOUR + minutes * 60_000);
            usage.pass(now, memory, &Dimensions::default());
            (usage.look(now, memory, 2), usage.ppm(QUEUE, CPU))
        };
        assert_eq!(pass(0), (false, 1_000_000), "it is too early to look");
        let changed = (1..=10).map(&mut pass).filter(|(noticed, _)| *noticed).count();
        assert_eq!(changed, 10, "a minute of two hours is more than half a percent");
    }
}
