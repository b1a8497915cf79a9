//! What is remembered, by names, to be kept where it outlives this process.

use std::collections::BTreeMap;

use muster_api::Time;
use serde::{Deserialize, Serialize};

use super::Bucket;
use crate::model::Cluster;
use crate::resources::{Amounts, Dimensions};

/// The oldest bucket first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub buckets: Vec<RecordedBucket>,
}

/// Amounts times seconds, by resource: of all there was, and of what each queue held of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedBucket {
    pub from: Time,
    pub to: Time,
    pub total: BTreeMap<String, i64>,
    pub queues: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Cluster {
    pub fn usage_record(&self) -> Record {
        let named = |amounts: &Amounts| -> BTreeMap<String, i64> {
            amounts.iter().map(|(id, amount)| (self.dimensions.name(id).to_owned(), amount)).collect()
        };
        let bucket = |bucket: &Bucket| RecordedBucket {
            from: bucket.from,
            to: bucket.to,
            total: named(&bucket.total),
            queues: bucket
                .queues
                .iter()
                .map(|(&queue, held)| (self.queues[queue].name.to_string(), named(held)))
                .collect(),
        };
        Record { buckets: self.usage.buckets.iter().map(bucket).collect() }
    }

    /// Takes in what someone before us remembered: all that was before we began to count.
    pub(in crate::model) fn recorded_usage(&mut self, record: &Record) {
        let own = self.usage.buckets.front().map(|bucket| bucket.from);
        let before =
            |bucket: &&RecordedBucket| own.is_none_or(|own| bucket.to <= own) && bucket.from < bucket.to;
        let mut buckets: Vec<Bucket> = Vec::new();
        for recorded in record.buckets.iter().filter(before) {
            let mut queues = BTreeMap::new();
            for (name, held) in &recorded.queues {
                queues.insert(self.queues.slot(name), amounts(&mut self.dimensions, held));
            }
            let total = amounts(&mut self.dimensions, &recorded.total);
            buckets.push(Bucket { from: recorded.from, to: recorded.to, total, queues });
        }
        self.nodes.widen(self.dimensions.len());
        buckets.sort_by_key(|bucket| bucket.from);
        // A record that someone has written by hand may say something twice.
        buckets.dedup_by(|next, last| next.from < last.to);
        for bucket in buckets.into_iter().rev() {
            self.usage.buckets.push_front(bucket);
        }
        // Whatever was found without it is looked at again.
        self.usage.looked = None;
    }
}

fn amounts(dimensions: &mut Dimensions, named: &BTreeMap<String, i64>) -> Amounts {
    let mut amounts = Amounts::default();
    for (name, &amount) in named.iter().filter(|(_, amount)| **amount > 0) {
        amounts.add(dimensions.intern(name), amount);
    }
    amounts
}
