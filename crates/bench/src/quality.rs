//! How good the engine's choices are, as opposed to how fast (`speed.rs`): compared with the
//! optimum, on clusters so small that every choice can be tried; and the results of a day's work in
//! each mode.

mod drawing;
mod gaps;
mod history;
mod load;
mod manifests;
mod optimum;
mod packing;
mod small;
mod verdict;
mod words;

pub use drawing::small;
pub use gaps::{Bin, Distribution, Gaps, gaps};
pub use load::{Load, LoadSpec, MODES, Played, WAITS_SECONDS, Waits, load};
pub use verdict::{Outcome, Verdict, judge};

/// The small cluster of a seed, in words.
pub fn describe(seed: u64) -> String {
    let small = small(seed);
    words::describe(seed, &small, &judge(&small))
}
