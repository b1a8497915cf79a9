//! What a name refers to: a pod, a gang or a queue. It is an error if it refers to several things,
//! or to none.

use muster_engine::ids::{GangId, PodId, QueueId};
use muster_engine::model::Cluster;
use muster_engine::model::gangs::{Gang, Origin};
use muster_text::counted;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Pod(PodId),
    Gang(GangId),
    Queue(QueueId),
}

/// The kinds, with the words for them on the command line.
const KINDS: [(&str, &[&str]); 3] = [
    ("pod", &["pod", "pods", "po"]),
    ("gang", &["gang", "gangs", "podgroup", "podgroups", "pg"]),
    ("queue", &["queue", "queues", "q"]),
];

/// How many similar names are shown.
const SHOWN: usize = 3;

/// Something that can be explained: its kind, its `namespace/name` or name, and its id.
type Named = (&'static str, String, Target);

/// Why a name means nothing. Things are written with their kind: `pod/team/ring-0`.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("{text} can mean several things: write {}", listed(meanings))]
    Ambiguous { text: String, meanings: Vec<String> },
    #[error(
        "queue {name} does not exist; named by {}: create it, or change theirs",
        counted(*gangs, "gang")
    )]
    MissingQueue { name: String, gangs: u64 },
    #[error("there is no {kind} {name}")]
    Unknown { kind: &'static str, name: String },
    #[error("there is no {kind} {name}; did you mean {}?", listed(similar))]
    Misspelt { kind: &'static str, name: String, similar: Vec<String> },
}

pub fn find(cluster: &Cluster, text: &str) -> Result<Target, TargetError> {
    let (kind, name) = split(text);
    let all = everything(cluster, kind);
    let mut matches: Vec<&Named> = all.iter().filter(|(_, key, _)| means(key, name)).collect();
    let in_default = |named: &Named| named.1.starts_with("default/");
    for (kind, _) in KINDS {
        // Within a kind, the namespace that kubectl would use comes first.
        if matches.iter().any(|named| named.0 == kind && in_default(named)) {
            matches.retain(|named| named.0 != kind || in_default(named));
        }
    }
    match matches.as_slice() {
        [(_, _, target)] => Ok(*target),
        [] => Err(unknown(cluster, kind, name, &all)),
        several => {
            let meanings = several.iter().copied().map(with_kind).collect();
            Err(TargetError::Ambiguous { text: text.to_owned(), meanings })
        }
    }
}

/// The name in a namespace, unless it has one already or names a queue.
pub fn within(namespace: &str, text: &str) -> String {
    match split(text) {
        (Some("queue"), _) => text.to_owned(),
        (_, name) if name.contains('/') => text.to_owned(),
        (Some(kind), name) => format!("{kind}/{namespace}/{name}"),
        (None, name) => format!("{namespace}/{name}"),
    }
}

fn split(text: &str) -> (Option<&'static str>, &str) {
    let named = text.split_once('/').and_then(|(word, rest)| {
        let (kind, _) = KINDS.iter().find(|(_, words)| words.contains(&word))?;
        Some((Some(*kind), rest))
    });
    named.unwrap_or((None, text))
}

fn everything(cluster: &Cluster, kind: Option<&str>) -> Vec<Named> {
    let pods = cluster
        .pods
        .live()
        .map(|pod| ("pod", cluster.pods.name(pod).to_string(), Target::Pod(pod)));
    // A pod without a PodGroup is a gang of one, and explained as a pod. Its name refers to the pod
    // alone, so that it is not ambiguous.
    let gang = |(id, gang): (GangId, &Gang)| match (gang.origin, gang.pods.first()) {
        (Origin::Solo, Some(&pod)) => {
            (kind == Some("gang")).then(|| ("gang", gang.key.to_string(), Target::Pod(pod)))
        }
        (Origin::Solo, None) => None,
        _ => Some(("gang", gang.key.to_string(), Target::Gang(id))),
    };
    let gangs = cluster.gangs.iter().filter_map(gang);
    let queues = cluster.queues.iter().filter(|(_, queue)| queue.exists);
    let queues = queues.map(|(id, queue)| ("queue", queue.name.to_string(), Target::Queue(id)));
    pods.chain(gangs)
        .chain(queues)
        .filter(|named| kind.is_none_or(|kind| kind == named.0))
        .collect()
}

fn means(key: &str, name: &str) -> bool {
    key == name || !name.contains('/') && last(key) == name
}

fn last(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

fn unknown(
    cluster: &Cluster,
    kind: Option<&'static str>,
    name: &str,
    all: &[Named],
) -> TargetError {
    if kind.is_none_or(|kind| kind == "queue")
        && let Some(queue) = cluster.queues.find(name)
    {
        let users = cluster.gangs.iter().filter(|(_, gang)| gang.queue == queue).count();
        return TargetError::MissingQueue { name: name.to_owned(), gangs: users as u64 };
    }
    let wanted = last(name);
    let mut near: Vec<(usize, &Named)> = all
        .iter()
        .map(|named| (distance(wanted, last(&named.1)), named))
        .filter(|(distance, named)| {
            *distance <= (wanted.len() / 3).max(2) || last(&named.1).contains(wanted)
        })
        .collect();
    near.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.1.cmp(&b.1.1)));
    let similar: Vec<String> = near.iter().take(SHOWN).map(|(_, named)| with_kind(named)).collect();
    let (kind, name) = (kind.unwrap_or("pod, gang or queue"), name.to_owned());
    match similar.is_empty() {
        true => TargetError::Unknown { kind, name },
        false => TargetError::Misspelt { kind, name, similar },
    }
}

fn with_kind((kind, key, _): &Named) -> String {
    format!("{kind}/{key}")
}

fn listed(things: &[String]) -> String {
    let more = match things.len() {
        0..=SHOWN => String::new(),
        all => format!(" (and {} more)", all - SHOWN),
    };
    format!("{}{more}", things[..things.len().min(SHOWN)].join(" or "))
}

/// How many letters must be changed, added or removed to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_before_the_slash_is_a_kind_if_it_is_one() {
        assert_eq!(split("pg/team/ring"), (Some("gang"), "team/ring"));
        assert_eq!(split("q/research"), (Some("queue"), "research"));
        assert_eq!(split("team/ring"), (None, "team/ring"));
        assert_eq!(split("ring"), (None, "ring"));
    }

    #[test]
    fn a_namespace_is_added_where_a_name_has_none() {
        assert_eq!(within("team", "ring"), "team/ring");
        assert_eq!(within("team", "pg/ring"), "gang/team/ring");
        assert_eq!(within("team", "pod/other/ring-0"), "pod/other/ring-0");
        assert_eq!(within("team", "other/ring"), "other/ring");
        assert_eq!(within("team", "queue/research"), "queue/research");
    }

    #[test]
    fn distances_count_letters() {
        let found = [("ring", "ring"), ("rign", "ring"), ("", "ab"), ("rings", "ring")]
            .map(|(a, b)| distance(a, b));
        assert_eq!(found, [0, 2, 2, 1]);
    }
}
