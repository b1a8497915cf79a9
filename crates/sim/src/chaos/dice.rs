//! Random draws of one history.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number from 0 up to, but not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several things, each with its weight.
    pub fn pick<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut place = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for &(weight, thing) in choices {
            if place < weight {
                return thing;
            }
            place -= weight;
        }
        unreachable!("the place lies below the sum of the weights");
    }

    /// One of these, if there is any.
    pub fn one_of<'t, T>(&mut self, things: &'t [T]) -> Option<&'t T> {
        if things.is_empty() { None } else { things.get(self.below(things.len() as u64) as usize) }
    }

    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
