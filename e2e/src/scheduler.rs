//! `muster scheduler` under test: its process, its pages, and its journal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use http::Request;
use serde_json::Value;

use crate::Result;
use crate::cluster::{Cluster, wait};
use crate::controlplane::{ControlPlane, free_port};
use crate::guard::Server;

const PATIENCE: Duration = Duration::from_secs(60);

/// One replica.
pub struct Scheduler {
    pub server: Server,
    endpoint: Cluster,
    journal: PathBuf,
}

impl Scheduler {
    /// Starts a replica with a journal and a log of this name in the control plane's folder, and
    /// waits until it is ready. `flags` are appended to those that every replica gets.
    pub async fn start(plane: &ControlPlane, name: &str, flags: &[&str]) -> Result<Scheduler> {
        let mut scheduler = Scheduler::spawn(plane, name, flags)?;
        scheduler.ready().await?;
        Ok(scheduler)
    }

    /// Starts a replica without waiting for anything.
    pub fn spawn(plane: &ControlPlane, name: &str, flags: &[&str]) -> Result<Scheduler> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let journal = plane.folder().join(format!("{name}.journal"));
        let mut arguments = vec![
            "scheduler".to_owned(),
            format!("--listen={address}"),
            format!("--journal={}", journal.display()),
            format!("--leader-elect-identity={name}"),
        ];
        // Some tests pass a different kubeconfig.
        if !flags.iter().any(|flag| flag.starts_with("--kubeconfig=")) {
            arguments.push(format!("--kubeconfig={}", plane.kubeconfig().display()));
        }
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        let mut server = Server::new(name, &muster()?, arguments, plane.folder());
        server.start()?;
        Ok(Scheduler { server, endpoint: Cluster::plain(&format!("http://{address}"))?, journal })
    }

    /// Waits until `/readyz` succeeds.
    pub async fn ready(&mut self) -> Result<()> {
        let answer = wait(PATIENCE, async || {
            let endpoint = &self.endpoint;
            endpoint.text("/readyz?verbose").await.map_err(|error| error.to_string())
        });
        // A scheduler that has ended will not become ready.
        let mut server_check = tokio::time::interval(Duration::from_millis(100));
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return match answer {
                    Ok(_) => Ok(()),
                    Err(error) => Err(format!("{error}\n{}", self.server.log_end()).into()),
                },
                _ = server_check.tick() => self.server.check()?,
            }
        }
    }

    /// The scheduler's page at a path.
    pub async fn text(&self, path: &str) -> Result<String> {
        Ok(self.endpoint.text(path).await?)
    }

    /// Changes a setting while it runs, for example the log level.
    pub async fn put(&self, path: &str, text: &str) -> kube::Result<String> {
        let request =
            Request::put(path).body(text.as_bytes().to_vec()).map_err(kube::Error::HttpError)?;
        self.endpoint.client().request_text(request).await
    }

    /// Why a gang waits, or where it is.
    pub async fn explain(&self, namespace: &str, gang: &str) -> Result<Value> {
        Ok(self.endpoint.get(&format!("/debug/gangs/{namespace}/{gang}")).await?)
    }

    /// The sum of a metric over all samples whose labels contain `labels`, for example
    /// `kind="bind"`.
    pub async fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        let text = self.text("/metrics").await?;
        let samples = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
            let (found, value) = rest.rsplit_once(' ')?;
            found.contains(labels).then(|| value.parse::<f64>().ok())?
        });
        Ok(samples.sum())
    }

    pub fn journal(&self) -> &Path {
        &self.journal
    }

    /// Replays the journal: an error with the first difference, if there is one.
    pub fn replay(&self) -> Result<()> {
        let output = Command::new(muster()?).arg("replay").arg(&self.journal).output()?;
        if output.status.success() {
            return Ok(());
        }
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("muster replay {}: {}\n{out}{err}", self.journal.display(), output.status)
            .into())
    }
}

/// The `muster` command, built once.
pub fn muster() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf>> = OnceLock::new();
    match BUILT.get_or_init(build_muster) {
        Ok(binary) => Ok(binary.clone()),
        Err(error) => Err(error.to_string().into()),
    }
}

fn build_muster() -> Result<PathBuf> {
    let folder = profile_folder()?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "muster", "--profile", profile]);
    // Cargo sets variables about the package of a test, and would rebuild every crate that reads
    // them (`ring` does).
    let told = |name: &str| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_");
    for (name, _) in std::env::vars().filter(|(name, _)| told(name)) {
        command.env_remove(name);
    }
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    if output.status.success() {
        return Ok(folder.join("muster"));
    }
    Err(format!("building muster:\n{}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Where cargo puts binaries of the running program's profile; tests are in a folder below it.
pub(crate) fn profile_folder() -> Result<PathBuf> {
    let running = std::env::current_exe()?;
    let folder = running.parent().ok_or("the running program has no folder")?;
    let below = folder.file_name().is_some_and(|name| name == "deps");
    let folder = if below { folder.parent().unwrap_or(folder) } else { folder };
    Ok(folder.to_owned())
}
