//! Everything that an engine remembers, for storage: an engine that is restored from it decides as
//! the original would have. What is not in it (rankings, caches of plugins) can be computed again
//! and decides nothing.

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::decision::decisions::Decisions;
use crate::engine::{Engine, old_checkpoint};
use crate::model::Cluster;
use crate::order::failed_searches;
use crate::placement::rankings::Rankings;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Checkpoint {
    cluster: Cluster,
    rests: Option<(u64, Option<Time>)>,
    failed_searches: failed_searches::Memory,
}

/// A checkpoint as it may be stored.
#[derive(Deserialize)]
struct Stored {
    /// With the failed searches, where an older version wrote it.
    #[serde(deserialize_with = "old_checkpoint::read")]
    cluster: (Cluster, failed_searches::Memory),
    rests: Option<(u64, Option<Time>)>,
    failed_searches: Option<failed_searches::Memory>,
}

impl From<Stored> for Checkpoint {
    fn from(stored: Stored) -> Checkpoint {
        let Stored { cluster: (cluster, old), rests, failed_searches } = stored;
        Checkpoint { cluster, rests, failed_searches: failed_searches.unwrap_or(old) }
    }
}

impl Checkpoint {
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

impl Engine {
    /// A copy, so that it can be written while the engine continues.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            cluster: self.cluster.clone(),
            rests: self.rests,
            failed_searches: self.failed_searches.clone(),
        }
    }

    pub fn restore(config: Config, checkpoint: Checkpoint) -> Engine {
        let Checkpoint { mut cluster, rests, failed_searches } = checkpoint;
        cluster.share_devices(config.policy.sharing());
        cluster.recount_foreign();
        cluster.recount_shapes();
        let (rankings, decisions) = (Rankings::default(), Decisions::default());
        Engine { cluster, config, rankings, failed_searches, decisions, rests }
    }
}
