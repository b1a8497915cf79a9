//! Random small clusters: gangs use most of the room, and one more starves.

use super::small::{Amounts, Domain, Gang, Pod, Preemptor, Purpose, Queue, Small, add};
use muster_sim::generate::draw::{Draw, Stream};

/// With more pods there are too many combinations to try.
const MOST_PODS: usize = 22;
const HIGHEST: i32 = 100;

/// The cluster of a seed. Its preemptor finds no room, but would if the cluster were empty.
pub fn small(seed: u64) -> Small {
    let mut draw = Draw::new(seed, Stream::SmallClusters);
    loop {
        let small = attempt(&mut draw);
        let free_for_it = |domain: &Domain| small.holds(domain, 0);
        let large_enough = |domain: &Domain| small.holds(domain, u32::MAX);
        let domains = small.domains();
        if domains.iter().any(large_enough) && !domains.iter().any(free_for_it) {
            return small;
        }
    }
}

fn attempt(draw: &mut Draw) -> Small {
    let purpose = draw.pick(&[(1, Purpose::Preempt), (1, Purpose::Reclaim)]);
    let gpus = draw.chance(40);
    let count = 2 + draw.below(7) as usize;
    let even = [4 + draw.below(5) as i64, if gpus { 2 + draw.below(7) as i64 } else { 0 }];
    let uneven = draw.chance(30);
    let nodes: Vec<Amounts> = (0..count)
        .map(|_| if uneven && draw.chance(50) { even.map(|of| (of + 1) / 2) } else { even })
        .collect();
    let leaves = (count > 2 && draw.chance(40)).then(|| {
        let width = 1 + draw.below(3) as usize;
        (0..count).map(|node| node / width).collect()
    });
    let highest_tier = leaves.is_some().then(|| draw.pick(&[(1, 1), (1, 2)]));
    let mut small = Small {
        purpose,
        nodes,
        leaves,
        queues: Vec::new(),
        gangs: Vec::new(),
        pods: Vec::new(),
        preemptor: preemptor(draw, purpose, gpus, highest_tier),
    };
    let one_priority = draw.chance(30);
    for _ in 0..2 + draw.below(5) {
        run(&mut small, draw, gpus, one_priority);
    }
    small.queues = queues(&small, draw);
    small
}

fn request(draw: &mut Draw, gpus: bool) -> Amounts {
    [1 + draw.below(3) as i64, if gpus { draw.below(4) as i64 } else { 0 }]
}

fn preemptor(draw: &mut Draw, purpose: Purpose, gpus: bool, highest_tier: Option<u8>) -> Preemptor {
    let size = 1 + draw.below(5) as usize;
    let one = request(draw, gpus);
    let mut preemptor = Preemptor {
        queue: 0,
        priority: if purpose == Purpose::Preempt { HIGHEST } else { 0 },
        pods: vec![(0, one); size],
        minimum: 1 + draw.below(size as u64) as usize,
        highest_tier,
    };
    if size > 1 && draw.chance(30) {
        // A leader and workers; all are needed.
        preemptor.pods[0].1 = request(draw, gpus);
        preemptor.pods[1..].iter_mut().for_each(|pod| pod.0 = 1);
        preemptor.minimum = size;
    }
    // Growing beyond the minimum by evicting surplus pods is not part of the comparison.
    preemptor.pods.truncate(preemptor.minimum);
    preemptor
}

/// Puts a gang where there is room; pods without room are left out.
fn run(small: &mut Small, draw: &mut Draw, gpus: bool, one_priority: bool) {
    let requests = [request(draw, gpus), request(draw, gpus)];
    let with_roles = draw.chance(25);
    let gang = small.gangs.len();
    let mut of_role = [0, 0];
    for at in 0..1 + draw.below(5) {
        let role = if with_roles && at > 0 { 1 } else { 0 };
        let free = small.free_without(0);
        let has_room = |node: &usize| (0..2).all(|id| requests[role][id] <= free[*node][id]);
        let open: Vec<usize> = (0..small.nodes.len()).filter(has_room).collect();
        if open.is_empty() || small.pods.len() == MOST_PODS {
            continue;
        }
        // The first node that has room, as a scheduler that packs would choose, or any.
        let node =
            if draw.chance(50) { open[0] } else { open[draw.below(open.len() as u64) as usize] };
        small.pods.push(Pod { gang, role, node, request: requests[role] });
        of_role[role] += 1;
    }
    let pods = of_role[0] + of_role[1];
    if pods == 0 {
        return;
    }
    let roles = with_roles.then(|| [of_role[0], draw.below(u64::from(of_role[1]) + 1) as u32]);
    let least = roles.map_or(1, |roles| roles.iter().sum::<u32>()).max(1);
    let minimum = match draw.below(20) {
        // It has lost some pods and is broken.
        0 => pods + 1,
        1..=7 => pods,
        _ => least + draw.below(u64::from(pods - least) + 1) as u32,
    };
    small.gangs.push(Gang {
        queue: match small.purpose {
            Purpose::Preempt => draw.pick(&[(9, 0), (1, 1)]),
            Purpose::Reclaim => draw.pick(&[(1, 0), (5, 1), (4, 2)]),
        },
        priority: if one_priority { 1 } else { draw.pick(&[(3, 1), (3, 2), (3, 3), (1, HIGHEST)]) },
        minimum,
        roles,
        protected: draw.chance(5),
    });
}

/// Two queues that use about as much as they deserve or more, and one that mostly deserves what the
/// preemptor requests.
fn queues(small: &Small, draw: &mut Draw) -> Vec<Queue> {
    let used = |queue: usize| {
        let mut used = [0; 2];
        let theirs = small.pods.iter().filter(|pod| small.gangs[pod.gang].queue == queue);
        theirs.for_each(|pod| add(&mut used, pod.request, 1));
        used
    };
    let mut wanted = used(0);
    small.required().into_iter().for_each(|request| add(&mut wanted, request, 1));
    let short = draw.chance(4);
    let wanted = wanted.map(|amount| if short { (amount - 1).max(0) } else { amount });
    let mut queues = vec![Queue { name: "own", deserved: wanted, guarantee: [0; 2] }];
    for (queue, name) in [(1, "red"), (2, "blue")] {
        let mut deserved = [0; 2];
        if small.purpose == Purpose::Reclaim && draw.chance(70) {
            deserved = used(queue).map(|amount| draw.below(amount as u64 + 1) as i64);
        }
        let guaranteed = draw.chance(30);
        let guarantee = deserved.map(|amount| if guaranteed { amount / 2 } else { 0 });
        queues.push(Queue { name, deserved, guarantee });
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_clusters_are_small_and_of_all_kinds() {
        let clusters: Vec<Small> = (0..300).map(small).collect();
        let share =
            |what: &dyn Fn(&Small) -> bool| clusters.iter().filter(|small| what(small)).count();
        assert!(clusters.iter().all(|small| (2..=8).contains(&small.nodes.len())));
        assert!(
            clusters.iter().all(|small| small.pods.len() <= MOST_PODS && small.gangs.len() <= 6)
        );
        let kinds: [&dyn Fn(&Small) -> bool; 5] = [
            &|small| small.purpose == Purpose::Preempt,
            &|small| small.purpose == Purpose::Reclaim,
            &|small| small.preemptor.highest_tier.is_some(),
            &|small| small.nodes[0][1] > 0,
            &|small| small.gangs.iter().any(|gang| gang.roles.is_some()),
        ];
        for (at, kind) in kinds.into_iter().enumerate() {
            assert!(share(kind) > 60, "only {} of kind {at}", share(kind));
        }
    }
}
