//! `muster topology`: the network as HyperNodes.

mod check;
mod generate;
mod show;

use clap::{Args, Subcommand};

use crate::failure::Failure;

#[derive(Args)]
pub struct TopologyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Show switches and nodes as a tree, how full they are, and which gangs run where
    Show(show::ShowArgs),
    /// Find what is wrong with HyperNodes, and with the gangs that rely on them
    Check(check::CheckArgs),
    /// Write HyperNodes for a network that labels, a file or NVIDIA UFM describe
    Generate(generate::GenerateArgs),
}

pub fn run(args: TopologyArgs) -> Result<(), Failure> {
    match args.what {
        What::Show(args) => show::run(args),
        What::Check(args) => check::run(args),
        What::Generate(args) => generate::run(args),
    }
}
