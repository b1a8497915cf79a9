//! As much of an API server as a list needs: it answers each path with the objects that it was
//! given, and all other paths with 404.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};

pub struct ApiServer {
    address: SocketAddr,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Paths that every cluster has, even if they are empty.
const CORE: [&str; 8] = [
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/pods",
    "/api/v1/resourcequotas",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
];

impl ApiServer {
    pub fn start<const N: usize>(lists: [(&'static str, Value); N]) -> ApiServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let stops = Arc::new(AtomicBool::new(false));
        let mut answers: HashMap<&str, Value> =
            CORE.iter().map(|path| (*path, json!([]))).collect();
        answers.extend(lists);
        let stop = stops.clone();
        let serve = move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let _ = stream.and_then(|stream| answer(stream, &answers));
            }
        };
        ApiServer { address, stops, thread: Some(std::thread::spawn(serve)) }
    }

    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters: [{{name: test, cluster: {{server: \"http://{}\"}}}}]\n\
             contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\nusers: [{{name: test, user: {{}}}}]\n",
            self.address
        )
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// One request per connection.
fn answer(mut stream: TcpStream, answers: &HashMap<&str, Value>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    // The headers, up to an empty line.
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split([' ', '?']).nth(1).unwrap_or_default();
    let (status, body) = match answers.get(path) {
        Some(items) => ("200 OK", json!({ "metadata": {}, "items": items }).to_string()),
        None => ("404 Not Found", "404 page not found".to_owned()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}
