//! What a gang lacks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::base::ids::{NodeId, PodId, ResourceId, ShapeId};
use crate::base::parts_per_million;
use crate::base::resources::PODS;
use crate::eviction::domain_candidates::Victims;
use crate::eviction::search::Search;
use crate::model::Cluster;
use crate::model::gangs::missing::required;
use crate::model::shapes::{shapes, size_of};
use crate::policy::bundle::{Bundle, BundleKind, Needed};

/// What a gang lacks.
pub struct Need {
    /// The pods to place, in the order of placement.
    pub pods: Vec<PodId>,
    /// How many pods of each shape, the largest first.
    pub shapes: Vec<(ShapeId, u32)>,
    /// What they request in sum.
    pub wanted: Needed,
}

impl Need {
    /// What these nodes will have too little of, in sum.
    pub fn lacks(&self, cluster: &Cluster, nodes: &[NodeId]) -> Needed {
        let mut lacks = self.wanted.clone();
        for (resource, lack) in &mut lacks {
            *lack -= nodes
                .iter()
                .map(|&node| cluster.nodes.future_idle(*resource, node).max(0))
                .sum::<i64>();
        }
        lacks.retain(|&(_, lack)| lack > 0);
        lacks
    }

    /// An amount relative to all that is wanted of the resource, in parts per million: so amounts
    /// of different resources can be added and domains compared.
    pub fn weigh(&self, resource: ResourceId, amount: i64) -> i64 {
        let wanted = self.wanted.iter().find(|(of, _)| *of == resource);
        wanted.map_or(0, |&(_, wanted)| parts_per_million::share(amount, wanted))
    }

    /// What is lost of the needed resources with a bundle: all that the gang held, if it breaks.
    pub fn loss(&self, cluster: &Cluster, victims: &Victims, bundle: &Bundle) -> i64 {
        let gang = &cluster.gangs[bundle.gang];
        let has = |resource| match bundle.kind {
            BundleKind::Whole => gang.held.get(resource) + gang.leaving.get(resource),
            BundleKind::Safe => {
                let of_pod = |&pod: &PodId| cluster.request_of(cluster.pods.shape[pod], resource);
                bundle.pods.iter().map(of_pod).sum()
            }
        };
        victims.needed.iter().map(|&(resource, _)| self.weigh(resource, has(resource))).sum()
    }
}

impl Search<'_> {
    pub fn need(&self, cluster: &Cluster) -> Need {
        let pods = required(cluster, self.placement.pods, self.placement.missing);
        let mut shapes = shapes(cluster, &pods);
        // Shapes of equal size stay in the order of placement.
        let first = |shape: ShapeId| pods.iter().position(|&pod| cluster.pods.shape[pod] == shape);
        shapes.sort_by_cached_key(|&(shape, _)| (Reverse(size_of(cluster, shape)), first(shape)));
        let mut sums: BTreeMap<ResourceId, i64> = BTreeMap::new();
        for &(shape, count) in &shapes {
            for (resource, amount) in cluster.shapes[shape].request.iter() {
                *sums.entry(resource).or_default() += amount * i64::from(count);
            }
        }
        let wanted =
            sums.into_iter().filter(|&(resource, amount)| resource != PODS && amount > 0).collect();
        Need { pods, shapes, wanted }
    }
}
