//! The types depend on no client and no schemas: every other crate is compiled after them.

use std::process::Command;

#[test]
fn the_types_depend_on_neither_client_nor_schemas() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "muster-api", "--edges", "normal", "--prefix", "none"])
        .args(["--offline", "--locked"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("cargo prints text");
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"serde"), "{tree}");
    for forbidden in ["kube", "kube-core", "k8s-openapi", "schemars"] {
        assert!(!names.contains(&forbidden), "muster-api depends on {forbidden}:\n{tree}");
    }
}
