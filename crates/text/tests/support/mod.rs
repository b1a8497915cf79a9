//! The files of this repository, for tests that read all of them.

use std::path::{Path, PathBuf};

/// A text file, with its path from the root of the repository.
pub struct Text {
    pub path: String,
    pub text: String,
}

pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All text files, in order of their paths, without the files of git and cargo.
pub fn files() -> Vec<Text> {
    let mut files = Vec::new();
    collect(&top(), "", &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(files.len() > 300, "only {} files were found", files.len());
    files
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<Text>) {
    let entries = std::fs::read_dir(folder).expect("a readable folder");
    for entry in entries.map(|entry| entry.expect("a readable entry")) {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            if ![".git", "target"].contains(&name.as_str()) {
                collect(&entry.path(), &format!("{path}/"), files);
            }
        } else if name != "Cargo.lock"
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            files.push(Text { path, text });
        }
    }
}
