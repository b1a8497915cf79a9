//! `muster crds`

use std::io::Write;

use clap::{Args, ValueEnum};
use muster_api::{CRDS, crds};

use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "Example:\n  muster crds | kubectl apply -f -")]
pub struct CrdsArgs {
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

pub fn run(args: CrdsArgs) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match args.output {
        Format::Yaml => CRDS.iter().try_for_each(|text| write!(out, "---\n{text}"))?,
        Format::Json => {
            for crd in crds() {
                serde_json::to_writer_pretty(&mut out, &crd).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
        }
    }
    Ok(out.flush()?)
}
