//! All that an engine remembers, to be kept elsewhere: an engine that is restored from it decides
//! as the first would have. What is not in it (rankings, what plugins have worked out) can be found
//! again and decides nothing.

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::engine::Engine;
use crate::model::Cluster;
use crate::placement::rankings::Rankings;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    cluster: Cluster,
    rests: Option<(u64, Option<Time>)>,
}

impl Checkpoint {
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

impl Engine {
    /// A copy, so that it can be written while the engine goes on.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { cluster: self.cluster.clone(), rests: self.rests }
    }

    pub fn restore(config: Config, checkpoint: Checkpoint) -> Engine {
        let Checkpoint { mut cluster, rests } = checkpoint;
        cluster.share_devices(config.policy.sharing());
        cluster.recount_foreign();
        cluster.recount_shapes();
        Engine { cluster, config, rankings: Rankings::default(), rests }
    }
}
