//! Connections that are open before they are needed. Each request under way has a connection of its
//! own, and opening one takes longer than a bind.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use http::Request;
use tracing::debug;

use super::{BINDS, LIMIT, WriteContext};

/// API servers close a connection after 90 s without a request, and so do we.
const PAUSE: Duration = Duration::from_secs(45);

/// Keeps as many connections open as binds may be under way, until we no longer lead.
pub async fn keep_open(context: Arc<WriteContext>) {
    while context.leadership.holds() {
        let asked = join_all((0..BINDS).map(|_| ask(&context))).await;
        let failed = asked.iter().filter(|answered| !**answered).count();
        if failed > 0 {
            debug!(failed, "some connections could not be opened in advance");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A request that costs the API server nothing.
async fn ask(context: &WriteContext) -> bool {
    let request = Request::get("/version").body(Vec::new()).expect("a constant address");
    let answer = tokio::time::timeout(LIMIT, context.client.request_text(request)).await;
    matches!(answer, Ok(Ok(_)))
}
