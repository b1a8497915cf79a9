//! How a command ends: 0 fine, 1 the work failed, 2 bad usage or input.

use std::process::ExitCode;

#[derive(Debug)]
pub enum Failure {
    /// The work failed; the text says how.
    Work(String),
    /// Bad input; every problem is one entry.
    Input(Vec<String>),
    /// Whoever read our output has gone.
    ClosedPipe,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Work(format!("writing the output: {error}")),
        }
    }
}

/// More problems than this help nobody.
const SHOWN: usize = 50;

pub fn exit(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Work(text)) => {
            anstream::eprintln!("error: {text}");
            ExitCode::from(1)
        }
        Err(Failure::Input(problems)) => {
            for problem in problems.iter().take(SHOWN) {
                anstream::eprintln!("error: {problem}");
            }
            if problems.len() > SHOWN {
                anstream::eprintln!("error: and {} more", problems.len() - SHOWN);
            }
            ExitCode::from(2)
        }
    }
}
