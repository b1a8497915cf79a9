//! Structured logs on standard error, as text or JSON. The level can be changed while the scheduler
//! runs.

use std::io::IsTerminal;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Changes the log level.
#[derive(Clone)]
pub struct LogLevel(reload::Handle<LevelFilter, Registry>);

impl LogLevel {
    pub fn set(&self, level: &str) -> Result<(), LevelError> {
        Ok(self.0.reload(parse_level(level)?)?)
    }

    pub fn get(&self) -> String {
        self.0.with_current(|level| level.to_string()).unwrap_or_default()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LevelError {
    #[error("\"{0}\" is not a level: write error, warn, info, debug or trace")]
    Unknown(String),
    #[error(transparent)]
    Reload(#[from] reload::Error),
}

pub fn parse_level(text: &str) -> Result<LevelFilter, LevelError> {
    match text.trim() {
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        other => Err(LevelError::Unknown(other.to_owned())),
    }
}

/// Sends the logs of this process to standard error.
pub fn init(format: LogFormat, level: LevelFilter) -> LogLevel {
    let (filter, handle) = reload::Layer::new(level);
    let writer = std::io::stderr;
    let lines = match format {
        LogFormat::Text => fmt::layer()
            .with_writer(writer)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .boxed(),
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_writer(writer)
            .boxed(),
    };
    // A second call, in tests, keeps the writer of the first.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    LogLevel(handle)
}
