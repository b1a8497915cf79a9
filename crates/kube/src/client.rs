//! How to reach a cluster: a kubeconfig and a context, or what a pod finds in its own file system.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Which cluster is meant. With neither, `$KUBECONFIG`, `~/.kube/config`, or the service account of the pod that
/// this runs in.
#[derive(Clone, Debug, Default)]
pub struct Address {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("reading the kubeconfig {path}: {source}")]
    File { path: String, source: kube::config::KubeconfigError },
    #[error(
        "no cluster to talk to: name a kubeconfig with --kubeconfig, or set KUBECONFIG, or run in a pod ({0})"
    )]
    Nowhere(kube::config::InferConfigError),
    #[error("the kubeconfig has no usable context {context:?}: {source}")]
    Context { context: String, source: kube::config::KubeconfigError },
    #[error("connecting: {0}")]
    Client(kube::Error),
}

impl Address {
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        let mut config = self.config().await?;
        // Watches are quiet for minutes; each request that must end has a limit of its own.
        config.read_timeout = None;
        config.connect_timeout = Some(Duration::from_secs(5));
        Client::try_from(config).map_err(ConnectError::Client)
    }

    async fn config(&self) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if let Some(path) = &self.kubeconfig {
            let file = read(path)?;
            return Config::from_custom_kubeconfig(file, &options)
                .await
                .map_err(|source| ConnectError::File { path: path.display().to_string(), source });
        }
        match &self.context {
            Some(context) => Config::from_kubeconfig(&options)
                .await
                .map_err(|source| ConnectError::Context { context: context.clone(), source }),
            None => Config::infer().await.map_err(ConnectError::Nowhere),
        }
    }
}

fn read(path: &Path) -> Result<Kubeconfig, ConnectError> {
    Kubeconfig::read_from(path)
        .map_err(|source| ConnectError::File { path: path.display().to_string(), source })
}
