//! How much past usage counts: half for each half-life. In integers, so that it is the same
//! everywhere.

/// The weight of usage now.
pub const ONE: i64 = 1 << 32;

/// How many times a half-life is halved.
const DEPTH: usize = 16;

/// The square root of a half, the square root of that, and so on, in parts of [`ONE`]. Each is what
/// remains after half of the time of the one before.
const ROOTS: [u64; DEPTH] = {
    let mut roots = [0; DEPTH];
    let mut last = ONE as u64 / 2;
    let mut at = 0;
    while at < DEPTH {
        // The root of a scaled number is scaled by the root of the scale, so the number is scaled
        // twice.
        last = ((last as u128) << 32).isqrt() as u64;
        roots[at] = last;
        at += 1;
    }
    roots
};

/// What remains after an age, in parts of [`ONE`]: the roots whose times add up to the age,
/// multiplied.
pub fn half_lives(age_ms: i64, half_life_ms: i64) -> i64 {
    let (age, half) = (age_ms.max(0) as u128, half_life_ms.max(1) as u128);
    let whole = age / half;
    if whole >= 32 {
        return 0;
    }
    let fraction = ((age % half) << DEPTH) / half;
    let mut left = ONE as u64;
    for (at, root) in ROOTS.iter().enumerate() {
        if fraction >> (DEPTH - 1 - at) & 1 == 1 {
            left = ((u128::from(left) * u128::from(*root)) >> 32) as u64;
        }
    }
    (left >> whole) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_life_takes_a_half() {
        let hour = 3_600_000;
        let left = [0, hour, 2 * hour, 10 * hour, 40 * hour].map(|age| half_lives(age, hour));
        assert_eq!(left, [ONE, ONE / 2, ONE / 4, ONE / 1024, 0]);
    }

    #[test]
    fn in_between_it_falls_as_it_should() {
        let hour = 3_600_000;
        for tenths in 0..50 {
            let exact = 0.5f64.powf(f64::from(tenths) / 10.0);
            let found = half_lives(i64::from(tenths) * hour / 10, hour) as f64 / ONE as f64;
            assert!((exact - found).abs() < 2e-5, "{tenths} tenths: {found} for {exact}");
        }
        let falls = (0..3 * hour).step_by(977).map(|age| half_lives(age, hour));
        assert!(falls.is_sorted_by(|a, b| a >= b), "what is longer ago never counts more");
    }
}
