//! Objects that are not read. For most of them that is as it should be; of some, people expect that
//! something is done with them.

use crate::kinds::Kind;

/// All API groups of Volcano end with this.
const VOLCANO: &str = ".volcano.sh";

/// Volcano's kinds that nothing here acts on, by group, and what that means.
const NOT_ACTED_ON: [(&str, &str, &str); 2] = [
    (
        "nodeinfo.volcano.sh",
        "Numatopology",
        "pods are placed without a look at the NUMA topology of nodes",
    ),
    (
        "training.volcano.sh",
        "HyperJob",
        "nothing creates Jobs from it here: Volcano's controllers do that on a cluster",
    ),
];

/// What it means that nothing acts on an object of this kind, if people would expect otherwise.
pub(super) fn meaning(kind: &str, api_version: &str) -> Option<String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let row = NOT_ACTED_ON.iter().find(|(of, name, _)| (*of, *name) == (group, kind));
    if let Some((.., meaning)) = row {
        return Some((*meaning).to_owned());
    }
    // Kubernetes has a Job too, and its groups have no dots.
    if let Some(known) = Kind::named(kind).filter(|_| group.contains('.')) {
        let write = format!("write \"apiVersion: {}\"", known.api_version());
        return Some(match known.group() == group {
            true => format!("version {version} of {group} is not known here; {write}"),
            false => {
                format!("it is not the {kind} that is read here; {write} if you meant that")
            }
        });
    }
    let of_group = Kind::ALL
        .iter()
        .filter(|known| known.group() == group && !known.name().eq_ignore_ascii_case(kind));
    let near = of_group.map(|known| (strsim::damerau_levenshtein(known.name(), kind), known));
    match near.min().filter(|(distance, _)| *distance <= 2) {
        Some((_, known)) => Some(format!("there is no such kind: did you mean {known}?")),
        None if group.ends_with(VOLCANO) => {
            Some("Volcano may know this kind, but nothing here acts on it".to_owned())
        }
        None => None,
    }
}

/// Whether an object of a kind that is read has its apiVersion from another API on purpose: an
/// unknown version of a group of Volcano, or the group of another project.
pub(super) fn is_of_another_api(kind: Kind, api_version: &str) -> bool {
    let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
    if !kind.group().ends_with(VOLCANO) {
        return false;
    }
    // A few wrong letters are a mistake; "v1" and the groups of Volcano never have these kinds.
    kind.group() == group
        || !group.is_empty()
            && !group.ends_with(VOLCANO)
            && strsim::damerau_levenshtein(kind.group(), group) > 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_expect_to_work_has_a_meaning() {
        for (api_version, kind, expected) in [
            ("training.volcano.sh/v1alpha1", "HyperJob", "nothing creates Jobs from it here"),
            ("shard.volcano.sh/v1alpha1", "NodeShard", "nothing here acts on it"),
            ("v1", "Podd", "did you mean Pod?"),
            ("scheduling.volcano.sh/v1beta1", "PodGroups", "did you mean PodGroup?"),
            (
                "scheduling.volcano.sh/v1alpha2",
                "PodGroup",
                "version v1alpha2 of scheduling.volcano.sh is not known here; write \"apiVersion: \
                 scheduling.volcano.sh/v1beta1\"",
            ),
            (
                "scheduling.run.ai/v2",
                "Queue",
                "it is not the Queue that is read here; write \"apiVersion: \
                 scheduling.volcano.sh/v1beta1\" if you meant that",
            ),
        ] {
            let found = meaning(kind, api_version).unwrap_or_default();
            assert!(found.contains(expected), "{kind}: {found}");
        }
    }

    #[test]
    fn what_scheduling_does_not_need_has_none() {
        for (api_version, kind) in
            [("v1", "Service"), ("v1", "ConfigMap"), ("batch/v1", "Job"), ("apps/v1", "Deployment")]
        {
            assert_eq!(meaning(kind, api_version), None, "{kind}");
        }
    }
}
