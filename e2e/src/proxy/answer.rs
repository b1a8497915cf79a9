//! The proxy's own answers, in the form of the API server's, and streams that break.

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::rule::Ask;

pub fn refusal(code: u16, ask: &Ask) -> Response {
    let reason = match code {
        403 => "Forbidden",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Unknown",
    };
    let busy = matches!(code, 429 | 503);
    let mut body =
        status(code, reason, &format!("the proxy answers {code} to {} {}", ask.method, ask.path));
    body["details"] = json!({ "retryAfterSeconds": u32::from(busy) });
    let code = StatusCode::from_u16(code).expect("a code of HTTP");
    let mut answer = (code, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response();
    if busy {
        answer.headers_mut().insert(RETRY_AFTER, 1.into());
    }
    answer
}

/// The answer of an API server whose history is compacted: an event in the stream.
pub fn expired() -> Response {
    let status = status(410, "Expired", "too old resource version, says the proxy");
    let line = format!("{}\n", json!({ "type": "ERROR", "object": status }));
    ([(CONTENT_TYPE, "application/json")], line).into_response()
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    })
}

/// The lines of a watch until all watches are cut, or until `events` have passed.
pub fn watch_stream(
    body: kube::client::Body,
    left: Option<usize>,
    cuts: watch::Receiver<u64>,
) -> Body {
    let lines = Lines { frames: Body::new(body).into_data_stream(), left, cuts };
    Body::from_stream(futures::stream::unfold(lines, Lines::next))
}

struct Lines {
    frames: BodyDataStream,
    left: Option<usize>,
    cuts: watch::Receiver<u64>,
}

impl Lines {
    async fn next(mut self) -> Option<(std::io::Result<Bytes>, Lines)> {
        let broken = || std::io::Error::other("the proxy breaks a watch");
        if self.left == Some(0) {
            return Some((Err(broken()), self));
        }
        let next = tokio::select! {
            next = self.frames.next() => next?,
            _ = self.cuts.changed() => {
                self.left = Some(0);
                return Some((Err(broken()), self));
            }
        };
        let mut frame = next.map_err(std::io::Error::other);
        if let (Ok(bytes), Some(left)) = (&mut frame, &mut self.left) {
            let ends =
                bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
            let ends: Vec<usize> = ends.take(*left).collect();
            *left -= ends.len();
            if *left == 0 {
                bytes.truncate(ends.last().copied().unwrap_or_default());
            }
        }
        Some((frame, self))
    }
}
