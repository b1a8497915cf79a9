//! A small cluster in words: which pods run where, which were evicted, and which should have been.

use std::fmt::Write;

use super::manifests::{action, gang_name, pod_name};
use super::optimum::Solution;
use super::small::{Amounts, Gang, Pods, Purpose, Small, members};
use super::verdict::{Outcome, Verdict};

pub fn describe(seed: u64, small: &Small, verdict: &Verdict) -> String {
    let mut text = String::new();
    write(seed, small, verdict, &mut text).expect("writing to a string can't fail");
    text
}

fn write(seed: u64, small: &Small, verdict: &Verdict, out: &mut String) -> std::fmt::Result {
    writeln!(out, "small cluster {seed}: {}", action(small.purpose))?;
    let free = small.free_without(0);
    for (node, &has) in small.nodes.iter().enumerate() {
        let leaf = small
            .leaves
            .as_ref()
            .map_or(String::new(), |leaves| format!(" in leaf{}", leaves[node]));
        writeln!(out, "  n{node}{leaf} has {}, free {}", amounts(has), amounts(free[node]))?;
    }
    if small.purpose == Purpose::Reclaim {
        for (at, queue) in small.queues.iter().enumerate() {
            let gangs = (0..small.gangs.len()).filter(|&gang| small.gangs[gang].queue == at);
            let has = gangs.fold(0, |pods, gang| pods | small.pods_of(gang));
            let (has, deserved) = (amounts(small.requests(has)), amounts(queue.deserved));
            let guaranteed = amounts(queue.guarantee);
            writeln!(
                out,
                "  queue {} has {has}, deserves {deserved}, guaranteed {guaranteed}",
                queue.name
            )?;
        }
    }
    for gang in 0..small.gangs.len() {
        write_gang(small, gang, out)?;
    }
    let preemptor = &small.preemptor;
    let pods: Vec<String> = preemptor.pods.iter().map(|&(_, request)| amounts(request)).collect();
    let near = preemptor.highest_tier.map_or(String::new(), |tier| format!(", within tier {tier}"));
    writeln!(out, "  preemptor starts with {} of {}{near}", preemptor.minimum, pods.join(" | "))?;
    writeln!(out, "engine: {}", way(small, verdict.chosen.as_ref()))?;
    writeln!(out, "best:   {}", way(small, verdict.best.as_ref()))?;
    for &pods in &verdict.needless {
        writeln!(out, "needless: {}", names(small, pods))?;
    }
    writeln!(out, "{}", sentence(&verdict.outcome))
}

fn write_gang(small: &Small, gang: usize, out: &mut String) -> std::fmt::Result {
    let Gang { queue, priority, minimum, roles, protected } = &small.gangs[gang];
    write!(out, "  {} of {}, priority {priority}, ", gang_name(gang), small.queues[*queue].name)?;
    write!(out, "needs {minimum}")?;
    if let Some([first, second]) = roles {
        write!(out, " ({first} of r0, {second} of r1)")?;
    }
    if *protected {
        write!(out, ", can't be evicted")?;
    }
    let place = |pod: usize| {
        let row = &small.pods[pod];
        let role = roles.map_or(String::new(), |_| format!(" r{}", row.role));
        format!("{}{role} on n{} ({})", pod_name(small, pod), row.node, amounts(row.request))
    };
    let pods: Vec<String> = members(small.pods_of(gang)).map(place).collect();
    writeln!(out, ": {}", pods.join(", "))
}

fn way(small: &Small, solution: Option<&Solution>) -> String {
    let Some(Solution { domain, gone, cost }) = solution else { return "finds nothing".into() };
    let broken: Vec<String> =
        (0..small.gangs.len()).filter(|&gang| small.breaks(gang, *gone)).map(gang_name).collect();
    let broken =
        if broken.is_empty() { String::new() } else { format!(", breaks {}", broken.join(", ")) };
    let priority = if small.purpose == Purpose::Preempt {
        format!(", up to priority {}", cost.priority)
    } else {
        String::new()
    };
    let lost = cost.lost as f64 / 1e6;
    format!(
        "{} are evicted from {}{broken}{priority}; loss {lost:.2} of what is needed, {}",
        names(small, *gone),
        domain.name,
        amounts(small.needed(domain))
    )
}

fn names(small: &Small, pods: Pods) -> String {
    let names: Vec<String> = members(pods).map(|pod| pod_name(small, pod)).collect();
    names.join(", ")
}

fn sentence(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Nothing => "Room can't be made.".into(),
        Outcome::Missed => "Room can be made, but the engine doesn't find it.".into(),
        Outcome::Wrong(what) => format!("A rule is violated: {what}."),
        Outcome::BreaksForNothing => "A gang is broken though surplus pods would suffice.".into(),
        Outcome::FartherThanNeeded => "A nearer domain would suffice.".into(),
        Outcome::TooHigh => "Gangs of lower priority would suffice.".into(),
        Outcome::Gap(0) => "Nothing better is possible.".into(),
        Outcome::Gap(gap) => format!("{:.0} % more is lost than necessary.", *gap as f64 / 1e4),
    }
}

fn amounts([cores, gpus]: Amounts) -> String {
    if gpus == 0 { format!("{cores} cpu") } else { format!("{cores} cpu {gpus} gpu") }
}
