//! The `muster` command.

mod commands;
mod failure;
mod input;
mod render;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A batch scheduler for Kubernetes: whole gangs or nothing.
#[derive(Parser)]
#[command(name = "muster", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Schedule the pods of a Kubernetes cluster
    Scheduler(commands::scheduler::SchedulerArgs),
    /// Schedule manifests or a live cluster in an embedded cluster and show what happens
    Simulate(commands::simulate::SimulateArgs),
    /// Explain why a pod, gang or queue is in its state
    Explain(commands::explain::ExplainArgs),
    /// Show what each queue should have, step by step
    Fairshare(commands::fairshare::FairshareArgs),
    /// Write everything in a cluster that scheduling needs to one file
    Snapshot(commands::snapshot::SnapshotArgs),
    /// Check manifests and configuration without scheduling
    Check(commands::check::CheckArgs),
    /// Repeat the decisions of a recorded journal and compare every plan
    Replay(commands::replay::ReplayArgs),
    /// Show, check or generate the HyperNodes of a network
    Topology(commands::topology::TopologyArgs),
    /// Generate manifests of clusters and workloads
    Generate(commands::generate::GenerateArgs),
    /// Measure the scheduler on this machine
    Bench(commands::bench::BenchArgs),
    /// Print the CustomResourceDefinitions
    Crds(commands::crds::CrdsArgs),
    /// Print the plugins and actions with their arguments
    Plugins(commands::plugins::PluginsArgs),
    /// Print the version
    Version(commands::version::VersionArgs),
    /// Print a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Scheduler(args) => commands::scheduler::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Fairshare(args) => commands::fairshare::run(args),
        Command::Snapshot(args) => commands::snapshot::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Topology(args) => commands::topology::run(args),
        Command::Generate(args) => commands::generate::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Crds(args) => commands::crds::run(args),
        Command::Plugins(args) => commands::plugins::run(args),
        Command::Version(args) => commands::version::run(args),
        Command::Completions(args) => commands::completions::run::<Cli>(args),
    };
    failure::exit(result)
}
