//! Pods that no rule can tell apart share a shape, so that truths about nodes are found out once
//! for all of them.

mod bonds;

use std::hash::{Hash, Hasher};

use muster_api::core::{Container, NodeAffinity, PodSpec, Port};
use muster_api::pod_requests;
use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};

use crate::base::ids::{GangId, PodId, QueueId, ResourceId, ShapeId, SpaceId, Table};
use crate::base::resources::{Amounts, PODS, Share, Sparse};
use crate::model::Cluster;
use crate::model::devices::By;
use crate::model::devices::demand::{CardSelector, Demand};
use crate::model::gangs::Origin;
use crate::model::selectors::Tags;
use crate::model::terms::Bonds;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// Tells this shape from an earlier one in the same slot.
    pub born: u64,
    pub space: SpaceId,
    /// Labels that some rule names.
    pub tags: Tags,
    /// Set where the queue restricts its pods to groups of nodes.
    pub queue: Option<QueueId>,
    /// Its place may be taken back, so that it may go to nodes that serve others at times.
    pub revocable: bool,
    /// The part of the spec that decides where a pod may run.
    pub spec: PodSpec,
    /// What it takes of a node, one pod included; scarce resources first.
    pub request: Sparse,
    /// Requests nothing but its place.
    pub best_effort: bool,
    pub ports: Box<[Port]>,
    /// Persistent volume claims as `namespace/name`.
    pub claims: Box<[String]>,
    pub bonds: Bonds,
    /// Which cards it wants, if it says so.
    #[serde(alias = "likes")]
    card_selector: Option<CardSelector>,
    /// What it wants of cards that pods share.
    pub devices: Option<Box<Demand>>,
}

/// What tells pods apart besides labels and spec.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Standing {
    pub queue: Option<QueueId>,
    pub revocable: bool,
}

impl Shape {
    fn standing(&self) -> Standing {
        Standing { queue: self.queue, revocable: self.revocable }
    }

    /// Uses dynamic resource allocation, which isn't scheduled here.
    pub fn uses_claims(&self) -> bool {
        !self.spec.resource_claims.is_empty()
    }

    /// Asks the same of a node, whatever its labels and rules about other pods.
    pub fn asks_like(&self, other: &Shape) -> bool {
        let (space, tags) = (other.space, &other.tags);
        let card_selector = self.card_selector.as_ref();
        let standing = self.standing();
        Identity { space, tags, standing, spec: &self.spec, card_selector, images: false }.is(other)
    }

    /// Makes the same of what nodes say of themselves. All that an answer with `Reach::Facts` looks
    /// at is compared here.
    pub fn sees_like(&self, other: &Shape) -> bool {
        let (a, b) = (&self.spec, &other.spec);
        a.node_selector == b.node_selector
            && a.tolerations == b.tolerations
            && node_affinity(a) == node_affinity(b)
            && a.containers.iter().map(|c| &c.image).eq(b.containers.iter().map(|c| &c.image))
            && self.claims == other.claims
            && self.standing() == other.standing()
    }

    /// Neither selects nodes nor needs volumes: any node without taints will do.
    pub fn takes_any_node(&self) -> bool {
        self.spec.node_selector.is_empty()
            && node_affinity(&self.spec).is_none()
            && self.claims.is_empty()
    }
}

fn node_affinity(spec: &PodSpec) -> Option<&NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Shapes {
    rows: Table<ShapeId, Shape>,
    by_hash: FxHashMap<u64, Vec<ShapeId>>,
    free: Vec<ShapeId>,
    /// How many pods have each.
    #[serde(skip)]
    pods: Table<ShapeId, u32>,
    /// A shape with rules about other pods has lost its last pod.
    #[serde(skip)]
    rules_stale: bool,
    born: u64,
    /// How many were left after the last sweep.
    kept: usize,
}

impl Shapes {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Finds out again what pods want of cards, after the way to share them has changed.
    pub(super) fn demand_anew(&mut self, by: Option<By>) {
        for shape in self.rows.rows_mut() {
            shape.devices =
                by.and_then(|by| Demand::of(by, &shape.spec, shape.card_selector.as_ref()));
        }
    }

    fn find(&self, hash: u64, identity: &Identity) -> Option<ShapeId> {
        let found = self.by_hash.get(&hash)?;
        found.iter().copied().find(|&id| identity.is(&self.rows[id]))
    }

    /// A pod has this shape now.
    pub(super) fn join(&mut self, shape: ShapeId) {
        self.pods.grow(self.rows.len(), 0);
        self.pods[shape] += 1;
    }

    /// A pod has had this shape.
    pub(super) fn leave(&mut self, shape: ShapeId) {
        self.pods[shape] -= 1;
        self.rules_stale |= self.pods[shape] == 0 && !self.rows[shape].bonds.is_empty();
    }

    fn is_used(&self, shape: ShapeId) -> bool {
        self.pods.rows().get(usize::from(shape)).is_some_and(|&pods| pods > 0)
    }

    /// Whether the counts of pods are those of these shapes.
    pub(super) fn counts_hold(&self, pods: impl Iterator<Item = ShapeId>) -> bool {
        let mut counted: Table<ShapeId, u32> = Table::default();
        counted.grow(self.rows.len(), 0);
        pods.for_each(|shape| counted[shape] += 1);
        let mut kept = self.pods.clone();
        kept.grow(self.rows.len(), 0);
        kept.rows() == counted.rows()
    }

    fn insert(&mut self, hash: u64, mut shape: Shape) -> ShapeId {
        self.born += 1;
        shape.born = self.born;
        let id = match self.free.pop() {
            Some(id) => {
                self.rows[id] = shape;
                id
            }
            None => self.rows.push(shape),
        };
        self.by_hash.entry(hash).or_default().push(id);
        id
    }

    /// More slots than these, most of them unused, are worth a search for those that can be used
    /// again.
    const MANY: usize = 1024;

    /// Forgets shapes that no pod has any more, now and then, so that a long life doesn't fill the
    /// memory.
    pub(super) fn sweep(&mut self) {
        if self.rows.len() - self.free.len() >= Shapes::MANY.max(2 * self.kept) {
            self.forget_unused();
        }
    }

    fn forget_unused(&mut self) {
        self.pods.grow(self.rows.len(), 0);
        for shapes in self.by_hash.values_mut() {
            shapes.retain(|&shape| {
                let used = self.pods[shape] > 0;
                if !used {
                    self.free.push(shape);
                }
                used
            });
        }
        self.by_hash.retain(|_, shapes| !shapes.is_empty());
        self.free.sort_unstable();
        self.kept = self.rows.len() - self.free.len();
    }
}

impl std::ops::Index<ShapeId> for Shapes {
    type Output = Shape;

    #[inline]
    fn index(&self, id: ShapeId) -> &Shape {
        &self.rows[id]
    }
}

/// What shapes are compared by.
struct Identity<'a> {
    space: SpaceId,
    tags: &'a Tags,
    standing: Standing,
    spec: &'a PodSpec,
    card_selector: Option<&'a CardSelector>,
    /// Nodes say which images they have, so that images make a difference.
    images: bool,
}

impl Identity<'_> {
    fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        let spec = self.spec;
        (self.space, self.tags, self.standing, self.card_selector).hash(&mut hasher);
        for container in spec.containers.iter().chain(&spec.init_containers) {
            (&container.resources, &container.ports, &container.restart_policy).hash(&mut hasher);
        }
        (&spec.overhead, &spec.resources, &spec.node_selector, &spec.affinity, &spec.tolerations)
            .hash(&mut hasher);
        (&spec.topology_spread_constraints, &spec.volumes, &spec.resource_claims).hash(&mut hasher);
        hasher.finish()
    }

    fn is(&self, shape: &Shape) -> bool {
        let same = |a: &Container, b: &Container| {
            a.resources == b.resources
                && a.ports == b.ports
                && a.restart_policy == b.restart_policy
                && (!self.images || a.image == b.image)
        };
        let all_same = |a: &[Container], b: &[Container]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        };
        let (a, b) = (self.spec, &shape.spec);
        self.space == shape.space
            && *self.tags == shape.tags
            && self.standing == shape.standing()
            && self.card_selector == shape.card_selector.as_ref()
            && all_same(&a.containers, &b.containers)
            && all_same(&a.init_containers, &b.init_containers)
            && a.overhead == b.overhead
            && a.resources == b.resources
            && a.node_selector == b.node_selector
            && a.affinity == b.affinity
            && a.tolerations == b.tolerations
            && a.topology_spread_constraints == b.topology_spread_constraints
            && a.volumes == b.volumes
            && a.resource_claims == b.resource_claims
    }
}

impl Cluster {
    /// The shape of a pod with this spec and these labels; `likely` is tried first.
    pub(super) fn shape_of(
        &mut self,
        space: SpaceId,
        tags: &Tags,
        standing: Standing,
        spec: &PodSpec,
        card_selector: Option<&CardSelector>,
        likely: Option<ShapeId>,
    ) -> ShapeId {
        let watched = self.watched_tags(tags);
        let identity = Identity {
            space,
            tags: &watched,
            standing,
            spec,
            card_selector,
            images: self.images_known,
        };
        if let Some(id) = likely.filter(|&id| identity.is(&self.shapes.rows[id])) {
            return id;
        }
        self.shapes
            .find(identity.hash(), &identity)
            .unwrap_or_else(|| self.new_shape(space, tags, standing, spec, card_selector))
    }

    fn watched_tags(&self, tags: &Tags) -> Tags {
        if self.terms.watched.is_empty() {
            return Tags::default();
        }
        tags.iter().copied().filter(|(key, _)| self.terms.watched.contains(key)).collect()
    }

    fn new_shape(
        &mut self,
        space: SpaceId,
        tags: &Tags,
        standing: Standing,
        spec: &PodSpec,
        card_selector: Option<&CardSelector>,
    ) -> ShapeId {
        // Terms first: a rule may name labels that were not worth a difference until now.
        let mut bonds = self.bonds_of(space, tags, spec);
        let watched = self.watched_tags(tags);
        bonds.matches = self.terms.matching(space, &self.spaces[space].tags, &watched);
        let identity = Identity {
            space,
            tags: &watched,
            standing,
            spec,
            card_selector,
            images: self.images_known,
        };
        let hash = identity.hash();
        // A pod like this one may have got its shape while labels came to matter just now.
        if let Some(id) = self.shapes.find(hash, &identity) {
            return id;
        }

        let mut requests = self.dimensions.sparse(&pod_requests(spec), false).0.to_vec();
        let best_effort = requests.is_empty();
        requests.retain(|&(resource, _)| resource != PODS);
        requests.push((PODS, 1));
        self.nodes.widen(self.dimensions.len());
        let ports = spec
            .containers
            .iter()
            .chain(&spec.init_containers)
            .flat_map(|container| &container.ports);
        let mut ports: Vec<Port> = ports.filter(|port| port.host_port > 0).cloned().collect();
        for port in &mut ports {
            if port.protocol.is_empty() {
                port.protocol = "TCP".into();
            }
        }
        ports.sort();
        ports.dedup();
        let namespace = self.names.text(self.spaces[space].name).clone();
        let claims =
            spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        let shape = Shape {
            born: 0,
            space,
            tags: watched,
            queue: standing.queue,
            revocable: standing.revocable,
            spec: PodSpec {
                node_name: None,
                scheduler_name: String::new(),
                priority: None,
                priority_class_name: String::new(),
                preemption_policy: None,
                scheduling_gates: Vec::new(),
                active_deadline_seconds: None,
                termination_grace_period_seconds: None,
                ..spec.clone()
            },
            request: Sparse(requests.into()),
            best_effort,
            ports: ports.into(),
            claims: claims.map(|claim| format!("{namespace}/{}", claim.claim_name)).collect(),
            bonds,
            card_selector: card_selector.cloned(),
            devices: self
                .devices
                .sharing()
                .and_then(|sharing| Demand::of(sharing.by, spec, card_selector)),
        };
        self.shapes.insert(hash, shape)
    }

    /// Gives every pod its shape anew, after labels or queues that were all alike came to matter.
    pub(super) fn reshape(&mut self) {
        let pods: Vec<_> = self.pods.live().collect();
        self.reshape_pods(&pods);
    }

    pub(super) fn reshape_pods(&mut self, pods: &[PodId]) {
        for &pod in pods {
            let old = self.pods.shape[pod];
            let Shape { space, queue, spec, card_selector, .. } = self.shapes.rows[old].clone();
            let fact = &self.pods.fact[pod];
            let standing = match self.pods.gang[pod] {
                Some(gang) => self.standing(Some(gang), fact.protected, fact.revocable),
                None => Standing { queue, ..self.standing(None, fact.protected, fact.revocable) },
            };
            let tags = fact.labels.clone();
            let new =
                self.shape_of(space, &tags, standing, &spec, card_selector.as_ref(), Some(old));
            self.change_shape(pod, new);
        }
    }

    pub(super) fn change_shape(&mut self, pod: PodId, shape: ShapeId) {
        self.shapes.join(shape);
        self.shapes.leave(std::mem::replace(&mut self.pods.shape[pod], shape));
    }

    /// Counts anew how many pods have each shape: no checkpoint says it.
    pub(crate) fn recount_shapes(&mut self) {
        self.shapes.pods = Table::default();
        let pods = &self.pods;
        pods.live().for_each(|pod| self.shapes.join(pods.shape[pod]));
        self.shapes.rules_stale = true;
    }

    /// Forgets rules that no pod carries any more. They split shapes and make pods depend on other
    /// nodes, and a scheduler that starts now never learns of them.
    pub(super) fn forget_rules(&mut self) {
        if !std::mem::take(&mut self.shapes.rules_stale) {
            return;
        }
        let watched = self.terms.watched.len();
        let shapes = self.shapes.rows.iter().filter(|&(id, _)| self.shapes.is_used(id));
        let carried: Vec<&Bonds> = shapes.map(|(_, shape)| &shape.bonds).collect();
        if !self.terms.keep_only(&carried) {
            return;
        }
        // Unused shapes may refer to forgotten rules.
        self.shapes.forget_unused();
        for shape in self.shapes.rows.rows_mut() {
            shape.bonds.matches.retain(|&term| self.terms.is_carried(term));
        }
        if self.terms.watched.len() < watched {
            self.reshape();
            self.shapes.rules_stale = false;
        }
        self.version += 1;
        self.freed += 1;
    }

    /// What a pod's gang and its own word make of it: any "false" keeps its place for good, else
    /// any word gives it up.
    pub(super) fn standing(
        &self,
        gang: Option<GangId>,
        protected: bool,
        revocable: bool,
    ) -> Standing {
        let queue = gang.and_then(|gang| self.picky_queue(self.gangs[gang].queue));
        // A gang of one says nothing but what its pod says.
        let group = gang.map(|gang| &self.gangs[gang]).filter(|gang| gang.origin != Origin::Solo);
        let (kept, given) = group.map_or((false, false), |gang| (gang.protected, gang.revocable));
        Standing { queue, revocable: !protected && !kept && (revocable || given) }
    }

    /// Finds out again which pods match which term, and counts them, after namespaces changed their
    /// labels.
    pub(super) fn recount_terms(&mut self) {
        for node in self.nodes.fact.ids() {
            self.terms.label(node, &self.nodes.fact[node].labels);
        }
        for id in self.shapes.rows.ids() {
            let shape = &self.shapes.rows[id];
            let matches =
                self.terms.matching(shape.space, &self.spaces[shape.space].tags, &shape.tags);
            self.shapes.rows[id].bonds.matches = matches;
        }
        self.terms.clear_counts();
        for pod in self.pods.live() {
            let state = self.pods.state[pod];
            if let Some(node) = state.node() {
                self.terms.tally(&self.shapes.rows[self.pods.shape[pod]].bonds, node, state, 1);
            }
        }
        self.version += 1;
    }

    /// The amount of one resource that pods of a shape take.
    pub fn request_of(&self, shape: ShapeId, resource: ResourceId) -> i64 {
        self.shapes[shape].request.get(resource).unwrap_or(0)
    }
}

/// What a pod of the shape asks for of the cluster, where it asks for most.
pub fn size_of(cluster: &Cluster, shape: ShapeId) -> Share {
    let mut amounts = Amounts::default();
    amounts.add_all(&cluster.shapes[shape].request, 1);
    Share::dominant(&amounts, |resource| cluster.total.get(resource))
}

/// The shape of all of them, if it is one and no rule between pods concerns it.
pub fn one_shape(cluster: &Cluster, pods: &[PodId]) -> Option<ShapeId> {
    let shape = cluster.pods.shape[*pods.first()?];
    let same = pods.iter().all(|&pod| cluster.pods.shape[pod] == shape);
    (same && !cluster.shapes[shape].uses_claims() && !cluster.depends_on_other_nodes(shape))
        .then_some(shape)
}

/// The shapes of pods with how many have each.
pub fn shapes(cluster: &Cluster, pods: &[PodId]) -> Vec<(ShapeId, u32)> {
    let mut found: Vec<ShapeId> = pods.iter().map(|&pod| cluster.pods.shape[pod]).collect();
    found.sort_unstable();
    found.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}
