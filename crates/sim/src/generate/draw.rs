//! Random draws that come out alike on every machine.
//!
//! Integers are drawn wherever they will do. The platform's `powf`, `ln` and `exp` may differ in
//! the last bit from one machine to the next; a square root may not, so the one power that is
//! needed is made of square roots.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a sequence of draws is for. Each has its own stream of the seed, so that one draw more here
/// moves nothing there: a longer window spreads the same gangs over more hours.
#[derive(Clone, Copy)]
pub enum Stream {
    Nodes = 1,
    Gangs = 2,
    Arrivals = 3,
    SmallClusters = 4,
}

pub struct Draw {
    rng: ChaCha8Rng,
}

impl Draw {
    pub fn new(seed: u64, stream: Stream) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream as u64);
        Draw { rng }
    }

    /// A number from 0 up to, but not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        const STEPS: u64 = 1 << 53;
        (self.rng.next_u64() % STEPS) as f64 / STEPS as f64
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several things, each with its weight. At least one weight is above zero.
    pub fn pick<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let total = choices.iter().map(|(weight, _)| weight).sum();
        let mut place = self.below(total);
        for &(weight, thing) in choices {
            if place < weight {
                return thing;
            }
            place -= weight;
        }
        unreachable!("the place lies below the sum of the weights");
    }

    /// How many throws of a die with `mean` sides it takes to see a one: at least 1, on average
    /// `mean`.
    pub fn geometric(&mut self, mean: u64) -> u64 {
        let mut throws = 1;
        while self.below(mean) != 0 {
            throws += 1;
        }
        throws
    }

    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// `base` to an exponent from 0 up to 1: the product of those repeated square roots whose bit is
/// set.
pub fn power(base: f64, mut exponent: f64) -> f64 {
    let (mut root, mut product) = (base, 1.0);
    while exponent > 0.0 {
        root = root.sqrt();
        exponent *= 2.0;
        if exponent >= 1.0 {
            product *= root;
            exponent -= 1.0;
        }
    }
    product
}

/// Divides a whole number in proportion to weights, without rest: what rounding down leaves over
/// goes to the largest remainders, the earlier first among equals.
pub fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |&weight: &u64| u128::from(total) * u128::from(weight);
    let mut parts: Vec<u64> = weights.iter().map(|weight| (exact(weight) / sum) as u64).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|&index| std::cmp::Reverse(exact(&weights[index]) % sum));
    let rest = total - parts.iter().sum::<u64>();
    for &index in &by_remainder[..rest as usize] {
        parts[index] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_agrees_with_the_platform() {
        for (base, exponent) in [(2.0, 0.5), (1e6, 0.1), (0.25, 0.75), (7.0, 0.0), (1.0, 0.999)] {
            let (ours, theirs) = (power(base, exponent), f64::powf(base, exponent));
            assert!(
                (ours - theirs).abs() <= theirs * 1e-12,
                "{base}^{exponent}: {ours} and {theirs}"
            );
        }
    }

    #[test]
    fn shares_add_up_and_follow_the_weights() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(1, &[5, 60, 35]), [0, 1, 0]);
        assert_eq!(apportion(100, &[50, 0, 25, 25]), [50, 0, 25, 25]);
        assert_eq!(apportion(7, &[0, 0]), [0, 0]);
    }

    #[test]
    fn geometric_draws_have_the_mean_they_are_asked_for() {
        let mut draw = Draw::new(1, Stream::Gangs);
        let sum: u64 = (0..20_000).map(|_| draw.geometric(8)).sum();
        assert!((150_000..170_000).contains(&sum), "{sum}");
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let first = |stream| Draw::new(1, stream).below(u64::MAX);
        assert_ne!(first(Stream::Nodes), first(Stream::Gangs));
    }
}
