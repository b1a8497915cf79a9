//! How a check ends.

use muster_text::counted;

use super::{Class, Remark};
use crate::failure::Failure;
use crate::terminal;

pub struct Verdict {
    pub errors: Vec<String>,
    /// Warnings and notes.
    pub remarks: Vec<Remark>,
    /// What was checked.
    pub checked: String,
}

impl Verdict {
    /// Prints everything that was found. Errors fail the check; if it is strict, so do warnings.
    pub fn tell(self, strict: bool) -> Result<(), Failure> {
        let mut out = terminal::stdout();
        for remark in &self.remarks {
            writeln!(out, "{remark}")?;
        }
        out.flush()?;
        if !self.errors.is_empty() {
            return Err(Failure::Input(self.errors));
        }
        let warnings = self.remarks.iter().filter(|remark| remark.class == Class::Warning).count();
        let checked = self.checked;
        if warnings == 0 {
            return Ok(writeln!(out, "no errors: {checked}")?);
        }
        let warnings = counted(warnings as u64, "warning");
        writeln!(out, "no errors, {warnings}: {checked}")?;
        out.flush()?;
        match strict {
            true => Err(Failure::Work(format!("{warnings}, and --strict allows none"))),
            false => Ok(()),
        }
    }
}
