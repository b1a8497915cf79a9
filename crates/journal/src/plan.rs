//! A plan by names, which mean the same in every process.

use std::fmt;
use std::sync::Arc;

use muster_api::{PodGroupPhase, Time};
use muster_engine::model::gangs::{Condition, Reported};
use muster_engine::{Bind, Engine, Eviction, GroupNote, Method, Plan, explain};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedPlan {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<Place>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nominations: Vec<Place>,
    /// Pods whose nomination was released.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<Departure>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Update>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub pod: Arc<str>,
    pub uid: Arc<str>,
    pub node: Arc<str>,
    /// Its cards there, as its annotation says, where pods share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<Arc<str>>,
}

/// A pod that is asked to leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    pub place: Place,
    pub action: Arc<str>,
    #[serde(alias = "claimant")]
    pub preemptor: Option<Arc<str>>,
    pub cause: String,
    /// Its object is deleted; otherwise it is evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
}

/// What a plan says of a gang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    pub gang: Arc<str>,
    pub phase: PodGroupPhase,
    pub condition: Condition,
    pub reported: Option<Reported>,
}

/// What is written on a PodGroup; what has no text is taken off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub gang: Arc<str>,
    pub uid: Arc<str>,
    pub annotations: Vec<(String, Option<String>)>,
}

impl NamedPlan {
    /// To be asked for before the engine hears of anything else: until then it knows what the
    /// plan's ids stand for.
    pub fn of(plan: &Plan, engine: &Engine) -> NamedPlan {
        // All fields by name, so that a new one can't be forgotten here.
        let Plan {
            binds,
            nominations,
            withdrawn,
            evictions,
            updates,
            card_notes: _,
            group_notes,
            nomination_counters: _,
            search_counters: _,
            searches: _,
            wake,
        } = plan;
        let cluster = engine.cluster();
        let place = |&Bind { pod, node }: &Bind| {
            let cards = plan.note_of(pod).first().map(|(_, cards)| cards.as_str().into());
            let pod = &cluster.pods.fact[pod];
            Place {
                pod: pod.key.clone(),
                uid: pod.uid.clone(),
                node: cluster.nodes.name[node].clone(),
                cards,
            }
        };
        let departure = |eviction: &Eviction| Departure {
            place: place(&Bind { pod: eviction.pod, node: eviction.node }),
            action: eviction.action.into(),
            preemptor: eviction.preemptor.map(|gang| cluster.gangs[gang].key.clone()),
            cause: explain::cause(cluster, eviction),
            delete: eviction.method == Method::Delete,
        };
        let update = |id: &_| {
            let gang = &cluster.gangs[*id];
            let (phase, reported) = (gang.phase, gang.reported);
            Update { gang: gang.key.clone(), phase, condition: gang.condition.clone(), reported }
        };
        let note = |note: &GroupNote| {
            let gang = &cluster.gangs[note.gang];
            let annotations =
                note.annotations.iter().map(|(key, text)| ((*key).to_owned(), text.clone()));
            Note {
                gang: gang.key.clone(),
                uid: gang.uid.clone(),
                annotations: annotations.collect(),
            }
        };
        NamedPlan {
            binds: binds.iter().map(place).collect(),
            nominations: nominations.iter().map(place).collect(),
            withdrawn: withdrawn.iter().map(|&pod| cluster.pods.name(pod).clone()).collect(),
            evictions: evictions.iter().map(departure).collect(),
            updates: updates.iter().map(update).collect(),
            notes: group_notes.iter().map(note).collect(),
            wake: *wake,
        }
    }

    /// One line for each thing that it says, in its order.
    pub fn lines(&self) -> Vec<String> {
        let binds = self.binds.iter().map(|place| format!("bind {place}"));
        let nominations = self.nominations.iter().map(|place| format!("nominate {place}"));
        let withdrawn = self.withdrawn.iter().map(|pod| format!("release the nomination of {pod}"));
        let evictions = self.evictions.iter().map(|departure| departure.to_string());
        let updates = self.updates.iter().map(|update| format!("report {update}"));
        let notes = self.notes.iter().flat_map(Note::lines);
        let wake = self.wake.iter().map(|time| format!("wake at {time}"));
        let places = binds.chain(nominations).chain(withdrawn).chain(evictions);
        places.chain(updates).chain(notes).chain(wake).collect()
    }
}

impl Note {
    fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.annotations.iter().map(|(key, text)| match text {
            Some(text) => format!("note on {} (uid {}): {key} {text}", self.gang, self.uid),
            None => format!("note on {} (uid {}): no {key}", self.gang, self.uid),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (uid {}) to {}", self.pod, self.uid, self.node)?;
        self.cards.iter().try_for_each(|cards| write!(f, " card {cards}"))
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Departure {
            place: Place { pod, uid, node, cards: _ },
            action,
            preemptor,
            cause,
            delete,
        } = self;
        let verb = if *delete { "delete" } else { "evict" };
        write!(f, "{verb} {pod} (uid {uid}) from {node} by {action}")?;
        if let Some(preemptor) = preemptor {
            write!(f, " for {preemptor}")?;
        }
        write!(f, ", {cause}")
    }
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {:?}", self.gang, self.phase)?;
        if let Some(Reported { phase, running, succeeded, failed }) = &self.reported {
            write!(
                f,
                " (PodGroup {phase:?}: {running} running, {succeeded} succeeded, {failed} failed)"
            )?;
        }
        let Condition { scheduled, reason, message, since } = &self.condition;
        let word = match scheduled {
            Some(true) => "scheduled",
            Some(false) => "unschedulable",
            None => return Ok(()),
        };
        write!(f, ", {word}")?;
        if let Some(since) = since {
            write!(f, " since {since}")?;
        }
        write!(f, ", {reason} {message:?}")
    }
}
