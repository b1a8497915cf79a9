//! The plan of a cycle: what it decided, by names, which mean the same in every process, and what
//! must be written before what. Its serialised form is what journals keep.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use muster_api::{PodGroupPhase, PodGroupStatus, Time};
use serde::{Deserialize, Serialize};

use crate::base::ids::{GangId, NodeId, PodId};
use crate::base::purpose::Method;
use crate::decision::cause::Cause;
use crate::decision::counters::{NominationCounters, SearchCounters};
use crate::decision::decisions::{self, Decisions};
use crate::model::Cluster;
use crate::model::gangs::{Condition, Origin, Reported};
use crate::model::pods::PodState;
use crate::report::{status, words};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// In the order of the decisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<Placement>,
    /// Nominations that are new to the cluster, in the order of the decisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nominations: Vec<Placement>,
    /// Pods whose nomination was released and which wait again, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<Arc<str>>,
    /// In the order of the decisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<Eviction>,
    /// Gangs whose phase or condition changed, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Update>,
    /// What is to be written on PodGroups, by name; only what changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<GroupNote>,
    /// Call again then, even if nothing happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake: Option<Time>,
    /// All evictions, in groups of those that wait for the same writes.
    #[serde(skip)]
    pub eviction_groups: Vec<EvictionGroup>,
    /// What is to be written on pods that share cards, by name: on bound ones with the bind, on
    /// others with their nomination.
    #[serde(skip)]
    pub card_notes: Vec<CardNote>,
    /// What became of nominations, for metrics.
    #[serde(skip)]
    pub nomination_counters: NominationCounters,
    /// What it took to find pods to evict, and what that costs, for metrics.
    #[serde(skip)]
    pub search_counters: SearchCounters,
}

/// A pod and its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub pod: Arc<str>,
    pub uid: Arc<str>,
    pub node: Arc<str>,
    /// Its cards there, as its annotation says, where pods share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    pub place: Placement,
    /// The name of the action that decided it.
    pub action: Cow<'static, str>,
    /// The gang that gets the room, if the pod is evicted for one.
    #[serde(alias = "claimant")]
    pub preemptor: Option<Arc<str>>,
    /// In a sentence.
    pub cause: String,
    /// The pod's object is deleted; otherwise the pod is evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
    /// The node where room is reserved for the pod's successor, if it moves.
    #[serde(skip)]
    pub moves_to: Option<Arc<str>>,
}

/// Evictions, and what the API server must know before them. Nothing, if it lists nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionGroup {
    /// Where they are in [`Plan::evictions`].
    pub evictions: Vec<usize>,
    /// The nominated pods of the preemptor.
    pub nominated: Vec<Arc<str>>,
    /// PodGroups that say which room is reserved for the successors of evicted pods.
    pub reserving: Vec<Arc<str>>,
}

/// What is said of a gang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    pub gang: Arc<str>,
    pub phase: PodGroupPhase,
    pub condition: Condition,
    pub reported: Option<Reported>,
}

/// Annotations of a PodGroup; those without a text are removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupNote {
    pub gang: Arc<str>,
    pub uid: Arc<str>,
    pub annotations: Vec<(Cow<'static, str>, Option<String>)>,
}

/// The annotations that tell a node's device plugin which cards a pod has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardNote {
    pub pod: Arc<str>,
    pub annotations: Vec<(&'static str, String)>,
}

impl Plan {
    /// Until the engine hears of something else, it knows what the ids stand for.
    pub(crate) fn of(cluster: &Cluster, decisions: &Decisions) -> Plan {
        // All fields by name, so that a new one can't be forgotten here.
        let Decisions {
            binds,
            nominations,
            withdrawn,
            evictions,
            updates,
            card_notes,
            group_notes,
            nomination_counters,
            search_counters,
            searches: _,
            wake,
        } = decisions;
        let refused: BTreeSet<PodId> = refused_evictions(cluster, decisions).into_iter().collect();
        let names = Names { cluster, decisions, refused };
        let mut card_notes: Vec<CardNote> = card_notes
            .iter()
            .map(|note| CardNote {
                pod: cluster.pods.name(note.pod).clone(),
                annotations: note.annotations.clone(),
            })
            .collect();
        card_notes.sort_unstable_by(|a, b| a.pod.cmp(&b.pod));
        Plan {
            binds: binds.iter().map(|bind| names.placement(bind.pod, bind.node)).collect(),
            nominations: nominations
                .iter()
                .map(|bind| names.placement(bind.pod, bind.node))
                .collect(),
            withdrawn: withdrawn.iter().map(|&pod| cluster.pods.name(pod).clone()).collect(),
            evictions: evictions.iter().map(|eviction| names.eviction(eviction)).collect(),
            updates: updates.iter().map(|&gang| names.update(gang)).collect(),
            notes: group_notes.iter().map(|note| names.note(note)).collect(),
            wake: *wake,
            eviction_groups: names.eviction_groups(),
            card_notes,
            nomination_counters: *nomination_counters,
            search_counters: search_counters.clone(),
        }
    }

    /// Decides nothing.
    pub fn is_empty(&self) -> bool {
        let Plan { binds, nominations, withdrawn, evictions, updates, notes, .. } = self;
        let lengths = [binds.len(), nominations.len(), withdrawn.len(), evictions.len()];
        lengths == [0; 4] && updates.is_empty() && notes.is_empty()
    }

    /// What is to be written on a pod about its cards; for most pods nothing.
    pub fn card_note(&self, pod: &str) -> &[(&'static str, String)] {
        let found = self.card_notes.binary_search_by(|note| (*note.pod).cmp(pod));
        found.map_or(&[], |at| &self.card_notes[at].annotations)
    }

    /// What a journal keeps of it: the rest follows from that and from the model.
    pub fn recorded(mut self) -> Plan {
        self.evictions.iter_mut().for_each(|eviction| eviction.moves_to = None);
        Plan {
            eviction_groups: Vec::new(),
            card_notes: Vec::new(),
            nomination_counters: NominationCounters::default(),
            search_counters: SearchCounters::default(),
            ..self
        }
    }

    /// One line for each thing that it says, in its order.
    pub fn lines(&self) -> Vec<String> {
        let binds = self.binds.iter().map(|place| format!("bind {place}"));
        let nominations = self.nominations.iter().map(|place| format!("nominate {place}"));
        let withdrawn = self.withdrawn.iter().map(|pod| format!("release the nomination of {pod}"));
        let evictions = self.evictions.iter().map(ToString::to_string);
        let updates = self.updates.iter().map(|update| format!("report {update}"));
        let notes = self.notes.iter().flat_map(GroupNote::lines);
        let wake = self.wake.iter().map(|time| format!("wake at {time}"));
        let places = binds.chain(nominations).chain(withdrawn).chain(evictions);
        places.chain(updates).chain(notes).chain(wake).collect()
    }
}

impl Eviction {
    pub fn method(&self) -> Method {
        if self.delete { Method::Delete } else { Method::Evict }
    }
}

impl Update {
    /// The status of the gang's PodGroup; nothing for a gang without one.
    pub fn status(&self) -> Option<PodGroupStatus> {
        self.reported.map(|reported| status::said(reported, &self.condition))
    }
}

/// Turns ids into names.
struct Names<'c> {
    cluster: &'c Cluster,
    decisions: &'c Decisions,
    /// Pods whose eviction the API server will refuse.
    refused: BTreeSet<PodId>,
}

/// The pods that are evicted beyond what their PodDisruptionBudgets allow.
fn refused_evictions(cluster: &Cluster, decisions: &Decisions) -> Vec<PodId> {
    let evicted = decisions.evictions.iter().filter(|one| one.method == Method::Evict);
    let pods: Vec<PodId> = evicted.map(|eviction| eviction.pod).collect();
    cluster.budgets.broken_by(cluster, &pods)
}

impl Names<'_> {
    fn placement(&self, pod: PodId, node: NodeId) -> Placement {
        let cards = self.decisions.note_of(pod).first().map(|(_, cards)| cards.as_str().into());
        let fact = &self.cluster.pods.fact[pod];
        Placement {
            pod: fact.key.clone(),
            uid: fact.uid.clone(),
            node: self.cluster.nodes.name[node].clone(),
            cards,
        }
    }

    fn eviction(&self, eviction: &decisions::Eviction) -> Eviction {
        let cluster = self.cluster;
        Eviction {
            place: self.placement(eviction.pod, eviction.node),
            action: Cow::Borrowed(eviction.action),
            preemptor: eviction.preemptor.map(|gang| cluster.gangs[gang].key.clone()),
            cause: words::cause(cluster, eviction, self.refused.contains(&eviction.pod)),
            delete: eviction.method == Method::Delete,
            moves_to: match eviction.cause {
                Cause::Moved { to } => Some(cluster.nodes.name[to].clone()),
                _ => None,
            },
        }
    }

    fn update(&self, gang: GangId) -> Update {
        let gang = &self.cluster.gangs[gang];
        let (phase, reported) = (gang.phase, gang.reported);
        Update { gang: gang.key.clone(), phase, condition: gang.condition.clone(), reported }
    }

    fn note(&self, note: &decisions::GroupNote) -> GroupNote {
        let gang = &self.cluster.gangs[note.gang];
        let annotations = note.annotations.iter();
        GroupNote {
            gang: gang.key.clone(),
            uid: gang.uid.clone(),
            annotations: annotations
                .map(|(key, text)| (Cow::Borrowed(*key), text.clone()))
                .collect(),
        }
    }

    /// One group for each preemptor, and one for each PodGroup without one.
    fn eviction_groups(&self) -> Vec<EvictionGroup> {
        let mut groups: BTreeMap<(Option<GangId>, Option<GangId>), EvictionGroup> = BTreeMap::new();
        for (at, eviction) in self.decisions.evictions.iter().enumerate() {
            let reserving = self.reserving(eviction.pod);
            let preemptor = eviction.preemptor;
            let key = (preemptor, reserving.filter(|_| preemptor.is_none()));
            let group = groups.entry(key).or_insert_with(|| EvictionGroup {
                nominated: preemptor.map_or_else(Vec::new, |gang| self.nominated(gang)),
                ..EvictionGroup::default()
            });
            group.evictions.push(at);
            let reserving = reserving.map(|gang| &self.cluster.gangs[gang].key);
            let new = reserving.filter(|key| !group.reserving.contains(key));
            group.reserving.extend(new.cloned());
        }
        groups.into_values().collect()
    }

    /// The gang of a pod, if its PodGroup says which room is reserved for successors of its pods.
    fn reserving(&self, pod: PodId) -> Option<GangId> {
        let id = self.cluster.pods.gang[pod]?;
        let gang = &self.cluster.gangs[id];
        (gang.origin == Origin::Group && !gang.reserved().is_empty()).then_some(id)
    }

    fn nominated(&self, gang: GangId) -> Vec<Arc<str>> {
        let pods = &self.cluster.pods;
        let is_nominated = |pod: &&PodId| matches!(pods.state[**pod], PodState::Nominated(_));
        let nominated = self.cluster.gangs[gang].pods.iter().filter(is_nominated);
        nominated.map(|&pod| pods.name(pod).clone()).collect()
    }
}

impl GroupNote {
    fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.annotations.iter().map(|(key, text)| match text {
            Some(text) => format!("note on {} (uid {}): {key} {text}", self.gang, self.uid),
            None => format!("note on {} (uid {}): no {key}", self.gang, self.uid),
        })
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (uid {}) to {}", self.pod, self.uid, self.node)?;
        self.cards.iter().try_for_each(|cards| write!(f, " card {cards}"))
    }
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Eviction { place, action, preemptor, cause, delete, moves_to: _ } = self;
        let Placement { pod, uid, node, cards: _ } = place;
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
