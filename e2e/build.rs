//! Tells the tests whether Go is installed. Without it there is no control plane to test on, and
//! they count as ignored.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_go)");
    println!("cargo::rerun-if-env-changed=PATH");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_dir()).collect();
    match folders.iter().map(|folder| folder.join("go")).find(|go| go.is_file()) {
        Some(go) => {
            println!("cargo::rustc-cfg=has_go");
            println!("cargo::rerun-if-changed={}", go.display());
        }
        // Go may be installed into any of these.
        None => folders
            .iter()
            .for_each(|folder| println!("cargo::rerun-if-changed={}", folder.display())),
    }
}
