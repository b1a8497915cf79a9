//! A bad network on demand: a plain HTTP proxy between a scheduler and the API server that refuses,
//! swallows, holds and breaks requests as it is told, while it runs.

mod answer;
mod rule;

use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::response::Response;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::Result;
pub use rule::{Ask, Fault, Rule};

/// A proxy on a thread of its own, until it is dropped.
pub struct Proxy {
    kubeconfig: PathBuf,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

/// State that the test and the proxy's thread share.
struct Shared {
    rules: RwLock<Vec<Arc<Rule>>>,
    seeds: AtomicU64,
    /// Changes when all streams are to be cut.
    cuts: watch::Sender<u64>,
}

impl Proxy {
    /// Forwards to the server of a kubeconfig with its user's rights. A kubeconfig for the proxy is
    /// written next to it. The seed decides which requests are hit.
    pub fn start(upstream: &Path, seed: u64) -> Result<Proxy> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let kubeconfig = upstream.with_file_name(format!("proxy-{number}.kubeconfig"));
        write_kubeconfig(&kubeconfig, listener.local_addr()?.port())?;
        let seeds = AtomicU64::new(seed << 16);
        let shared =
            Arc::new(Shared { rules: RwLock::default(), seeds, cuts: watch::Sender::new(0) });
        let (stop, stopped) = oneshot::channel();
        let (its_shared, config) = (shared.clone(), Kubeconfig::read_from(upstream)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    outcome = serve(listener, config, its_shared) => outcome.expect("the proxy can serve"),
                    _ = stopped => (),
                }
            });
        })?;
        Ok(Proxy { kubeconfig, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The kubeconfig for the proxy. It contains no credentials: the proxy has them.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// From now on `share` percent of the requests that `picks` selects are hit. Of several rules
    /// the oldest applies.
    pub fn rule(
        &self,
        fault: Fault,
        share: u64,
        picks: impl Fn(&Ask) -> bool + Send + Sync + 'static,
    ) -> Arc<Rule> {
        let rule = Arc::new(Rule::new(
            fault,
            share,
            picks,
            self.shared.seeds.fetch_add(1, Ordering::Relaxed),
        ));
        let mut rules = self.shared.rules.write().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|rule| !rule.is_lifted());
        rules.push(rule.clone());
        rule
    }

    /// Removes all rules.
    pub fn calm(&self) {
        self.shared
            .rules
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .for_each(|rule| rule.lift());
    }

    /// Breaks all watches that are open now.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(
    listener: std::net::TcpListener,
    config: Kubeconfig,
    shared: Arc<Shared>,
) -> Result<()> {
    let mut config =
        kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    // The server's answer is passed on unchanged.
    config.default_retry = false;
    let client = Client::try_from(config)?;
    let router = Router::new().fallback(handle).with_state((client, shared));
    Ok(axum::serve(TcpListener::from_std(listener)?, router).await?)
}

async fn handle(
    State((client, shared)): State<(Client, Arc<Shared>)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else { hang_up() };
    let ask = Ask {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        body: body.clone(),
    };
    // Subscribed before anything is sent, so that no cut is missed.
    let cuts = shared.cuts.subscribe();
    let mut left = None;
    if let Some(rule) = shared.rule_for(&ask) {
        match rule.fault {
            Fault::Refuse(code) => return answer::refusal(code, &ask),
            Fault::Expire => return answer::expired(),
            Fault::Lose => hang_up(),
            Fault::Swallow => {
                consume(forward(&client, parts, body).await).await;
                hang_up()
            }
            Fault::Hang { forwarded } => {
                if forwarded {
                    consume(forward(&client, parts, body).await).await;
                }
                return std::future::pending().await;
            }
            Fault::Hold => rule.until_lifted().await,
            Fault::Delay(time) => tokio::time::sleep(time).await,
            Fault::Break { after } => left = Some(after),
        }
    }
    let answer = forward(&client, parts, body).await;
    if ask.is_watch() {
        answer.map(|body| answer::watch_stream(body, left, cuts))
    } else {
        answer.map(Body::new)
    }
}

impl Shared {
    fn rule_for(&self, ask: &Ask) -> Option<Arc<Rule>> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.iter().find(|rule| rule.strikes_at(ask)).cloned()
    }
}

async fn forward(client: &Client, mut parts: Parts, body: Bytes) -> Response<kube::client::Body> {
    for name in [HOST, CONNECTION] {
        parts.headers.remove(name);
    }
    let request = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    // A server that is down looks the same through the proxy.
    let mut answer = client.send(request).await.unwrap_or_else(|_| hang_up());
    answer.headers_mut().remove(TRANSFER_ENCODING);
    answer
}

async fn consume(answer: Response<kube::client::Body>) {
    let _ = answer.into_body().collect_bytes().await;
}

/// Ends the connection without an answer: its task unwinds, and the client is told nothing.
fn hang_up() -> ! {
    std::panic::resume_unwind(Box::new("the proxy hangs up"))
}

fn write_kubeconfig(file: &Path, port: u16) -> Result<()> {
    let name = "proxy";
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{ "name": name, "cluster": { "server": format!("http://127.0.0.1:{port}") } }],
        "users": [{ "name": name, "user": {} }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
    });
    Ok(fs::write(file, serde_json::to_string_pretty(&config)?)?)
}
