//! Muster on a Kubernetes API server: watches become events, plans become writes.
//!
//! ```no_run
//! use muster_kube::{Options, run};
//!
//! async fn schedule(options: Options) {
//!     if let Err(error) = run(options).await {
//!         eprintln!("error: {error}");
//!     }
//! }
//! ```

mod client;
mod clock;
mod debug_page;
mod decide;
mod decision_log;
mod lease;
mod listing;
pub mod logging;
mod metrics;
mod news;
mod page;
mod podgroup_status;
mod report;
mod scheduler;
mod server;
mod usage;
mod watch;
mod writes;

pub use client::{Address, ConnectError};
pub use lease::LeaseOptions;
pub use listing::{ListError, Listing, list_all};
pub use scheduler::{Options, RunError, run};
