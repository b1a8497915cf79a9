//! The objects that were read, each once, and warnings and notes about them.

use std::collections::{BTreeMap, HashMap};

use muster_api::keys::{DEFAULT_QUEUE, ROOT_QUEUE};
use muster_api::kinds::Kind;
use muster_api::manifest::{Object, PlacedProblem};
use muster_api::{Queue, Time};
use muster_engine::explain::counted;
use muster_kube::Listing;
use serde_json::json;

use super::{InputError, Location, Remark};

/// The same mistake in a thousand pods is shown this many times.
const SHOWN: usize = 20;

#[derive(Default)]
pub struct Collection {
    pub objects: Vec<Object>,
    /// The objects by kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// Where each object was found.
    seen: HashMap<(&'static str, String), Location>,
    /// How many objects of a kind are not needed.
    skipped: BTreeMap<String, usize>,
    /// How many objects nothing acts on though people would expect it, by apiVersion and kind,
    /// where the first of them is, and what it means.
    not_acted_on: BTreeMap<(String, String), (usize, Location, String)>,
    /// Warnings about objects.
    warnings: Vec<String>,
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
        self.warnings.extend(remarks(&object).into_iter().map(|remark| format!("{at}: {remark}")));
        self.keep(object);
        Ok(())
    }

    /// Adds the objects of a cluster. Objects that were read from files replace those of the
    /// cluster. Mistakes in an object are only noted: the API server accepted it, and the scheduler
    /// has to use it.
    pub fn add_live(&mut self, listing: Listing, now: Time) {
        self.live.extend(listing.notes);
        self.warnings.extend(listing.warnings);
        let mut replaced = 0;
        for object in listing.objects {
            if self.seen.contains_key(&(object.kind().name(), object.key())) {
                replaced += 1;
                continue;
            }
            self.warnings.extend(remarks(&object));
            for problem in object.problems() {
                let what = format!("{} {}", object.kind(), object.key());
                self.warnings.push(format!("{what}: {}: {}", problem.path, problem.message));
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

    /// Counts an object that is not needed.
    pub fn skip(&mut self, kind: String) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    /// Counts an object that nothing acts on.
    pub fn skip_with_warning(&mut self, at: Location, kind: [String; 2], meaning: String) {
        let [api_version, kind] = kind;
        let found = self.not_acted_on.entry((api_version, kind)).or_insert((0, at, meaning));
        found.0 += 1;
    }

    pub fn warn(&mut self, file: &str, object: &Object, problem: &PlacedProblem, separator: &str) {
        let what = format!("{} {}", object.kind(), object.key());
        let PlacedProblem { line, path, message } = problem;
        self.warnings.push(format!("{file}:{line}: {what}: {path}{separator}{message}"));
    }

    /// "file:line: Kind name" at the beginning of a message about an object; for a live one only
    /// what it is.
    pub fn title(&self, kind: &'static str, key: &str) -> String {
        match self.seen.get(&(kind, key.to_owned())) {
            Some(place) => format!("{place}: {kind} {key}"),
            None => format!("{kind} {key}"),
        }
    }

    /// Warnings and notes.
    pub fn remarks(&self) -> Vec<Remark> {
        let more = self.warnings.len().saturating_sub(SHOWN);
        let more = (more > 0).then(|| format!("and {more} more like these"));
        let warnings = self.warnings.iter().take(SHOWN).cloned().chain(more);
        let not_acted_on = self.not_acted_on.iter().map(|((api_version, kind), found)| {
            let (count, at, meaning) = found;
            let objects = match count {
                1 => format!("{kind} of {api_version} is not acted on"),
                count => format!("{count} × {kind} of {api_version} are not acted on"),
            };
            format!("{at}: {objects}: {meaning}")
        });
        let skipped = self
            .skipped
            .iter()
            .map(|(kind, count)| format!("skipped {count} of kind {kind}: not needed here"));
        let notes = self.live.iter().cloned().chain(skipped);
        let warnings = warnings.chain(not_acted_on).map(Remark::warning);
        warnings.chain(notes.map(Remark::note)).collect()
    }
}

/// What is allowed but probably not intended.
fn remarks(object: &Object) -> Vec<String> {
    let told = |remark| format!("{} {}: {remark}", object.kind(), object.key());
    object.remarks().into_iter().map(told).collect()
}
