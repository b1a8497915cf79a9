//! Measures the engine: how fast it decides ([`speed`]), and how good its choices are
//! ([`quality`]).
//!
//! ```
//! // The small cluster that is drawn for a seed, what the engine chooses there, and the optimum.
//! println!("{}", muster_bench::quality::describe(7));
//! ```

pub mod quality;
pub mod speed;
