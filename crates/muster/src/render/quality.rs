//! How good the choice of victims is, as tables.

use muster_bench::quality::{Bin, Distribution, Gaps, Load, Played};
use muster_engine::explain::{counted, grouped};

use super::screen::Screen;
use super::table::{Row, Table};
use super::text::{BAD, BOLD, GOOD, bar, styled};
use crate::failure::Failure;
use crate::terminal;

/// How many seeds are named.
const SEEDS: usize = 6;
const BAR_CELLS: usize = 40;

pub fn print(gaps: &Gaps, load: &Load) -> Result<(), Failure> {
    Ok(terminal::print(&lines(gaps, load, Screen::of_output()).join("\n"))?)
}

fn lines(gaps: &Gaps, load: &Load, screen: Screen) -> Vec<String> {
    let clusters = grouped(gaps.clusters);
    let mut lines = vec![styled(
        BOLD,
        format!("Mode gang compared with the optimum, on {clusters} small clusters"),
    )];
    lines.extend(outcomes(gaps).lines(screen.end()));
    lines.push(String::new());
    lines.extend(distribution(&gaps.gap));
    lines.push(String::new());
    lines.push(styled(BOLD, "A working day in each mode"));
    lines.push(format!("{}; waits as median/p90/p99", summary(load)));
    lines.extend(days(load).lines(screen.end()));
    lines
}

/// "64 nodes with 512 GPUs, 850 gangs in 12 hours".
pub fn summary(load: &Load) -> String {
    let nodes = counted(u64::from(load.nodes), "node");
    let (gpus, gangs) = (grouped(u64::from(load.gpus)), grouped(load.gangs as u64));
    format!("{nodes} with {gpus} GPUs, {gangs} gangs in {} hours", load.hours)
}

fn outcomes(gaps: &Gaps) -> Table {
    let mut table = Table::new(&["OUTCOME", "CLUSTERS", "SEEDS"]);
    let mut never = |what: &str, seeds: &[u64]| {
        let style = if seeds.is_empty() { GOOD } else { BAD };
        table.push(
            Row::default().cell(what).styled(grouped(seeds.len() as u64), style).cell(named(seeds)),
        );
    };
    let wrong: Vec<u64> = gaps.wrong.iter().map(|&(seed, _)| seed).collect();
    never("a rule is violated", &wrong);
    never("room can be made, none is found", &gaps.missed);
    never("a pod is evicted needlessly", &gaps.needless);
    never("a gang is broken, surplus would suffice", &gaps.breaks_for_nothing);
    never("a nearer domain would suffice", &gaps.farther);
    never("lower priorities would suffice", &gaps.too_high);
    let mut plain = |what: &str, clusters: u64| {
        table.push(Row::default().cell(what).cell(grouped(clusters)).cell(""));
    };
    plain("room can't be made, none is found", gaps.nothing);
    plain("equal in all of these: compared below", gaps.gap.clusters);
    table
}

fn named(seeds: &[u64]) -> String {
    let names: Vec<String> = seeds.iter().take(SEEDS).map(ToString::to_string).collect();
    let more = seeds.len().saturating_sub(SEEDS);
    names.join(" ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn distribution(gap: &Distribution) -> Vec<String> {
    let mut lines = vec![
        styled(BOLD, "Loss above the optimum"),
        format!(
            "median {}, mean {}, p90 {}, p99 {}, largest {}",
            percent(gap.median),
            percent(gap.mean),
            percent(gap.p90),
            percent(gap.p99),
            percent(gap.largest)
        ),
    ];
    let mut least = 0.0;
    for Bin { up_to, clusters } in &gap.histogram {
        let name = match up_to {
            Some(0.0) => "nothing".to_owned(),
            Some(most) => format!("up to {:.0} %", most * 100.0),
            None => format!("over {:.0} %", least * 100.0),
        };
        least = up_to.unwrap_or(least);
        lines.push(format!(
            "{name:>12} {} {}",
            bar(*clusters, gap.clusters, BAR_CELLS),
            grouped(*clusters)
        ));
    }
    if !gap.worst.is_empty() {
        let worst = gap.worst.iter().map(|&(seed, gap)| format!("{seed} ({})", percent(gap)));
        lines.push(format!("worst seeds: {}", worst.collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn days(load: &Load) -> Table {
    let headers: Vec<&'static str> =
        [""].into_iter().chain(load.modes.iter().map(|mode| mode.mode)).collect();
    let mut table = Table::new(&headers);
    let mut row = |name: String, figure: &dyn Fn(&Played) -> String| {
        table.push(
            load.modes.iter().fold(Row::default().cell(name), |row, mode| row.cell(figure(mode))),
        );
    };
    row("GPU utilisation".into(), &|mode| percent(mode.utilisation));
    let classes = load.modes.first().map_or(0, |mode| mode.waits.len());
    for at in 0..classes {
        let waits = |mode: &Played| {
            let waits = &mode.waits[at];
            [waits.median_seconds, waits.p90_seconds, waits.p99_seconds].map(duration).join("/")
        };
        let waits_of = &load.modes[0].waits[at];
        let of = waits_of.class.as_deref().unwrap_or("all");
        row(format!("waits of {} {of}", waits_of.gangs), &waits);
    }
    row("finished within the day".into(), &|mode| grouped(mode.finished as u64));
    row("pods evicted".into(), &|mode| grouped(mode.evicted_pods as u64));
    row("of these, moved to other nodes".into(), &|mode| grouped(mode.moved_pods as u64));
    row("gangs broken".into(), &|mode| grouped(mode.broken_gangs as u64));
    row("GPU hours wasted".into(), &|mode| grouped(mode.wasted_gpu_hours.round() as u64));
    table
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// In the largest unit of which there is at least one: "2s", "53min", "1.5h", "4d".
pub fn duration(seconds: f64) -> String {
    let (amount, unit) = match seconds {
        _ if seconds < 60.0 => (seconds, "s"),
        _ if seconds < 3_600.0 => (seconds / 60.0, "min"),
        _ if seconds < 86_400.0 => (seconds / 3_600.0, "h"),
        _ => (seconds / 86_400.0, "d"),
    };
    let tenths = (amount * 10.0).round();
    if tenths % 10.0 == 0.0 {
        format!("{:.0}{unit}", tenths / 10.0)
    } else {
        format!("{:.1}{unit}", tenths / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let seconds = [0.0, 1.0, 59.0, 90.0, 3_600.0, 5_400.0, 86_400.0, 131_707.0];
        assert_eq!(
            seconds.map(duration),
            ["0s", "1s", "59s", "1.5min", "1h", "1.5h", "1d", "1.5d"]
        );
    }

    #[test]
    fn many_seeds_are_not_all_named() {
        assert_eq!(named(&[]), "");
        assert_eq!(named(&[1, 2]), "1 2");
        assert_eq!(named(&[1, 2, 3, 4, 5, 6, 7]), "1 2 3 4 5 6 and 1 more");
    }
}
