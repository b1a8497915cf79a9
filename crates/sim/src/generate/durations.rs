//! How long things run, as quantiles counted in public traces.
//!
//! Between two quantiles the logarithm of the duration is taken to be linear. A log-normal fitted
//! to the same data is simpler and misses the tail, and the tail is where the GPU hours are.

use super::draw::{Draw, power};

/// Where the tables below were read, in per mille.
const LEVELS: [u32; 11] = [10, 50, 100, 250, 500, 750, 900, 950, 975, 990, 999];

/// Seconds at each of the levels, ascending.
pub struct Quantiles([u32; LEVELS.len()]);

/// Longer runs end here: two weeks is the longest pretraining run of Acme, and openb's tail of
/// months comes from services that were never stopped.
const LONGEST_SECONDS: u32 = 14 * 24 * 3600;

/// Philly, 83 152 runs.
pub const PHILLY: Quantiles =
    Quantiles([17, 48, 61, 131, 1_186, 3_342, 12_860, 49_969, 127_221, 287_333, 1_360_000]);

/// openb, pods with one whole GPU.
pub const WHOLE_GPU: Quantiles =
    Quantiles([29, 57, 92, 200, 633, 2_248, 5_691, 13_220, 37_123, 236_344, 9_900_000]);

/// openb, pods with eight GPUs; with 44 of them the last level is unknown and repeats the one
/// before.
pub const EIGHT_GPUS: Quantiles =
    Quantiles([58, 117, 137, 259, 553, 17_759, 101_998, 209_987, 980_000, 1_300_000, 1_300_000]);

/// openb's pods with a part of a GPU, shortened by 3/11 to the two minutes that are the median in
/// Acme. The last value is one day: evaluation is 0.8 % of Acme's GPU time and leaves no room for a
/// longer tail.
pub const EVALUATION: Quantiles =
    Quantiles([2, 7, 15, 39, 120, 387, 1_972, 4_533, 8_836, 20_360, 86_400]);

/// Not counted but chosen: Acme reports hours to two weeks, and that two in five fail, most of them
/// early.
pub const PRETRAINING: Quantiles = Quantiles([
    600, 900, 1_200, 3_600, 14_400, 86_400, 345_600, 604_800, 864_000, 1_100_000, 1_209_600,
]);

/// DLRM, the instances with a GPU; the value at 975 lies on the line between its neighbours.
pub const SERVING: Quantiles =
    Quantiles([2, 7, 30, 971, 4_083, 30_583, 243_031, 519_437, 806_430, 1_050_000, 2_200_000]);

/// openb, pods without a GPU.
pub const NO_GPU: Quantiles =
    Quantiles([50, 94, 135, 153, 459, 1_948, 12_880, 19_473, 22_453, 28_368, 3_900_000]);

impl Quantiles {
    /// Draws whole seconds; what lies beyond the outermost levels takes their values.
    pub fn draw(&self, draw: &mut Draw) -> u32 {
        let place = draw.unit() * 1000.0;
        let after = LEVELS.partition_point(|&level| f64::from(level) <= place);
        let seconds = if after == 0 || after == LEVELS.len() {
            self.0[after.saturating_sub(1)]
        } else {
            let (from, to) = (f64::from(self.0[after - 1]), f64::from(self.0[after]));
            let (low, high) = (f64::from(LEVELS[after - 1]), f64::from(LEVELS[after]));
            (from * power(to / from, (place - low) / (high - low))).round() as u32
        };
        seconds.min(LONGEST_SECONDS)
    }
}

/// What the owner of a gang would have said beforehand: something between the truth and twice as
/// much, rounded up as people do, to ten minutes within the hour, half hours within the day, and
/// half days beyond.
pub fn estimate(run_seconds: u32, draw: &mut Draw) -> u32 {
    let guess = run_seconds + draw.below(u64::from(run_seconds) + 1) as u32;
    let step = match guess {
        0..=3_600 => 600,
        3_601..=86_400 => 1_800,
        _ => 43_200,
    };
    guess.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::draw::Stream;

    const ALL: [&Quantiles; 7] =
        [&PHILLY, &WHOLE_GPU, &EIGHT_GPUS, &EVALUATION, &PRETRAINING, &SERVING, &NO_GPU];

    #[test]
    fn tables_ascend() {
        for table in ALL {
            assert!(table.0.is_sorted(), "{:?}", table.0);
        }
    }

    #[test]
    fn draws_follow_the_tables() {
        for table in ALL {
            let mut draw = Draw::new(7, Stream::Gangs);
            let mut seconds: Vec<u32> = (0..100_000).map(|_| table.draw(&mut draw)).collect();
            seconds.sort_unstable();
            // Where the table is steep, a small error in rank is a large one in seconds: compare
            // ranks.
            for (level, wanted) in
                LEVELS.into_iter().zip(table.0).filter(|&(_, wanted)| wanted > 50)
            {
                let rank =
                    seconds.partition_point(|&second| second < wanted.min(LONGEST_SECONDS)) / 100;
                let beyond = wanted >= LONGEST_SECONDS && rank <= level as usize;
                assert!(
                    beyond || rank.abs_diff(level as usize) <= 10,
                    "{wanted} s is at {rank}, not {level}"
                );
            }
            assert!(seconds[99_999] <= LONGEST_SECONDS);
        }
    }

    #[test]
    fn an_estimate_is_never_too_short() {
        let mut draw = Draw::new(1, Stream::Gangs);
        for run in [1, 599, 600, 3_600, 4_830, 86_400, LONGEST_SECONDS] {
            for _ in 0..100 {
                let estimate = estimate(run, &mut draw);
                assert!(
                    estimate >= run && estimate <= 2 * run + 43_200,
                    "{run} was taken for {estimate}"
                );
            }
        }
    }
}
