//! A record is sent to a server that stores one ConfigMap, and read back.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use muster_api::core::{Node, Pod};
use muster_engine::Event;

use super::*;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::podgroup_status::PodGroupStatusPath;
use crate::writes::WriteContext;

/// The ConfigMap, and the requests.
#[derive(Default)]
struct Server {
    map: Option<Value>,
    asked: Vec<String>,
    /// Answer every request like this.
    refuses: Option<u16>,
}

type Shared = Arc<Mutex<Server>>;

fn status(code: u16) -> Response {
    let body = json!({ "kind": "Status", "status": "Failure", "message": "no", "code": code });
    (StatusCode::from_u16(code).expect("a status"), body.to_string()).into_response()
}

async fn answer(State(server): State<Shared>, request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body: Bytes = to_bytes(request.into_body(), usize::MAX).await.expect("a body");
    let mut server = server.lock().expect("no test panics here");
    server.asked.push(format!("{method} {path}"));
    if let Some(code) = server.refuses {
        return status(code);
    }
    let said = || serde_json::from_slice::<Value>(&body).expect("JSON");
    match (method, server.map.is_some()) {
        (Method::POST, false) => server.map = Some(said()),
        (Method::PATCH, true) => {
            server.map.as_mut().expect("it is there")["data"] = said()["data"].clone()
        }
        (Method::GET, true) => {}
        _ => return status(404),
    }
    server.map.clone().expect("it is there").to_string().into_response()
}

async fn connect(server: &Shared) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let router = Router::new().fallback(answer).with_state(server.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut config = kube::Config::new(url.parse().expect("a URL"));
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

fn context(client: &Client) -> Arc<WriteContext> {
    let leadership = Leadership::none();
    leadership.for_ever();
    Arc::new(WriteContext {
        client: client.clone(),
        leadership: Arc::new(leadership),
        metrics: Arc::new(Metrics::new()),
        podgroup_status: PodGroupStatusPath::default(),
        namespace: "muster-system".into(),
        identity: "test".into(),
        records: AtomicU64::new(0),
    })
}

fn config() -> Config {
    let text = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity, arguments: {usageWindow: 8h}}]}]";
    Config::parse("test", text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// An engine with one node, on which a pod of the default queue has run for this many minutes.
fn engine(minutes: i64) -> Engine {
    let mut engine = Engine::new(config(), vec!["muster".into()]);
    let node = json!({ "metadata": { "name": "n" }, "status": { "allocatable": { "cpu": "4", "pods": "9" } } });
    let requests = json!({ "requests": { "cpu": "2" } });
    let pod = json!({
        "metadata": { "name": "p", "namespace": "default" },
        "spec": { "schedulerName": "muster", "nodeName": "n", "containers": [{ "name": "c", "resources": requests }] },
        "status": { "phase": "Running" },
    });
    engine.apply(Event::from(serde_json::from_value::<Node>(node).expect("a node")));
    engine.apply(Event::from(serde_json::from_value::<Pod>(pod).expect("a pod")));
    for minute in 0..=minutes {
        engine.cycle(Time(minute * 60_000));
    }
    engine
}

fn with_server(server: Server, test: impl AsyncFn(&Shared, &Client)) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = Arc::new(Mutex::new(server));
    runtime.block_on(async {
        let client = connect(&server).await;
        test(&server, &client).await;
    });
}

#[test]
fn the_next_leader_reads_the_stored_usage() {
    with_server(Server::default(), async |server, client| {
        assert_eq!(
            read(client, "muster-system").await.expect("an answer"),
            None,
            "nothing has been written yet"
        );
        let (early, mut write_times) = (engine(30), UsageWriteTimes::default());
        let context = context(client);
        let first = write_times.entry(&early, Time(0), false).expect("there is something to write");
        first.send(context.clone()).await;
        write_times
            .entry(&engine(45), Time(60_000), false)
            .expect("it has changed")
            .send(context)
            .await;
        let path = "/api/v1/namespaces/muster-system/configmaps";
        let expected = [
            format!("GET {path}/muster-usage"),
            format!("PATCH {path}/muster-usage"),
            format!("POST {path}"),
            format!("PATCH {path}/muster-usage"),
        ];
        assert_eq!(server.lock().expect("no test panics here").asked, expected);
        let record = read(client, "muster-system").await.expect("an answer").expect("a record");
        assert_eq!(record, engine(45).cluster().usage_record());
        let mut next = Engine::new(config(), vec!["muster".into()]);
        next.apply(Event::Usage(Box::new(record)));
        next.cycle(Time(46 * 60_000));
        let cluster = next.cluster();
        let (queue, cpu) = (cluster.queues.find("default"), cluster.dimensions.find("cpu"));
        let used =
            cluster.usage.ppm(queue.expect("it is always there"), cpu.expect("it is always there"));
        assert_eq!(used, 500_000, "half of all there was");
    });
}

#[test]
fn usage_is_written_at_most_once_a_minute_and_only_if_changed() {
    let (early, mut write_times) = (engine(30), UsageWriteTimes::default());
    assert!(write_times.entry(&early, Time(0), false).is_some());
    let later = engine(31);
    assert!(write_times.entry(&later, Time(59_000), false).is_none(), "it is too early");
    assert!(
        write_times.entry(&later, Time(59_000), true).is_some(),
        "at the end there is no later write"
    );
    assert!(write_times.entry(&later, Time(600_000), false).is_none(), "nothing has changed");
    let forgetful = Engine::new(Config::builtin(), vec!["muster".into()]);
    assert!(UsageWriteTimes::default().entry(&forgetful, Time(0), true).is_none());
}

#[test]
fn unreadable_usage_is_discarded() {
    let broken = json!({ "data": { "usage": "{" } });
    with_server(Server { map: Some(broken), ..Server::default() }, async |_, client| {
        assert_eq!(read(client, "muster-system").await.expect("an answer"), None);
    });
    with_server(Server { refuses: Some(403), ..Server::default() }, async |_, client| {
        assert_eq!(read(client, "muster-system").await.expect("an answer"), None);
    });
    with_server(Server { refuses: Some(500), ..Server::default() }, async |_, client| {
        assert!(read(client, "muster-system").await.is_err(), "it is asked again");
    });
}
