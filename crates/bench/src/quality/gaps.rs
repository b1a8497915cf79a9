//! The engine compared with the optimum, on many small clusters.

use serde::Serialize;

use super::{Outcome, judge, small};

/// How many of the worst seeds are kept.
const WORST: usize = 5;

/// Seeds are numbers of clusters, for `--seed`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gaps {
    pub clusters: u64,
    /// Room can't be made, and none was found.
    pub nothing: u64,
    /// Room can be made, but none was found.
    pub missed: Vec<u64>,
    /// A rule was violated.
    pub wrong: Vec<(u64, &'static str)>,
    /// A pod or a bundle was evicted needlessly, everything else unchanged.
    pub needless: Vec<u64>,
    /// A gang was broken though evicting surplus pods would have sufficed.
    pub breaks_for_nothing: Vec<u64>,
    /// A higher tier was used than necessary.
    pub farther: Vec<u64>,
    /// A gang of higher priority than necessary loses pods.
    pub too_high: Vec<u64>,
    /// Where the engine's choice equals the optimum in all of these, how much more it loses.
    pub gap: Distribution,
}

/// The loss above the optimum, as a fraction of the optimum.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    pub clusters: u64,
    /// Clusters without any gap.
    pub none: u64,
    pub mean: f64,
    pub median: f64,
    pub p90: f64,
    pub p99: f64,
    pub largest: f64,
    /// How many have a gap of up to `up_to`, and more than the previous bin.
    pub histogram: Vec<Bin>,
    /// The largest gaps with the seeds of their clusters.
    pub worst: Vec<(u64, f64)>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bin {
    /// `None` for everything above.
    pub up_to: Option<f64>,
    pub clusters: u64,
}

const BINS: [f64; 6] = [0.0, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Judges the clusters of the first `clusters` seeds. `told` is called with the number of those
/// that are done.
pub fn gaps(clusters: u64, mut told: impl FnMut(u64)) -> Gaps {
    let mut all = Gaps { clusters, ..Gaps::default() };
    let mut gaps: Vec<(i64, u64)> = Vec::new();
    for seed in 0..clusters {
        told(seed);
        let verdict = judge(&small(seed));
        if !verdict.needless.is_empty() {
            all.needless.push(seed);
        }
        match verdict.outcome {
            Outcome::Nothing => all.nothing += 1,
            Outcome::Missed => all.missed.push(seed),
            Outcome::Wrong(what) => all.wrong.push((seed, what)),
            Outcome::BreaksForNothing => all.breaks_for_nothing.push(seed),
            Outcome::FartherThanNeeded => all.farther.push(seed),
            Outcome::TooHigh => all.too_high.push(seed),
            Outcome::Gap(gap) => gaps.push((gap, seed)),
        }
    }
    all.gap = distribution(gaps);
    all
}

/// Gaps come in parts per million.
fn distribution(mut gaps: Vec<(i64, u64)>) -> Distribution {
    gaps.sort_unstable();
    let part = |ppm: i64| ppm as f64 / 1e6;
    let sum: i64 = gaps.iter().map(|&(gap, _)| gap).sum();
    let at = |percent: usize| {
        let rank = (gaps.len() * percent).div_ceil(100).max(1) - 1;
        gaps.get(rank).map_or(0.0, |&(gap, _)| part(gap))
    };
    let within = |most: f64| gaps.partition_point(|&(gap, _)| part(gap) <= most) as u64;
    let mut counted = 0;
    let mut histogram: Vec<Bin> = Vec::new();
    for up_to in BINS.into_iter().map(Some).chain([None]) {
        let until = up_to.map_or(gaps.len() as u64, within);
        histogram.push(Bin { up_to, clusters: until - counted });
        counted = until;
    }
    let worst = gaps.iter().rev().filter(|(gap, _)| *gap > 0).take(WORST);
    Distribution {
        clusters: gaps.len() as u64,
        none: within(0.0),
        mean: part(sum) / gaps.len().max(1) as f64,
        median: at(50),
        p90: at(90),
        p99: at(99),
        largest: at(100),
        histogram,
        worst: worst.map(|&(gap, seed)| (seed, part(gap))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_summed_up() {
        let found = distribution(vec![(0, 7), (500_000, 3), (0, 1), (2_000_000, 9)]);
        assert_eq!((found.clusters, found.none), (4, 2));
        assert_eq!((found.median, found.p90, found.largest), (0.0, 2.0, 2.0));
        assert_eq!(found.mean, 0.625);
        assert_eq!(found.worst, [(9, 2.0), (3, 0.5)]);
        let counts: Vec<u64> = found.histogram.iter().map(|bin| bin.clusters).collect();
        assert_eq!(counts, [2, 0, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn no_gaps_give_a_distribution_of_zeros() {
        let found = distribution(Vec::new());
        assert_eq!((found.clusters, found.mean, found.largest), (0, 0.0, 0.0));
    }
}
