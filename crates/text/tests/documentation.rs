//! What pages refer to exists: paths, the targets of links and anchors, and names in backticks in
//! the sources. A page that is out of date fails a test.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use support::Text;

/// Names that are not ours: they belong to other projects or to Kubernetes, or are examples.
const FOREIGN: &str = include_str!("documentation/foreign.txt");

struct Repository {
    files: Vec<Text>,
    folders: BTreeSet<String>,
    /// Every identifier in code, manifests and configuration.
    words: BTreeSet<String>,
    /// Those in programs that have options.
    options: BTreeSet<String>,
}

fn repository() -> Repository {
    let files = support::files();
    let mut folders = BTreeSet::new();
    let mut words = BTreeSet::new();
    let mut options = BTreeSet::new();
    for file in &files {
        let ends = file.path.match_indices('/').map(|(at, _)| file.path[..at].to_owned());
        folders.extend(ends);
        if !file.path.ends_with(".md") && !file.path.starts_with("crates/text/tests/") {
            words.extend(identifiers(&file.text).map(str::to_owned));
        }
        if file.path.starts_with("crates/muster/src") || file.path.starts_with("e2e/src") {
            options.extend(identifiers(&file.text).map(str::to_owned));
        }
    }
    Repository { files, folders, words, options }
}

impl Repository {
    fn pages(&self) -> impl Iterator<Item = &Text> {
        // The changelog describes what was, not what is.
        self.files.iter().filter(|file| file.path.ends_with(".md") && file.path != "CHANGELOG.md")
    }

    /// Whether the path, or a path that ends like it, is a file or a folder.
    fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let ends = |full: &str| {
            full.strip_suffix(path).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        self.files.iter().any(|file| ends(&file.path)) || self.folders.iter().any(|f| ends(f))
    }

    /// Whether the word is in the sources, perhaps in another spelling: a metric without its prefix
    /// and unit, a field of JSON as the field of a struct.
    fn has_word(&self, word: &str) -> bool {
        let prefixes = ["muster_", "volcano_"];
        let units = ["_total", "_milliseconds", "_count"];
        let bare = prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(word);
        let stem = |name: &str| {
            units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name).to_owned()
        };
        let mut snake = String::new();
        for c in word.chars() {
            if c.is_ascii_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        self.words.contains(word)
            || self.words.contains(&snake)
            || (bare != word || stem(word) != word)
                && [bare, &stem(bare), &stem(word)]
                    .into_iter()
                    .any(|name| self.words.contains(name))
    }

    /// Whether a source about `owner` (that declares it, or has its name) contains `member`.
    fn has_member(&self, owner: &str, member: &str) -> bool {
        self.files.iter().filter(|file| file.path.ends_with(".rs")).any(|file| {
            let declares = ["struct", "enum", "trait", "type", "impl", "for", "mod"]
                .iter()
                .any(|keyword| has_phrase(&file.text, &format!("{keyword} {owner}")));
            let named = file.path.ends_with(&format!("/{owner}.rs"))
                || file.path.contains(&format!("/{owner}/"));
            (declares || named || file.text.contains(&format!("> {owner}")))
                && identifiers(&file.text).any(|word| word == member)
        })
    }
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let next = text[at + phrase.len()..].chars().next();
        next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    })
}

/// The page without blocks of code.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((number + 1, line));
        }
    }
    lines
}

/// The texts in backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `a/{b,c}.rs` is two paths.
fn alternatives(path: &str) -> Vec<String> {
    let (Some(open), Some(close)) = (path.find('{'), path.find('}')) else {
        return vec![path.to_owned()];
    };
    let inner = path[open + 1..close].split(',');
    inner
        .flat_map(|part| {
            alternatives(&format!("{}{}{}", &path[..open], part.trim(), &path[close + 1..]))
        })
        .collect()
}

fn is_path(text: &str) -> bool {
    let endings = [".rs", ".md", ".toml", ".yaml", ".conf", ".txt", ".svg", ".snap", "/"];
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./{},".contains(c);
    !text.starts_with('/')
        && text.len() > 4
        && text.chars().all(plain)
        && (endings.iter().any(|ending| text.ends_with(ending)) || text.starts_with("crates/"))
}

/// What is wrong with a text in backticks, if anything is.
fn problem(repository: &Repository, text: &str) -> Option<String> {
    if FOREIGN.lines().any(|line| line == text) {
        return None;
    }
    if is_path(text) {
        let missing = alternatives(text).into_iter().find(|path| !repository.has_path(path))?;
        return Some(format!("no path ends in {missing}"));
    }
    let name = text.trim_end_matches("()").trim_end_matches("[]").trim_end_matches('!');
    if let Some((owners, member)) = name.rsplit_once("::") {
        let owner = owners.rsplit("::").next().unwrap_or(owners);
        let there = repository.has_member(owner, member);
        return (!there).then(|| format!("no source about {owner} has {member}"));
    }
    let mut words = identifiers(name).peekable();
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c));
    if !is_name || words.peek().is_none() {
        return None;
    }
    let missing: Vec<&str> = words
        .filter(|word| word.chars().any(|c| c.is_ascii_alphabetic()))
        .filter(|word| !repository.has_word(word))
        .collect();
    (!missing.is_empty()).then(|| format!("{} is not in the sources", missing.join(", ")))
}

#[test]
fn names_on_the_pages_exist() {
    let repository = repository();
    let mut problems = Vec::new();
    let mut names = 0;
    for page in repository.pages() {
        for (number, line) in prose(&page.text) {
            for text in quoted(line) {
                names += 1;
                if let Some(problem) = problem(&repository, text) {
                    problems.push(format!("{}:{number}: `{text}`: {problem}", page.path));
                }
            }
        }
    }
    assert!(names > 500, "only {names} names were found");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// The anchor of a heading, in GitHub's form.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let anchor = anchor(heading.trim());
            let before = times.entry(anchor.clone()).or_default();
            anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
            *before += 1;
        }
    }
    anchors
}

/// The targets of the links in a line.
fn links(line: &str) -> Vec<&str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

/// The path of a link from the root of the repository.
fn target(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn links_between_pages_work() {
    let repository = repository();
    let mut problems = Vec::new();
    let mut followed = 0;
    for page in repository.pages() {
        for (number, line) in prose(&page.text) {
            for link in links(line).into_iter().filter(|link| !link.contains("://")) {
                followed += 1;
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let path =
                    if path.is_empty() { page.path.clone() } else { target(&page.path, path) };
                let file = repository.files.iter().find(|file| file.path == path);
                let broken = match file {
                    Some(file) => !anchor.is_empty() && !anchors(&file.text).contains(anchor),
                    None => !repository.folders.contains(&path) && !path.is_empty(),
                };
                if broken {
                    problems.push(format!("{}:{number}: {link}", page.path));
                }
            }
        }
    }
    assert!(followed > 50, "only {followed} links were found");
    assert!(problems.is_empty(), "these lead nowhere:\n{}", problems.join("\n"));
}

/// The packages, tests, commands and options in a line of shell.
fn command_problem(repository: &Repository, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let muster = words.iter().any(|word| word.ends_with("muster")) || line.contains("run");
    let ours = line.starts_with("cargo ") || line.starts_with("muster ");
    for (index, word) in words.iter().enumerate().filter(|_| ours) {
        let next = words.get(index + 1).copied().unwrap_or_default();
        let missing = match *word {
            "-p" => {
                let line = format!("name = \"{next}\"");
                !repository
                    .files
                    .iter()
                    .any(|file| file.path.ends_with("Cargo.toml") && file.text.contains(&line))
            }
            "--test" => !repository.has_path(&format!("tests/{next}.rs")),
            "-f" | "--config" | "--what-if" if next.starts_with("examples/") => {
                !repository.has_path(next)
            }
            flag if flag.starts_with("--") && flag.len() > 2 && muster => {
                let name = flag[2..].split('=').next().unwrap_or_default().replace('-', "_");
                let known = ["release", "workspace", "path", "test", "help", "version"];
                !known.contains(&name.as_str()) && !repository.options.contains(&name)
            }
            _ => false,
        };
        if missing {
            return Some(format!("{word} {next} is unknown"));
        }
    }
    None
}

#[test]
fn commands_on_the_pages_exist() {
    let repository = repository();
    let mut problems = Vec::new();
    let mut commands = 0;
    for page in repository.pages() {
        for (number, line) in page.text.lines().enumerate() {
            let quoted = quoted(line).map(str::to_owned);
            for text in quoted.chain([line.trim().to_owned()]) {
                commands += usize::from(text.starts_with("muster ") || text.starts_with("cargo "));
                if let Some(problem) = command_problem(&repository, &text) {
                    problems.push(format!("{}:{}: {text}: {problem}", page.path, number + 1));
                }
            }
        }
    }
    assert!(commands > 50, "only {commands} commands were found");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// The scenario or test that a row of `docs/differences.md` names, if it is one: its file, and its
/// name.
fn evidence(row: &str) -> Option<(&str, &str)> {
    let cell = row.trim_end().strip_suffix('|')?.rsplit(" | ").next()?.trim();
    cell.strip_prefix('`')?.split_once("`: ")
}

#[test]
fn each_difference_names_a_scenario_that_exists() {
    let repository = repository();
    let page = repository.pages().find(|page| page.path == "docs/differences.md");
    let page = page.expect("the page of differences");
    let exists = |row: &str| {
        let Some((file, name)) = evidence(row) else { return false };
        let begins = match file.ends_with(".txt") {
            true => format!("# {name}"),
            false => format!("fn {name}("),
        };
        let folder = if file.contains('/') { "" } else { "crates/engine/tests/scenarios/" };
        let path = format!("{folder}{file}");
        let found = repository.files.iter().find(|other| other.path == path);
        found.is_some_and(|file| match begins.starts_with('#') {
            true => file.text.lines().any(|line| line == begins),
            false => file.text.contains(&begins),
        })
    };
    let rows = prose(&page.text).into_iter().filter(|(_, line)| line.starts_with("| "));
    let rows = rows.filter(|(_, line)| !line.starts_with("| source"));
    let rows: Vec<(usize, &str)> = rows.collect();
    let lost: Vec<String> = rows
        .iter()
        .filter(|(_, row)| !exists(row))
        .map(|(number, row)| format!("{number}: {row}"))
        .collect();
    assert!(rows.len() > 40, "only {} differences were found", rows.len());
    assert!(lost.is_empty(), "no such scenario:\n{}", lost.join("\n"));
    assert_eq!(evidence("| a | b | `x.txt`: one, two |"), Some(("x.txt", "one, two")));
    assert!(!exists("| a | b | `queues.txt`: a queue that was never written |"));
}

/// Except for tables, pictures and pages that a command writes.
#[test]
fn prose_is_at_most_120_columns_wide() {
    let wide = |line: &str| {
        let text = line.trim_start();
        let unbreakable = text.starts_with('|') || text.starts_with("![");
        !unbreakable && line.chars().count() > 120 && text.contains(' ')
    };
    let mut problems = Vec::new();
    let generated = |page: &&Text| page.text.contains("<!-- Made by");
    for page in repository().pages().filter(|page| !generated(page)) {
        for (number, line) in prose(&page.text) {
            if wide(line) && !line.starts_with("    ") {
                problems.push(format!("{}:{number}: {line}", page.path));
            }
        }
    }
    assert!(problems.is_empty(), "wrap these:\n{}", problems.join("\n"));
}

#[test]
fn missing_names_and_links_are_noticed() {
    let repository = repository();
    let wrong = |text| problem(&repository, text).is_some();
    assert!(!wrong("crates/text/src/lib.rs") && !wrong("text/src/{lib}.rs"));
    assert!(wrong("text/src/gone.rs") && wrong("crates/engine/src/{lib,gone}.rs"));
    assert!(!wrong("Cluster::set") && wrong("Cluster::gone_for_ever") && wrong("Gone::set"));
    assert!(!wrong("minMember") && wrong("minMemberGone"));
    assert_eq!(anchor("Whole gangs: `mode: gang`"), "whole-gangs-mode-gang");
    assert_eq!(target("docs/a.md", "../README.md"), "README.md");
    let command = |line| command_problem(&repository, line).is_some();
    assert!(!command("cargo test -p muster-text --test words"));
    assert!(command("cargo test -p muster-gone") && command("cargo test --test gone"));
    assert!(command("muster simulate --gone-for-ever"));
}
