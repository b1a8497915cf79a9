//! Who shares the cluster: teams with queues, and the three priority classes.

use std::io::{self, Write};

use super::draw::{apportion, power};
use super::manifest::{Amounts, stamp, uid};

pub struct PriorityClass {
    pub name: &'static str,
    pub value: u32,
    /// Share of gangs in percent. The first two are the 60 % of the spot-gpu trace that is not
    /// spot.
    pub share: u64,
    description: &'static str,
}

pub const PRIORITIES: [PriorityClass; 3] = [
    PriorityClass {
        name: "high",
        value: 10_000,
        share: 15,
        description: "Work that others wait for.",
    },
    PriorityClass {
        name: "normal",
        value: 5_000,
        share: 45,
        description: "Work with a claim to its share.",
    },
    PriorityClass {
        name: "spot",
        value: 1_000,
        share: 40,
        description: "Work that takes what is left.",
    },
];

const TEAMS: [&str; 40] = [
    "pretraining",
    "vision",
    "speech",
    "search",
    "ads",
    "recommendation",
    "translation",
    "robotics",
    "safety",
    "evaluation",
    "alignment",
    "multimodal",
    "codegen",
    "retrieval",
    "forecasting",
    "genomics",
    "chemistry",
    "climate",
    "maps",
    "fraud",
    "support",
    "payments",
    "logistics",
    "pricing",
    "security",
    "video",
    "audio",
    "games",
    "health",
    "legal",
    "education",
    "finance",
    "compilers",
    "kernels",
    "datasets",
    "simulation",
    "planning",
    "tooling",
    "platform",
    "interns",
];

/// The queue of the n-th team, the largest first; after the last team come their second teams.
pub fn queue_name(index: usize) -> String {
    let team = TEAMS[index % TEAMS.len()];
    match index / TEAMS.len() {
        0 => team.to_owned(),
        round => format!("{team}-{}", round + 1),
    }
}

/// Zipf weights with exponent 1.1, largest 1000 and smallest 1.
pub fn queue_weights(queues: usize) -> Vec<u64> {
    let weight = |rank: f64| (1000.0 / (rank * power(rank, 0.1))).round().max(1.0) as u64;
    (1..=queues).map(|rank| weight(rank as f64)).collect()
}

/// Queues that deserve together exactly what the cluster has.
pub fn write_queues(
    queues: usize,
    total: Amounts,
    start: i64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let weights = queue_weights(queues);
    // Whole cores and GiB read better and lose next to nothing.
    let gpus = apportion(total.gpus, &weights);
    let cores = apportion(total.cpu_milli / 1000, &weights);
    let memory_gib = apportion(total.memory_mib / 1024, &weights);
    for (index, weight) in weights.iter().enumerate() {
        let name = queue_name(index);
        let uid = uid(&["Queue", &name]);
        let stamp = stamp(start);
        write!(
            out,
            "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata:\n  name: {name}\n  uid: {uid}\n  \
             creationTimestamp: \"{stamp}\"\nspec:\n  weight: {weight}\n  reclaimable: true\n  deserved:\n    \
             cpu: \"{}\"\n    memory: {}Gi\n",
            cores[index], memory_gib[index],
        )?;
        if total.gpus > 0 {
            writeln!(out, "    nvidia.com/gpu: \"{}\"", gpus[index])?;
        }
    }
    Ok(())
}

pub fn write_priorities(start: i64, out: &mut dyn Write) -> io::Result<()> {
    for class in &PRIORITIES {
        let PriorityClass { name, value, description, .. } = class;
        let uid = uid(&["PriorityClass", name]);
        let stamp = stamp(start);
        write!(
            out,
            "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: {name}\n  uid: {uid}\n  \
             creationTimestamp: \"{stamp}\"\nvalue: {value}\ndescription: {description}\n"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_never_repeat() {
        let mut names: Vec<String> = (0..200).map(queue_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 200);
    }

    #[test]
    fn weights_fall_as_zipf_says_and_stay_above_zero() {
        let weights = queue_weights(2000);
        assert_eq!(weights[..4], [1000, 467, 299, 218]);
        assert!(weights.is_sorted_by(|larger, smaller| larger >= smaller));
        assert_eq!(weights[1999], 1);
    }
}
