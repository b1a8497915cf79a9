//! What is said about input that is no error.

use std::fmt;

use crate::terminal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub class: Class,
    pub text: String,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Something has no effect, or another than it seems to have.
    Warning,
    /// Good to know; nothing needs to be done.
    Note,
}

impl Remark {
    pub fn warning(text: impl Into<String>) -> Remark {
        Remark { class: Class::Warning, text: text.into() }
    }

    pub fn note(text: impl Into<String>) -> Remark {
        Remark { class: Class::Note, text: text.into() }
    }

    /// Writes it to standard error.
    pub fn say(&self) {
        match self.class {
            Class::Warning => terminal::warn(&self.text),
            Class::Note => terminal::note(&self.text),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::Warning => "warning",
            Class::Note => "note",
        };
        write!(f, "{class}: {}", self.text)
    }
}
