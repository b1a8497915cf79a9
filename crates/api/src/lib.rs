//! Kubernetes and Volcano objects as Muster reads them. No I/O, no scheduling.
//!
//! ```
//! use muster_api::Quantity;
//! use muster_api::manifest::{self, Found, Object};
//!
//! let pod = "
//! kind: Pod
//! apiVersion: v1
//! metadata: {name: trainer}
//! spec:
//!   containers:
//!   - resources: {requests: {memory: 1536Mi}}
//! ";
//! let mut memory = None;
//! manifest::read("pod.yaml", pod.as_bytes(), &mut |found| {
//!     if let Found::Object { object: Object::Pod(pod), .. } = found {
//!         memory = muster_api::pod_requests(&pod.spec).get("memory").copied();
//!     }
//! });
//! assert_eq!(memory.map(Quantity::value), Some(1_610_612_736));
//! ```

mod anonymise;
pub mod cards;
pub mod core;
mod crds;
pub mod keys;
pub mod kinds;
pub mod manifest;
mod members;
mod plugin_args;
mod portion;
mod quantity;
mod requests;
mod reserved;
#[cfg(feature = "schema")]
mod schema;
mod selector;
pub mod simulated;
mod termination;
mod time;
mod validate;

pub use anonymise::{Class, Pseudonyms, anonymise};
pub use crds::{CRDS, crds};
pub use kinds::volcano::*;
pub use members::Matcher;
pub use muster_goregex::GoRegexError;
pub use plugin_args::{JOB_PLUGINS, PluginArgs};
pub use portion::{Portion, PortionError};
pub use quantity::{Quantity, QuantityError, ResourceList};
pub use requests::{container_requests, pod_requests};
pub use reserved::{Reserved, ReservedError};
pub use termination::{Termination, TerminationError};
pub use time::{DurationError, Time, TimeError, parse_duration};
pub use validate::{Problem, is_dns_subdomain, validate_hyper_node};
