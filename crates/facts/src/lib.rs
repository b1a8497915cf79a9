//! Everything about pods, gangs, queues and the network that a user may ask, as data: why something
//! waits, what would help it, how room could be made for it, what each queue should have, what is
//! wrong with HyperNodes. The engine is asked and nothing is decided here; words for a terminal and
//! pictures are made elsewhere.
//!
//! ```
//! use muster_api::Time;
//! use muster_engine::{Engine, config::Config};
//! use muster_facts::{Look, NODES_SHOWN, Subject, explain, find};
//!
//! let mut engine = Engine::new(Config::builtin(), vec!["volcano".to_owned()]);
//! let now = Time(0);
//! engine.cycle(now);
//! let target = find(engine.cluster(), "queue/default").expect("the default queue");
//! let look = Look { now, nodes: NODES_SHOWN, find_pod: &|_| None };
//! let explanation = explain(&mut engine, target, &look);
//! assert!(matches!(explanation.subject, Subject::Queue(_)));
//! ```

mod advice;
mod amounts;
mod domains;
mod explanation;
mod fair_shares;
mod gang_searches;
mod gangs;
mod lines;
mod nominations;
mod pods;
mod queues;
mod room;
mod searches;
mod target;
pub mod topology;

pub use domains::ClosestDomain;
pub use explanation::{Explanation, Look, NODES_SHOWN, Subject, explain};
pub use fair_shares::{
    DivisionSteps, FairShares, QueueShare, ResourceShares, Standing, SurplusPart, SurplusRound,
    fair_shares,
};
pub use gang_searches::{BundleFacts, DomainSearch, PassFacts};
pub use gangs::GangFacts;
pub use lines::{
    BarLine, GangLine, NodesLine, QueueLine, ReasonLine, ShareOf, gang_line, queue_line,
    reason_line,
};
pub use nominations::{FindPod, NominationFacts};
pub use pods::PodFacts;
pub use queues::{QueueFacts, TakesBack};
pub use searches::{NodeTrial, SearchFacts};
pub use target::{Target, find, within};
