//! `muster scheduler`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use muster_api::keys::SCHEDULER_NAMES;
use muster_api::{DurationError, parse_duration};
use muster_journal::Limits;
use muster_kube::logging::{self, LevelError, LogFormat};
use muster_kube::{Address, LeaseOptions, Options, RunError};
use thiserror::Error;

use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "Examples:
  muster scheduler --kubeconfig ~/.kube/config --leader-elect=false
  muster scheduler --config scheduler.conf --journal /var/lib/muster/journal
  curl localhost:8080/readyz?verbose
  curl localhost:8080/debug/gangs/default/ring

See docs/install.md and docs/operate.md.")]
pub struct SchedulerArgs {
    /// The kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The scheduler's configuration, in Volcano's format; read again when it changes [default:
    /// built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Pods with this schedulerName are ours; may be given several times
    #[arg(long, value_name = "NAME", default_values = SCHEDULER_NAMES)]
    scheduler_name: Vec<String>,
    /// The least time between two cycles
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = duration)]
    schedule_period: Duration,
    /// Where /healthz, /readyz and /metrics are served
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    /// Whether to elect a leader; without an election there must be one replica only
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// How long other replicas wait after the leader's last renewal
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    leader_elect_lease_duration: Duration,
    /// How long a leader that can't renew its lease continues; less than the lease's duration
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    leader_elect_renew_deadline: Duration,
    /// How often to renew the lease or try to acquire it
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    leader_elect_retry_period: Duration,
    /// The namespace of the lease
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    leader_elect_namespace: String,
    /// The name of the lease
    #[arg(long, value_name = "NAME", default_value = "muster")]
    leader_elect_name: String,
    /// Our name in the lease and in events [default: the host name and a number]
    #[arg(long, value_name = "NAME")]
    leader_elect_identity: Option<String>,
    /// Record every event and plan in this folder, so that `muster replay` can repeat all decisions
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// How much of the disk the journal may take, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, requires = "journal", value_parser = clap::value_parser!(u64).range(16..))]
    journal_size: u64,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    log_format: Format,
    /// error, warn, info, debug or trace; can be changed while running with PUT /debug/log-level
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: String,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Error)]
enum SpanError {
    #[error(transparent)]
    Unreadable(#[from] DurationError),
    #[error("must be more than 0, for example 20ms")]
    NotAboveZero,
}

fn duration(text: &str) -> Result<Duration, SpanError> {
    match u64::try_from(parse_duration(text)?) {
        Ok(milliseconds) if milliseconds > 0 => Ok(Duration::from_millis(milliseconds)),
        _ => Err(SpanError::NotAboveZero),
    }
}

fn level(text: &str) -> Result<String, LevelError> {
    logging::parse_level(text).map(|_| text.to_owned())
}

pub fn run(args: SchedulerArgs) -> Result<(), Failure> {
    let lease = lease(&args)?;
    let level = logging::parse_level(&args.log_level).map_err(Failure::input)?;
    let format = match args.log_format {
        Format::Text => LogFormat::Text,
        Format::Json => LogFormat::Json,
    };
    let options = Options {
        address: Address { kubeconfig: args.kubeconfig, context: args.context },
        scheduler_names: args.scheduler_name,
        period: args.schedule_period,
        listen: args.listen,
        config: args.config,
        lease,
        journal: args.journal.map(|folder| (folder, limits(args.journal_size))),
        log_level: logging::init(format, level),
    };
    // One thread for all I/O; the engine has its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(muster_kube::run(options)).map_err(|error| match error {
        RunError::Config(problems) => Failure::Input(problems),
        other => Failure::Work(other.to_string()),
    })
}

/// A sixteenth of the limit per segment, so that little is lost when the oldest one is deleted.
fn limits(mebibytes: u64) -> Limits {
    const SEGMENTS: u64 = 16;
    Limits { segment_bytes: (mebibytes << 20) / SEGMENTS, segments: SEGMENTS as usize }
}

fn lease(args: &SchedulerArgs) -> Result<LeaseOptions, Failure> {
    let (duration, deadline) = (args.leader_elect_lease_duration, args.leader_elect_renew_deadline);
    if args.leader_elect && (deadline >= duration || args.leader_elect_retry_period >= deadline) {
        let rule = "--leader-elect-retry-period must be less than --leader-elect-renew-deadline, and that less than --leader-elect-lease-duration";
        return Err(Failure::input(rule));
    }
    let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let own = || format!("{}_{}", host().trim(), std::process::id());
    Ok(LeaseOptions {
        elect: args.leader_elect,
        namespace: args.leader_elect_namespace.clone(),
        name: args.leader_elect_name.clone(),
        identity: args.leader_elect_identity.clone().unwrap_or_else(own),
        duration,
        renew_deadline: deadline,
        retry_period: args.leader_elect_retry_period,
    })
}
