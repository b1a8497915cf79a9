//! What queues have used, written down. One that doesn't arrive is not tried again: the next one
//! says more.

use std::sync::Arc;

use tracing::warn;

use super::{Refusal, Wire};
use crate::usage;

#[derive(Clone, Debug)]
pub struct Usage {
    /// The record as it is kept.
    pub text: String,
}

impl Usage {
    pub async fn send(self, wire: Arc<Wire>) {
        let [change, create] = usage::requests(&wire.namespace, &self.text);
        let written = match wire.send(change).await {
            Err(Refusal::Answer { code: 404, .. }) => wire.send(create).await,
            other => other,
        };
        match written {
            Ok(_) => wire.metrics.wrote("usage"),
            Err(Refusal::Deposed) => {}
            Err(refusal) => {
                wire.metrics.write_error("usage", refusal.cause());
                warn!(cause = %refusal, "what queues have used could not be written down");
            }
        }
    }
}
