//! Scenarios as text: what happens, `----`, and for each step what is written because of it. Each
//! name is a sentence that is true. `MUSTER_REWRITE=1 cargo test -p muster-controllers --test
//! scenarios` writes the second halves; read the diff.
//!
//! Steps are `job NAME WORDS` (see `support/jobs.rs`), `let in [NAME]` (its PodGroup may be
//! scheduled), `group NAME PHASE`, `run PODS`, `pend PODS`, `lose PODS` (their node is out of
//! reach), `end POD CODE…` (its containers end so), `restarts POD N`, `unready POD`, `ready POD`,
//! `delete KIND NAME` (by others), `hold` and `let go` (pods that are deleted stay,
//! terminating), `gone POD`, `scale JOB TASK N`, `set JOB {merge patch}`, `command JOB ACTION`,
//! `queue NAME`, `claim NAME`, `put {object}`, `after 5m`, `restart` (another process that knows
//! what the objects say, and nothing else), `refuse WRITE: message`, `conflict WRITE`, `show KIND
//! NAME /POINTER`. Pods are named by globs.

mod support;

use std::fmt::Write as _;
use std::path::Path;

use support::scene::Scene;

#[test]
fn scenarios_come_out_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("there are scenarios")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    let rewrites = std::env::var_os("MUSTER_REWRITE").is_some();
    let mut wrong = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let mut new = String::new();
        for scenario in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
            let scenario = scenario.trim();
            let (name, body) = scenario.split_once('\n').expect("a name and steps");
            assert!(name.starts_with("# "), "{}: {name}", file.display());
            let (steps, expected) = body.split_once("----").unwrap_or((body, ""));
            let found = run(steps.trim());
            if found.trim() != expected.trim() {
                let _ = write!(wrong, "\n{}: {name}\n{found}", file.display());
            }
            let _ = write!(new, "{name}\n{}\n----\n{}\n\n", steps.trim(), found.trim());
        }
        if rewrites {
            std::fs::write(&file, format!("{}\n", new.trim_end())).expect("a writable file");
        }
    }
    assert!(rewrites || wrong.is_empty(), "{wrong}");
}

fn run(steps: &str) -> String {
    let mut scene = Scene::new();
    for line in steps.lines().map(str::trim).filter(|line| !line.is_empty()) {
        scene.step(line);
    }
    scene.told
}
