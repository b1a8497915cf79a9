//! How good the engine's choices are, on clusters where all can be tried.

use muster_sim::quality::gaps;

#[test]
fn nothing_is_lost_without_need_on_small_clusters() {
    let gaps = gaps(200, |_| {});
    assert_eq!(gaps.wrong, [], "rules that are not kept");
    assert_eq!(gaps.needless, [] as [u64; 0], "clusters where someone leaves who could have stayed");
    // Both between queues: the quota is asked for bundles that are not taken in the end.
    assert_eq!(gaps.missed, [96, 168], "clusters where a way is not found");
    assert_eq!(gaps.gap.median, 0.0);
    assert!(gaps.gap.clusters > 150, "only {} to compare: nothing is tried here", gaps.gap.clusters);
}
