//! A tournament over all nodes.

use std::ops::Not;

/// An entry of a node: the score in the high bits, the inverted rank in the low bits, so that the
/// largest is the best and equal scores go to the lower rank. Zero does not fit.
pub type Place = u64;

#[inline]
pub fn place(score: i64, rank: u32) -> Place {
    let score = score.clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX)) as i32;
    (u64::from((score as u32) ^ (1 << 31)) << 32) | u64::from(rank.not())
}

#[inline]
pub fn score_of(place: Place) -> i64 {
    i64::from(((place >> 32) as u32 ^ (1 << 31)) as i32)
}

/// The entry with more points, if the node fits.
#[inline]
pub fn raised(at: Place, points: i64) -> Place {
    if at == 0 { 0 } else { place(score_of(at) + points, (at as u32).not()) }
}

/// A tournament over all nodes with four in a match: the best node is at the top, and a change
/// replays one path to the top.
#[derive(Default)]
pub struct WinnerTree {
    /// The leaves first, then each level of winners, up to one.
    levels: Vec<Vec<Place>>,
    len: usize,
}

impl WinnerTree {
    const FAN: usize = 4;

    pub fn clear(&mut self, len: usize) {
        let mut size = len.max(1).next_multiple_of(Self::FAN);
        if self.len == len && !self.levels.is_empty() {
            self.levels[0].fill(0);
            return;
        }
        self.len = len;
        self.levels.clear();
        self.levels.push(vec![0; size]);
        while size > 1 {
            size = size.div_ceil(Self::FAN);
            let padded = if size > 1 { size.next_multiple_of(Self::FAN) } else { 1 };
            self.levels.push(vec![0; padded]);
            size = padded;
        }
    }

    /// Sets a leaf without playing; [`WinnerTree::play`] follows.
    pub fn put(&mut self, leaf: usize, place: Place) {
        self.levels[0][leaf] = place;
    }

    pub fn play(&mut self) {
        for level in 1..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(level);
            for (winner, group) in above[0].iter_mut().zip(below[level - 1].chunks_exact(Self::FAN))
            {
                *winner = *group.iter().max().expect("four in a match");
            }
        }
    }

    pub fn set(&mut self, leaf: usize, place: Place) {
        if self.levels[0][leaf] == place {
            return;
        }
        self.levels[0][leaf] = place;
        let mut index = leaf;
        for level in 1..self.levels.len() {
            index /= Self::FAN;
            let group = &self.levels[level - 1][index * Self::FAN..(index + 1) * Self::FAN];
            let winner = *group.iter().max().expect("four in a match");
            if std::mem::replace(&mut self.levels[level][index], winner) == winner {
                return;
            }
        }
    }

    pub fn best(&self) -> Place {
        self.levels.last().and_then(|top| top.first()).copied().unwrap_or(0)
    }

    /// The best of the leaves from `start` to before `end`.
    pub fn best_of(&self, mut start: usize, mut end: usize) -> Place {
        let mut best = 0;
        for level in &self.levels {
            end = end.min(level.len());
            while start < end && !start.is_multiple_of(Self::FAN) {
                best = best.max(level[start]);
                start += 1;
            }
            while start < end && !end.is_multiple_of(Self::FAN) {
                end -= 1;
                best = best.max(level[end]);
            }
            if start >= end {
                break;
            }
            start /= Self::FAN;
            end /= Self::FAN;
        }
        best
    }

    pub fn leaves(&self) -> &[Place] {
        self.levels.first().map_or(&[], |leaves| &leaves[..self.len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_is_the_maximum_after_any_changes() {
        for len in [1, 2, 4, 5, 17, 64, 333] {
            let mut tree = WinnerTree::default();
            tree.clear(len);
            let mut plain = vec![0u64; len];
            let mut seed = 7u64;
            for _ in 0..500 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (leaf, value) = (seed as usize % len, seed >> 40);
                tree.set(leaf, value);
                plain[leaf] = value;
                assert_eq!(tree.best(), *plain.iter().max().unwrap());
                let (a, b) = (seed as usize % (len + 1), (seed >> 20) as usize % (len + 1));
                let of_range = plain[a.min(b)..a.max(b)].iter().max().copied().unwrap_or(0);
                assert_eq!(tree.best_of(a.min(b), a.max(b)), of_range);
            }
            assert_eq!(tree.leaves(), plain);
        }
    }

    #[test]
    fn a_higher_score_wins_and_equal_scores_go_to_the_lower_rank() {
        assert!(place(-1, 0) < place(0, 9));
        assert!(place(5, 3) > place(5, 4));
        assert!(place(i64::MIN, u32::MAX) > 0);
    }
}
