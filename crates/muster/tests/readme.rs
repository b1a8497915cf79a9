//! The README shows what its first command prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_readme_shows_what_the_first_command_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README is there");
    assert!(readme.contains("cargo run --release -- simulate -f examples/first-gang\n"));
    let output = Command::new(env!("CARGO_BIN_EXE_muster"))
        .args(["simulate", "-f", "examples/first-gang", "--now", "2026-11-15T00:00:00Z"])
        .current_dir(&root)
        .output()
        .expect("the command runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(readme.contains(printed.trim_end()), "put this into the README:\n{printed}");
}
