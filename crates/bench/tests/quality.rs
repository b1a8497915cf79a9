//! How good the engine's choices are, on clusters where every choice can be tried.

use muster_bench::quality::{LoadSpec, MODES, describe, gaps, load};

#[test]
fn no_needless_evictions_on_small_clusters() {
    let gaps = gaps(200, |_| {});
    assert_eq!(gaps.wrong, [], "violated rules");
    assert_eq!(gaps.needless, [] as [u64; 0], "clusters with a needless eviction");
    assert_eq!(gaps.missed, [] as [u64; 0], "clusters where room can be made but is not found");
    assert_eq!(gaps.gap.median, 0.0);
    assert!(
        gaps.gap.clusters > 150,
        "only {} can be compared: the test checks nothing",
        gaps.gap.clusters
    );
}

#[test]
fn a_small_cluster_is_described_in_words() {
    let told = describe(3);
    assert_eq!(told, describe(3));
    for word in ["small cluster 3", "preemptor starts with", "\nengine: ", "\nbest: "] {
        assert!(told.contains(word), "no {word:?} in\n{told}");
    }
}

#[test]
fn the_same_load_has_the_same_result_twice() {
    let spec = LoadSpec { nodes: 8, hours: 6, percent: 400, ..LoadSpec::default() };
    let once = load(&spec, |_, _| {});
    assert_eq!(format!("{once:?}"), format!("{:?}", load(&spec, |_, _| {})));
    assert_eq!(once.modes.iter().map(|mode| mode.mode).collect::<Vec<_>>(), MODES);
    for mode in &once.modes {
        let played = format!("{mode:?}");
        assert!(
            mode.utilisation_over_time.iter().all(|share| (0.0..=1.0).contains(share)),
            "{played}"
        );
        assert!(mode.waited_at_most.is_sorted(), "{played}");
        assert_eq!(mode.waits[0].gangs, once.gangs, "all start in the end: {played}");
        assert!(mode.evicted_pods >= mode.broken_gangs, "{played}");
    }
    assert!(
        once.modes.iter().any(|mode| mode.wasted_gpu_hours > 0.0),
        "no pod is evicted: {once:?}"
    );
}
