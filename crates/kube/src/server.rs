//! The scheduler's own pages: health, readiness, metrics, and on the machine itself (or through
//! `kubectl port-forward`) the explanation of a gang and the log level.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use crate::clock::wall_clock;
use crate::lease::Leadership;
use crate::logging::LogLevel;
use crate::metrics::Metrics;
use crate::news::News;

/// A thread that has decided nothing for this long is stuck.
const STUCK: Duration = Duration::from_secs(60);
/// How long an answer of the engine may take.
const ANSWER: Duration = Duration::from_secs(30);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub struct Pages {
    pub metrics: Arc<Metrics>,
    pub leadership: Arc<Leadership>,
    pub heartbeat: Arc<AtomicI64>,
    pub stopping: Arc<AtomicBool>,
    pub news: Sender<News>,
    pub log_level: LogLevel,
}

/// Serves until the process ends.
pub async fn serve(listener: TcpListener, pages: Pages) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/livez", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/version", get(env!("CARGO_PKG_VERSION")))
        .route("/debug/gangs/{namespace}/{name}", get(gang))
        .route("/debug/log-level", get(log_level).put(set_log_level))
        .with_state(Arc::new(pages));
    axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await
}

#[derive(serde::Deserialize)]
struct Verbose {
    verbose: Option<String>,
}

/// A check: its name, whether it passes, and a remark.
type Check = (&'static str, bool, &'static str);

fn answer(checks: &[Check], verbose: bool) -> Response {
    let fine = checks.iter().all(|(_, fine, _)| *fine);
    let code = if fine { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if fine && !verbose {
        return (code, "ok").into_response();
    }
    let line =
        |(name, fine, more): &Check| format!("[{}]{name} {more}\n", if *fine { '+' } else { '-' });
    let lines: String = checks.iter().map(line).collect();
    (code, format!("{lines}{}", if fine { "ok" } else { "failed" })).into_response()
}

impl Pages {
    fn engine(&self) -> Check {
        let silence = wall_clock().0 - self.heartbeat.load(Ordering::Relaxed);
        let alive = silence < STUCK.as_millis() as i64;
        ("engine", alive, if alive { "ok" } else { "has decided nothing for a minute" })
    }
}

async fn healthz(State(pages): State<Arc<Pages>>, Query(query): Query<Verbose>) -> Response {
    answer(&[("ping", true, "ok"), pages.engine()], query.verbose.is_some())
}

/// A replica that waits for the lease is ready too: it has read everything and can take over at
/// once.
async fn readyz(State(pages): State<Arc<Pages>>, Query(query): Query<Verbose>) -> Response {
    let in_sync = pages.metrics.in_sync.get() == 1;
    let stopping = pages.stopping.load(Ordering::Relaxed);
    let checks = [
        ("ping", true, "ok"),
        pages.engine(),
        ("in-sync", in_sync, if in_sync { "ok" } else { "objects are still being read" }),
        ("lease", true, if pages.leadership.holds() { "leading" } else { "another replica leads" }),
        ("shutdown", !stopping, if stopping { "stopping" } else { "ok" }),
    ];
    answer(&checks, query.verbose.is_some())
}

async fn metrics(State(pages): State<Arc<Pages>>) -> Response {
    ([(CONTENT_TYPE, OPEN_METRICS)], pages.metrics.text()).into_response()
}

/// These pages reveal much and change something, so only this machine may use them.
fn not_local(from: SocketAddr) -> Option<Response> {
    let text = "only from this machine: use kubectl port-forward\n";
    (!from.ip().to_canonical().is_loopback()).then(|| (StatusCode::FORBIDDEN, text).into_response())
}

async fn gang(
    State(pages): State<Arc<Pages>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    if let Some(refused) = not_local(from) {
        return refused;
    }
    let gang = format!("{namespace}/{name}");
    let Some(found) = ask(&pages.news, &gang).await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the engine does not answer\n").into_response();
    };
    match found {
        Some(facts) => ([(CONTENT_TYPE, "application/json")], facts.to_string()).into_response(),
        None => {
            (StatusCode::NOT_FOUND, format!("there is no gang or pod {gang}\n")).into_response()
        }
    }
}

/// The engine's explanation of a gang; nothing if it doesn't answer in time.
async fn ask(news: &Sender<News>, gang: &str) -> Option<Option<Value>> {
    let (sender, receiver) = oneshot::channel();
    news.send(News::Ask { gang: gang.to_owned(), answer: sender }).await.ok()?;
    tokio::time::timeout(ANSWER, receiver).await.ok()?.ok()
}

async fn log_level(
    State(pages): State<Arc<Pages>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
) -> Response {
    not_local(from).unwrap_or_else(|| format!("{}\n", pages.log_level.get()).into_response())
}

async fn set_log_level(
    State(pages): State<Arc<Pages>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    level: String,
) -> Response {
    if let Some(refused) = not_local(from) {
        return refused;
    }
    match pages.log_level.set(&level) {
        Ok(()) => format!("{}\n", pages.log_level.get()).into_response(),
        Err(problem) => (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response(),
    }
}
