//! The options and output of `muster bench --quality`.

use std::process::{Command, Output};

fn bench(args: &str) -> Output {
    let mut muster = Command::new(env!("CARGO_BIN_EXE_muster"));
    muster.arg("bench").args(args.split_whitespace()).output().expect("muster runs")
}

#[test]
fn one_small_cluster_is_described_in_words() {
    let output = bench("--quality --seed 3");
    let told = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success());
    assert!(told.starts_with("small cluster 3: ") && told.contains("\nbest: "), "{told}");
}

#[test]
fn options_for_quality_require_it() {
    for args in ["--plot x.svg", "--clusters 3", "--seed 3"] {
        let output = bench(args);
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(error.contains("--quality"), "{args}: {error}");
    }
}

#[test]
fn invalid_options_are_rejected_before_anything_is_measured() {
    let refused = [
        ("--quality --plot no/such/folder/x.svg", "--plot no/such/folder/x.svg: "),
        ("--quality --seed 3 -o json", "leave out -o json"),
        ("--quality --rounds 3", "--rounds"),
        ("--quality --clusters 0", "0 is not in 1"),
    ];
    for (args, problem) in refused {
        let output = bench(args);
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(error.contains(problem) && !error.contains("measuring"), "{args}: {error}");
    }
}
