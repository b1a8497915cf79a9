//! The developer's end of the test bed: `cargo run -p muster-e2e -- cluster --nodes 8`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use muster_e2e::Result;
use muster_e2e::bench::{self, BenchArguments};
use muster_e2e::binaries::binaries;
use muster_e2e::cluster::Definitions;
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::guard;
use muster_e2e::workload::Nodes;
use tokio::signal::unix::{SignalKind, signal};

/// A real control plane on this machine, to experiment with.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a control plane with fake nodes until Ctrl-C.
    Cluster(ClusterArguments),
    /// Measures the scheduler on a real API server; build with --release.
    Bench(BenchArguments),
    /// Runs a command until it or the standard input ends.
    #[command(hide = true)]
    Guard {
        #[arg(long)]
        log: PathBuf,
        #[arg(long)]
        remove: Option<PathBuf>,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

#[derive(Args)]
struct ClusterArguments {
    /// How many fake nodes, each with 64 CPUs and 256 GiB.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// GPUs of each node.
    #[arg(long, default_value_t = 8)]
    gpus: usize,
    /// Whether bound pods start to run, and deleted pods disappear.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    kwok: bool,
    /// Also start Kubernetes' own scheduler.
    #[arg(long)]
    kube_scheduler: bool,
    /// Where the kubeconfig and the logs are kept; a temporary folder otherwise.
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Cluster(arguments) => cluster(arguments),
        Command::Bench(arguments) => measure(&arguments),
        Command::Guard { log, remove, command } => {
            // Not by returning from main: a thread may still wait for the standard input.
            std::process::exit(guard::guard(&log, remove.as_deref(), &command));
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn cluster(arguments: ClusterArguments) -> Result<()> {
    // Until here a signal ends a long build as it ends any program; from here on there is something
    // to clean up.
    binaries()?;
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Also while it starts: dropping the unfinished start ends what has been started.
    tokio::select! {
        outcome = run(arguments) => outcome,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn measure(arguments: &BenchArguments) -> Result<()> {
    binaries()?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        outcome = bench::run(arguments) => outcome,
        _ = interrupt.recv() => Ok(()),
    }
}

async fn run(arguments: ClusterArguments) -> Result<()> {
    let ClusterArguments { nodes, gpus, kwok, kube_scheduler, dir } = arguments;
    let options = Options { kwok, kube_scheduler, folder: dir, ..Options::default() };
    let mut plane = ControlPlane::start(options).await?;
    let cluster = plane.cluster();
    cluster.install_crds(Definitions::Muster).await?;
    cluster.create_nodes(&Nodes::new(nodes).gpus(gpus)).await?;
    // Written at once, and an error if standard output is closed: `println` would panic.
    std::io::stdout().write_all(welcome(&plane, nodes, gpus).as_bytes())?;
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        plane.check()?;
    }
}

fn welcome(plane: &ControlPlane, nodes: usize, gpus: usize) -> String {
    let (folder, kubeconfig, kubectl) = (plane.folder(), plane.kubeconfig(), plane.kubectl());
    format!(
        "{nodes} nodes with 64 CPUs, 256 GiB and {gpus} GPUs each; Ctrl-C ends it and all that is in it.
Logs are in {}.

In another terminal:

  export KUBECONFIG={}
  alias kubectl={}
  cargo run -- scheduler
  kubectl apply -f examples/first-gang
  kubectl get nodes,podgroups,queues,pods
",
        folder.display(),
        kubeconfig.display(),
        kubectl.display()
    )
}
