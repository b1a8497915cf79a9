//! Few files know a kind of object, and CONTRIBUTING.md names them.

mod support;

use std::collections::BTreeSet;

/// The kind that CONTRIBUTING.md uses as its example.
const KIND: &str = "PodDisruptionBudget";

/// How many source files may know a kind.
const MOST: usize = 5;

/// The code of a Rust file, up to its unit tests: without comments and texts.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        let end = match from {
            _ if from.starts_with("//") => from.find('\n').unwrap_or(from.len()),
            _ if from.starts_with('"') => end_of_text(from),
            _ if from.starts_with("'\"'") => 3,
            _ => {
                code.push_str(&from[..1]);
                1
            }
        };
        rest = &from[end..];
    }
    code + rest
}

/// The length of a string literal with its quotes.
fn end_of_text(from: &str) -> usize {
    let mut escaped = false;
    for (at, c) in from.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    from.len()
}

fn has_identifier(code: &str, name: &str) -> bool {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

/// The files in the numbered list of a section.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let items = section.expect("the section is there").lines();
    let items = items.filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    items.filter_map(|line| line.split('`').nth(1)).map(str::to_owned).collect()
}

#[test]
fn a_kind_is_in_the_files_that_contributing_names() {
    let files = support::files();
    let page = files.iter().find(|file| file.path == "CONTRIBUTING.md").expect("the page");
    let listed = listed(&page.text, "Add a kind");
    assert!(listed.len() <= MOST, "CONTRIBUTING.md names more than {MOST} files: {listed:#?}");
    let is_source = |path: &str| {
        let path = path.strip_suffix(".rs").unwrap_or_default();
        path.contains("/src/") && !path.ends_with("/tests")
    };
    let sources = files.iter().filter(|file| is_source(&file.path));
    let found: BTreeSet<String> = sources
        .filter(|file| has_identifier(&code(&file.text), KIND))
        .map(|file| file.path.clone())
        .collect();
    assert!(found.len() > 2, "{KIND} is in {found:?} only: is this test still about anything?");
    let missing: Vec<&String> = found.difference(&listed).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md doesn't name {missing:#?}, which know {KIND}");
    for path in listed.difference(&found) {
        let file = files.iter().find(|file| file.path == *path).expect("a file of ours");
        assert!(code(&file.text).contains("budgets"), "{path} has nothing to do with {KIND}");
    }
}

#[test]
fn comments_texts_and_unit_tests_are_not_code() {
    let text = "/// Kind\nuse a::b; // Kind\nlet c = \"Kind \\\" Kind\"; let d = '\"'; e / f\n#[cfg(test)]\nmod tests { Kind }";
    let code = code(text);
    assert!(!has_identifier(&code, "Kind"), "{code}");
    assert!("use let c d e f".split(' ').all(|word| has_identifier(&code, word)), "{code}");
}
