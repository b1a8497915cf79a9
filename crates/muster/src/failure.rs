//! How a command ends: 0 fine, 1 the work failed, 2 bad usage or input.

use std::fmt::Display;
use std::process::ExitCode;

use crate::input::Remark;
use crate::terminal;

#[derive(Debug)]
pub enum Failure {
    /// The work failed; the text says how.
    Work(String),
    /// Bad usage or input; one entry per problem.
    Input(Vec<String>),
    /// The input has mistakes, and warnings and notes on it are printed too.
    Read { remarks: Vec<Remark>, problems: Vec<String> },
    /// The reader of our output is gone.
    ClosedPipe,
}

impl Failure {
    /// The only problem of the input.
    pub fn input(problem: impl Display) -> Failure {
        Failure::Input(vec![problem.to_string()])
    }

    pub fn work(cause: impl Display) -> Failure {
        Failure::Work(cause.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Work(format!("writing the output: {error}")),
        }
    }
}

/// A reader is not helped by more problems than this.
const SHOWN: usize = 50;

pub fn exit(result: Result<(), Failure>) -> ExitCode {
    let problems = match result {
        Ok(()) | Err(Failure::ClosedPipe) => return ExitCode::SUCCESS,
        Err(Failure::Work(text)) => {
            terminal::error(text);
            return ExitCode::from(1);
        }
        Err(Failure::Input(problems)) => problems,
        Err(Failure::Read { remarks, problems }) => {
            remarks.iter().for_each(Remark::say);
            problems
        }
    };
    problems.iter().take(SHOWN).for_each(terminal::error);
    if problems.len() > SHOWN {
        terminal::error(format_args!("and {} more", problems.len() - SHOWN));
    }
    ExitCode::from(2)
}
