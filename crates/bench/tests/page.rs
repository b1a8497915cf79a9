//! `docs/performance.md` shows the figures of `muster bench` by their names, with their bars.

use std::path::Path;

use muster_bench::speed::BARS;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Name and bar of each row in the tables of the section, without the unit after the name.
fn rows(page: &str) -> Vec<(String, Option<f64>)> {
    let section = page.split("\n## ").find(|part| part.starts_with("The engine alone"));
    let lines = section.expect("it has this section").lines();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" |").map(str::trim);
        let (name, bar) = (cells.next()?, cells.next()?);
        let name = name
            .strip_suffix(')')
            .and_then(|name| name.rsplit_once(" ("))
            .map_or(name, |(name, _)| name);
        (name != "figure")
            .then(|| (name.to_owned(), bar.strip_prefix("≤ ").and_then(|bar| bar.parse().ok())))
    };
    lines.filter_map(row).collect()
}

#[test]
fn the_page_shows_every_bar() {
    let rows = rows(&read("../../docs/performance.md"));
    let missing: Vec<_> = BARS
        .iter()
        .filter(|(name, bar)| !rows.contains(&((*name).to_owned(), Some(*bar))))
        .collect();
    assert!(missing.is_empty(), "missing on the page, or with another bar: {missing:#?}");
}

/// A bar whose name is never measured would never be missed.
#[test]
fn every_bar_and_every_row_names_a_measured_figure() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/speed");
    let files =
        std::fs::read_dir(folder).expect("there are cases").map(|entry| entry.expect("listed"));
    let names: Vec<String> = files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "figures.rs")
        .collect();
    let cases: String = names.iter().map(|name| read(&format!("src/speed/{name}"))).collect();
    let cases = cases + &read("src/speed.rs");
    let bars = BARS.iter().map(|(name, _)| (*name).to_owned());
    let shown = rows(&read("../../docs/performance.md")).into_iter().map(|(name, _)| name);
    let unknown: Vec<String> =
        bars.chain(shown).filter(|name| !cases.contains(&format!("\"{name}\""))).collect();
    assert!(unknown.is_empty(), "no case has the name {unknown:#?}");
}
