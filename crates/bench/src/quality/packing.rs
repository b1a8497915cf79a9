//! Whether pods fit on nodes, by trying every assignment.

use super::small::{Amounts, add};

/// Whether all pods fit at the same time.
pub fn fits(pods: &[Amounts], free: &[Amounts]) -> bool {
    let mut pods = pods.to_vec();
    // Large ones first, so that dead ends are found sooner. Equal ones come one after the other.
    pods.sort_unstable_by(|a, b| b.cmp(a));
    place(&pods, &mut free.to_vec(), 0)
}

/// Tries every node from `first` on for the first pod. Of equal pods a later one never goes to an
/// earlier node: that would be the same assignment with names exchanged.
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
    fn enough_in_total_may_still_not_fit() {
        assert!(!fits(&[[3, 0], [3, 0]], &[[4, 0], [2, 0]]));
        assert!(fits(&[[3, 0], [1, 0], [2, 0]], &[[4, 0], [2, 0]]));
    }

    #[test]
    fn the_first_node_that_fits_is_not_always_the_right_one() {
        // The large pod must leave the node with many cores to the pod that needs no GPU.
        assert!(fits(&[[2, 2], [6, 0]], &[[6, 2], [2, 2]]));
        assert!(!fits(&[[2, 2], [6, 0]], &[[6, 2], [2, 1]]));
    }

    #[test]
    fn no_pod_fits_on_an_overcommitted_node() {
        assert!(fits(&[[0, 1]], &[[-1, 1]]));
        assert!(!fits(&[[1, 1]], &[[-1, 1]]));
        assert!(fits(&[], &[]));
    }
}
