//! One word, one thing: names that were given up do not come back, and neither do words that make
//! a thing a person. `words/retired.txt` lists them; `words/allowed.txt` says how often those that
//! are not gone yet may still occur in the whole repository. That number may only shrink, but for
//! parts of names, which a split file repeats: of these none may come back once it is gone.
//! `MUSTER_REWRITE=1 cargo test -p muster-text --test words` lowers it, and never raises it.
//! `MUSTER_WORDS=nobody cargo test -p muster-text --test words -- --nocapture` shows where a word is.

mod support;

use std::collections::BTreeMap;

/// How a retired word is found.
enum Pattern {
    /// A word in prose or a part of an identifier, in any case; with a star also what begins so.
    Word { word: String, prefix: bool },
    /// A whole identifier, anywhere.
    Identifier(String),
    /// A whole identifier in Rust, outside of comments and texts. For names that are also words.
    Code(String),
    /// A declaration such as `fn name` in a folder. For names that are fine elsewhere.
    Declaration { declaration: String, folder: String },
}

struct Retired {
    entry: String,
    pattern: Pattern,
    instead: String,
    /// A word of sentences, not of names.
    prose: bool,
}

struct Lists {
    retired: Vec<Retired>,
    /// Texts that others rely on, which keep an old word.
    contracts: Vec<String>,
    /// Files that are about the words themselves.
    skipped: Vec<String>,
}

fn read(name: &str) -> String {
    let path = support::top().join("crates/text/tests/words").join(name);
    std::fs::read_to_string(&path).unwrap_or_default()
}

/// The lines below each `[heading]`.
fn lists(text: &str) -> Lists {
    let mut lists = Lists { retired: Vec::new(), contracts: Vec::new(), skipped: Vec::new() };
    let mut heading = "";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('[') {
            heading = line;
            continue;
        }
        let (entry, instead) = line.split_once(" -> ").unwrap_or((line, ""));
        let (entry, instead) = (entry.trim().to_owned(), instead.trim().to_owned());
        let pattern = match heading {
            "[people]" | "[words]" => Pattern::Word {
                word: entry.trim_end_matches('*').to_owned(),
                prefix: entry.ends_with('*'),
            },
            "[identifiers]" => Pattern::Identifier(entry.clone()),
            "[code]" => Pattern::Code(entry.clone()),
            "[declarations]" => {
                let (declaration, folder) = entry.split_once(" in ").expect("a folder");
                Pattern::Declaration { declaration: declaration.into(), folder: folder.into() }
            }
            "[contracts]" => {
                lists.contracts.push(entry);
                continue;
            }
            "[skipped]" => {
                lists.skipped.push(entry);
                continue;
            }
            _ => panic!("no such heading: {heading}"),
        };
        let prose = heading == "[people]";
        lists.retired.push(Retired { entry, pattern, instead, prose });
    }
    lists
}

fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|part| !part.is_empty())
}

/// The words of an identifier, in lower case: `HalfPromised_place` has three.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in identifier.chars() {
        if c == '_' || c.is_ascii_digit() || (c.is_ascii_uppercase() && before.is_ascii_lowercase())
        {
            words.push(String::new());
        }
        if c.is_ascii_alphabetic() {
            words.last_mut().expect("one at least").push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether `fn name` stands in the line, followed by what can follow a declared name.
fn declares(line: &str, declaration: &str) -> bool {
    line.match_indices(declaration).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + declaration.len()..].chars().next();
        before.is_none_or(|c| c == ' ' || c == '(')
            && after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    })
}

/// The line without what follows `//` and without what stands in quotes.
fn code(line: &str) -> String {
    let line = line.split("//").next().unwrap_or_default();
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// The line without texts that others rely on: contracts, and old names of serialised fields.
fn without_contracts(line: &str, lists: &Lists) -> String {
    let mut line = line.to_owned();
    for contract in &lists.contracts {
        line = line.replace(contract.as_str(), "");
    }
    for attribute in ["alias = \"", "rename = \""] {
        while let Some(start) = line.find(attribute) {
            let value = start + attribute.len();
            let end = line[value..].find('"').map_or(line.len(), |at| value + at + 1);
            line.replace_range(start..end, "");
        }
    }
    line
}

/// The retired words in a line, as indices into the list, one for each use.
fn found(path: &str, line: &str, lists: &Lists) -> Vec<usize> {
    let line = without_contracts(line, lists);
    let code = if path.ends_with(".rs") { code(&line) } else { String::new() };
    let mut found = Vec::new();
    let words: Vec<String> = identifiers(&line).flat_map(words).collect();
    for (index, retired) in lists.retired.iter().enumerate() {
        let times = match &retired.pattern {
            Pattern::Word { word, prefix: true } => {
                words.iter().filter(|other| other.starts_with(word.as_str())).count()
            }
            Pattern::Word { word, .. } => words.iter().filter(|other| *other == word).count(),
            Pattern::Identifier(name) => identifiers(&line).filter(|other| other == name).count(),
            Pattern::Code(name) => identifiers(&code).filter(|other| other == name).count(),
            Pattern::Declaration { declaration, folder } => {
                usize::from(path.starts_with(folder.as_str()) && declares(&code, declaration))
            }
        };
        found.extend(std::iter::repeat_n(index, times));
    }
    found
}

/// Every place of every retired word.
fn places(lists: &Lists) -> BTreeMap<usize, Vec<String>> {
    let mut places: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for file in support::files() {
        if lists.skipped.iter().any(|skipped| file.path.starts_with(skipped)) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            for index in found(&file.path, line, lists) {
                let place = format!("{}:{}: {}", file.path, number + 1, line.trim());
                places.entry(index).or_default().push(place);
            }
        }
    }
    places
}

fn allowed() -> BTreeMap<String, usize> {
    let count = |line: &str| {
        let (count, entry) = line.trim().split_once(' ').expect("a count and a word");
        (entry.to_owned(), count.parse().expect("a count"))
    };
    read("allowed.txt").lines().filter(|line| !line.starts_with('#')).map(count).collect()
}

/// Lowers what is allowed to what there is. A word that is not in the list yet gets its count.
fn lower(lists: &Lists, places: &BTreeMap<usize, Vec<String>>, allowed: &BTreeMap<String, usize>) {
    let mut text = String::from("# Retired words that are still there: how often, at most.\n");
    for (index, retired) in lists.retired.iter().enumerate() {
        let there = places.get(&index).map_or(0, Vec::len);
        let count = allowed.get(&retired.entry).map_or(there, |&most| most.min(there));
        if count > 0 {
            text += &format!("{count:>5} {}\n", retired.entry);
        }
    }
    let path = support::top().join("crates/text/tests/words/allowed.txt");
    std::fs::write(path, text).expect("the list is written");
}

#[test]
fn retired_words_only_become_fewer() {
    let lists = lists(&read("retired.txt"));
    let places = places(&lists);
    if let Ok(word) = std::env::var("MUSTER_WORDS") {
        for (index, _) in lists.retired.iter().enumerate().filter(|(_, w)| w.entry == word) {
            println!("{}", places.get(&index).map_or(String::new(), |all| all.join("\n")));
        }
    }
    let allowed = allowed();
    if std::env::var_os("MUSTER_REWRITE").is_some() {
        return lower(&lists, &places, &allowed);
    }
    let mut problems = String::new();
    for (index, all) in &places {
        let Retired { entry, instead, prose, .. } = &lists.retired[*index];
        let most = allowed.get(entry).copied().unwrap_or(0);
        if all.len() > most && (*prose || most == 0) {
            let count = all.len();
            problems += &format!("\n{entry}: {count} times, {most} allowed; say: {instead}\n  ");
            problems += &all[..count.min(400)].join("\n  ");
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn words_are_found_in_prose_names_and_declarations() {
    let lists = lists(
        "[words]\npromise*\nseat\n[identifiers]\nErrand\n[declarations]\nfn price in crates/engine\n\
         [code]\nBill\n[contracts]\n\"promises\"\n",
    );
    let count = |line: &str| found("crates/engine/src/lib.rs", line, &lists).len();
    assert_eq!(count("/// Promised places, and the Promise itself."), 2);
    assert_eq!(count("let half_promised = HalfPromised::new(); // UnPromise"), 3);
    assert_eq!(count("seat seats reseat Seat"), 2, "without a star only the word itself");
    assert_eq!(count("/// An `Errand`, not errands."), 1);
    assert_eq!(count("pub fn price(&self) -> i64 { self.price() }"), 1);
    assert_eq!(count("fn price_of(); // its price"), 0);
    assert_eq!(count("struct Bill; // Bill, and \"Bill\""), 1);
    assert_eq!(found("README.md", "fn price and Bill are fine here", &lists).len(), 0);
    assert_eq!(count("[\"promises\"]"), 0, "a contract keeps its word");
    assert_eq!(count("#[serde(alias = \"promised\")]"), 0, "old journals keep theirs");
}
