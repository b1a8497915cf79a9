//! The objects that were read, each once, and notes about them.

use std::collections::{BTreeMap, HashMap};

use muster_api::keys::{DEFAULT_QUEUE, ROOT_QUEUE};
use muster_api::kinds::Kind;
use muster_api::manifest::{Object, PlacedProblem};
use muster_api::{Queue, Time};
use muster_engine::explain::counted;
use muster_kube::Listing;
use serde_json::json;

use super::{InputError, Location};

/// The same mistake in a thousand pods is shown this many times.
const REMARKS: usize = 20;

#[derive(Default)]
pub struct Collection {
    pub objects: Vec<Object>,
    /// The objects by kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// Where each object was found.
    seen: HashMap<(&'static str, String), Location>,
    skipped: BTreeMap<String, usize>,
    /// Notes that are not errors.
    remarks: Vec<String>,
    /// Notes on the cluster as a whole.
    live: Vec<String>,
}

impl Collection {
    /// Adds an object from a file. It is an error if there is one of the same name already, since
    /// either may be meant.
    pub fn add(&mut self, at: Location, object: Object) -> Result<(), InputError> {
        let (kind, key) = (object.kind().name(), object.key());
        if let Some(first) = self.seen.insert((kind, key.clone()), at.clone()) {
            return Err(InputError::DefinedTwice { at, object: format!("{kind} {key}"), first });
        }
        self.remarks.extend(remarks(&object).into_iter().map(|remark| format!("{at}: {remark}")));
        self.keep(object);
        Ok(())
    }

    /// Adds the objects of a cluster. Objects that were read from files replace those of the
    /// cluster. Mistakes in an object are only noted: the API server accepted it, and the scheduler
    /// has to use it.
    pub fn add_live(&mut self, listing: Listing, now: Time) {
        self.live.extend(listing.notes);
        let mut replaced = 0;
        for object in listing.objects {
            if self.seen.contains_key(&(object.kind().name(), object.key())) {
                replaced += 1;
                continue;
            }
            self.remarks.extend(remarks(&object));
            for problem in object.problems() {
                let what = format!("{} {}", object.kind(), object.key());
                self.remarks.push(format!("{what}: {}: {}", problem.path, problem.message));
            }
            self.keep(object);
        }
        if replaced > 0 {
            let replaced = counted(replaced, "object");
            self.live.push(format!("{replaced} of the cluster replaced by what the files say"));
        }
        self.add_queues(now);
    }

    /// A scheduler creates the default queues when it starts. Their age can decide which queue is
    /// served first.
    fn add_queues(&mut self, now: Time) {
        for (name, reclaimable) in [(DEFAULT_QUEUE, true), (ROOT_QUEUE, false)] {
            if self
                .objects
                .iter()
                .any(|object| object.kind() == Kind::Queue && object.key() == name)
            {
                continue;
            }
            let queue = json!({
                "metadata": { "name": name, "creationTimestamp": now },
                "spec": { "weight": 1, "reclaimable": reclaimable },
            });
            let queue: Queue = serde_json::from_value(queue).expect("a good queue");
            self.live.push(format!(
                "queue {name} is missing; it is added as a scheduler would create it"
            ));
            self.keep(Object::from(queue));
        }
    }

    fn keep(&mut self, object: Object) {
        *self.counts.entry(object.kind().name()).or_default() += 1;
        self.objects.push(object);
    }

    pub fn skip(&mut self, kind: String) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    pub fn remark(
        &mut self,
        file: &str,
        object: &Object,
        problem: &PlacedProblem,
        separator: &str,
    ) {
        let what = format!("{} {}", object.kind(), object.key());
        let PlacedProblem { line, path, message } = problem;
        self.remarks.push(format!("{file}:{line}: {what}: {path}{separator}{message}"));
    }

    /// "file:line: Kind name" at the beginning of a message about an object; for a live one only
    /// what it is.
    pub fn title(&self, kind: &'static str, key: &str) -> String {
        match self.seen.get(&(kind, key.to_owned())) {
            Some(place) => format!("{place}: {kind} {key}"),
            None => format!("{kind} {key}"),
        }
    }

    pub fn notes(&self) -> Vec<String> {
        let skipped = self
            .skipped
            .iter()
            .map(|(kind, count)| format!("skipped {count} of kind {kind}: not needed here"));
        let more = self.remarks.len().saturating_sub(REMARKS);
        let more = (more > 0).then(|| format!("and {more} more like these"));
        let remarks = self.remarks.iter().take(REMARKS).cloned().chain(more);
        remarks.chain(self.live.iter().cloned()).chain(skipped).collect()
    }
}

/// What is allowed but probably not intended.
fn remarks(object: &Object) -> Vec<String> {
    let Object::PodGroup(group) = object else { return Vec::new() };
    let told = |remark| format!("PodGroup {}: {remark}", object.key());
    group.remarks().into_iter().map(told).collect()
}
