//! A cluster so small that every choice can be tried, with one gang that starves. It knows nothing
//! of the engine: the rules for gangs, quotas and room are written a second time, from the design,
//! so that one checks the other.

use super::packing;

/// Cores and GPUs.
pub type Amounts = [i64; 2];

/// A set of running pods, one bit each.
pub type Pods = u32;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    Preempt,
    Reclaim,
}

#[derive(Clone, Debug)]
pub struct Small {
    pub purpose: Purpose,
    /// What each node has.
    pub nodes: Vec<Amounts>,
    /// The leaf of each node, if there is a network: leaves are tier 1, all of them together are
    /// tier 2.
    pub leaves: Option<Vec<usize>>,
    pub queues: Vec<Queue>,
    pub gangs: Vec<Gang>,
    /// At most as many as a set has bits.
    pub pods: Vec<Pod>,
    pub preemptor: Preemptor,
}

#[derive(Clone, Debug)]
pub struct Queue {
    pub name: &'static str,
    pub deserved: Amounts,
    pub guarantee: Amounts,
}

#[derive(Clone, Debug)]
pub struct Gang {
    pub queue: usize,
    pub priority: i32,
    pub minimum: u32,
    /// The minimum of each role; `None` if it has no roles.
    pub roles: Option<[u32; 2]>,
    /// It may not be evicted.
    pub protected: bool,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub gang: usize,
    pub role: usize,
    pub node: usize,
    pub request: Amounts,
}

#[derive(Clone, Debug)]
pub struct Preemptor {
    pub queue: usize,
    pub priority: i32,
    /// By role. If they differ, all are needed.
    pub pods: Vec<(usize, Amounts)>,
    pub minimum: usize,
    /// It must stay in one domain of at most this tier.
    pub highest_tier: Option<u8>,
}

/// A domain that may hold all of the preemptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub name: String,
    pub tier: u8,
    pub nodes: Vec<usize>,
}

pub fn members(pods: Pods) -> impl Iterator<Item = usize> {
    (0..Pods::BITS as usize).filter(move |pod| pods & 1 << pod != 0)
}

pub fn add(sum: &mut Amounts, amounts: Amounts, times: i64) {
    sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount * times);
}

impl Small {
    /// The domains that the preemptor may use, the nearest first.
    pub fn domains(&self) -> Vec<Domain> {
        let all = || (0..self.nodes.len()).collect();
        let (Some(leaves), Some(highest)) = (&self.leaves, self.preemptor.highest_tier) else {
            return vec![Domain { name: "the cluster".into(), tier: 0, nodes: all() }];
        };
        let count = leaves.iter().max().map_or(0, |last| last + 1);
        let of_leaf =
            |leaf: usize| (0..self.nodes.len()).filter(|&node| leaves[node] == leaf).collect();
        let leaf = |at: usize| Domain { name: format!("leaf{at}"), tier: 1, nodes: of_leaf(at) };
        let mut domains: Vec<Domain> = (0..count).map(leaf).collect();
        if highest > 1 {
            domains.push(Domain { name: "spine".into(), tier: 2, nodes: all() });
        }
        domains
    }

    /// The pods that the preemptor needs to start.
    pub fn required(&self) -> Vec<Amounts> {
        self.preemptor
            .pods
            .iter()
            .take(self.preemptor.minimum)
            .map(|&(_, request)| request)
            .collect()
    }

    pub fn pods_of(&self, gang: usize) -> Pods {
        self.set(|pod| pod.gang == gang)
    }

    pub fn pods_in(&self, domain: &Domain) -> Pods {
        self.set(|pod| domain.nodes.contains(&pod.node))
    }

    fn set(&self, belongs: impl Fn(&Pod) -> bool) -> Pods {
        self.pods
            .iter()
            .enumerate()
            .filter(|(_, pod)| belongs(pod))
            .fold(0, |set, (at, _)| set | 1 << at)
    }

    /// What is free on each node once these pods have left.
    pub fn free_without(&self, gone: Pods) -> Vec<Amounts> {
        let mut free = self.nodes.clone();
        for (at, pod) in self.pods.iter().enumerate() {
            if gone & 1 << at == 0 {
                add(&mut free[pod.node], pod.request, -1);
            }
        }
        free
    }

    pub fn requests(&self, pods: Pods) -> Amounts {
        let mut sum = [0; 2];
        members(pods).for_each(|pod| add(&mut sum, self.pods[pod].request, 1));
        sum
    }

    /// Whether the preemptor fits into the domain once these pods have left.
    pub fn holds(&self, domain: &Domain, gone: Pods) -> bool {
        let free = self.free_without(gone);
        let free: Vec<Amounts> = domain.nodes.iter().map(|&node| free[node]).collect();
        packing::fits(&self.required(), &free)
    }

    /// Whether these pods meet the minimum of a gang and of its roles.
    fn stands(&self, gang: usize, pods: Pods) -> bool {
        let of_role =
            |role| members(pods).filter(|&pod| self.pods[pod].role == role).count() as u32;
        let Gang { minimum, roles, .. } = &self.gangs[gang];
        pods.count_ones() >= *minimum
            && roles
                .is_none_or(|roles| (0..).zip(roles).all(|(role, least)| of_role(role) >= least))
    }

    /// Whether evicting these pods breaks the gang. A gang that is broken already can't be broken.
    pub fn breaks(&self, gang: usize, gone: Pods) -> bool {
        let all = self.pods_of(gang);
        all & gone != 0 && self.stands(gang, all) && !self.stands(gang, all & !gone)
    }

    /// Whether the preemptor may evict pods of a gang at all.
    pub fn in_scope(&self, gang: usize) -> bool {
        let gang = &self.gangs[gang];
        let reaches = match self.purpose {
            Purpose::Preempt => {
                gang.queue == self.preemptor.queue && gang.priority < self.preemptor.priority
            }
            Purpose::Reclaim => gang.queue != self.preemptor.queue,
        };
        reaches && !gang.protected
    }

    /// Whether quotas allow these evictions in some order: each while its queue uses more than it
    /// deserves of a resource that the preemptor requests and its queue deserves, and none that
    /// leaves the queue less than its guarantee. If these evictions are not allowed, neither are
    /// more.
    pub fn quotas_allow(&self, gone: Pods) -> bool {
        if self.purpose == Purpose::Preempt {
            return true;
        }
        let own = self.requests(self.set(|pod| self.gangs[pod.gang].queue == self.preemptor.queue));
        let (request, deserved) =
            (self.preemptor.pods[0].1, self.queues[self.preemptor.queue].deserved);
        let asked = [0, 1].map(|id| request[id] > 0 && own[id] + request[id] <= deserved[id]);
        (0..self.queues.len()).all(|queue| {
            let theirs = self.set(|pod| self.gangs[pod.gang].queue == queue);
            let leave = theirs & gone;
            let (used, lost) = (self.requests(theirs), self.requests(leave));
            let Queue { deserved, guarantee, .. } = &self.queues[queue];
            let guaranteed = (0..2).all(|id| lost[id] == 0 || used[id] - lost[id] >= guarantee[id]);
            // When the last one is chosen, all others have left.
            let may_be_last = |pod: usize| {
                let request = self.pods[pod].request;
                (0..2).any(|id| asked[id] && used[id] - lost[id] + request[id] > deserved[id])
            };
            leave == 0 || guaranteed && members(leave).any(may_be_last)
        })
    }

    /// Whether the preemptor's queue may use everything that it requests: it deserves it, and none
    /// of it is guaranteed to others.
    pub fn may_allocate(&self) -> bool {
        let mut wanted =
            self.requests(self.set(|pod| self.gangs[pod.gang].queue == self.preemptor.queue));
        self.required().into_iter().for_each(|request| add(&mut wanted, request, 1));
        let asked = |id: &usize| self.preemptor.pods[0].1[*id] > 0;
        let total = |id: usize| -> i64 { self.nodes.iter().map(|node| node[id]).sum() };
        let guaranteed = |id: usize| -> i64 {
            let others = (0..self.queues.len()).filter(|&queue| queue != self.preemptor.queue);
            others.map(|queue| self.queues[queue].guarantee[id]).sum()
        };
        let deserved = self.queues[self.preemptor.queue].deserved;
        self.purpose == Purpose::Preempt
            || (0..2).filter(asked).all(|id| wanted[id] <= total(id) - guaranteed(id))
                && (0..2).filter(asked).any(|id| wanted[id] <= deserved[id])
    }

    /// What the preemptor lacks in a domain, by resource. If the totals suffice but the pods don't
    /// fit (fragmentation), its full request.
    pub fn needed(&self, domain: &Domain) -> Amounts {
        let wanted = self.wanted();
        let free = self.free_without(0);
        let mut lack = wanted;
        domain.nodes.iter().for_each(|&node| add(&mut lack, free[node], -1));
        let lack = lack.map(|amount| amount.max(0));
        if lack == [0; 2] { wanted } else { lack }
    }

    /// How much is lost if these pods leave the domain, counted in the resources that are lacking
    /// there, in parts per million of what the preemptor wants. A gang that breaks loses all that
    /// it has.
    pub fn lost(&self, domain: &Domain, gone: Pods) -> i64 {
        let broken = (0..self.gangs.len()).filter(|&gang| self.breaks(gang, gone));
        let lost = broken.fold(gone, |lost, gang| lost | self.pods_of(gang));
        self.weighed(self.needed(domain), lost)
    }

    pub fn weighed(&self, needed: Amounts, lost: Pods) -> i64 {
        let (amounts, wanted) = (self.requests(lost), self.wanted());
        (0..2).filter(|&id| needed[id] > 0).map(|id| amounts[id] * 1_000_000 / wanted[id]).sum()
    }

    fn wanted(&self) -> Amounts {
        let mut wanted = [0; 2];
        self.required().into_iter().for_each(|request| add(&mut wanted, request, 1));
        wanted
    }

    /// How many queues give before this one: those that use a larger part of what they deserve. A
    /// queue that deserves nothing counts as if it used just what it deserves.
    pub fn queues_before(&self, queue: usize) -> i32 {
        let share = |queue: usize| {
            let used = self.requests(self.set(|pod| self.gangs[pod.gang].queue == queue));
            let deserved = self.queues[queue].deserved;
            let shares =
                (0..2).filter(|&id| deserved[id] > 0).map(|id| used[id] * 1_000_000 / deserved[id]);
            (shares.max().unwrap_or(1_000_000), deserved == [0; 2])
        };
        (0..self.queues.len()).filter(|&other| share(other) > share(queue)).count() as i32
    }
}
