//! `muster topology`: the network as HyperNodes.

mod generate;

use clap::{Args, Subcommand};

use crate::failure::Failure;

#[derive(Args)]
pub struct TopologyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write HyperNodes for a network that labels, a file or NVIDIA UFM describe
    Generate(generate::GenerateArgs),
}

pub fn run(args: TopologyArgs) -> Result<(), Failure> {
    match args.what {
        What::Generate(args) => generate::run(args),
    }
}
