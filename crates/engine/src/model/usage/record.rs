//! What is remembered, by names, to be kept where it outlives this process. Every name is in it
//! once, since an object of the cluster can't be large.

use std::collections::BTreeMap;

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::base::resources::Amounts;
use crate::model::Cluster;
use crate::model::usage::Bucket;

/// Amounts times seconds: of each resource one for each span.
type Column = BTreeMap<String, Vec<i64>>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The buckets, the oldest first: from and to.
    pub spans: Vec<(Time, Time)>,
    /// All there was.
    pub total: Column,
    /// What each queue held of it.
    pub queues: BTreeMap<String, Column>,
}

impl Cluster {
    pub fn usage_record(&self) -> Record {
        let mut record = Record::default();
        let spans = self.usage.buckets.len();
        for (at, bucket) in self.usage.buckets.iter().enumerate() {
            record.spans.push((bucket.from, bucket.to));
            self.write_down(&mut record.total, &bucket.total, (at, spans));
            for (&queue, held) in &bucket.queues {
                let name = self.queues[queue].name.to_string();
                self.write_down(record.queues.entry(name).or_default(), held, (at, spans));
            }
        }
        record
    }

    fn write_down(&self, column: &mut Column, amounts: &Amounts, (at, spans): (usize, usize)) {
        for (resource, amount) in amounts.iter() {
            let name = self.dimensions.name(resource).to_owned();
            column.entry(name).or_insert_with(|| vec![0; spans])[at] = amount;
        }
    }

    /// Takes in what an earlier process remembered: all that was before this one began to count.
    /// What makes no sense is left out.
    pub(in crate::model) fn recorded_usage(&mut self, record: &Record) {
        let begun = self.usage.buckets.front().map(|bucket| bucket.from);
        let mut buckets: Vec<Bucket> = Vec::new();
        for (at, &(from, to)) in record.spans.iter().enumerate() {
            let follows = buckets.last().is_none_or(|last| last.to <= from);
            if from >= to || !follows || begun.is_some_and(|begun| begun < to) {
                continue;
            }
            let mut queues = BTreeMap::new();
            for (name, held) in &record.queues {
                let held = self.read_back(held, at);
                if !held.is_zero() {
                    queues.insert(self.queues.slot(name), held);
                }
            }
            let total = self.read_back(&record.total, at);
            buckets.push(Bucket { from, to, total, queues });
        }
        self.nodes.widen(self.dimensions.len());
        for bucket in buckets.into_iter().rev() {
            self.usage.buckets.push_front(bucket);
        }
        // Whatever was found without it is looked at again.
        self.usage.looked = None;
    }

    fn read_back(&mut self, column: &Column, at: usize) -> Amounts {
        let mut amounts = Amounts::default();
        for (name, values) in column {
            let amount = values.get(at).copied().unwrap_or(0).max(0);
            amounts.add(self.dimensions.intern(name), amount);
        }
        amounts
    }
}
