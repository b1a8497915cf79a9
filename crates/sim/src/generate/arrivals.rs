//! When work arrives: more by day than by night, more on weekdays, and in bursts.
//!
//! The rate of a Poisson process is itself random (it jumps between calm and busy), which makes
//! hourly counts vary several times more than a plain Poisson process would let them. Given the
//! rate, the moments of a known number of arrivals are independent draws from it, and that is how
//! they are made here.

use super::draw::{Draw, Stream};

/// The rate is constant within ten minutes.
const CELL_SECONDS: i64 = 600;

/// Rate by hour of the day: four to one between afternoon and night as in openb, with dips at lunch
/// and dinner as in Helios.
const HOURS: [u64; 24] = [
    14, 12, 11, 10, 10, 10, 11, 14, 20, 30, 38, 38, 30, 32, 40, 40, 40, 36, 28, 30, 32, 30, 24, 18,
];

/// Rate of a weekday and of a day at the weekend, as in openb.
const WEEKDAY: u64 = 3;
const WEEKEND: u64 = 1;

/// Twice the rate in busy spells of two hours, every ten hours. With the daily and weekly swing and
/// the sweeps of `workload` this gives openb's index of dispersion, about 6 at its ten arrivals an
/// hour; the index grows with the rate, because the swing does.
const BUSY_FACTOR: u64 = 2;
const BUSY_CELLS: u64 = 12;
const CALM_CELLS: u64 = 48;

/// The moments of `count` arrivals in the hours from `start`, ascending, in epoch seconds.
pub fn arrivals(seed: u64, start: i64, hours: u32, count: usize) -> Vec<i64> {
    let mut draw = Draw::new(seed, Stream::Arrivals);
    let mut total = 0;
    let cells = i64::from(hours.max(1)) * 3600 / CELL_SECONDS;
    let mut busy = draw.below(BUSY_CELLS + CALM_CELLS) < BUSY_CELLS;
    let mut ends = Vec::with_capacity(cells as usize);
    for cell in 0..cells {
        let rate = rate(start + cell * CELL_SECONDS);
        total += if busy { rate * BUSY_FACTOR } else { rate };
        ends.push(total);
        let spell = if busy { BUSY_CELLS } else { CALM_CELLS };
        busy ^= draw.below(spell) == 0;
    }
    let mut moment = || {
        let place = draw.below(total);
        let cell = ends.partition_point(|&end| end <= place) as i64;
        start + cell * CELL_SECONDS + draw.below(CELL_SECONDS as u64) as i64
    };
    let mut moments: Vec<i64> = (0..count).map(|_| moment()).collect();
    moments.sort_unstable();
    moments
}

fn rate(moment: i64) -> u64 {
    let hour = moment.div_euclid(3600).rem_euclid(24);
    // The epoch began on a Thursday; days are counted from Monday.
    let weekday = (moment.div_euclid(86_400) + 3).rem_euclid(7);
    HOURS[hour as usize] * if weekday < 5 { WEEKDAY } else { WEEKEND }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::DEFAULT_START;

    #[test]
    fn arrivals_ascend_within_the_window() {
        for hours in [1, 24, 1000] {
            let moments = arrivals(1, DEFAULT_START, hours, 500);
            assert!(moments.is_sorted());
            assert!(
                moments[0] >= DEFAULT_START
                    && moments[499] < DEFAULT_START + i64::from(hours) * 3600
            );
        }
        assert!(arrivals(1, DEFAULT_START, 24, 0).is_empty());
    }

    #[test]
    fn afternoons_and_weekdays_are_busier() {
        let moments = arrivals(1, DEFAULT_START, 24 * 7 * 20, 200_000);
        let hour = |wanted| moments.iter().filter(|&&moment| moment / 3600 % 24 == wanted).count();
        let by_hour = hour(15) as f64 / hour(4) as f64;
        assert!((3.0..5.5).contains(&by_hour), "{by_hour}");
        let weekend =
            moments.iter().filter(|&&moment| (moment / 86_400 + 3) % 7 >= 5).count() as f64;
        let by_day = (moments.len() as f64 - weekend) / 5.0 / (weekend / 2.0);
        assert!((2.4..3.8).contains(&by_day), "{by_day}");
    }
}
