//! What there is to say about pods, gangs, queues and the network, as data: why something waits, what
//! would help it, who could make room for it, what each queue should have, what is wrong with
//! HyperNodes. The engine is asked and nothing is decided here; words for a terminal and pictures
//! are made elsewhere.

mod claims;
mod domains;
mod explanation;
mod fair_shares;
mod gang_claims;
mod lines;
mod promises;
mod room;
mod target;
pub mod topology;

pub use claims::{ClaimFacts, NodeTrial};
pub use domains::ClosestDomain;
pub use explanation::{
    Explanation, GangFacts, Look, NODES_SHOWN, PodFacts, QueueFacts, Subject, TakesBack, explain,
};
pub use fair_shares::{
    DivisionSteps, FairShares, QueueShare, ResourceShares, Standing, SurplusPart, SurplusRound,
    fair_shares,
};
pub use gang_claims::{BundleFacts, DomainClaim, PassFacts};
pub use lines::{
    BarLine, GangLine, NodesLine, QueueLine, ReasonLine, gang_line, queue_line, reason_line,
};
pub use promises::{FindPod, PromiseFacts};
pub use target::{Target, find};
