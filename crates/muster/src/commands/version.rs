//! `muster version`

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::failure::Failure;
use crate::terminal;

#[derive(Args)]
pub struct VersionArgs {
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    /// The same as muster --version
    Text,
    Json,
}

pub fn run(args: VersionArgs) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    match args.output {
        Format::Text => terminal::print(&format!("muster {version}"))?,
        Format::Json => {
            terminal::print_json(&json!({ "version": version, "os": os, "arch": arch }))?;
        }
    }
    Ok(())
}
