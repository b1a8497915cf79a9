//! The derived files match the types.

use std::collections::BTreeSet;
use std::fs;

#[test]
fn checked_in_files_are_up_to_date() {
    let derived = muster_xtask::derived();
    for file in &derived {
        let text = fs::read_to_string(&file.path).unwrap_or_default();
        let path = file.path.display();
        assert!(text == file.text, "{path} is out of date: run `cargo run -p muster-xtask`");
    }
}

#[test]
fn every_checked_in_definition_is_derived() {
    let derived = muster_xtask::derived();
    let folder = derived[0].path.parent().expect("a file is in a folder");
    let files = fs::read_dir(folder).expect("the definitions are checked in");
    let files: BTreeSet<_> = files.map(|file| file.expect("a file").file_name()).collect();
    let expected = derived.iter().filter(|file| file.path.parent() == Some(folder));
    let expected: BTreeSet<_> =
        expected.map(|file| file.path.file_name().expect("a name").to_owned()).collect();
    assert_eq!(files, expected);
}
