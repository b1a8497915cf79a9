//! Reads manifests from files, folders and standard input.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};

use muster_api::keys::AS_FOUND;
use muster_api::kinds::Kind;
use muster_api::manifest::{self, Found, Object, PlacedProblem};

use super::Collection;

/// Reads all files and returns all problems.
pub fn read(names: &[String], collection: &mut Collection) -> Vec<String> {
    let mut reader = Reader { collection, problems: Vec::new() };
    names.iter().for_each(|name| reader.read(name));
    reader.problems
}

struct Reader<'c> {
    collection: &'c mut Collection,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, name: &str) {
        if name == "-" {
            return self.read_stream("standard input", BufReader::new(stdin().lock()));
        }
        let path = Path::new(name);
        if !path.is_dir() {
            return self.read_file(path);
        }
        match manifests_in(path) {
            Ok(files) if files.is_empty() => {
                self.problems.push(format!("{name}: no .yaml, .yml or .json file in this folder"));
            }
            Ok(files) => files.iter().for_each(|file| self.read_file(file)),
            Err(error) => self.problems.push(format!("{name}: {}", reading(&error))),
        }
    }

    fn read_file(&mut self, path: &Path) {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => self.read_stream(&name, BufReader::with_capacity(1 << 16, file)),
            Err(error) => self.problems.push(format!("{name}: {}", reading(&error))),
        }
    }

    fn read_stream(&mut self, name: &str, input: impl BufRead) {
        manifest::read(name, input, &mut |found| match found {
            Found::Error(error) => self.problems.push(error.to_string()),
            Found::Skipped { kind, line } => {
                match Kind::ALL.iter().find(|known| known.name().eq_ignore_ascii_case(&kind)) {
                    Some(known) => self.problems.push(format!(
                        "{name}:{line}: there is no kind {kind}: did you mean {known}?"
                    )),
                    None => self.collection.skip(kind),
                }
            }
            Found::Object { object, line, problems, unknown } => {
                unknown.iter().for_each(|field| self.collection.remark(name, &object, field, " "));
                self.take(name, line, object, &problems);
            }
        });
    }

    fn take(&mut self, name: &str, line: u32, object: Object, problems: &[PlacedProblem]) {
        if object.annotation(AS_FOUND) == Some("true") {
            problems
                .iter()
                .for_each(|problem| self.collection.remark(name, &object, problem, ": "));
        } else if !problems.is_empty() {
            let what = format!("{} {}", object.kind(), object.key());
            let tell = |problem: &PlacedProblem| {
                format!("{name}:{}: {what}: {}: {}", problem.line, problem.path, problem.message)
            };
            self.problems.extend(problems.iter().map(tell));
            return;
        }
        self.problems.extend(self.collection.add(name, line, object).err());
    }
}

/// The manifests of a folder and those below it, in order of their names. Hidden entries and links
/// to folders are left out: a mounted ConfigMap has its files twice.
fn manifests_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(folder)?.collect::<std::io::Result<_>>()?;
    entries.retain(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if entry.file_type()?.is_dir() {
            files.extend(manifests_in(&path)?);
        } else if matches!(extension, Some("yaml" | "yml" | "json")) && path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

pub fn reading(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or folder".into(),
        std::io::ErrorKind::InvalidData => "not a text file".into(),
        _ => error.to_string(),
    }
}
