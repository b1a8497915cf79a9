//! A run for people: what happened, the state at the end, and a map of the cluster.

use muster_engine::explain::counted;
use muster_sim::Simulation;

use super::screen::Screen;
use super::text::{BOLD, Names, styled};
use super::{gangs, jobs, map, queues, timeline};
use crate::failure::Failure;
use crate::terminal;

/// Prints the story, the gangs, the queues and the map.
pub fn print(simulation: &Simulation, wide: bool) -> Result<(), Failure> {
    Ok(terminal::print(&story(simulation, wide, Screen::of_output()).join("\n"))?)
}

fn story(simulation: &Simulation, wide: bool, screen: Screen) -> Vec<String> {
    let cluster = simulation.engine.cluster();
    let report = &simulation.report;
    let gangs = report.gangs.iter().map(|gang| gang.name.as_str());
    let names = Names::new(gangs.chain(report.jobs.iter().map(|job| job.name.as_str())));
    let known = |queue: &muster_facts::QueueLine| {
        simulation.world.queues.contains_key(&queue.name)
            || queue.name != "root" && report.gangs.iter().any(|gang| gang.queue == queue.name)
    };
    let parts = [
        vec![header(simulation, report.queues.iter().filter(|queue| known(queue)).count())],
        timeline::lines(simulation, &names, screen),
        jobs::lines(&report.jobs, &names, screen),
        gangs::lines(cluster, &report.gangs, &names, wide, screen),
        queues::lines(&report.queues, known, screen),
        map::lines(cluster, &names, screen),
    ];
    let parts: Vec<Vec<String>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(&String::new())
}

/// "at 2026-11-15T00:00:00Z: 2 nodes, 12 pods, 3 gangs, 1 queue". With `--now` and this time the
/// run can be repeated.
fn header(simulation: &Simulation, queues: usize) -> String {
    let cluster = simulation.engine.cluster();
    let counts = [
        (simulation.world.nodes.len(), "node"),
        (simulation.world.pods.len(), "pod"),
        (cluster.gangs.iter().count(), "gang"),
        (queues, "queue"),
    ];
    let mut counts = counts.map(|(count, noun)| counted(count as u64, noun)).to_vec();
    if !simulation.report.jobs.is_empty() {
        counts.insert(1, counted(simulation.report.jobs.len() as u64, "job"));
    }
    let counts = counts.join(", ");
    format!("at {}: {counts}", styled(BOLD, &simulation.report.now))
}
