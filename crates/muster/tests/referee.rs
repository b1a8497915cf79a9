//! Random clusters before the referee (`crates/referee`), which knows nothing of the engine; and false
//! outputs, so that it is known to see.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use muster_referee::run::Runner;
use muster_referee::{Story, judge, make_case, tamper, try_case};

/// How many clusters are tried.
const CLUSTERS: u64 = 1_000;

/// Rules that the scheduler is known to break.
const NOT_YET: &[&str] = &["needed", "no-bind-in-vain"];

fn runner(folder: &tempfile::TempDir, thread: usize) -> Runner {
    let folder = folder.path().join(thread.to_string());
    Runner { muster: PathBuf::from(env!("CARGO_BIN_EXE_muster")), folder }
}

/// Does something for each seed, on all processors.
fn for_each_seed(seeds: std::ops::Range<u64>, work: impl Fn(&Runner, u64) + Sync) {
    let folder = tempfile::tempdir().expect("a folder for cases");
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (runner, next, work, end) = (runner(&folder, thread), &next, &work, seeds.end);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    work(&runner, seed);
                }
            });
        }
    });
}

#[test]
fn no_random_cluster_breaks_a_rule() {
    let broken = Mutex::new(Vec::new());
    for_each_seed(1..CLUSTERS + 1, |runner, seed| {
        let case = make_case(seed);
        let (_, found) =
            try_case(runner, &case).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let lines = found.into_iter().filter(|one| !NOT_YET.contains(&one.rule));
        let lines = lines
            .map(|one| format!("seed {seed}, cycle {}: {}: {}", one.cycle, one.rule, one.text));
        broken.lock().expect("no panic").extend(lines);
    });
    let broken = broken.into_inner().expect("no panic");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_kind_of_false_output_is_seen() {
    let seen: Mutex<BTreeSet<&str>> = Mutex::default();
    for_each_seed(1..5_000, |runner, seed| {
        let is_new = |name: &str| !seen.lock().expect("no panic").contains(name);
        let kinds: Vec<_> = tamper::all().filter(|kind| is_new(kind.name)).collect();
        if kinds.is_empty() {
            return;
        }
        let case = make_case(seed);
        let output = runner.output(&case).expect("the run succeeds");
        let story = Story::tell(&case, &output);
        if !judge(&case, &output).is_empty() {
            return;
        }
        for kind in kinds {
            let Some(changed) = (kind.change)(&story) else { continue };
            let found = judge(&case, &changed);
            assert!(
                found.iter().any(|one| one.rule == kind.seen_by),
                "seed {seed}: {} is not seen by {}, only {found:#?}",
                kind.name,
                kind.seen_by
            );
            seen.lock().expect("no panic").insert(kind.name);
        }
    });
    let seen = seen.into_inner().expect("no panic");
    let missing: Vec<&str> =
        tamper::all().map(|kind| kind.name).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "never tried: {missing:?}");
}
