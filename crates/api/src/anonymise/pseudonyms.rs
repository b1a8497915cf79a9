//! Which name becomes which. Within a class pseudonyms are numbered in the order of the names, so
//! that sorting them gives the same order.

use std::collections::{BTreeMap, BTreeSet};

/// Names that are compared with each other, or that stand for the same kind of thing.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Address,
    Budget,
    Claim,
    Cluster,
    Container,
    /// A HyperNode.
    Domain,
    /// A scheduling gate.
    Gate,
    /// A part of an image's name.
    Image,
    /// The key of a label or a taint.
    Key,
    Namespace,
    Node,
    PriorityClass,
    Queue,
    Quota,
    Role,
    Scheduler,
    Subgroup,
    Tier,
    /// The value of a label or a taint.
    Value,
    Volume,
    /// Pods and PodGroups: a pod without a PodGroup is ordered among them by its name.
    Work,
}

impl Class {
    /// Names with a meaning of their own, in order. They are kept, and other names stay before or
    /// after them as they were.
    fn landmarks(self) -> &'static [&'static str] {
        match self {
            Class::Namespace => &["default", "kube-system"],
            Class::Queue => &["default", "root"],
            _ => &[],
        }
    }

    /// What pseudonyms begin with: before the first landmark, between landmarks, after the last.
    fn words(self) -> &'static [&'static str] {
        match self {
            Class::Address => &["address"],
            Class::Budget => &["budget"],
            Class::Claim => &["claim"],
            Class::Cluster => &["cluster"],
            Class::Container => &["container"],
            Class::Domain => &["domain"],
            Class::Gate => &["gate"],
            Class::Image => &["image"],
            Class::Key => &["key"],
            Class::Namespace => &["a-namespace", "e-namespace", "namespace"],
            Class::Node => &["node"],
            Class::PriorityClass => &["priority"],
            Class::Queue => &["a-queue", "queue", "z-queue"],
            Class::Quota => &["quota"],
            Class::Role => &["role"],
            Class::Scheduler => &["scheduler"],
            Class::Subgroup => &["subgroup"],
            Class::Tier => &["tier"],
            Class::Value => &["value"],
            Class::Volume => &["volume"],
            Class::Work => &["work"],
        }
    }

    /// Names that every cluster has: they tell nothing.
    fn keeps(self, name: &str) -> bool {
        match self {
            Class::Address => ["0.0.0.0", "::"].contains(&name),
            Class::Image => name == "latest",
            Class::Key => is_public(name),
            Class::PriorityClass => name.starts_with("system-"),
            Class::Scheduler => ["default-scheduler", "muster", "volcano"].contains(&name),
            Class::Value => name == "true" || name == "false",
            _ => self.landmarks().contains(&name),
        }
    }

    /// What a name is sorted by. Objects are sorted by `namespace/name`, where `a-b/` comes before
    /// `a/`.
    fn place(self, name: &str) -> String {
        match self {
            Class::Namespace => format!("{name}/"),
            _ => name.to_owned(),
        }
    }
}

/// Whether a key belongs to a public project. Prefixes under which users invent keys do not count.
fn is_public(key: &str) -> bool {
    let of_users = ["node-role.kubernetes.io", "node-restriction.kubernetes.io"];
    key.split_once('/').is_some_and(|(domain, _)| {
        let within = |project: &str| {
            domain.strip_suffix(project).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        !of_users.contains(&domain)
            && ["kubernetes.io", "k8s.io", "volcano.sh", "muster.sh", "nvidia.com"]
                .into_iter()
                .any(within)
    })
}

/// The pseudonym of every name.
#[derive(Clone, Debug, Default)]
pub struct Pseudonyms(BTreeMap<Class, BTreeMap<String, String>>);

impl Pseudonyms {
    pub(super) fn new(names: BTreeSet<(Class, String)>) -> Pseudonyms {
        let mut classes: BTreeMap<Class, Vec<String>> = BTreeMap::new();
        for (class, name) in names.into_iter().filter(|(class, name)| !class.keeps(name)) {
            classes.entry(class).or_default().push(name);
        }
        let number = |(class, names)| (class, numbered(class, names));
        Pseudonyms(classes.into_iter().map(number).collect())
    }

    /// The pseudonym of a name; names that tell nothing are their own.
    pub fn of<'n>(&'n self, class: Class, name: &'n str) -> &'n str {
        self.0.get(&class).and_then(|names| names.get(name)).map_or(name, String::as_str)
    }

    /// Each pseudonym with the name that it replaces.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.0.values().flatten();
        names.map(|(name, pseudonym)| (pseudonym.as_str(), name.as_str()))
    }
}

fn numbered(class: Class, mut names: Vec<String>) -> BTreeMap<String, String> {
    names.sort_by_cached_key(|name| class.place(name));
    let width = names.len().to_string().len();
    let landmarks: Vec<String> = class.landmarks().iter().map(|name| class.place(name)).collect();
    let pseudonym = |(index, name): (usize, String)| {
        let place = class.place(&name);
        let passed = landmarks.iter().filter(|landmark| **landmark < place).count();
        let pseudonym = format!("{}-{:0width$}", class.words()[passed], index + 1);
        (name, pseudonym)
    };
    names.into_iter().enumerate().map(pseudonym).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms(class: Class, names: &[&str]) -> Vec<String> {
        let all = Pseudonyms::new(names.iter().map(|name| (class, name.to_string())).collect());
        names.iter().map(|name| all.of(class, name).to_owned()).collect()
    }

    #[test]
    fn pseudonyms_sort_like_the_names_also_around_names_that_are_kept() {
        let names = ["alpha", "default", "default-b", "gold", "root", "root-b", "silver"];
        let expected =
            ["a-queue-1", "default", "queue-2", "queue-3", "root", "z-queue-4", "z-queue-5"];
        assert_eq!(pseudonyms(Class::Queue, &names), expected);
        assert!(expected.is_sorted());
    }

    #[test]
    fn namespaces_sort_as_in_front_of_a_name() {
        let keys = [
            "a/x",
            "default-b/x",
            "default/x",
            "dev/x",
            "kube-public/x",
            "kube-system/x",
            "team-a/x",
            "team/x",
        ];
        assert!(keys.is_sorted());
        let names: Vec<&str> = keys.iter().map(|key| key.trim_end_matches("/x")).collect();
        let found: Vec<String> =
            pseudonyms(Class::Namespace, &names).iter().map(|name| format!("{name}/x")).collect();
        assert!(found.is_sorted(), "{found:?}");
        assert_eq!(found[2], "default/x");
        assert_eq!(found[5], "kube-system/x");
    }

    #[test]
    fn numbers_have_as_many_digits_as_there_are_names() {
        let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = pseudonyms(Class::Node, &names);
        assert_eq!(
            (found[0].as_str(), found[10].as_str(), found[2].as_str()),
            ("node-001", "node-003", "node-013")
        );
    }

    #[test]
    fn every_class_has_its_own_word_for_each_gap() {
        let mut words: BTreeSet<&str> = BTreeSet::new();
        for class in [
            Class::Address,
            Class::Budget,
            Class::Claim,
            Class::Cluster,
            Class::Container,
            Class::Domain,
            Class::Gate,
            Class::Image,
            Class::Key,
            Class::Namespace,
            Class::Node,
            Class::PriorityClass,
            Class::Queue,
            Class::Quota,
            Class::Role,
            Class::Scheduler,
            Class::Subgroup,
            Class::Tier,
            Class::Value,
            Class::Volume,
            Class::Work,
        ] {
            assert_eq!(class.words().len(), class.landmarks().len() + 1);
            let (first, others) = class.words().split_at(1);
            let mut order = first.to_vec();
            order.extend(
                class
                    .landmarks()
                    .iter()
                    .zip(others)
                    .flat_map(|(landmark, word)| [*landmark, *word]),
            );
            assert!(order.is_sorted(), "{order:?}");
            words.extend(class.words());
        }
        assert_eq!(words.len(), 21 + 2 * 2, "the classes, and two gaps more for two of them");
    }

    #[test]
    fn keys_of_public_projects_are_kept() {
        for key in [
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
            "volcano.sh/task-spec",
            "nvidia.com/gpu.product",
        ] {
            assert!(is_public(key), "{key}");
        }
        for key in ["app", "acme.com/team", "notkubernetes.io/x", "node-role.kubernetes.io/secret"]
        {
            assert!(!is_public(key), "{key}");
        }
    }
}
