//! A workload as manifests: gangs and their pods in the order of arrival.

use std::io::{self, Write};

use super::DEFAULT_START;
use super::arrivals::arrivals;
use super::draw::{Draw, Stream};
use super::gangs::{Gang, Mix};
use super::manifest::{stamp, uid};
use super::podgroups::Submitted;
use super::profiles::Profile;
use super::shapes::Template;
use super::tenants::queue_weights;

#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    pub profile: Profile,
    pub amount: Amount,
    /// The window in which everything arrives.
    pub hours: u32,
    /// How many queues to use, the same as those of a cluster with as many; with none, the queue
    /// `default`.
    pub queues: u32,
    /// A gang with more GPUs than this has several pods.
    pub gpus_per_pod: u32,
    /// No gang asks for more GPUs. Without it a count has no limit, and a load that of half the
    /// cluster: a gang as large as the cluster would drain it, and be most of the load.
    pub largest: Option<u32>,
    /// A third of the gangs with GPUs ask for one of the models of this template.
    pub typed: Option<Template>,
    /// Gangs of several pods must stay in one network domain of this tier. Serving has constraints
    /// of its own.
    pub highest_tier: Option<u32>,
    pub namespace: String,
    pub seed: u64,
    /// Epoch seconds at which the window begins.
    pub start: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Gangs(u64),
    /// So much GPU time as this share of so many GPUs gives within the window. Of a run that is
    /// longer than the window, only the length of the window counts.
    Load {
        percent: u32,
        gpus: u32,
    },
}

impl WorkloadSpec {
    pub fn new(profile: Profile, amount: Amount) -> Self {
        WorkloadSpec {
            profile,
            amount,
            hours: 24,
            queues: 20,
            gpus_per_pod: 8,
            largest: None,
            typed: None,
            highest_tier: None,
            namespace: "default".to_owned(),
            seed: 1,
            start: DEFAULT_START,
        }
    }
}

/// One submission in a hundred is a sweep: the same gang several times in the same second. Only
/// gangs of one pod are swept; no one pretrains eight models at once.
const SWEEP_PERCENT: u64 = 1;
const SWEEP_MEAN: u64 = 8;

pub fn workload(spec: &WorkloadSpec, out: &mut dyn Write) -> io::Result<()> {
    if spec.profile == Profile::Cpu && matches!(spec.amount, Amount::Load { .. }) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "load is counted in GPUs and the profile cpu has none; give a number of gangs",
        ));
    }
    let submissions = submissions(spec);
    let moments = arrivals(spec.seed, spec.start, spec.hours, submissions.len());
    let namespace = spec.namespace.as_str();
    if namespace != "default" {
        let uid = uid(&["Namespace", namespace]);
        write!(
            out,
            "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {namespace}\n  uid: {uid}\n"
        )?;
    }
    let mut number = 0;
    for (Submission { gang, copies }, moment) in submissions.iter().zip(moments) {
        let stamp = &stamp(moment);
        for _ in 0..*copies {
            let name = format!("{}-{number:06}", gang.class);
            Submitted { gang, name, namespace, stamp, highest_tier: spec.highest_tier }
                .write(out)?;
            number += 1;
        }
    }
    Ok(())
}

/// A gang, or a sweep of equal ones.
struct Submission {
    gang: Gang,
    copies: u64,
}

/// Draws until there is enough. A count is met exactly, a load with the first submission that
/// reaches it.
fn submissions(spec: &WorkloadSpec) -> Vec<Submission> {
    let mut draw = Draw::new(spec.seed, Stream::Gangs);
    let mix = mix(spec);
    let mut left = match spec.amount {
        Amount::Gangs(gangs) => u128::from(gangs),
        Amount::Load { percent, gpus } => {
            u128::from(percent) * u128::from(gpus) * u128::from(spec.hours) * 3600 / 100
        }
    };
    let mut submissions = Vec::new();
    while left > 0 {
        let gang = mix.draw(&mut draw);
        let swept = gang.pods() == 1 && draw.chance(SWEEP_PERCENT);
        let copies = if swept { draw.geometric(SWEEP_MEAN) } else { 1 };
        let (weight, copies) = match spec.amount {
            Amount::Gangs(_) => (1, u128::from(copies).min(left) as u64),
            Amount::Load { .. } => (gpu_seconds(spec, &gang), copies),
        };
        left = left.saturating_sub(u128::from(weight) * u128::from(copies));
        submissions.push(Submission { gang, copies });
    }
    submissions
}

fn mix(spec: &WorkloadSpec) -> Mix {
    let largest = match (spec.largest, spec.amount) {
        (Some(largest), _) => u64::from(largest),
        (None, Amount::Load { gpus, .. }) => u64::from(gpus / 2),
        (None, Amount::Gangs(_)) => u64::MAX,
    };
    Mix {
        profile: spec.profile,
        gpus_per_pod: u64::from(spec.gpus_per_pod).max(1),
        largest: largest.max(1),
        typed: spec.typed,
        queues: queue_weights(spec.queues as usize).into_iter().zip(0..).collect(),
    }
}

fn gpu_seconds(spec: &WorkloadSpec, gang: &Gang) -> u64 {
    gang.gpus() * u64::from(gang.run_seconds).min(u64::from(spec.hours) * 3600)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn text(spec: &WorkloadSpec) -> String {
        let mut out = Vec::new();
        workload(spec, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("manifests are text")
    }

    fn gangs(profile: Profile, count: u64) -> WorkloadSpec {
        WorkloadSpec::new(profile, Amount::Gangs(count))
    }

    fn documents<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
        let line = format!("\nkind: {kind}\n");
        text.split("---\n").filter(|document| document.contains(&line)).collect()
    }

    /// The value of the first line with this key.
    fn value<'a>(document: &'a str, key: &str) -> &'a str {
        let line =
            document.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {key} in\n{document}")).trim_matches('"')
    }

    #[test]
    fn one_seed_gives_the_same_bytes_and_another_does_not() {
        for profile in Profile::ALL {
            let spec = gangs(profile, 50);
            assert_eq!(text(&spec), text(&spec.clone()));
            assert_ne!(text(&spec), text(&WorkloadSpec { seed: 2, ..spec }));
        }
    }

    /// If this fails, every generated file will come out differently: say so in the
    /// changelog.
    #[test]
    fn the_first_gang_is_the_same_on_every_machine() {
        let text = text(&gangs(Profile::Research, 1));
        let group = documents(&text, "PodGroup")[0];
        let pod = documents(&text, "Pod")[0];
        let found = [
            value(group, "name"),
            value(group, "creationTimestamp"),
            value(group, "queue"),
            value(group, "priorityClassName"),
            value(group, "minResources"),
            value(pod, "uid"),
            value(pod, "volcano.sh/running-estimate"),
            value(pod, "muster.sh/simulated-duration"),
        ];
        let wanted = [
            "train-000000",
            "2026-01-05T09:07:55Z",
            "vision",
            "normal",
            "{cpu: \"176\", memory: 640Gi, nvidia.com/gpu: \"16\"}",
            "26399612-cb72-865c-9ab1-2ddfdcc0c49e",
            "43200s",
            "30949s",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn every_pod_has_its_gang_and_every_gang_enough_pods() {
        for profile in Profile::ALL {
            let text = text(&gangs(profile, 300));
            let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
            let mut uids = BTreeSet::new();
            for pod in documents(&text, "Pod") {
                *pods.entry(value(pod, "scheduling.k8s.io/group-name")).or_default() += 1;
                assert!(uids.insert(value(pod, "uid")));
            }
            let groups = documents(&text, "PodGroup");
            assert_eq!(groups.len(), 300);
            for group in groups {
                let min: usize = value(group, "minMember").parse().expect("a whole number");
                let pods = pods.remove(value(group, "name")).expect("a gang has pods");
                assert!((1..=pods).contains(&min));
            }
            assert!(pods.is_empty(), "pods without a gang: {pods:?}");
        }
    }

    #[test]
    fn an_estimate_is_at_least_the_true_run_time() {
        let text = text(&gangs(Profile::Llm, 100));
        for pod in documents(&text, "Pod") {
            let seconds = |key| {
                value(pod, key).strip_suffix('s').expect("seconds").parse::<u32>().expect("whole")
            };
            assert!(
                seconds("volcano.sh/running-estimate") >= seconds("muster.sh/simulated-duration")
            );
        }
    }

    #[test]
    fn counts_are_exact_even_when_they_are_tiny() {
        for profile in Profile::ALL {
            for count in [0, 1, 2, 777] {
                let spec = WorkloadSpec { hours: 1, queues: 0, ..gangs(profile, count) };
                let copies: u64 =
                    submissions(&spec).iter().map(|submission| submission.copies).sum();
                assert_eq!(copies, count);
            }
            assert_eq!(text(&gangs(profile, 0)), "");
        }
    }

    #[test]
    fn a_load_is_reached_by_the_last_submission() {
        for (percent, gpus) in [(70, 2048), (95, 64), (120, 1)] {
            let spec = WorkloadSpec::new(Profile::Research, Amount::Load { percent, gpus });
            let work = |some: &[Submission]| -> u64 {
                some.iter().map(|one| one.copies * gpu_seconds(&spec, &one.gang)).sum()
            };
            let all = submissions(&spec);
            let wanted = u64::from(percent) * u64::from(gpus) * 24 * 36;
            assert!(work(&all) >= wanted && work(&all[..all.len() - 1]) < wanted);
        }
    }

    #[test]
    fn a_load_without_gpus_is_refused() {
        let spec = WorkloadSpec::new(Profile::Cpu, Amount::Load { percent: 95, gpus: 8 });
        assert!(workload(&spec, &mut Vec::new()).is_err());
    }

    /// Variance over mean of hourly counts; 1 for a plain Poisson process, 5.9 in openb.
    fn dispersion(spec: &WorkloadSpec) -> f64 {
        let submissions = submissions(spec);
        let moments = arrivals(spec.seed, spec.start, spec.hours, submissions.len());
        let mut counts = vec![0.0; spec.hours as usize];
        for (submission, moment) in submissions.iter().zip(moments) {
            counts[((moment - spec.start) / 3600) as usize] += submission.copies as f64;
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
    }

    #[test]
    fn arrivals_are_as_bursty_as_those_of_openb() {
        let hours = 24 * 28;
        let ten_an_hour =
            |seed| WorkloadSpec { hours, seed, ..gangs(Profile::Research, u64::from(hours) * 10) };
        let indices: Vec<f64> = (1..=10).map(|seed| dispersion(&ten_an_hour(seed))).collect();
        assert!(indices.iter().all(|&index| index > 3.0), "{indices:?}");
        let mean = indices.iter().sum::<f64>() / 10.0;
        assert!((5.0..7.5).contains(&mean), "{indices:?}");
    }

    #[test]
    fn replicas_are_subgroups_by_label() {
        let text = text(&gangs(Profile::Serving, 50));
        let replica = |pod: &str| -> (String, u64) {
            let index =
                value(pod, "leaderworkerset.sh/group-index").parse().expect("a whole number");
            (value(pod, "scheduling.k8s.io/group-name").to_owned(), index)
        };
        let mut sizes: BTreeMap<(String, u64), u64> = BTreeMap::new();
        for pod in documents(&text, "Pod") {
            *sizes.entry(replica(pod)).or_default() += 1;
        }
        for group in documents(&text, "PodGroup") {
            let size: u64 = value(group, "subGroupSize").parse().expect("a whole number");
            let min: u64 = value(group, "minSubGroups").parse().expect("a whole number");
            let name = value(group, "name");
            let own = sizes.iter().filter(|((gang, _), _)| gang == name);
            assert!(own.clone().all(|(_, &pods)| pods == size));
            assert!(min <= own.count() as u64);
            assert_eq!(value(group, "minMember"), (min * size).to_string());
        }
    }

    #[test]
    fn only_typed_workloads_select_models() {
        let plain = gangs(Profile::Research, 1000);
        assert_eq!(text(&plain).matches("nodeSelector").count(), 0);
        let typed = WorkloadSpec { typed: Some(Template::Spot2026), ..plain };
        let selecting = submissions(&typed).iter().filter(|one| one.gang.model.is_some()).count();
        assert!((250..420).contains(&selecting), "{selecting}");
        assert!(text(&typed).contains("nodeSelector: {nvidia.com/gpu.product: NVIDIA-A10}"));
    }
}
