//! Whether pods fit on nodes, by trying every way.

use super::small::{Amounts, add};

/// Whether all pods find a place at the same time.
pub fn fits(pods: &[Amounts], free: &[Amounts]) -> bool {
    let mut pods = pods.to_vec();
    // Large ones first: what can't work is known sooner. Equal ones stand together.
    pods.sort_unstable_by(|a, b| b.cmp(a));
    place(&pods, &mut free.to_vec(), 0)
}

/// Tries every node from `first` on for the first pod. Of equal pods the next goes no further
/// forward than the one before: the other ways are the same with names changed.
fn place(pods: &[Amounts], free: &mut [Amounts], first: usize) -> bool {
    let Some((&pod, rest)) = pods.split_first() else { return true };
    for node in first..free.len() {
        if (0..2).any(|id| pod[id] > free[node][id].max(0)) {
            continue;
        }
        add(&mut free[node], pod, -1);
        let next = if rest.first() == Some(&pod) { node } else { 0 };
        let done = place(rest, free, next);
        add(&mut free[node], pod, 1);
        if done {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_not_enough() {
        assert!(!fits(&[[3, 0], [3, 0]], &[[4, 0], [2, 0]]));
        assert!(fits(&[[3, 0], [1, 0], [2, 0]], &[[4, 0], [2, 0]]));
    }

    #[test]
    fn the_first_place_is_not_always_the_right_one() {
        // The large pod must leave the node with many cores to the pod that has no GPU.
        assert!(fits(&[[2, 2], [6, 0]], &[[6, 2], [2, 2]]));
        assert!(!fits(&[[2, 2], [6, 0]], &[[6, 2], [2, 1]]));
    }

    #[test]
    fn nobody_fits_where_too_much_is_taken_already() {
        assert!(fits(&[[0, 1]], &[[-1, 1]]));
        assert!(!fits(&[[1, 1]], &[[-1, 1]]));
        assert!(fits(&[], &[]));
    }
}
