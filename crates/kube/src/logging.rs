//! Structured logs on standard error, as text or JSON. The level can be changed while the scheduler
//! runs. It is that of our own messages: libraries only warn, except at `trace`.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// The beginning of the names of our own crates.
const OURS: &str = "muster";
/// Warns for each connection that the server's certificate is not checked. We warn once.
const CERTIFICATES: &str = "kube_client::client::tls";

/// Changes the log level.
#[derive(Clone)]
pub struct LogLevel(reload::Handle<Targets, Registry>);

impl LogLevel {
    pub fn set(&self, level: &str) -> Result<(), LevelError> {
        Ok(self.0.reload(targets(parse_level(level)?))?)
    }

    pub fn get(&self) -> String {
        self.0.with_current(|targets| ours(targets).to_string()).unwrap_or_default()
    }
}

/// Below `trace`, what libraries say of each request would drown the decisions.
fn targets(level: LevelFilter) -> Targets {
    let targets = Targets::new().with_target(OURS, level);
    match level {
        LevelFilter::TRACE => targets.with_default(level),
        _ => targets
            .with_default(level.min(LevelFilter::WARN))
            .with_target(CERTIFICATES, LevelFilter::OFF),
    }
}

fn ours(targets: &Targets) -> LevelFilter {
    let found = targets.iter().find(|(target, _)| *target == OURS);
    found.map_or(LevelFilter::OFF, |(_, level)| level)
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
    let (filter, handle) = reload::Layer::new(targets(level));
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

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn libraries_only_warn_except_at_trace() {
        let says = |level, target, of| targets(level).would_enable(target, &of);
        let http = "kube_client::client::builder";
        for level in [LevelFilter::INFO, LevelFilter::DEBUG] {
            assert!(!says(level, http, Level::INFO), "{level}");
            assert!(says(level, http, Level::WARN), "{level}");
            assert!(!says(level, "kube_client::client::tls::rustls_tls", Level::WARN), "{level}");
        }
        assert!(!says(LevelFilter::ERROR, http, Level::WARN));
        assert!(says(LevelFilter::TRACE, http, Level::TRACE));
        assert!(says(LevelFilter::DEBUG, "muster_kube::decide", Level::DEBUG));
        assert!(!says(LevelFilter::INFO, "muster_kube::decide", Level::DEBUG));
    }

    #[test]
    fn the_level_is_that_of_our_own_messages() {
        for level in [LevelFilter::ERROR, LevelFilter::INFO, LevelFilter::DEBUG] {
            assert_eq!(ours(&targets(level)), level);
        }
    }
}
