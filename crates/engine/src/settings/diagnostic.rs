//! Complaints about a configuration: where, what, and what to write instead.

use std::fmt;

use muster_yaml::{Key, Value, Yaml};

/// How much a complaint matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// The configuration cannot be used.
    Error,
    /// Something has no effect, or pods are treated otherwise than was probably intended.
    Warning,
    /// It works as it is written, and may well be intended.
    Advice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub class: Class,
    pub file: String,
    /// Counted from 1, as is the column.
    pub line: u32,
    pub column: u32,
    /// The key as it is written, or the one that is missing; empty if the text as a whole is
    /// wrong.
    pub key: String,
    pub message: String,
    /// What to write instead; may be empty.
    pub help: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if !self.help.is_empty() {
            write!(f, "\n  help: {}", self.help)?;
        }
        Ok(())
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub const START: Place = Place { line: 1, column: 1 };
}

impl From<&Key> for Place {
    fn from(key: &Key) -> Place {
        Place { line: key.line, column: key.column }
    }
}

impl From<&Yaml> for Place {
    fn from(value: &Yaml) -> Place {
        Place { line: value.line, column: value.column }
    }
}

/// Everything that was found in one file.
pub struct Report {
    pub file: String,
    errors: Vec<Diagnostic>,
    /// Warnings and advice.
    warnings: Vec<Diagnostic>,
}

impl Report {
    pub fn new(file: &str) -> Report {
        Report { file: file.to_owned(), errors: Vec::new(), warnings: Vec::new() }
    }

    pub fn error(
        &mut self,
        at: Place,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.errors.push(diagnostic(&self.file, at, key, message.into(), help.into()));
    }

    pub fn warning(
        &mut self,
        at: Place,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.remark(Class::Warning, at, key, message.into(), help.into());
    }

    /// A warning or advice.
    pub fn remark(&mut self, class: Class, at: Place, key: &str, message: String, help: String) {
        let found = diagnostic(&self.file, at, key, message, help);
        self.warnings.push(Diagnostic { class, ..found });
    }

    pub fn extend(&mut self, errors: Vec<Diagnostic>) {
        self.errors.extend(errors);
    }

    /// The errors, and the warnings with the advice, each in the order of the text.
    pub fn finish(mut self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        self.errors.sort_by_key(|error| (error.line, error.column));
        self.warnings.sort_by_key(|warning| (warning.line, warning.column));
        (self.errors, self.warnings)
    }
}

/// An error.
pub fn diagnostic(file: &str, at: Place, key: &str, message: String, help: String) -> Diagnostic {
    Diagnostic {
        class: Class::Error,
        file: file.to_owned(),
        line: at.line,
        column: at.column,
        key: key.to_owned(),
        message,
        help,
    }
}

/// What a value is, to be read after "found".
pub fn describe(value: &Yaml) -> String {
    match &value.value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Int(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Seq(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

/// A text of the user's, cut to a length that a message can bear.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.chars().count() <= LONGEST {
        return format!("{text:?}");
    }
    format!("{:?}…", text.chars().take(LONGEST).collect::<String>())
}

/// Names the valid name that is nearest to what was written, or all of them if none is near.
pub fn suggest<'n>(written: &str, valid: impl IntoIterator<Item = &'n str> + Clone) -> String {
    match nearest(written, valid.clone()) {
        Some(name) => format!("did you mean {name}?"),
        None => match valid.into_iter().collect::<Vec<_>>().as_slice() {
            [] => "remove it".to_owned(),
            [only] => format!("the only one is {only}"),
            all => format!("valid are {}", all.join(", ")),
        },
    }
}

/// The first of the nearest names, if it is near enough to be what was meant.
fn nearest<'n>(written: &str, valid: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Half of the letters, as a longer distance suggests names that have nothing in common with
    // what was written.
    const NEAR: f64 = 0.5;
    // No name is longer than this, and the comparison takes the product of both lengths.
    const LONGEST: usize = 100;
    if written.len() > LONGEST {
        return None;
    }
    let written = written.to_lowercase();
    let mut best = None;
    let mut best_likeness = NEAR;
    for name in valid {
        let likeness = strsim::normalized_damerau_levenshtein(&written, &name.to_lowercase());
        if likeness > best_likeness {
            (best, best_likeness) = (Some(name), likeness);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_prints_its_place_its_key_and_what_to_do() {
        let mut complaint = diagnostic(
            "muster.yaml",
            Place { line: 3, column: 5 },
            "tiers",
            "a list".to_owned(),
            "write".to_owned(),
        );
        assert_eq!(complaint.to_string(), "muster.yaml:3:5: tiers: a list\n  help: write");
        complaint.help.clear();
        assert_eq!(complaint.to_string(), "muster.yaml:3:5: tiers: a list");
        complaint.key.clear();
        assert_eq!(complaint.to_string(), "muster.yaml:3:5: a list");
    }

    #[test]
    fn the_nearest_name_is_suggested_or_all_of_them() {
        let valid = ["binpack", "gang", "nodeorder"];
        assert_eq!(suggest("gagn", valid), "did you mean gang?");
        assert_eq!(suggest("NodeOrder", valid), "did you mean nodeorder?");
        assert_eq!(suggest("telescope", valid), "valid are binpack, gang, nodeorder");
        assert_eq!(suggest("telescope", ["gang"]), "the only one is gang");
        assert_eq!(suggest("telescope", []), "remove it");
        assert_eq!(suggest(&"gang".repeat(10_000), ["gang"]), "the only one is gang");
    }

    #[test]
    fn of_equally_near_names_the_first_is_suggested() {
        assert_eq!(suggest("gang-c", ["gang-a", "gang-b"]), "did you mean gang-a?");
    }
}
