//! How to reach a cluster: a kubeconfig and a context, or what a pod finds in its own file system.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tracing::warn;

/// Which cluster to use. If neither is set: `$KUBECONFIG`, `~/.kube/config`, or the service account
/// of the pod that this runs in.
#[derive(Clone, Debug, Default)]
pub struct Address {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the kubeconfig {path}: {source}")]
    File { path: String, source: kube::config::KubeconfigError },
    #[error(
        "no cluster to talk to: name a kubeconfig with --kubeconfig, or set KUBECONFIG, or run in a pod ({0})"
    )]
    Nowhere(kube::config::InferConfigError),
    #[error("the kubeconfig has no context {context:?}; it has {}", .known.join(", "))]
    Context { context: String, known: Vec<String> },
    #[error("connecting: {0}")]
    Client(kube::Error),
}

impl Address {
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        let mut config = self.config().await?;
        // A watch may be silent for minutes; each request that must end has a limit of its own.
        config.read_timeout = None;
        config.connect_timeout = Some(Duration::from_secs(5));
        // The code that makes a write decides what a refusal means.
        config.default_retry = false;
        if config.accept_invalid_certs {
            warn!(server = %config.cluster_url, "the API server's certificate is not checked");
        }
        Client::try_from(config).map_err(ConnectError::Client)
    }

    async fn config(&self) -> Result<Config, ConnectError> {
        let (path, file) = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => (path.display().to_string(), Kubeconfig::read_from(path)),
            (None, Some(_)) => ("by default".to_owned(), Kubeconfig::read()),
            (None, None) => return Config::infer().await.map_err(ConnectError::Nowhere),
        };
        let unusable = |source| ConnectError::File { path: path.clone(), source };
        let file = file.map_err(unusable)?;
        if let Some(context) = &self.context
            && !file.contexts.iter().any(|known| known.name == *context)
        {
            let known = file.contexts.into_iter().map(|known| known.name).collect();
            return Err(ConnectError::Context { context: context.clone(), known });
        }
        let options =
            KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(file, &options).await.map_err(unusable)
    }
}
