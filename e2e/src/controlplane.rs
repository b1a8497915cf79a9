//! One control plane: its servers, ports, folders and kubeconfig.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::Result;
use crate::binaries::{Binaries, binaries, module_folder};
use crate::cluster::Cluster;
use crate::guard::Server;

/// How long servers may take to become ready; a busy machine with two cores needs 20 s at times.
const PATIENCE: Duration = Duration::from_secs(120);
/// The only user, an administrator. The server listens on loopback, for the duration of a test.
const TOKEN: &str = "muster-e2e";

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Makes bound pods run, and deleted pods disappear.
    pub kwok: bool,
    /// Kubernetes' own scheduler, without throttling.
    pub kube_scheduler: bool,
    /// Where the kubeconfig and the logs are kept; a temporary folder otherwise.
    pub folder: Option<PathBuf>,
    /// Further flags of the API server.
    pub api_server_flags: Vec<String>,
}

/// A control plane of its own. Dropping it ends its servers and removes its folders; while a test
/// panics, or after `keep_logs`, the logs are kept and their folder is printed. If the process is
/// killed, the logs are kept too.
pub struct ControlPlane {
    pub api_server: Server,
    pub etcd: Server,
    pub kwok: Option<Server>,
    pub kube_scheduler: Option<Server>,
    cluster: Cluster,
    binaries: Binaries,
    folder: PathBuf,
    ports: Ports,
    /// The temporary folder, if none was given.
    temporary: Option<TempDir>,
    /// The data of etcd, in memory where there is such a file system.
    _data: TempDir,
    keep_logs: bool,
}

#[derive(Copy, Clone)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api_server: u16,
}

impl ControlPlane {
    pub async fn start(options: Options) -> Result<ControlPlane> {
        let binaries = binaries()?;
        let mut temporary = None;
        let folder = match &options.folder {
            Some(folder) => folder.clone(),
            None => temporary.insert(TempDir::with_prefix("muster-e2e-")?).path().to_owned(),
        };
        fs::create_dir_all(&folder)
            .map_err(|error| format!("creating {}: {error}", folder.display()))?;
        let folder = fs::canonicalize(folder)?;
        let mut attempt = 1;
        loop {
            match ControlPlane::try_start(&binaries, &options, &folder).await {
                Ok(mut plane) => {
                    plane.temporary = temporary;
                    return Ok(plane);
                }
                // Another process may take a port after we have checked it.
                Err(_) if attempt < 3 => attempt += 1,
                Err(error) => {
                    temporary.into_iter().for_each(|folder| drop(folder.keep()));
                    return Err(error);
                }
            }
        }
    }

    async fn try_start(
        binaries: &Binaries,
        options: &Options,
        path: &Path,
    ) -> Result<ControlPlane> {
        let memory = Path::new("/dev/shm");
        let data_root = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let data = TempDir::with_prefix_in("muster-e2e-etcd-", data_root)?;
        let ports = Ports { etcd: free_port()?, etcd_peer: free_port()?, api_server: free_port()? };
        write_kubeconfig(path, ports.api_server)?;
        fs::write(path.join("tokens.csv"), format!("{TOKEN},admin,admin,\"system:masters\"\n"))?;

        let etcd_flags = etcd_flags(data.path(), ports);
        let mut etcd =
            Server::new("etcd", &binaries.path("etcd"), etcd_flags, path).removing(data.path());
        etcd.start()?;
        let mut flags = api_server_flags(path, ports);
        flags.extend(options.api_server_flags.iter().cloned());
        let mut api_server =
            Server::new("kube-apiserver", &binaries.path("kube-apiserver"), flags, path);
        api_server.start()?;
        wait_for(&path.join("certificates/apiserver.crt"), &mut api_server).await?;
        let mut plane = ControlPlane {
            cluster: Cluster::connect(&path.join("kubeconfig")).await?,
            api_server,
            etcd,
            kwok: None,
            kube_scheduler: None,
            binaries: binaries.clone(),
            folder: path.to_owned(),
            ports,
            temporary: None,
            _data: data,
            keep_logs: false,
        };
        plane.wait_until_ready().await?;
        if options.kwok {
            plane.start_kwok()?;
        }
        if options.kube_scheduler {
            plane.start_kube_scheduler()?;
        }
        Ok(plane)
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The folder of logs, kubeconfig and journals.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn kubectl(&self) -> PathBuf {
        self.binaries.path("kubectl")
    }

    /// A client of this control plane's administrator.
    pub fn cluster(&self) -> Cluster {
        self.cluster.clone()
    }

    /// Asks in advance to keep the logs.
    pub fn keep_logs(&mut self) {
        self.keep_logs = true;
    }

    /// Stops the API server cleanly and starts it again with the same port and data. Its clients'
    /// watches break, and its watch cache is lost: older watches are rejected with 410.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.api_server.stop().await?;
        self.start_api_server().await
    }

    /// Starts the API server after it was stopped or killed, and waits until it is ready.
    pub async fn start_api_server(&mut self) -> Result<()> {
        self.api_server.start()?;
        self.wait_until_ready().await
    }

    /// An error if a server has ended that should run.
    pub fn check(&mut self) -> Result<()> {
        let servers = [&mut self.etcd, &mut self.api_server].into_iter();
        servers.chain(&mut self.kwok).chain(&mut self.kube_scheduler).try_for_each(Server::check)
    }

    /// Makes etcd drop all versions of objects except the last.
    pub async fn compact(&self) -> Result<()> {
        let url = format!("http://127.0.0.1:{}", self.ports.etcd);
        let etcd = Cluster::plain(&url)?;
        let status = etcd.create("/v3/maintenance/status", &json!({})).await?;
        let revision =
            status["header"]["revision"].as_str().ok_or("etcd did not return its revision")?;
        etcd.create("/v3/kv/compaction", &json!({ "revision": revision, "physical": true }))
            .await?;
        Ok(())
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.check()?;
            let answer = self.cluster.text("/readyz").await;
            match answer {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    let log = self.api_server.log_end();
                    return Err(format!("the API server is not ready: {error}\n{log}").into());
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn start_kwok(&mut self) -> Result<()> {
        let stages = module_folder("kwok").join("stages.yaml");
        let flags = vec![
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!("--config={}", stages.display()),
        ];
        let kwok = Server::new("kwok", &self.binaries.path("kwok"), flags, self.folder());
        self.kwok.insert(kwok).start()
    }

    pub(crate) fn start_kube_scheduler(&mut self) -> Result<()> {
        let file = self.folder().join("kube-scheduler.json");
        let configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": { "leaderElect": false },
            "clientConnection": { "kubeconfig": self.kubeconfig(), "qps": 100_000, "burst": 100_000 },
        });
        fs::write(&file, configuration.to_string())?;
        let flags = vec![format!("--config={}", file.display()), "--secure-port=0".to_owned()];
        let program = self.binaries.path("kube-scheduler");
        let server = Server::new("kube-scheduler", &program, flags, self.folder());
        self.kube_scheduler.insert(server).start()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Clients first, so that none logs the loss of its server. Their data is discarded, so they
        // need no clean end.
        for server in self.kube_scheduler.iter_mut().chain(&mut self.kwok) {
            server.end();
        }
        self.api_server.end();
        self.etcd.end();
        if self.keep_logs || std::thread::panicking() {
            self.temporary.iter_mut().for_each(|folder| folder.disable_cleanup(true));
            eprintln!("logs of the control plane: {}", self.folder.display());
        }
    }
}

/// Waits for a file that a server writes.
async fn wait_for(file: &Path, server: &mut Server) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !file.exists() {
        server.check()?;
        if Instant::now() > deadline {
            return Err(format!("no {}:\n{}", file.display(), server.log_end()).into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn etcd_flags(data: &Path, ports: Ports) -> Vec<String> {
    let Ports { etcd, etcd_peer, .. } = ports;
    vec![
        "--name=e2e".to_owned(),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls=http://127.0.0.1:{etcd}"),
        format!("--advertise-client-urls=http://127.0.0.1:{etcd}"),
        format!("--listen-peer-urls=http://127.0.0.1:{etcd_peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{etcd_peer}"),
        format!("--initial-cluster=e2e=http://127.0.0.1:{etcd_peer}"),
        "--unsafe-no-fsync".to_owned(),
        "--quota-backend-bytes=8589934592".to_owned(),
        "--log-level=error".to_owned(),
    ]
}

fn api_server_flags(folder: &Path, ports: Ports) -> Vec<String> {
    let Ports { etcd, api_server, .. } = ports;
    let folder = folder.display();
    // The server creates its own certificate before it reads the keys, so one key is enough for
    // both.
    let key = format!("{folder}/certificates/apiserver.key");
    let flags = [
        &*format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1",
        &format!("--secure-port={api_server}"),
        // A loopback address is rejected here; nothing ever connects to this one.
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
        &format!("--cert-dir={folder}/certificates"),
        &format!("--token-auth-file={folder}/tokens.csv"),
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://muster-e2e.invalid",
        &format!("--service-account-key-file={key}"),
        &format!("--service-account-signing-key-file={key}"),
        "--service-cluster-ip-range=10.0.0.0/24",
        // No controller manager creates the accounts and taints that these would need.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=0",
        "--etcd-compaction-interval=0",
        "--etcd-count-metric-poll-period=0",
        "--delete-collection-workers=32",
        // On SIGTERM a server would wait a minute for its watches to end by themselves.
        "--shutdown-watch-termination-grace-period=1s",
    ];
    flags.map(str::to_owned).to_vec()
}

fn write_kubeconfig(folder: &Path, port: u16) -> Result<()> {
    let name = "muster-e2e";
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{ "name": name, "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority": folder.join("certificates/apiserver.crt"),
        } }],
        "users": [{ "name": name, "user": { "token": TOKEN } }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
    });
    Ok(fs::write(folder.join("kubeconfig"), serde_json::to_string_pretty(&config)?)?)
}

/// A port on which nothing listens now. It is below the range that Linux uses for outgoing
/// connections, so that it is still free for a server that is restarted; the process id selects
/// where the search starts, so that two test runs rarely collide.
pub(crate) fn free_port() -> Result<u16> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 18_000;
    const COUNT: u32 = 14_000;
    for _ in 0..COUNT {
        let offset =
            std::process::id().wrapping_mul(61).wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + offset % COUNT)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no free port on loopback".into())
}
