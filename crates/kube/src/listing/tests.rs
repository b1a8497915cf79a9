//! Lists from a server with prepared answers.

use std::sync::Mutex;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kube::Config;
use serde_json::{Value, json};

use super::*;

/// Answers the next request whose path and query end like this; other requests get an empty list.
type Script = Vec<(&'static str, u16, Value)>;

async fn answer(State(script): State<std::sync::Arc<Mutex<Script>>>, request: Request) -> Response {
    let asked = request.uri().to_string();
    let mut script = script.lock().expect("no test panics here");
    let place = script.iter().position(|(end, ..)| asked.ends_with(end));
    let (code, body) = place.map_or((200, json!({ "items": [] })), |place| {
        let (_, code, body) = script.remove(place);
        (code, body)
    });
    let status = StatusCode::from_u16(code).expect("a status");
    (status, body.to_string()).into_response()
}

fn list(script: Script) -> (Result<Listing, ListError>, Vec<(&'static str, usize)>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router =
            Router::new().fallback(answer).with_state(std::sync::Arc::new(Mutex::new(script)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut config = Config::new(url.parse().expect("a URL"));
        config.default_retry = false;
        let client = Client::try_from(config).expect("a client");
        let mut told = Vec::new();
        let listing = list_all(&client, |kind, count| told.push((kind, count))).await;
        (listing, told)
    })
}

fn page(names: &[&str], next: &str) -> Value {
    let items: Vec<Value> =
        names.iter().map(|name| json!({ "metadata": { "name": name } })).collect();
    json!({ "metadata": { "resourceVersion": "1", "continue": next }, "items": items })
}

fn failure(code: u16, message: &str) -> Value {
    json!({ "kind": "Status", "status": "Failure", "message": message, "code": code })
}

fn keys(listing: &Listing) -> Vec<String> {
    listing.objects.iter().map(|object| format!("{} {}", object.kind(), object.key())).collect()
}

#[test]
fn pages_are_joined_and_progress_is_reported() {
    let script = vec![
        ("/nodes?&limit=500", 200, page(&["a", "b"], "more")),
        ("/nodes?&limit=500&continue=more", 200, page(&["c"], "")),
    ];
    let (listing, told) = list(script);
    let listing = listing.expect("all is well");
    assert_eq!(keys(&listing), ["Node a", "Node b", "Node c"]);
    assert_eq!(listing.notes, [""; 0]);
    let nodes: Vec<_> = told.iter().filter(|(kind, _)| *kind == "Node").collect();
    assert_eq!(nodes, [&("Node", 2), &("Node", 3)]);
    assert_eq!(told.len(), 12, "progress is reported for every kind");
}

#[test]
fn an_expired_list_restarts_and_finally_reads_without_pages() {
    let gone = || ("&continue=more", 410, failure(410, "too old"));
    let start = |names| ("/nodes?&limit=500", 200, page(names, "more"));
    let script = vec![
        start(&["a", "old"]),
        gone(),
        start(&["a"]),
        ("&continue=more", 200, page(&["b"], "")),
    ];
    assert_eq!(keys(&list(script).0.expect("it begins again")), ["Node a", "Node b"]);
    let script = vec![
        start(&["a"]),
        gone(),
        start(&["a"]),
        gone(),
        start(&["a"]),
        gone(),
        ("/nodes?", 200, page(&["a", "b"], "")),
    ];
    assert_eq!(keys(&list(script).0.expect("one piece")), ["Node a", "Node b"]);
}

#[test]
fn unreadable_objects_do_not_affect_others() {
    let groups = json!({ "items": [
        { "metadata": { "name": "good", "namespace": "x" }, "spec": { "minMember": 2 } },
        { "metadata": { "name": "bare", "namespace": "x" } },
        { "metadata": { "name": "bad", "namespace": "x" }, "spec": { "minMember": "many" } },
    ] });
    let script = vec![
        ("/podgroups?&limit=500", 200, groups),
        ("/hypernodes?&limit=500", 404, json!("404 page not found")),
    ];
    let listing = list(script).0.expect("the rest is fine");
    assert_eq!(keys(&listing), ["PodGroup x/good", "PodGroup x/bare"]);
    assert_eq!(
        listing.notes,
        ["the cluster has no HyperNode objects: hypernodes.topology.volcano.sh is not installed"]
    );
    assert_eq!(
        listing.warnings,
        [
            "PodGroup x/bad can't be read and is left out: invalid type: string \"many\", expected i32",
        ]
    );
}

#[track_caller]
fn fails(script: Script, message: &str) {
    assert_eq!(list(script).0.expect_err("it must fail").to_string(), message);
}

#[test]
fn all_missing_permissions_are_named_at_once() {
    let script = vec![
        ("/queues?&limit=500", 403, failure(403, "User \"eve\" cannot list resource \"queues\"")),
        ("/pods?&limit=500", 403, failure(403, "User \"eve\" cannot list resource \"pods\"")),
    ];
    fails(
        script,
        "the cluster may not be read with these credentials; they need the verb list, in all namespaces, for \
         queues.scheduling.volcano.sh, pods: User \"eve\" cannot list resource \"queues\"",
    );
}

#[test]
fn bad_servers_and_expired_credentials_have_different_errors() {
    let nodes = "/nodes?&limit=500";
    fails(
        vec![(nodes, 401, failure(401, "Unauthorized"))],
        "the API server doesn't accept these credentials (have they expired?): Unauthorized",
    );
    fails(vec![(nodes, 404, json!("not here"))], "listing nodes: \"not here\" (404)");
    fails(
        vec![(nodes, 200, json!("hello"))],
        "listing nodes: this is no answer of a Kubernetes API server: invalid type: string \"hello\", expected \
         struct Page at line 1 column 7",
    );
}

#[test]
fn a_request_to_a_busy_server_is_repeated() {
    let script = vec![
        ("/nodes?&limit=500", 429, failure(429, "too many requests")),
        ("/nodes?&limit=500", 200, page(&["a"], "")),
    ];
    assert_eq!(keys(&list(script).0.expect("the second time")), ["Node a"]);
}
