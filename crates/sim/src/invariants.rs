//! What is always true (DESIGN §10), checked from the engine's model after a cycle.

mod bundles;
mod fair_shares;
mod moves;

use std::collections::BTreeSet;

use muster_api::QueueState;
use muster_engine::ALL_CORES;
use muster_engine::ids::{GangId, NodeId, PodId, QueueId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Origin;
use muster_engine::model::pods::PodState;
use muster_engine::model::subgroups::TierLimit;
use muster_engine::{Cause, Decisions, Engine, Eviction, Room, Scope, Why, search};

/// Checks the model and the plan that was just made. The error names what does not hold.
pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    engine.cluster().audit().map_err(|error| error.to_string())?;
    the_plan_is_in_the_model(engine, plan)?;
    no_node_is_over(engine, plan)?;
    no_card_is_over(engine, plan)?;
    no_node_gets_what_it_refuses(engine, plan)?;
    no_gang_is_half_placed(engine, plan)?;
    no_gang_is_too_far_apart(engine, plan)?;
    only_gangs_that_may_run_are_bound(engine, plan)?;
    only_those_that_may_leave_are_evicted(engine, plan)?;
    who_takes_room_gets_what_it_lacks(engine, plan)?;
    bundles::check(engine, plan)?;
    moves::check(engine, plan)?;
    fair_shares::check(engine, plan)?;
    no_queue_is_over(engine, plan)
}

fn dimensions(cluster: &Cluster) -> impl Iterator<Item = ResourceId> + use<> {
    (0..cluster.dimensions.len()).map(ResourceId::from)
}

/// Each pod is placed once, and the model says the same as the plan. Every promise is known to the
/// cluster or in the plan.
fn the_plan_is_in_the_model(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let bound: BTreeSet<PodId> = plan.binds.iter().map(|bind| bind.pod).collect();
    if bound.len() < plan.binds.len() {
        return Err("a pod is bound twice in one plan".to_owned());
    }
    for bind in &plan.binds {
        if cluster.pods.state[bind.pod] != PodState::Allocated(bind.node) {
            return Err(format!("{} is bound but not allocated", cluster.pods.name(bind.pod)));
        }
    }
    for bind in &plan.nominations {
        if cluster.pods.state[bind.pod] != PodState::Nominated(bind.node) {
            return Err(format!(
                "{} is promised a place that the model doesn't keep",
                cluster.pods.name(bind.pod)
            ));
        }
    }
    for pod in cluster.pods.live() {
        let (state, nomination) = (cluster.pods.state[pod], cluster.nomination_ledger.get(&pod));
        let known =
            nomination.filter(|nomination| nomination.published).map(|nomination| nomination.node);
        match state {
            PodState::Nominated(node) if known != Some(node) => {
                return Err(format!("nobody knows what {} is promised", cluster.pods.name(pod)));
            }
            PodState::Pending if nomination.is_some() => {
                return Err(format!(
                    "{} waits with a promise that nobody keeps",
                    cluster.pods.name(pod)
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Our plan never puts a node over its allocatable, in any dimension.
fn no_node_is_over(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    for bind in &plan.binds {
        for resource in dimensions(cluster) {
            let wants = cluster.request_of(cluster.pods.shape[bind.pod], resource) > 0;
            if wants && cluster.nodes.idle[resource][bind.node] < 0 {
                return Err(format!(
                    "binding {} puts {} over its {}",
                    cluster.pods.name(bind.pod),
                    cluster.nodes.name[bind.node],
                    cluster.dimensions.name(resource)
                ));
            }
        }
    }
    for bind in &plan.nominations {
        for resource in dimensions(cluster) {
            let wants = cluster.request_of(cluster.pods.shape[bind.pod], resource) > 0;
            if wants && cluster.nodes.future_idle(resource, bind.node) < 0 {
                return Err(format!(
                    "{} is promised more than it will have",
                    cluster.nodes.name[bind.node]
                ));
            }
        }
    }
    Ok(())
}

/// Nor a card of a node, and whoever shares cards has all that he asks for.
fn no_card_is_over(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    for bind in plan.binds.iter().chain(&plan.nominations) {
        let Some(demand) = cluster.demand(cluster.pods.shape[bind.pod]) else { continue };
        let (pod, node) = (cluster.pods.name(bind.pod), &cluster.nodes.name[bind.node]);
        let slots = cluster.devices.held(bind.pod).map(|held| &*held.slots).unwrap_or_default();
        let asked: usize = demand.asks.iter().map(|ask| ask.cards as usize).sum();
        if slots.len() != asked {
            return Err(format!("{pod} has {} of {asked} cards of {node}", slots.len()));
        }
        let room =
            if cluster.pods.state[bind.pod].occupies() { Room::Backfill } else { Room::FutureIdle };
        for slot in slots {
            let card = cluster.devices.cards(bind.node).and_then(|cards| cards.get(slot.card));
            let Some(card) = card else {
                return Err(format!("{pod} has a card that {node} hasn't"));
            };
            let (fact, taken) = (&card.fact, card.taken(room));
            let over =
                taken.memory > fact.memory || taken.cores > ALL_CORES || taken.pods > fact.pods;
            let disturbed = slot.takes.cores >= ALL_CORES && taken.pods > 1;
            if over || disturbed || !fact.healthy {
                return Err(format!(
                    "{pod} gets card {} of {node}, of which {taken:?} is taken",
                    fact.id
                ));
            }
        }
    }
    Ok(())
}

/// Nothing goes where the node's state, taints, labels or ports, or the pods there, forbid it.
fn no_node_gets_what_it_refuses(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let filters = engine
        .policy()
        .plugins
        .iter()
        .any(|configured| configured.name == "predicates" && configured.switches.filter);
    let binds = plan.binds.iter().map(|bind| (bind, Room::Idle));
    // A promise is made for the time when those that leave are gone.
    let nominations = plan.nominations.iter().map(|bind| (bind, Room::FutureIdle));
    for (bind, room) in binds.chain(nominations) {
        let (pod, node) = (cluster.pods.name(bind.pod), &cluster.nodes.name[bind.node]);
        if !cluster.nodes.fact[bind.node].lets_go() {
            return Err(format!("{pod} goes to {node}, which is not ready"));
        }
        let shape = cluster.pods.shape[bind.pod];
        let mut why = [Why::Fits];
        engine.policy().filter(
            Scope::NodeFacts,
            cluster,
            (shape, Room::Idle),
            &[bind.node],
            &mut why,
        );
        if why[0] != Why::Fits {
            return Err(format!("{pod} goes to {node}, which refuses it: {:?}", why[0]));
        }
        if filters {
            no_one_minds(cluster, bind.pod, bind.node, room)?;
        }
    }
    Ok(())
}

/// No other pod on the node uses the pod's host ports, and nobody within reach excludes it or is
/// excluded by it.
fn no_one_minds(cluster: &Cluster, pod: PodId, node: NodeId, room: Room) -> Result<(), String> {
    let shape = &cluster.shapes[cluster.pods.shape[pod]];
    for &other in cluster.nodes.pods_on[node].iter().filter(|&&other| other != pod) {
        let ports = &cluster.shapes[cluster.pods.shape[other]].ports;
        let leaves = matches!(cluster.pods.state[other], PodState::Releasing(_));
        let stays = cluster.pods.state[other].occupies() && !(room == Room::FutureIdle && leaves);
        if stays && shape.ports.iter().any(|port| ports.contains(port)) {
            return Err(format!(
                "{} and {} use the same host port",
                cluster.pods.name(pod),
                cluster.pods.name(other)
            ));
        }
    }
    for &term in &shape.bonds.anti_affinity {
        let value = cluster.terms.value(term, node);
        let own = u32::from(shape.bonds.matches.contains(&term));
        if value != 0 && cluster.terms.count(term, value).present_in(room) > own {
            return Err(format!("{} is with pods that it keeps away from", cluster.pods.name(pod)));
        }
    }
    for &term in &shape.bonds.matches {
        let value = cluster.terms.value(term, node);
        let own = u32::from(shape.bonds.anti_affinity.contains(&term));
        if value != 0 && cluster.terms.count(term, value).excluding_in(room) > own {
            return Err(format!("{} is with pods that keep away from it", cluster.pods.name(pod)));
        }
    }
    Ok(())
}

fn gangs_of(cluster: &Cluster, pods: impl Iterator<Item = PodId>) -> BTreeSet<GangId> {
    pods.filter_map(|pod| cluster.pods.gang[pod]).collect()
}

/// Our plan never binds a gang below its minimum, nor a role. What is promised is promised whole.
fn no_gang_is_half_placed(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let whole = engine.policy().enforces_minimum();
    for gang in gangs_of(cluster, plan.binds.iter().map(|bind| bind.pod)) {
        let gang = &cluster.gangs[gang];
        let missing = gang.missing(whole);
        if missing.total > 0 {
            return Err(format!(
                "{} is bound with {} pods missing to its minimum",
                gang.key, missing.total
            ));
        }
        if !gang.ready(whole) {
            return Err(format!(
                "{} is bound without the roles or subgroups that it needs",
                gang.key
            ));
        }
    }
    for gang in gangs_of(cluster, plan.nominations.iter().map(|bind| bind.pod)) {
        let gang = &cluster.gangs[gang];
        let missing = gang.missing(whole);
        let nominated = gang.counts.nominated + gang.reserved().len() as u32;
        if missing.total > nominated {
            let missing = missing.total;
            return Err(format!(
                "{} is promised {nominated} places, but {missing} pods are missing",
                gang.key
            ));
        }
    }
    Ok(())
}

/// What is bound or promised of a gang with hard closeness is inside one domain that it allows,
/// with all that runs of it; the same for each subgroup, of which no part is placed either.
fn no_gang_is_too_far_apart(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let whole = engine.policy().enforces_minimum();
    let placed = plan.binds.iter().chain(&plan.nominations).map(|bind| bind.pod);
    for id in gangs_of(cluster, placed) {
        let gang = &cluster.gangs[id];
        within_reach(cluster, &gang.key, gang.tier_limit(), &gang.pods)?;
        for (subgroup, place) in gang.subgroups().iter().zip(0..) {
            let Some(rule) = subgroup.rule.map(|rule| &gang.rules()[rule as usize]) else {
                continue;
            };
            let pods: Vec<PodId> = gang
                .pods
                .iter()
                .copied()
                .filter(|&pod| cluster.pods.subgroup[pod] == place)
                .collect();
            // One that is as it was may be torn by a change of the network; that is no reason
            // against the others.
            if !plan.binds.iter().chain(&plan.nominations).any(|bind| pods.contains(&bind.pod)) {
                continue;
            }
            let name = format!("{} {}", gang.key, subgroup.name);
            within_reach(cluster, &name, rule.tier_limit.as_ref(), &pods)?;
            let reserved = gang
                .reserved()
                .iter()
                .filter(|place| place.subgroup.as_ref() == Some(&subgroup.name));
            let have =
                subgroup.counts.ready() + subgroup.counts.nominated + reserved.count() as u32;
            if whole && have < rule.size {
                return Err(format!("{name} is placed with {have} of {} pods", rule.size));
            }
        }
    }
    Ok(())
}

fn within_reach(
    cluster: &Cluster,
    name: &str,
    tier_limit: Option<&TierLimit>,
    pods: &[PodId],
) -> Result<(), String> {
    let Some(tier_limit) = tier_limit.filter(|tier_limit| tier_limit.hard) else { return Ok(()) };
    let limit =
        tier_limit.limit(&cluster.domains).map_err(|tier| format!("{name} needs tier {tier}"))?;
    let Some(domain) = search::around(cluster, pods) else { return Ok(()) };
    let domain = &cluster.domains[domain];
    match domain.tier > limit {
        true => Err(format!(
            "{name} is spread over {} of tier {}, above {limit}",
            domain.name, domain.tier
        )),
        false => Ok(()),
    }
}

/// A gang that is bound has a PodGroup (or needs none), was admitted, and is in an open queue.
fn only_gangs_that_may_run_are_bound(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    for id in gangs_of(cluster, plan.binds.iter().map(|bind| bind.pod)) {
        let gang = &cluster.gangs[id];
        let queue = &cluster.queues[gang.queue];
        let open =
            queue.lineage.iter().all(|&queue| cluster.queues[queue].state == QueueState::Open);
        let fault = match gang {
            _ if !gang.live => "is gone",
            _ if gang.origin == Origin::Missing => "has no PodGroup",
            _ if !gang.admitted() => "was not admitted",
            _ if !queue.exists => "is in a queue that does not exist",
            _ if queue.broken.is_some() => "is in a queue without a root",
            _ if !open => "is in a queue that is not open",
            _ => continue,
        };
        return Err(format!("{} is bound, but it {fault}", gang.key));
    }
    Ok(())
}

/// Nobody is evicted twice, or against a rule that protects him; a stale gang leaves whole, but for
/// those whom the cluster just refused to evict.
fn only_those_that_may_leave_are_evicted(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let whole = engine.policy().enforces_minimum();
    let leaving: BTreeSet<PodId> = plan.evictions.iter().map(|eviction| eviction.pod).collect();
    if leaving.len() < plan.evictions.len() {
        return Err("a pod is evicted twice in one plan".to_owned());
    }
    for eviction in &plan.evictions {
        let name = cluster.pods.name(eviction.pod);
        if cluster.pods.state[eviction.pod] != PodState::Releasing(eviction.node) {
            return Err(format!("{name} is evicted, but the model doesn't let it go"));
        }
        if let Some(rule) = engine.policy().protects(cluster, eviction.pod) {
            return Err(format!("{name} is evicted, but {rule} protects it"));
        }
        // Bundles and moves are looked at as such.
        let alone = !matches!(eviction.cause, Cause::Bundle { .. } | Cause::Moved { .. });
        if let Some(preemptor) = eviction.preemptor.filter(|_| alone) {
            leaves_for_a_reason(engine, eviction, preemptor)?;
            leaves_its_gang_whole(engine, eviction)?;
        }
        if !matches!(eviction.cause, Cause::Stale { .. }) {
            continue;
        }
        let Some(gang) = cluster.pods.gang[eviction.pod] else {
            return Err(format!("{name} is evicted, but it isn't ours"));
        };
        let gang = &cluster.gangs[gang];
        // Of a gang that runs without it, a subgroup leaves alone.
        let part = cluster.pods.subgroup[eviction.pod];
        let goes = |pod: PodId| !gang.ready(whole) || cluster.pods.subgroup[pod] == part;
        let stays = |pod: &&PodId| {
            let state = cluster.pods.state[**pod];
            matches!(state, PodState::Allocated(_) | PodState::Running(_))
                && goes(**pod)
                && !cluster.eviction_refused.contains_key(pod)
        };
        if let Some(&pod) = gang.pods.iter().find(stays) {
            return Err(format!(
                "{name} is evicted, but {} of its gang stays",
                cluster.pods.name(pod)
            ));
        }
    }
    Ok(())
}

/// Nobody leaves for a gang that is not placed or promised all that it lacks.
fn who_takes_room_gets_what_it_lacks(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let whole = engine.policy().enforces_minimum();
    for eviction in &plan.evictions {
        let Some(preemptor) = eviction.preemptor else { continue };
        let (name, gang) = (cluster.pods.name(eviction.pod), &cluster.gangs[preemptor]);
        let has_place = |pod: &PodId| {
            matches!(cluster.pods.state[*pod], PodState::Nominated(_) | PodState::Allocated(_))
        };
        let nominated = gang.counts.nominated + gang.reserved().len() as u32;
        let lacks = gang.missing(whole).total.saturating_sub(nominated);
        if lacks > 0 || !gang.pods.iter().any(has_place) {
            return Err(format!(
                "{name} is evicted for {}, which still lacks {lacks} places",
                gang.key
            ));
        }
    }
    Ok(())
}

/// Pod by pod nobody is taken whom its gang needs, where the plugin `gang` says so; a gang of one
/// can be taken.
fn leaves_its_gang_whole(engine: &Engine, eviction: &Eviction) -> Result<(), String> {
    let cluster = engine.cluster();
    let guarded = engine.policy().plugins.iter().any(|configured| {
        configured.name == "gang"
            && configured.switches.preemptable
            && configured.switches.reclaimable
    });
    let Some(gang) = cluster.pods.gang[eviction.pod].filter(|_| guarded) else { return Ok(()) };
    let gang = &cluster.gangs[gang];
    let alone = gang.counts.all() == 1 && gang.minimum <= 1;
    // It may lack pods of other roles, which is no matter of this one.
    let role = &gang.roles[cluster.pods.role[eviction.pod] as usize];
    let complete = !gang.enforces_roles() || role.counts.ready() >= role.minimum;
    match alone || gang.counts.ready() >= gang.minimum && complete {
        true => Ok(()),
        false => Err(format!(
            "{} is evicted, and {} is broken by it",
            cluster.pods.name(eviction.pod),
            gang.key
        )),
    }
}

/// Whoever leaves for others is needed: with him the node would have too little. Where more than
/// room decides (rules between pods, ports, cards) this can't be told from the sums.
fn leaves_for_a_reason(
    engine: &Engine,
    eviction: &Eviction,
    preemptor: GangId,
) -> Result<(), String> {
    let cluster = engine.cluster();
    let shape = |pod: PodId| cluster.pods.shape[pod];
    // Its queue could not have both.
    let limited = cluster.pods.gang[eviction.pod].is_some_and(|gang| {
        engine.policy().may_allocate(cluster, gang, shape(eviction.pod), Room::FutureIdle).is_err()
    });
    if limited || !only_room_decides(engine, preemptor) {
        return Ok(());
    }
    let mut request = cluster.shapes[shape(eviction.pod)].request.iter();
    let room = |(resource, amount): (ResourceId, i64)| {
        cluster.nodes.future_idle(resource, eviction.node) >= amount
    };
    if request.all(room) {
        return Err(format!(
            "{} leaves in vain: there is room for it as well",
            cluster.pods.name(eviction.pod)
        ));
    }
    Ok(())
}

/// Whether nothing but room says where the pods of a gang can be.
fn only_room_decides(engine: &Engine, gang: GangId) -> bool {
    let cluster = engine.cluster();
    cluster.gangs[gang].pods.iter().all(|&pod| {
        let shape = cluster.pods.shape[pod];
        !cluster.depends_on_other_nodes(shape)
            && cluster.shapes[shape].ports.is_empty()
            && cluster.demand(shape).is_none()
    })
}

/// Our plan never takes a queue above its capability, in any dimension that it binds. In a tree the
/// same holds for the queues above.
fn no_queue_is_over(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let limited = |name: &str| {
        engine
            .policy()
            .plugins
            .iter()
            .any(|configured| configured.name == name && configured.switches.may_allocate)
    };
    if !limited("capacity") && !limited("proportion") {
        return Ok(());
    }
    let tree = engine.policy().hierarchical();
    let counts = |gang: QueueId, queue: QueueId| {
        gang == queue || tree && cluster.queues[gang].lineage.contains(&queue)
    };
    for bind in &plan.binds {
        let Some(gang) = cluster.pods.gang[bind.pod] else { continue };
        let lineage = &cluster.queues[cluster.gangs[gang].queue].lineage;
        for &queue in if tree { &lineage[..] } else { &lineage[..1] } {
            let gangs = || {
                cluster.gangs.iter().map(|(_, gang)| gang).filter(|gang| counts(gang.queue, queue))
            };
            for (resource, _) in cluster.shapes[cluster.pods.shape[bind.pod]].request.iter() {
                let limit = cluster.queues[queue].capability.get(resource).unwrap_or(i64::MAX);
                let taken: i64 = gangs()
                    .map(|gang| gang.held.get(resource) + gang.nominated.get(resource))
                    .sum();
                if taken > limit {
                    let (pod, queue) = (cluster.pods.name(bind.pod), &cluster.queues[queue].name);
                    let name = cluster.dimensions.name(resource);
                    return Err(format!(
                        "binding {pod} takes queue {queue} to {taken} of {limit} {name}"
                    ));
                }
            }
        }
    }
    Ok(())
}
