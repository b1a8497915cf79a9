//! Reads manifests from files, folders and standard input.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};

use muster_api::keys::AS_FOUND;
use muster_api::kinds::Kind;
use muster_api::manifest::{self, Found, Object, PlacedProblem};

use super::{Collection, InputError, Location, STANDARD_INPUT};

/// Reads all files and returns all errors.
pub fn read<'n>(
    names: impl IntoIterator<Item = &'n String>,
    collection: &mut Collection,
) -> Vec<InputError> {
    let mut reader = Reader { collection, opened: HashMap::new(), errors: Vec::new() };
    names.into_iter().for_each(|name| reader.read(name));
    reader.errors
}

struct Reader<'c> {
    collection: &'c mut Collection,
    /// The files that were read, each with the name under which it was given.
    opened: HashMap<PathBuf, String>,
    errors: Vec<InputError>,
}

impl Reader<'_> {
    fn read(&mut self, name: &str) {
        if name == "-" {
            return match self.opened.insert(name.into(), name.to_owned()) {
                None => self.read_stream(STANDARD_INPUT, BufReader::new(stdin().lock())),
                Some(_) => self.errors.push(InputError::StandardInputTwice),
            };
        }
        let path = Path::new(name);
        if !path.is_dir() {
            return self.read_file(path);
        }
        match manifests_in(path) {
            Ok(files) if files.is_empty() => {
                self.errors.push(InputError::EmptyFolder { folder: name.to_owned() });
            }
            Ok(files) => files.iter().for_each(|file| self.read_file(file)),
            Err(source) => {
                self.errors.push(InputError::Unreadable { name: name.to_owned(), source });
            }
        }
    }

    fn read_file(&mut self, path: &Path) {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(_) if self.is_read_again(path) => {}
            Ok(file) => self.read_stream(&name, BufReader::with_capacity(1 << 16, file)),
            Err(source) => self.errors.push(InputError::Unreadable { name, source }),
        }
    }

    /// Whether the file was read before, under this name or another. That is one error, not one for
    /// each object in it. Pipes have no identity to compare.
    fn is_read_again(&mut self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        let name = path.display().to_string();
        match self.opened.insert(real, name.clone()) {
            Some(first) => self.errors.push(InputError::GivenTwice { name, first }),
            None => return false,
        }
        true
    }

    fn read_stream(&mut self, name: &str, input: impl BufRead) {
        manifest::read(name, input, &mut |found| match found {
            Found::Error(error) => self.errors.push(error.into()),
            Found::Skipped { kind, api_version, line, meaning } => {
                let at = Location::new(name, line);
                let differs_in_case = |known: &&Kind| {
                    known.name() != kind && known.name().eq_ignore_ascii_case(&kind)
                };
                if let Some(meaning) = meaning {
                    self.collection.skip_with_warning(at, [api_version, kind], meaning);
                } else if let Some(known) = Kind::ALL.iter().find(differs_in_case) {
                    self.errors.push(InputError::Kind { at, kind, known: known.name() });
                } else {
                    self.collection.skip(kind);
                }
            }
            Found::Object { object, line, problems, unknown } => {
                unknown.iter().for_each(|field| self.collection.warn(name, &object, field, " "));
                self.take(name, line, object, problems);
            }
        });
    }

    fn take(&mut self, name: &str, line: u32, object: Object, problems: Vec<PlacedProblem>) {
        if object.annotation(AS_FOUND) == Some("true") {
            problems.iter().for_each(|problem| self.collection.warn(name, &object, problem, ": "));
        } else if !problems.is_empty() {
            let what = format!("{} {}", object.kind(), object.key());
            self.errors.extend(problems.into_iter().map(|problem| InputError::Field {
                file: name.to_owned(),
                object: what.clone(),
                problem,
            }));
            return;
        }
        self.errors.extend(self.collection.add(Location::new(name, line), object).err());
    }
}

/// The manifests of a folder and of the folders below it, in order of their names. Hidden entries
/// and links to folders are skipped: a mounted ConfigMap contains its files twice.
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
