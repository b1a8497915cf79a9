//! What the layers demand of the source files. The layers and their order are the table in
//! `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Module, ModulePath, Path, Source};

const HEADING: &str = "## Layers of the engine";
/// Folders that one folder alone may import: plugins are found through the list there.
const ENTRANCES: [(&str, &str); 1] = [("plugins", "config")];

struct Layer {
    name: String,
    /// Layers that it must not know although they are below it.
    unknown: Vec<String>,
}

/// What is wrong with source files, by their paths from `src`, according to the page with the
/// table of layers.
pub fn problems(page: &str, files: &BTreeMap<String, String>) -> Vec<String> {
    let layers = table(page);
    let mut problems = folders(&layers, files);
    if !problems.is_empty() {
        return problems;
    }
    let source = Source::read(files);
    let checker = Checker { source: &source, layers: &layers };
    let mut edges = Edges::new();
    for (at, module) in &source.modules {
        // The top of the crate only says what the crate offers.
        if let Some(layer) = layer_of(&module.file) {
            checker.imports(at, module, layer, &mut edges, &mut problems);
            checker.impls(at, module, layer, &mut problems);
        }
    }
    problems.extend(cycles(&edges));
    problems
}

/// The rows of the table: the layer's name first, what it must not know last.
fn table(page: &str) -> Vec<Layer> {
    let (_, section) = page.split_once(HEADING).expect("the page has the heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("/` |"));
    let rows: Vec<(&str, &str)> = rows.collect();
    let names: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
    let layer = |(name, cells): &(&str, &str)| {
        let last = cells.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        let words = last.split(|c: char| !c.is_ascii_alphanumeric());
        let unknown = words.filter(|word| names.contains(word)).map(str::to_owned).collect();
        Layer { name: (*name).to_owned(), unknown }
    };
    rows.iter().map(layer).collect()
}

/// The folder of a file; none for `lib.rs`.
fn layer_of(file: &str) -> Option<&str> {
    file.split_once('/').map(|(folder, _)| folder)
}

/// Folders without a row, rows without a folder, and files beside the folders.
fn folders(layers: &[Layer], files: &BTreeMap<String, String>) -> Vec<String> {
    let named: BTreeSet<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    let there: BTreeSet<&str> = files.keys().filter_map(|file| layer_of(file)).collect();
    let mut problems = Vec::new();
    problems.extend(there.difference(&named).map(|name| format!("{name}/ is not in the table")));
    problems.extend(named.difference(&there).map(|name| format!("there is no folder {name}/")));
    let beside = files.keys().filter(|file| layer_of(file).is_none() && *file != "lib.rs");
    problems.extend(beside.map(|file| format!("{file} is in no layer")));
    problems
}

/// For each pair of folders of which the first imports the second, a place where it does.
type Edges = BTreeMap<(String, String), String>;

struct Checker<'s> {
    source: &'s Source,
    layers: &'s [Layer],
}

impl Checker<'_> {
    fn height(&self, name: &str) -> usize {
        let height = self.layers.iter().position(|layer| layer.name == name);
        height.expect("all folders are in the table")
    }

    fn imports(
        &self,
        at: &ModulePath,
        module: &Module,
        layer: &str,
        edges: &mut Edges,
        problems: &mut Vec<String>,
    ) {
        let imported = module.uses.iter().map(|import| &import.path);
        for path in imported.chain(&module.paths) {
            let place = format!("{}:{}", module.file, path.line);
            let through = path.names.join("::");
            let Some(found) = self.source.files(at, &path.names) else {
                problems.push(format!("{place}: the test can't tell what {through} is"));
                continue;
            };
            for file in found {
                let Some(other) = layer_of(file) else {
                    problems.push(format!("{place}: imports {through} from {file}, in no layer"));
                    continue;
                };
                if let Some(problem) = self.import(layer, other) {
                    problems.push(format!("{place}: {problem} through {through}, in {file}"));
                }
                let edge = (layer.to_owned(), other.to_owned());
                edges.entry(edge).or_insert(place.clone());
            }
        }
    }

    /// What is wrong if a layer imports from another.
    fn import(&self, layer: &str, other: &str) -> Option<String> {
        if self.height(layer) < self.height(other) {
            return Some(format!("imports upwards: {layer} -> {other}"));
        }
        if self.layers[self.height(layer)].unknown.iter().any(|name| name == other) {
            return Some(format!("imports what it must not know: {layer} -> {other}"));
        }
        let entrance = ENTRANCES.iter().find(|(folder, _)| *folder == other && other != layer);
        let (_, only) = entrance.filter(|(_, only)| *only != layer)?;
        Some(format!("imports what only {only} may: {layer} -> {other}"))
    }

    /// What a type is given in a layer above it could be used below that layer without an import,
    /// unless it belongs to a trait of ours, which has to be imported.
    fn impls(&self, at: &ModulePath, module: &Module, layer: &str, problems: &mut Vec<String>) {
        for block in &module.impls {
            let names = |path: &Path| self.source.files(at, &path.names).unwrap_or_default();
            if block.of.as_ref().is_some_and(|of| !names(of).is_empty()) {
                continue;
            }
            let Path { names: subject, line } = &block.subject;
            let place = format!("{}:{line}", module.file);
            let subject_name = subject.join("::");
            let defined = names(&block.subject);
            if defined.is_empty() && block.of.is_none() {
                problems.push(format!("{place}: the test can't tell what {subject_name} is"));
            }
            for file in defined.into_iter().filter(|file| layer_of(file) != Some(layer)) {
                let problem = format!("impl of {subject_name} outside of its layer");
                problems.push(format!("{place}: {problem}, in {file}"));
            }
        }
    }
}

/// Folders that import each other, the shortest way round for each.
fn cycles(edges: &Edges) -> Vec<String> {
    let folders: BTreeSet<&str> = edges.keys().map(|(from, _)| from.as_str()).collect();
    let mut known: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    let mut problems = Vec::new();
    for start in folders {
        let Some(cycle) = way_round(edges, start) else { continue };
        if known.insert(cycle.iter().copied().collect()) {
            let steps = cycle.windows(2).map(|pair| {
                let place = &edges[&(pair[0].to_owned(), pair[1].to_owned())];
                format!("{} -> {} at {place}", pair[0], pair[1])
            });
            problems.push(format!("cycle: {}", steps.collect::<Vec<_>>().join(", ")));
        }
    }
    problems
}

/// The shortest way from a folder back to it.
fn way_round<'e>(edges: &'e Edges, start: &'e str) -> Option<Vec<&'e str>> {
    let mut ways = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way[way.len() - 1];
            for (_, to) in edges.keys().filter(|(from, to)| from == last && to != from) {
                let next = [&way[..], &[to.as_str()]].concat();
                if to == start {
                    return Some(next);
                }
                if seen.insert(to.as_str()) {
                    longer.push(next);
                }
            }
        }
        ways = longer;
    }
    None
}
