//! Writes the past usage of queues. A failed write is not tried again: the next one contains more.

use std::sync::Arc;

use tracing::warn;

use super::{Refusal, WriteContext};
use crate::usage;

#[derive(Clone, Debug)]
pub struct Usage {
    /// The record as it is stored.
    pub text: String,
}

impl Usage {
    pub async fn send(self, context: Arc<WriteContext>) {
        let [change, create] = usage::requests(&context.namespace, &self.text);
        let written = match context.send(change).await {
            Err(Refusal::Answer { code: 404, .. }) => context.send(create).await,
            other => other,
        };
        match written {
            Ok(_) => context.metrics.wrote("usage"),
            Err(Refusal::Deposed) => {}
            Err(refusal) => {
                context.metrics.write_error("usage", refusal.cause());
                warn!(cause = %refusal, "the usage of queues could not be stored");
            }
        }
    }
}
