//! Reads a live cluster, and changes nothing in it.

use std::error::Error;
use std::path::PathBuf;

use muster_engine::explain::grouped;
use muster_kube::{Address, ConnectError, Listing, list_all};

use crate::failure::Failure;
use crate::render::progress::Bar;

#[derive(clap::Args, Clone, Debug)]
pub struct ClusterArgs {
    /// Read the cluster of this kubeconfig [default without -f: $KUBECONFIG, ~/.kube/config, or the
    /// pod's service account]; together with -f, the manifests are added to the cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArgs {
    /// Whether the user asked for a cluster, rather than naming nothing at all.
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    pub fn read(&self) -> Result<Listing, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::work(format_args!("starting: {error}")))?;
        let address =
            Address { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        let bar = Bar::new(true);
        let listing = runtime.block_on(async {
            let client = address.connect().await.map_err(unconnected)?;
            list_all(&client, |kind, count| {
                bar.say(format!("reading the cluster: {}", plural(kind, count)))
            })
            .await
            .map_err(Failure::work)
        });
        bar.done();
        listing
    }
}

fn plural(kind: &str, count: usize) -> String {
    let ending = if kind.ends_with('s') { "es" } else { "s" };
    format!("{} {}{ending}", grouped(count as u64), kind.to_lowercase())
}

fn unconnected(error: ConnectError) -> Failure {
    match error {
        ConnectError::Nowhere(cause) => {
            let cause = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
            let ways = "nothing to read: name manifests with -f FILE (- for standard input), or a cluster with --kubeconfig FILE";
            Failure::input(format_args!("{ways}; there is no default cluster: {cause}"))
        }
        ConnectError::Client(_) => Failure::work(error),
        ConnectError::File { .. } | ConnectError::Context { .. } => Failure::input(error),
    }
}
