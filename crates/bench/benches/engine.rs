//! `cargo bench`: the figures of `muster bench`, without the rest of the command. With `-- --check` it
//! fails if a bar is missed.

use std::process::{Command, ExitCode};

use muster_bench::speed::{self, memory};

/// With this argument the program only prints how much memory a large cluster uses.
const MEMORY: &str = "--memory";

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    if arguments.any(|argument| argument == MEMORY) {
        return match memory::peak_with_large_cluster() {
            Ok(bytes) => {
                println!("{bytes}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    // `cargo test --benches` runs it too, to check that it works: one round is enough for that.
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let rounds = if measuring { 9 } else { 1 };
    let memory = || memory::of_child(Command::new(program).arg(MEMORY));
    let figures = speed::run(rounds, memory, |what| eprintln!("measuring: {what}"));
    print!("{figures}");
    if !std::env::args().any(|argument| argument == "--check") {
        return ExitCode::SUCCESS;
    }
    match figures.check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(missed) => {
            eprintln!("error: {missed}");
            ExitCode::FAILURE
        }
    }
}
