//! What reaches the thread that owns the engine.

use muster_api::kinds::Kind;
use muster_engine::Event;
use muster_engine::config::Config;
use serde_json::Value;
use tokio::sync::oneshot;

pub enum News {
    Event(Event),
    /// All objects of a kind have been read.
    InSync(Kind),
    /// We hold the lease: from now on we decide.
    Lead,
    /// The configuration file has changed.
    Config {
        name: String,
        text: String,
        config: Box<Config>,
    },
    /// Why is this gang in its state? No answer if there is no gang of that name.
    Ask {
        gang: String,
        answer: oneshot::Sender<Option<Value>>,
    },
    /// Make no more decisions.
    Stop,
}
