//! The rules that keep a pod where it is, read from objects and configuration. The evictions of a
//! plan are gone through in order: each is looked at with the later ones undone.

use muster_api::Time;
use muster_api::core::IntOrString;
use muster_engine::ids::{GangId, PodId, QueueId, ResourceId};
use muster_engine::model::Budget;
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Gang;
use muster_engine::model::pods::PodState;
use muster_engine::{Cause, ConfiguredPlugin, Decisions, Engine, Eviction, Method, Purpose};

use super::{facts, quotas};
use crate::violation::{Invariant, Violation};

/// One eviction of a plan, when those after it have not happened yet.
struct Step<'p> {
    engine: &'p Engine,
    plan: &'p Decisions,
    at: usize,
    pod: PodId,
    /// The gang that asks for the room, if one does.
    request: Option<Request<'p>>,
}

struct Request<'p> {
    preemptor: GangId,
    gang: &'p Gang,
    victim: GangId,
    victims: &'p Gang,
    purpose: Purpose,
}

pub fn check(engine: &Engine, plan: &Decisions, at: usize) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let eviction = &plan.evictions[at];
    let step = Step { engine, plan, at, pod: eviction.pod, request: request(cluster, eviction)? };
    let rule = step.always().or_else(|| step.for_the_preemptor());
    match rule {
        None => Ok(()),
        Some(rule) => {
            let (pod, action) = (cluster.pods.name(eviction.pod), eviction.action);
            Invariant::Veto.fails(format!("{action} evicts {pod}, which is kept by {rule}"))
        }
    }
}

fn request<'p>(
    cluster: &'p Cluster,
    eviction: &Eviction,
) -> Result<Option<Request<'p>>, Violation> {
    let Some(preemptor) = eviction.preemptor else { return Ok(None) };
    let Some(victim) = cluster.pods.gang[eviction.pod] else {
        let pod = cluster.pods.name(eviction.pod);
        return Invariant::Veto.fails(format!("{pod} of another scheduler is evicted"));
    };
    let purpose = match eviction.action {
        "consolidate" => Purpose::Consolidate,
        action if action.ends_with("reclaim") => Purpose::Reclaim,
        _ if victim == preemptor => Purpose::Within,
        _ => Purpose::Preempt,
    };
    let (gang, victims) = (&cluster.gangs[preemptor], &cluster.gangs[victim]);
    Ok(Some(Request { preemptor, gang, victim, victims, purpose }))
}

impl<'p> Step<'p> {
    fn cluster(&self) -> &'p Cluster {
        self.engine.cluster()
    }

    fn eviction(&self) -> &'p Eviction {
        &self.plan.evictions[self.at]
    }

    /// The pods that leave later, this one included.
    fn later(&self) -> impl Iterator<Item = PodId> {
        self.plan.evictions[self.at..].iter().map(|eviction| eviction.pod)
    }

    fn is_ready(&self, pod: PodId) -> bool {
        facts::is_ready(self.cluster(), pod) || self.later().any(|later| later == pod)
    }

    /// A plugin whose vetoes count for the purpose of the eviction.
    fn plugin(&self, name: &str, purpose: Purpose) -> Option<&'p ConfiguredPlugin> {
        facts::plugin(self.engine, name, |on| match purpose {
            Purpose::Reclaim => on.reclaimable,
            Purpose::Preempt | Purpose::Within | Purpose::Consolidate => on.preemptable,
        })
    }

    /// Rules that hold whatever the pod is evicted for.
    fn always(&self) -> Option<&'static str> {
        let cluster = self.cluster();
        let fact = &cluster.pods.fact[self.pod];
        let of_gang = cluster.pods.gang[self.pod].is_some_and(|gang| cluster.gangs[gang].protected);
        if fact.protected || of_gang {
            return Some("volcano.sh/preemptable: false");
        }
        facts::plugin(self.engine, "conformance", |on| on.preemptable || on.reclaimable)?;
        let class = fact.priority_class.map(|class| cluster.names.text(class).as_ref());
        let critical = ["system-cluster-critical", "system-node-critical"];
        if class.is_some_and(|class| critical.contains(&class)) {
            return Some("its system-critical priority class");
        }
        (cluster.space_name(cluster.pods.space[self.pod]) == "kube-system").then_some("kube-system")
    }

    fn for_the_preemptor(&self) -> Option<&'static str> {
        let request = self.request.as_ref()?;
        self.out_of_scope(request)
            .or_else(|| self.refused_lately())
            .or_else(|| self.cools_down(request))
            .or_else(|| self.not_revocable(request))
            .or_else(|| self.has_not_run_long_enough(request))
            .or_else(|| self.budget_is_spent(request))
            .or_else(|| self.queue_keeps_it(request))
    }

    /// Preempt evicts what has a lower priority in the same queue, reclaim what is in other queues.
    fn out_of_scope(&self, request: &Request) -> Option<&'static str> {
        let cluster = self.cluster();
        let Request { preemptor, gang, victims, purpose, .. } = request;
        let by_gang = matches!(self.eviction().cause, Cause::Bundle { .. } | Cause::Moved { .. });
        let lower = victims.priority < gang.priority;
        match purpose {
            Purpose::Preempt if victims.queue != gang.queue => Some("being in another queue"),
            Purpose::Preempt if (by_gang || self.priority_decides(*purpose)) && !lower => {
                Some("its gang's priority")
            }
            Purpose::Within => {
                let order = cluster.pods.order[self.pod];
                let placed = facts::nodes_of(cluster, &cluster.gangs[*preemptor].pods);
                let above = gang.pods.iter().any(|&pod| cluster.pods.order[pod] > order);
                let outranked = above && !placed.is_empty();
                (self.priority_decides(*purpose) && !outranked).then_some("its own priority")
            }
            Purpose::Reclaim if victims.queue == gang.queue => Some("being in the same queue"),
            Purpose::Reclaim => {
                let reclaimable = cluster.queues[victims.queue].reclaimable;
                (!reclaimable).then_some("its queue, which is not reclaimable")
            }
            _ => None,
        }
    }

    /// Whether `priority` has a say in which pods `preempt` evicts: the first tier of plugins with
    /// an opinion decides, and `drf` has one between gangs.
    fn priority_decides(&self, purpose: Purpose) -> bool {
        let tier = |name: &str| self.plugin(name, purpose).map(|plugin| plugin.tier);
        let drf = tier("drf").filter(|_| purpose == Purpose::Preempt);
        tier("priority").is_some_and(|own| drf.is_none_or(|drf| own <= drf))
    }

    fn refused_lately(&self) -> Option<&'static str> {
        let until = self.cluster().eviction_refused.get(&self.pod)?;
        (*until > self.cluster().now).then_some("an eviction that was refused")
    }

    fn cools_down(&self, request: &Request) -> Option<&'static str> {
        self.plugin("cdp", request.purpose)?;
        let fact = &self.cluster().pods.fact[self.pod];
        let own = fact.rare.as_ref().and_then(|rare| rare.cooldown);
        let of_gang = || request.victims.rare.as_ref().and_then(|rare| rare.cooldown);
        let since = fact.scheduled.or(fact.started).unwrap_or(fact.created);
        let end = since.plus_ms(own.or_else(of_gang)?);
        (end > self.cluster().now).then_some("its cooldown")
    }

    fn not_revocable(&self, request: &Request) -> Option<&'static str> {
        self.plugin("tdm", request.purpose)?;
        let cluster = self.cluster();
        let revocable = |pod: PodId| cluster.shapes[cluster.pods.shape[pod]].revocable;
        let concerned = matches!(request.purpose, Purpose::Preempt | Purpose::Consolidate);
        let allowed = revocable(self.pod) && !request.gang.pods.iter().all(|&pod| revocable(pod));
        (concerned && !allowed).then_some("the time division of its node")
    }

    /// A gang that has its minimum keeps it until it has run for the minimum run time.
    fn has_not_run_long_enough(&self, request: &Request) -> Option<&'static str> {
        let plugin = self.plugin("minruntime", request.purpose)?;
        let (cluster, gang) = (self.cluster(), request.victims);
        let had = facts::has_minimum(cluster, gang, |pod| self.is_ready(pod));
        let keeps = facts::has_minimum(cluster, gang, |pod| pod != self.pod && self.is_ready(pod));
        if !had || keeps {
            return None;
        }
        let end = began(cluster, request.victim)?.plus_ms(self.min_runtime(plugin, request));
        (end > cluster.now).then_some("its minimum run time")
    }

    /// The annotation of the nearest queue counts, or that of the one below the lowest queue that
    /// is above both gangs.
    fn min_runtime(&self, plugin: &ConfiguredPlugin, request: &Request) -> i64 {
        let cluster = self.cluster();
        let mut line = facts::queue_and_above(cluster, request.victims.queue);
        let default = |argument| facts::duration_ms(plugin, argument).unwrap_or(0);
        let says = |queue: QueueId| cluster.queues[queue].min_runtime;
        match request.purpose {
            Purpose::Within => 0,
            Purpose::Preempt | Purpose::Consolidate => line
                .into_iter()
                .find_map(|queue| says(queue).preempt)
                .unwrap_or_else(|| default("defaultPreemptMinRuntime")),
            Purpose::Reclaim => {
                let own =
                    plugin.arguments.get("reclaimResolveMethod").is_some_and(|of| of == "queue");
                let other = facts::queue_and_above(cluster, request.gang.queue);
                let common = line.iter().position(|queue| other.contains(queue));
                if !own {
                    line.drain(..common.unwrap_or(line.len()).saturating_sub(1));
                }
                line.into_iter()
                    .find_map(|queue| says(queue).reclaim)
                    .unwrap_or_else(|| default("defaultReclaimMinRuntime"))
            }
        }
    }

    fn budget_is_spent(&self, request: &Request) -> Option<&'static str> {
        self.plugin("pdb", request.purpose)?;
        let mut budgets = self.cluster().budgets.iter();
        let spent = budgets.any(|budget| self.is_about(budget, self.pod) && self.left(budget) <= 0);
        (self.eviction().method == Method::Evict && spent).then_some("a PodDisruptionBudget")
    }

    fn is_about(&self, budget: &Budget, pod: PodId) -> bool {
        let cluster = self.cluster();
        cluster.pods.space[pod] == budget.space
            && budget.selector.matches(&cluster.pods.fact[pod].labels)
    }

    /// How many pods of a budget may leave before this eviction.
    fn left(&self, budget: &Budget) -> i64 {
        let pods = &self.cluster().pods;
        let all: Vec<PodId> = pods.live().filter(|&pod| self.is_about(budget, pod)).collect();
        let count = |of: &dyn Fn(PodId) -> bool| all.iter().filter(|&&pod| of(pod)).count() as i64;
        let later = |pod: PodId| self.later().any(|later| later == pod);
        if let Some(allowed) = budget.allowed {
            // The status counts those that leave as their objects say.
            let asked =
                |pod: PodId| matches!(pods.state[pod], PodState::Releasing(_)) && !later(pod);
            return i64::from(allowed) - count(&|pod| asked(pod) && !pods.fact[pod].leaves);
        }
        let expected =
            count(&|pod| !matches!(pods.state[pod], PodState::Succeeded | PodState::Failed));
        let up = count(&|pod| {
            matches!(pods.state[pod], PodState::Allocated(_) | PodState::Running(_)) || later(pod)
        });
        let part = |amount: &IntOrString| match amount {
            IntOrString::Int(count) => *count,
            IntOrString::String(text) => {
                let percent = text.trim().trim_end_matches('%').parse::<i64>().unwrap_or(100);
                (expected * percent + 99) / 100
            }
        };
        let most = || budget.most.as_ref().map(|most| expected - part(most));
        up - budget.least.as_ref().map(part).or_else(most).unwrap_or(0)
    }

    /// A queue gives only what it has above its guarantee. In the modes `task` and `gang` it also
    /// has more than it deserves of something that the preemptor asks for. By fair shares, see
    /// `fair_shares.rs`.
    fn queue_keeps_it(&self, request: &Request) -> Option<&'static str> {
        let cluster = self.cluster();
        // A moved pod is not taken from its queue. The rest of a gang that breaks is of no use to
        // it. And what was withdrawn counted when the eviction was decided, and does not now.
        let exempt = match self.eviction().cause {
            Cause::Moved { .. } => true,
            Cause::Bundle { whole: true, .. } => {
                !facts::has_minimum(cluster, request.victims, |pod| self.is_ready(pod))
            }
            _ => false,
        };
        if request.purpose != Purpose::Reclaim || exempt || !self.plan.withdrawn.is_empty() {
            return None;
        }
        self.plugin("capacity", Purpose::Reclaim)?;
        let levels = self.levels_below_common_queue(request);
        let amount = |pod: PodId, id: ResourceId| cluster.request_of(cluster.pods.shape[pod], id);
        for (resource, asked) in cluster.shapes[cluster.pods.shape[self.pod]].request.iter() {
            let short = |&queue: &QueueId| {
                let least = cluster.queues[queue].guarantee.get(resource);
                least.is_some_and(|least| self.had(queue, resource) - asked < least)
            };
            if levels.iter().any(short) {
                return Some("its queue's guarantee");
            }
        }
        let too_much = |id: ResourceId| {
            let deserved = |queue: QueueId| cluster.queues[queue].deserved.get(id).unwrap_or(0);
            levels.iter().all(|&queue| self.had(queue, id) > deserved(queue))
        };
        let wanted = |&id: &ResourceId| {
            cluster.dimensions.name(id) != "pods"
                && request.gang.pods.iter().any(|&pod| amount(pod, id) > 0)
        };
        let gives = facts::dimensions(cluster).filter(wanted).any(too_much);
        let by_shares = facts::is_by_scenario(self.engine, self.eviction().action);
        (!by_shares && !gives).then_some("its queue's deserved share")
    }

    /// The victim's queue and those above it, up to where the preemptor's way to the root parts
    /// from theirs.
    fn levels_below_common_queue(&self, request: &Request) -> Vec<QueueId> {
        let mut line = quotas::levels(self.engine, request.victims.queue);
        let other = quotas::levels(self.engine, request.gang.queue);
        line.retain(|queue| *queue == request.victims.queue || !other.contains(queue));
        line
    }

    /// What a queue had of a resource before this eviction.
    fn had(&self, queue: QueueId, resource: ResourceId) -> i64 {
        let cluster = self.cluster();
        let now = quotas::taken(self.engine, queue, resource, false);
        let later = self.plan.evictions[self.at..].iter().filter(|eviction| {
            let gang = cluster.pods.gang[eviction.pod].map(|gang| &cluster.gangs[gang]);
            let counts =
                gang.is_some_and(|gang| quotas::levels(self.engine, gang.queue).contains(&queue));
            counts && !matches!(eviction.cause, Cause::Moved { .. })
        });
        let later =
            later.map(|eviction| cluster.request_of(cluster.pods.shape[eviction.pod], resource));
        now.held + now.nominated + later.sum::<i64>()
    }
}

/// When the pod started that completed the gang's minimum, its roles' and its subgroups'. Pods
/// that were asked to leave count until their objects say that they leave.
fn began(cluster: &Cluster, gang: GangId) -> Option<Time> {
    let gang = &cluster.gangs[gang];
    let runs = |pod: PodId| match cluster.pods.state[pod] {
        PodState::Running(_) | PodState::Succeeded => true,
        PodState::Releasing(_) => !cluster.pods.fact[pod].leaves,
        _ => false,
    };
    let started = |pod: PodId| cluster.pods.fact[pod].started.filter(|_| runs(pod));
    let mut times: Vec<Time> = gang.pods.iter().filter_map(|&pod| started(pod)).collect();
    times.sort();
    // The first moment by which the pods that had started were enough.
    times.into_iter().find(|time| {
        let has = |pod: PodId| started(pod).is_some_and(|started| started <= *time);
        facts::has_minimum(cluster, gang, has)
    })
}
