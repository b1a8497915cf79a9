//! A referee: it makes random clusters, reads what `muster simulate -o json` says it did with them,
//! and derives every rule again from the manifests and that output alone. It knows nothing of the
//! engine, so it cannot share a mistake with it.

pub mod case;
pub mod cluster;
pub mod config;
mod draw;
mod fit;
mod gangs;
mod generate;
mod manifest;
pub mod output;
pub mod rules;
pub mod run;
pub mod shrink;
pub mod tamper;
mod timeline;
mod yaml;

pub use generate::make_case;
pub use timeline::Story;

use case::Case;
use output::Output;
use rules::Violation;
use run::Runner;

/// So many seeds have one of which the objects are also given in another order.
const SHUFFLED: u64 = 7;

/// Runs a case, and says what it did and what it breaks.
pub fn try_case(runner: &Runner, case: &Case) -> Result<(Output, Vec<Violation>), String> {
    let output = runner.output(case)?;
    let mut found = judge(case, &output);
    if case.seed.is_multiple_of(SHUFFLED) && runner.shuffled_output(case)? != output {
        let text = "the same objects in another order give another output".to_owned();
        found.push(Violation { rule: "order", cycle: 1, text });
    }
    Ok((output, found))
}

/// What a run breaks.
pub fn judge(case: &Case, output: &Output) -> Vec<Violation> {
    rules::violations(&Story::tell(case, output))
}
