//! One gang needs a whole rack, and every rack is taken: which one is cleared can be told by the
//! table of docs/evictions.md alone.

use crate::case::Case;
use crate::cluster::{
    Amounts, Budget, CPU, Cluster, Disruptions, Gang, HyperNode, Labels, Node, Pod, Queue, Topology,
};
use crate::config::{Config, Mode};
use crate::draw::Draw;
use crate::generate::classes;

pub const FAMILY: &str = "racks";
/// The gang that needs a rack.
pub const NEED: &str = "default/need";
/// How many CPUs each of its pods wants.
const WANTED: i64 = 16_000;

pub fn case(seed: u64, draw: &mut Draw) -> Case {
    let reclaims = draw.chance(35);
    let action = if reclaims { "reclaim" } else { "preempt" };
    let mode = match reclaims {
        true => draw.pick(&[Mode::Gang, Mode::Gang, Mode::Task]),
        false => draw.pick(&[Mode::Gang, Mode::Gang, Mode::Scenario, Mode::Scenario, Mode::Task]),
    };
    let config = Config {
        actions: vec!["enqueue", "allocate", action],
        preempt: mode,
        reclaim: mode,
        pdb: draw.chance(40),
        capacity: reclaims,
        flavours: if draw.chance(50) { vec!["nodeorder"] } else { Vec::new() },
        priority_first: draw.chance(20),
        ..Config::default()
    };
    let mut cluster = Cluster { classes: classes(), ..Cluster::default() };
    let queues = if reclaims { 1 + draw.between(1, 3) } else { 1 };
    let size = if mode == Mode::Task { 1 } else { draw.pick(&[1, 1, 2]) };
    let hard = size > 1 || draw.chance(60);
    // Equal racks leave the return of each gang equal, too.
    let spread = if draw.chance(50) { 4 } else { 0 };
    let racks = draw.pick(&[2, 2, 3, 4, 6, 10, 12]);
    for at in 0..racks {
        rack(&mut cluster, draw, at, size, queues, spread);
    }
    let even = draw.chance(30);
    cluster.queues = (0..queues).map(|at| queue(draw, at, reclaims, even, &cluster)).collect();
    if !hard {
        cluster.hypernodes.clear();
    }
    need(&mut cluster, size, hard);
    Case { seed, family: FAMILY, cluster, config, cycles: 2, recreate: false }
}

fn gang(name: &str, queue: usize, class: &str, min_member: usize, created: i64) -> Gang {
    Gang {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        queue: format!("q{queue}"),
        class: class.to_owned(),
        min_member,
        created,
        admitted: true,
        ..Gang::default()
    }
}

fn pod(gang: &Gang, at: usize, cpu: i64) -> Pod {
    Pod {
        namespace: gang.namespace.clone(),
        name: format!("{}-{at}", gang.name),
        group: Some(gang.name.clone()),
        labels: Labels::from([("app".to_owned(), gang.name.clone())]),
        class: gang.class.clone(),
        request: Amounts([cpu, 0, 0, 1]),
        created: gang.created,
        ..Pod::default()
    }
}

fn node(cluster: &mut Cluster, name: String, cpu: i64) {
    let labels = Labels::from([("kubernetes.io/hostname".to_owned(), name.clone())]);
    let allocatable = Amounts([cpu, 1024, 0, 110]);
    cluster.nodes.push(Node { name, labels, taint: None, allocatable });
}

/// A rack of some nodes, each filled by one pod of the same gang. The pods are all of the gang, or it
/// could spare them, since it has its minimum on nodes that are too small for others.
fn rack(
    cluster: &mut Cluster,
    draw: &mut Draw,
    at: usize,
    size: usize,
    queues: usize,
    spread: usize,
) {
    let class = draw.pick(&["low", "low", "mid", "mid", "high"]);
    let spare = draw.chance(40);
    let queue = if queues > 1 { draw.between(1, queues - 1) } else { 0 };
    let created = -(draw.between(3000, 80_000) as i64);
    let mut holder = gang(&format!("h{at}"), queue, class, if spare { 1 } else { size }, created);
    holder.preemptable = draw.chance(15).then_some(false);
    let mut nodes = Vec::new();
    for part in 0..size {
        let name = format!("r{at}-{part}");
        let cpu = WANTED + 1000 * draw.below(spread + 1) as i64;
        node(cluster, name.clone(), cpu);
        let mut pod = pod(&holder, part, cpu);
        pod.runs = Some((name.clone(), created + 60));
        cluster.pods.push(pod);
        nodes.push(name);
    }
    if spare {
        let name = format!("s{at}");
        node(cluster, name.clone(), 1000);
        let mut pod = pod(&holder, size, 1000);
        pod.runs = Some((name, created + 60));
        cluster.pods.push(pod);
    }
    if draw.chance(25) {
        let app = holder.name.clone();
        let limit = Disruptions::MaxUnavailable(0);
        cluster.budgets.push(Budget { namespace: "default".into(), name: app.clone(), app, limit });
    }
    cluster.hypernodes.push(HyperNode { name: format!("rack{at}"), tier: 1, members: nodes });
    cluster.gangs.push(holder);
}

/// The first queue deserves all that it needs, the others far less than they have: as much less, if
/// they are even.
fn queue(draw: &mut Draw, at: usize, reclaims: bool, even: bool, cluster: &Cluster) -> Queue {
    let name = format!("q{at}");
    let total: i64 = cluster.nodes.iter().map(|node| node.allocatable.0[CPU]).sum();
    let own = cluster.pods.iter().filter(|pod| cluster.queue_of(pod) == name);
    let used: i64 = own.map(|pod| pod.request.0[CPU]).sum();
    let deserved = match at {
        0 => total,
        _ if even => used / 4,
        _ => 1000 * draw.between(1, 12) as i64,
    };
    Queue {
        name,
        weight: 1,
        deserved: if reclaims { [Some(deserved), None, None] } else { [None; 3] },
        ..Queue::default()
    }
}

fn need(cluster: &mut Cluster, size: usize, hard: bool) {
    let mut need = gang("need", 0, "high", size, -600);
    need.topology = hard.then_some(Topology { hard: true, highest_tier: 1 });
    let pods: Vec<Pod> = (0..size).map(|at| pod(&need, at, WANTED)).collect();
    cluster.pods.extend(pods);
    cluster.gangs.push(need);
}
