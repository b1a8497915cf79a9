//! The measured figures, and the bars that they should not exceed.

use std::fmt;

use serde::Serialize;

/// The bar of each figure. `docs/performance.md` shows them with measured figures.
pub const BARS: [(&str, f64); 27] = [
    ("allocate, 3,000-pod gang, 8 GPUs per pod, 5,000 nodes", 80.0),
    ("allocate, 3,000-pod gang: 20,000 nodes relative to 5,000", 3.0),
    ("allocate, 500 gangs of 10: time per pod relative to the 3,000-pod gang", 4.0),
    ("allocate, 5,000 pods of 50 shapes: time per pod relative to the 3,000-pod gang", 12.0),
    ("idle cycle, 5,000 nodes, 1,000 waiting gangs", 10.0),
    ("idle cycle, 20,000 nodes, 1,000 waiting gangs", 10.0),
    ("one event applied", 6.0),
    ("allocate, 512-pod gang, hard tier 2: time relative to no topology", 2.0),
    ("allocate, 3,000-pod gang, hard tier 3: time relative to no topology", 2.0),
    ("allocate, 100 subgroups of 8, hard tier 1 in tier 3: time relative to no topology", 3.0),
    ("allocate, 512-pod gang, hard tier 2: 20,000 nodes relative to 5,000", 3.0),
    ("allocate, 100 subgroups of 10, hard tier 1, 1,000 nodes", 10.0),
    ("build a tree of HyperNodes by label, 5,000 nodes", 1.0),
    ("preempt, 1 pod, 5,000 nodes, 40,000 pods: time relative to evicting all and undoing it", 2.0),
    ("first cycle that restores 10,000 nominations", 20.0),
    ("preempt, 1,000-pod gang, 1,000 nodes: time relative to an empty cluster", 6.0),
    ("preempt, 3,000-pod gang, 5,000 nodes: time relative to an empty cluster", 6.0),
    (
        "preempt, 2,000-pod gang, 5,000 nodes, 40 % of candidates evicted: time relative to an empty cluster",
        12.0,
    ),
    (
        "preempt, 400-pod gang, 1,000 nodes, 40 % of candidates evicted: time relative to an empty cluster",
        12.0,
    ),
    ("preempt, 1,500-pod gang of two shapes, 5,000 nodes: time relative to an empty cluster", 12.0),
    (
        "preempt, 500-pod gang, hard tier 2 of 3, 5,000 nodes: time relative to an empty cluster",
        10.0,
    ),
    // Four times as many pods, times the logarithm; below the same for scenarios.
    ("preempt, 6,000-pod gang, 10,000 nodes: time relative to 1,500 pods, 2,500 nodes", 4.7),
    // Four times as many racks: linear, with room for caches that no longer hold them.
    ("preempt, 5,000 racks, only the last can be cleared: time relative to 1,250 racks", 6.0),
    (
        "reclaim in mode scenario, 1,000-pod gang, 1,000 nodes: time relative to an empty cluster",
        60.0,
    ),
    ("reclaim in mode scenario, gang of whole nodes: 2,000 nodes relative to 500", 4.9),
    ("consolidate, 250-pod gang, 2,000 nodes: time relative to 62 pods, 500 nodes", 4.9),
    ("peak memory of a process with 20,000 nodes and 160,000 pods", 300.0),
];

/// A figure with its bar.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub at_most: Option<f64>,
    /// The time that was measured.
    pub nanos: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub figures: Vec<Figure>,
    /// Figures that could not be measured, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<String>,
}

/// One line for each missed bar, and for each figure that has a bar and could not be measured.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Missed(pub Vec<String>);

impl Figure {
    /// A figure that is not a number misses its bar too.
    fn is_over(&self) -> bool {
        self.at_most.is_some_and(|bar| self.value.is_nan() || self.value > bar)
    }
}

impl Figures {
    /// Adds a figure with the bar for its name.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        value: f64,
        unit: &'static str,
        nanos: Option<f64>,
    ) {
        let at_most = BARS.iter().find(|(known, _)| *known == name).map(|(_, bar)| *bar);
        self.figures.push(Figure { name, value, unit, at_most, nanos });
    }

    /// Whether every bar holds.
    pub fn check(&self) -> Result<(), Missed> {
        let over = self.figures.iter().filter(|figure| figure.is_over()).map(|figure| {
            let bar = figure.at_most.unwrap_or_default();
            format!("{}: {:.2} {}, the bar is {bar}", figure.name, figure.value, figure.unit)
        });
        let unmeasured = self.unmeasured.iter().map(|what| format!("not measured: {what}"));
        let missed: Vec<String> = over.chain(unmeasured).collect();
        if missed.is_empty() { Ok(()) } else { Err(Missed(missed)) }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.figures.iter().map(|figure| figure.name.chars().count());
        let longest = names.max().unwrap_or(0).max("FIGURE".len());
        writeln!(f, "{:<longest$} {:>9}        {:>8}", "FIGURE", "VALUE", "BAR")?;
        for figure in &self.figures {
            let bar = figure.at_most.map(|bar| format!("≤ {bar}")).unwrap_or_default();
            let mark = match figure.at_most {
                Some(_) if figure.is_over() => "over",
                Some(_) => "ok",
                None => "",
            };
            let line = format!(
                "{:<longest$} {:>9.2} {:<6} {bar:>8} {mark}",
                figure.name, figure.value, figure.unit
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        self.unmeasured.iter().try_for_each(|what| writeln!(f, "not measured: {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, at_most: Option<f64>) -> Figure {
        Figure { name: "a gang", value, unit: "times", at_most, nanos: None }
    }

    fn check(figures: &[Figure]) -> Result<(), Missed> {
        Figures { figures: figures.to_vec(), unmeasured: Vec::new() }.check()
    }

    #[test]
    fn a_bar_holds_up_to_its_value() {
        assert_eq!(check(&[figure(3.0, Some(3.0)), figure(1e9, None)]), Ok(()));
    }

    #[test]
    fn every_missed_bar_is_named() {
        let figures =
            [figure(3.01, Some(3.0)), figure(1.0, Some(2.0)), figure(f64::NAN, Some(2.0))];
        let missed = check(&figures).expect_err("two are missed");
        assert_eq!(
            missed.to_string(),
            "a gang: 3.01 times, the bar is 3\na gang: NaN times, the bar is 2"
        );
        let printed = Figures { figures: figures.to_vec(), unmeasured: Vec::new() }.to_string();
        let marks: Vec<&str> =
            printed.lines().filter_map(|line| line.split(' ').next_back()).collect();
        assert_eq!(marks, ["BAR", "over", "ok", "over"]);
    }

    #[test]
    fn an_unmeasured_figure_misses_its_bar() {
        let figures =
            Figures { unmeasured: vec!["memory: no such file".into()], ..Figures::default() };
        let missed = figures.check().expect_err("it has a bar");
        assert_eq!(missed.to_string(), "not measured: memory: no such file");
    }
}
