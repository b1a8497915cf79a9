//! How much memory a large cluster uses: that of a process which holds one and nothing else.
//!
//! The program runs itself once more for this. So no allocator has to count all other allocations,
//! and memory that the allocator retains counts too, as it does for the limit of a container.

use std::io;
use std::num::ParseIntError;
use std::process::{Command, ExitStatus};

use thiserror::Error;

use super::busy;

/// Where Linux describes a process to itself.
const STATUS: &str = "/proc/self/status";
/// The peak memory of the process, in KiB.
const PEAK: &str = "VmHWM:";

#[derive(Debug, Error)]
pub enum MemoryError {
    #[error("{STATUS} can't be read (it is there on Linux only)")]
    Status(#[source] io::Error),
    #[error("{STATUS} has no {PEAK}")]
    NoPeak,
    #[error("running this program once more")]
    Start(#[source] io::Error),
    #[error("this program, run once more, ended with {0}")]
    Ended(ExitStatus),
    #[error("this program, run once more, printed no number of bytes: {text:?}")]
    Answer { text: String, source: ParseIntError },
}

/// Fills a cluster with 20,000 nodes and 160,000 pods, and returns the peak memory of this process
/// in bytes.
pub fn peak_with_large_cluster() -> Result<u64, MemoryError> {
    let engine = busy(20_000, 160_000, 0);
    let peak = peak();
    drop(engine);
    peak
}

fn peak() -> Result<u64, MemoryError> {
    let status = std::fs::read_to_string(STATUS).map_err(MemoryError::Status)?;
    let line = status.lines().find_map(|line| line.strip_prefix(PEAK));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map(|kibibytes| kibibytes << 10).ok_or(MemoryError::NoPeak)
}

/// Runs a command that prints the result of [`peak_with_large_cluster`], and parses it.
pub fn of_child(command: &mut Command) -> Result<u64, MemoryError> {
    let output = command.output().map_err(MemoryError::Start)?;
    if !output.status.success() {
        return Err(MemoryError::Ended(output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.parse().map_err(|source| MemoryError::Answer { text, source })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_this_process_is_at_least_what_it_uses() {
        let touched = vec![1u8; 64 << 20];
        assert!(peak().expect("it is Linux") >= touched.len() as u64);
    }

    #[test]
    fn a_child_that_fails_or_prints_something_else_is_an_error() {
        let child = |script: &str| of_child(Command::new("sh").args(["-c", script]));
        assert_eq!(child("echo 4096").expect("a number"), 4096);
        assert!(matches!(child("exit 3"), Err(MemoryError::Ended(_))));
        assert!(matches!(child("echo much"), Err(MemoryError::Answer { .. })));
    }
}
