//! A small cluster as manifests, for the engine and for use with other commands.

use std::fmt::Write;

use super::small::{Amounts, Purpose, Small};
use muster_api::Time;
use muster_sim::generate::DEFAULT_START;

pub const START: Time = Time(DEFAULT_START * 1000);
pub const PREEMPTOR: &str = "preemptor";

/// The configuration for making room.
pub fn config(purpose: Purpose) -> String {
    let action = action(purpose);
    format!(
        "actions: \"enqueue, allocate, backfill, {action}\"\nconfigurations:\n- name: {action}\n  arguments: {{mode: gang}}\n\
         tiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: conformance\n- plugins:\n  - name: predicates\n  \
         - name: capacity\n  - name: nodeorder\n  - name: binpack\n  - name: network-topology-aware\n"
    )
}

pub fn action(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Preempt => "preempt",
        Purpose::Reclaim => "reclaim",
    }
}

pub fn gang_name(gang: usize) -> String {
    format!("g{gang}")
}

/// The n-th running pod; its name contains its gang.
pub fn pod_name(small: &Small, pod: usize) -> String {
    let gang = small.pods[pod].gang;
    let before = small.pods[..pod].iter().filter(|other| other.gang == gang).count();
    format!("{}-{before}", gang_name(gang))
}

pub fn text(small: &Small) -> String {
    let mut text = String::new();
    write(small, &mut text).expect("writing to a string can't fail");
    text
}

fn write(small: &Small, out: &mut String) -> std::fmt::Result {
    let mut priorities: Vec<i32> = small.gangs.iter().map(|gang| gang.priority).collect();
    priorities.push(small.preemptor.priority);
    priorities.sort_unstable();
    priorities.dedup();
    for value in priorities {
        writeln!(
            out,
            "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: p{value}}}\nvalue: {value}"
        )?;
    }
    for queue in &small.queues {
        let mut spec = format!("weight: 1, deserved: {{{}}}", amounts(queue.deserved, true));
        if queue.guarantee != [0; 2] {
            write!(spec, ", guarantee: {{resource: {{{}}}}}", amounts(queue.guarantee, false))?;
        }
        let name = queue.name;
        writeln!(
            out,
            "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{{spec}}}"
        )?;
    }
    write_network(small, out)?;
    for (node, &has) in small.nodes.iter().enumerate() {
        let has = amounts(has, false);
        writeln!(
            out,
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{node}}}\nstatus: {{allocatable: {{{has}, memory: 64Gi, pods: 40}}}}"
        )?;
    }
    for (at, gang) in small.gangs.iter().enumerate() {
        let mut more = String::new();
        if let Some([first, second]) = gang.roles {
            write!(more, ", minTaskMember: {{r0: {first}, r1: {second}}}")?;
        }
        let protected = if gang.protected { "volcano.sh/preemptable: \"false\"" } else { "" };
        let spec = (gang.minimum as usize, small.queues[gang.queue].name, gang.priority);
        write_group(out, &gang_name(at), protected, spec, &more, "Running")?;
    }
    for (at, pod) in small.pods.iter().enumerate() {
        let place = Some(pod.node);
        write_pod(out, &pod_name(small, at), &gang_name(pod.gang), pod.role, pod.request, place)?;
    }
    write_preemptor(small, out)
}

fn write_preemptor(small: &Small, out: &mut String) -> std::fmt::Result {
    let preemptor = &small.preemptor;
    let mut more = String::new();
    let others = preemptor.pods.iter().filter(|&&(role, _)| role == 1).count();
    if others > 0 {
        write!(more, ", minTaskMember: {{r0: {}, r1: {others}}}", preemptor.pods.len() - others)?;
    }
    if let Some(tier) = preemptor.highest_tier {
        write!(more, ", networkTopology: {{mode: hard, highestTierAllowed: {tier}}}")?;
    }
    let spec = (preemptor.minimum, small.queues[preemptor.queue].name, preemptor.priority);
    write_group(out, PREEMPTOR, "", spec, &more, "Inqueue")?;
    for (at, &(role, request)) in preemptor.pods.iter().enumerate() {
        write_pod(out, &format!("{PREEMPTOR}-{at}"), PREEMPTOR, role, request, None)?;
    }
    Ok(())
}

fn write_network(small: &Small, out: &mut String) -> std::fmt::Result {
    let Some(leaves) = &small.leaves else { return Ok(()) };
    let count = leaves.iter().max().map_or(0, |last| last + 1);
    let mut domain = |name: &str, tier: u8, kind: &str, members: Vec<String>| {
        let member =
            |name: &String| format!("{{type: {kind}, selector: {{exactMatch: {{name: {name}}}}}}}");
        let members: Vec<String> = members.iter().map(member).collect();
        writeln!(
            out,
            "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\nspec: {{tier: {tier}, members: \
             [{}]}}",
            members.join(", ")
        )
    };
    for leaf in 0..count {
        let nodes = (0..small.nodes.len()).filter(|&node| leaves[node] == leaf);
        domain(&format!("leaf{leaf}"), 1, "Node", nodes.map(|node| format!("n{node}")).collect())?;
    }
    domain("spine", 2, "HyperNode", (0..count).map(|leaf| format!("leaf{leaf}")).collect())
}

fn write_group(
    out: &mut String,
    name: &str,
    annotations: &str,
    (minimum, queue, priority): (usize, &str, i32),
    more: &str,
    phase: &str,
) -> std::fmt::Result {
    writeln!(
        out,
        "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}, namespace: default, \
         creationTimestamp: \"{START}\", annotations: {{{annotations}}}}}\nspec: {{minMember: {minimum}, queue: {queue}, \
         priorityClassName: p{priority}{more}}}\nstatus: {{phase: {phase}}}"
    )
}

fn write_pod(
    out: &mut String,
    name: &str,
    gang: &str,
    role: usize,
    request: Amounts,
    node: Option<usize>,
) -> std::fmt::Result {
    let request = amounts(request, false);
    let (place, phase) = match node {
        Some(node) => (format!("nodeName: n{node}, "), "Running"),
        None => (String::new(), "Pending"),
    };
    writeln!(
        out,
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, creationTimestamp: \"{START}\", labels: \
         {{volcano.sh/task-spec: r{role}}}, annotations: {{scheduling.k8s.io/group-name: {gang}}}}}\nspec: {{schedulerName: volcano, \
         {place}containers: [{{name: main, image: busybox, resources: {{requests: {{{request}}}}}}}]}}\nstatus: {{phase: {phase}}}"
    )
}

/// The inside of a YAML mapping. A resource of which a queue deserves nothing must be written as 0.
fn amounts([cores, gpus]: Amounts, zeros: bool) -> String {
    let gpu = if gpus > 0 || zeros { format!(", nvidia.com/gpu: {gpus}") } else { String::new() };
    format!("cpu: {cores}{gpu}")
}
