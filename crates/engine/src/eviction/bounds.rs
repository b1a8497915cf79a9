//! What clearing a domain costs at least, from sums: which domains cannot be cleared whatever is
//! evicted, and which priority or queue must give at least in the others. Nothing is tried here.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, NodeId, PodId, QueueId, ResourceId};
use crate::base::purpose::Purpose;
use crate::eviction::candidates::{Eligibility, eligibility, gang_stays, in_scope};
use crate::eviction::domain_candidates::CandidateDomain;
use crate::eviction::need::Need;
use crate::eviction::per_domain::Stage;
use crate::eviction::search::Search;
use crate::eviction::table::{Table, Way, returns};
use crate::model::Cluster;
use crate::model::gangs::lost_work::says_how_far;
use crate::model::pods::PodState;
use crate::policy::bundle::BundleKind;

/// What domains still lack while gangs are taken away, one after the other.
#[derive(Clone)]
struct Lacks {
    /// The number of each domain that is a candidate.
    slots: Vec<Option<u32>>,
    resources: Vec<ResourceId>,
    /// By domain and resource.
    amounts: Vec<i64>,
}

impl Lacks {
    fn of(cluster: &Cluster, need: &Need, domains: &[&mut CandidateDomain]) -> Lacks {
        let resources: Vec<ResourceId> =
            need.wanted.iter().map(|&(resource, _)| resource).collect();
        let mut slots = vec![None; cluster.domains.len()];
        let mut amounts = Vec::with_capacity(domains.len() * resources.len());
        for (candidate, slot) in domains.iter().zip(0..) {
            slots[candidate.domain.0 as usize] = Some(slot);
            let lack = |&id: &ResourceId| {
                candidate.lack.iter().find(|(of, _)| *of == id).map_or(0, |&(_, lack)| lack)
            };
            amounts.extend(resources.iter().map(lack));
        }
        Lacks { slots, resources, amounts }
    }

    fn row(&self, slot: usize) -> &[i64] {
        &self.amounts[slot * self.resources.len()..(slot + 1) * self.resources.len()]
    }

    fn suffices(&self, slot: usize) -> bool {
        self.row(slot).iter().all(|&lack| lack <= 0)
    }

    /// Takes the pods of a gang in this state away, and calls back for each domain where one was.
    fn free(
        &mut self,
        cluster: &Cluster,
        gang: GangId,
        counts: impl Fn(PodState) -> bool,
        mut told: impl FnMut(usize, &Lacks),
    ) {
        for &pod in &cluster.gangs[gang].pods {
            let state = cluster.pods.state[pod];
            let Some(node) = state.node().filter(|_| counts(state)) else { continue };
            if cluster.pods.fact[pod].protected {
                continue;
            }
            let shape = cluster.pods.shape[pod];
            for domain in cluster.domains.chain(cluster.domains.smallest_around(node)) {
                let Some(slot) = self.slots[domain.0 as usize] else { continue };
                let (slot, width) = (slot as usize, self.resources.len());
                for at in 0..width {
                    self.amounts[slot * width + at] -=
                        cluster.request_of(shape, self.resources[at]);
                }
                told(slot, self);
            }
        }
    }

    /// For each domain the last of these gangs, in this order, that it takes until the sums
    /// suffice: `Err` if all do not, `Ok(None)` if none is needed.
    fn last_needed(
        mut self,
        cluster: &Cluster,
        gangs: &[GangId],
    ) -> Vec<Result<Option<GangId>, ()>> {
        let slots = self.slots.iter().flatten().count();
        let first = |slot| if self.suffices(slot) { Ok(None) } else { Err(()) };
        let mut last: Vec<Result<Option<GangId>, ()>> = (0..slots).map(first).collect();
        let runs = |state| matches!(state, PodState::Running(_));
        for &gang in gangs {
            self.free(cluster, gang, runs, |slot, lacks| {
                if last[slot].is_err() && lacks.suffices(slot) {
                    last[slot] = Ok(Some(gang));
                }
            });
        }
        last
    }
}

/// For each domain, the gang that decides by the last line of the table if it leaves.
fn best_gangs(
    cluster: &Cluster,
    gangs: &[GangId],
    lacks: &Lacks,
    table: &Table,
) -> Vec<Option<GangId>> {
    let slots = lacks.slots.iter().flatten().count();
    let mut best: Vec<Option<GangId>> = vec![None; slots];
    let mut seen: Vec<Option<GangId>> = vec![None; slots];
    let runs = |&pod: &PodId| match cluster.pods.state[pod] {
        PodState::Running(node) => Some(cluster.domains.smallest_around(node)),
        _ => None,
    };
    for &gang in gangs {
        for home in cluster.gangs[gang].pods.iter().filter_map(runs) {
            for domain in cluster.domains.chain(home) {
                let Some(slot) = lacks.slots[domain.0 as usize].map(|slot| slot as usize) else {
                    continue;
                };
                if seen[slot] != Some(gang) {
                    seen[slot] = Some(gang);
                    let known = best[slot].filter(|&known| !table.prefers(cluster, gang, known));
                    best[slot] = known.or(Some(gang));
                }
            }
        }
    }
    best
}

impl Search<'_> {
    /// Notes for each of these domains what clearing it costs at least; nothing for those that
    /// cannot be cleared.
    pub fn bound(
        &self,
        cluster: &Cluster,
        need: &Need,
        domains: &mut [&mut CandidateDomain],
        (table, stage): (&Table, &Stage),
    ) {
        let mut gangs: Vec<GangId> = cluster.gangs.iter().map(|(gang, _)| gang).collect();
        gangs.retain(|&gang| self.may_give(cluster, gang, stage));
        let lacks = Lacks::of(cluster, need, domains);
        let best = best_gangs(cluster, &gangs, &lacks, table);
        let by_queue = (self.preemptor.purpose == Purpose::Reclaim).then(|| {
            self.sort_by_queue(cluster, &mut gangs);
            lacks.clone().last_needed(cluster, &gangs)
        });
        gangs.sort_by_key(|&gang| cluster.gangs[gang].priority);
        let by_priority = lacks.last_needed(cluster, &gangs);
        let told = gangs.iter().any(|&gang| says_how_far(cluster, gang));
        for (slot, candidate) in domains.iter_mut().enumerate() {
            let resources = match candidate.lack.len() {
                0 => need.wanted.len(),
                some => some,
            };
            let queue = by_queue.as_ref().and_then(|by_queue| by_queue[slot].ok().flatten());
            candidate.told = told;
            candidate.bound = by_priority[slot].ok().map(|last| Way {
                breaks: stage.breaks_at_least,
                step: candidate.step,
                priority: last.map(|gang| cluster.gangs[gang].priority),
                queues: queue.map(|gang| cluster.gangs[gang].queue).into_iter().collect(),
                returns: returns(resources, candidate.least),
                gangs: best[slot].into_iter().collect(),
                ..Way::default()
            });
        }
    }

    /// Whether the nodes of a domain would have room for the gang without all that may leave. Unlike
    /// its sums this tells pieces on several nodes from room.
    pub fn would_hold(
        &self,
        cluster: &Cluster,
        need: &Need,
        (candidate, stage): (&CandidateDomain, &Stage),
    ) -> bool {
        let evictable = |pod| match eligibility(cluster, self.policy, &self.preemptor, pod) {
            Eligibility::Evictable => {
                self.policy.vetoes_after(cluster, &self.preemptor, pod).is_none()
            }
            Eligibility::OutOfScope | Eligibility::Vetoed(_) => false,
        };
        let leaves = |pod: PodId| {
            cluster.pods.gang[pod].is_some_and(|gang| self.may_give(cluster, gang, stage))
                && evictable(pod)
        };
        let leaving = |node: NodeId| {
            cluster.nodes.pods_on[node].iter().copied().filter(move |&pod| leaves(pod))
        };
        need.shapes.iter().all(|&(shape, count)| {
            let fits = |node: NodeId| {
                let room = |(id, want): (ResourceId, i64)| {
                    let freed: i64 = leaving(node)
                        .map(|pod| cluster.request_of(cluster.pods.shape[pod], id))
                        .sum();
                    (cluster.nodes.future_idle(id, node) + freed).max(0) / want.max(1)
                };
                cluster.shapes[shape].request.iter().map(room).min().unwrap_or(0)
            };
            candidate.nodes.iter().map(|&node| fits(node)).sum::<i64>() >= i64::from(count)
        })
    }

    /// Whether pods of a gang may leave in this stage, as far as its sums say.
    fn may_give(&self, cluster: &Cluster, gang: GangId, stage: &Stage) -> bool {
        let row = &cluster.gangs[gang];
        row.counts.running > 0
            && !row.protected
            && (stage.allowed == BundleKind::Whole
                || !row.ready(true)
                || row.counts.ready() > row.minimum)
            && in_scope(cluster, &self.preemptor, gang)
            && gang_stays(cluster, &self.preemptor, gang).is_none()
    }

    /// The gangs of the queue that gives first come first.
    fn sort_by_queue(&self, cluster: &Cluster, gangs: &mut [GangId]) {
        let mut queues: Vec<QueueId> =
            gangs.iter().map(|&gang| cluster.gangs[gang].queue).collect();
        queues.sort_unstable();
        queues.dedup();
        queues.sort_by(|&a, &b| self.policy.queue_gives_first(cluster, &self.preemptor, a, b));
        let turns: BTreeMap<QueueId, usize> = queues.into_iter().zip(0..).collect();
        gangs.sort_by_key(|&gang| turns[&cluster.gangs[gang].queue]);
    }
}
