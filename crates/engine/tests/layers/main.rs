//! The folders of the engine are layers: each imports only from those below it. The table in
//! `ARCHITECTURE.md` says which layers there are, in which order, and what each must not know.

mod resolve;
mod rules;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn the_engine_imports_only_downwards() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = engine.join("../../ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let mut files = BTreeMap::new();
    collect(&engine.join("src"), "", &mut files);
    let problems = rules::problems(&page, &files);
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, std::fs::read_to_string(&path).expect("a readable file"));
        }
    }
}

const PAGE: &str = "## Layers of the engine
| layer | what it holds | must not know |
|---|---|---|
| `low/` | things | anything else |
| `plugins/` | opinions | |
| `middle/` | the middle | |
| `config/` | lists | `middle`, if it can |
| `high/` | all | |
";

/// A small crate in which nothing is wrong. It imports downwards in every way that there is, and
/// what imports upwards is for tests only.
fn clean() -> BTreeMap<String, String> {
    let files = [
        (
            "lib.rs",
            "extern crate self as muster_engine;
             mod config; mod high; mod low; mod middle; mod plugins;
             pub use high::*; pub use low::thing::Thing;
             pub mod inline { pub use crate::middle::Part; }",
        ),
        (
            "low/mod.rs",
            "pub mod thing; pub mod units;
             pub use std::fmt::Write;
             pub use units::{Gram, self as scales};
             #[cfg(test)] mod tests;
             #[cfg(test)] use crate::high::{Top};
             fn f() { let s = \"high::Top\"; /* crate::high::Top */ }",
        ),
        ("low/tests.rs", "use crate::high::Top;"),
        (
            "low/thing.rs",
            "pub struct Thing<T>(T);
             impl<T: Fn() -> u8> Thing<T> { pub fn new() -> impl Copy { 1 } }",
        ),
        ("low/units.rs", "units! { Gram Meter } pub fn gram() -> crate::low::Gram { Gram }"),
        ("plugins/mod.rs", "pub static ENTRY: u8 = 0;"),
        (
            "middle/mod.rs",
            "use crate::{Thing, low::{Write, scales::Meter, *}};
             use std::fmt;
             pub struct Part; pub trait Weigh {}
             impl Weigh for Thing<u8> {}
             impl fmt::Display for Part {}
             fn f() -> muster_engine::low::units::Meter { super::low::thing::Thing }",
        ),
        ("config/mod.rs", "pub static LIST: &[&u8] = &[&crate::plugins::ENTRY];"),
        (
            "high/mod.rs",
            "mod inner;
             pub struct Top; impl Top {}
             fn f() { use crate::low; println!(\"{}\", crate::inline::Part); }",
        ),
        ("high/inner.rs", "use super::Top; use crate::middle::{self, Weigh}; impl Top {}"),
    ];
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

/// The problems that these lines bring, each at the end of a file of the clean crate.
fn planted(lines: &[(&str, &str)]) -> Vec<String> {
    let mut files = clean();
    for (file, line) in lines {
        let text = files.entry((*file).to_owned()).or_default();
        *text += &format!("\n{line}");
    }
    rules::problems(PAGE, &files)
}

#[test]
fn a_clean_crate_has_no_problems() {
    assert_eq!(planted(&[]), [""; 0]);
}

#[test]
fn an_import_upwards_is_reported() {
    let expected = "middle/mod.rs:7: imports upwards: middle -> high";
    for (line, end) in [
        ("use crate::high::Top;", "crate::high::Top"),
        ("fn g() { let top = crate::high::Top; }", "crate::high::Top"),
        ("use super::high::{Top as Summit};", "super::high::Top"),
        ("type Summit = super::high::Top;", "super::high::Top"),
        ("use muster_engine::high::*;", "muster_engine::high"),
        ("fn g() { vec![$crate::high::Top]; }", "crate::high::Top"),
        ("fn g() { #[serde(with = \"crate::high::Top\")] struct S; }", "crate::high::Top"),
        ("mod deep { use super::super::high::Top; }", "super::super::high::Top"),
    ] {
        let problems = planted(&[("middle/mod.rs", line)]);
        assert!(problems[0].starts_with(expected), "{line}: {problems:?}");
        assert!(problems[0].contains(&format!("through {end}, in high/mod.rs")), "{problems:?}");
    }
}

#[test]
fn a_re_export_hides_no_import_upwards() {
    let expected =
        "middle/mod.rs:7: imports upwards: middle -> high through crate::Top, in high/mod.rs";
    assert_eq!(planted(&[("middle/mod.rs", "use crate::Top;")])[0], expected);

    let renamed = [("high/inner.rs", "pub(crate) use super::Top as Summit;")];
    let again = ("lib.rs", "pub use high::inner::Summit as Peak;");
    let problems = planted(&[renamed[0], again, ("middle/mod.rs", "use crate::Peak;")]);
    assert!(problems[0].ends_with("middle -> high through crate::Peak, in high/mod.rs"));
}

#[test]
fn an_inherent_impl_outside_of_its_layer_is_reported() {
    for line in ["impl Thing<u8> {}", "impl<T> crate::Thing<T> where T: Copy {}"] {
        let problems = planted(&[("middle/mod.rs", line)]);
        let name = if line.contains("crate") { "crate::Thing" } else { "Thing" };
        let problem = format!("impl of {name} outside of its layer, in low/thing.rs");
        assert_eq!(problems, [format!("middle/mod.rs:7: {problem}")]);
    }
}

#[test]
fn an_impl_of_a_foreign_trait_outside_of_its_layer_is_reported() {
    let problems = planted(&[("middle/mod.rs", "impl<T> fmt::Debug for Thing<T> {}")]);
    let problem = "impl of Thing outside of its layer, in low/thing.rs";
    assert_eq!(problems, [format!("middle/mod.rs:7: {problem}")]);
}

#[test]
fn a_cycle_of_folders_is_reported() {
    let problems = planted(&[
        ("low/thing.rs", "use crate::middle::Part;"),
        ("middle/mod.rs", "use crate::high::Top;"),
    ]);
    let cycles: Vec<&String> = problems.iter().filter(|p| p.starts_with("cycle")).collect();
    let expected = [
        "cycle: high -> middle at high/mod.rs:3, middle -> high at middle/mod.rs:7",
        "cycle: low -> middle at low/thing.rs:3, middle -> low at middle/mod.rs:1",
    ];
    assert_eq!(cycles, expected, "{problems:#?}");
}

#[test]
fn what_a_layer_must_not_know_is_reported() {
    let problems = planted(&[("config/mod.rs", "use crate::middle::Part;")]);
    let problem = "config/mod.rs:2: imports what it must not know: config -> middle";
    assert_eq!(problems, [format!("{problem} through crate::middle::Part, in middle/mod.rs")]);

    let problems = planted(&[("high/mod.rs", "use crate::plugins::ENTRY;")]);
    let problem = "high/mod.rs:4: imports what only config may: high -> plugins";
    assert_eq!(problems, [format!("{problem} through crate::plugins::ENTRY, in plugins/mod.rs")]);
}

#[test]
fn folders_and_the_table_agree() {
    let problems = planted(&[("new/mod.rs", ""), ("beside.rs", "")]);
    assert_eq!(problems, ["new/ is not in the table", "beside.rs is in no layer"]);

    let page = PAGE.replace("| `high/`", "| `gone/` | nothing | |\n| `high/`");
    assert_eq!(rules::problems(&page, &clean()), ["there is no folder gone/"]);
}

#[test]
fn what_the_test_cannot_follow_is_reported() {
    let problems = planted(&[
        ("middle/mod.rs", "use crate::low::Missing; use crate::inline;"),
        ("high/mod.rs", "impl Missing {}"),
    ]);
    let expected = [
        "high/mod.rs:4: the test can't tell what Missing is",
        "middle/mod.rs:7: the test can't tell what crate::low::Missing is",
        "middle/mod.rs:7: imports crate::inline from lib.rs, in no layer",
    ];
    assert_eq!(problems, expected);
}
