//! What was measured, against the bars that it should not pass.

use std::fmt;

use serde::Serialize;

/// What each figure should be at most. `docs/performance.md` shows them with what was measured.
pub const BARS: [(&str, f64); 26] = [
    ("gang of 3,000 × 8 GPUs, 5,000 nodes", 80.0),
    ("the same, 20,000 nodes against 5,000", 3.0),
    ("500 gangs of 10, a pod against the large gang's", 4.0),
    ("5,000 pods of 50 shapes, likewise", 12.0),
    ("cycle with nothing to do, 5,000 nodes, 1,000 gangs that can't fit", 10.0),
    ("the same, 20,000 nodes", 10.0),
    ("one event applied", 6.0),
    ("gang of 512 × 8 GPUs, hard tier 2, against no topology", 2.0),
    ("gang of 3,000 × 8 GPUs, hard tier 3, likewise", 2.0),
    ("100 subgroups of 8, hard tier 1 in tier 3, against 800 pods", 3.0),
    ("gang of 512, hard tier 2, 20,000 nodes against 5,000", 3.0),
    ("100 subgroups of 10, hard tier 1, 1,000 nodes", 10.0),
    ("5,000 nodes in HyperNodes by label, built", 1.0),
    ("one preemptor, 5,000 nodes and 40,000 pods, against evicting all and undoing it", 2.0),
    ("10,000 nominations read back, first cycle", 20.0),
    ("gang of 1,000 takes 1,000 nodes from gangs of 4, against the empty cluster", 6.0),
    ("gang of 3,000 takes 3,000 of 5,000 nodes, likewise", 6.0),
    ("gang of 2,000 on 5,000 nodes, 2 of 5 that may go are needed, likewise", 12.0),
    ("gang of 400, 1,000 nodes, 2 of 5 that may go are needed, likewise", 12.0),
    ("gang of two shapes, 1,500 pods, takes from gangs of two, 5,000 nodes, likewise", 12.0),
    ("gang of 500, hard tier 2 of 3, 5,000 nodes, likewise", 10.0),
    // Four times as many pods, times the logarithm; below the same for scenarios.
    ("gang of 6,000 takes from 10,000 nodes against 1,500 from 2,500", 4.7),
    (
        "gang of 1,000 reclaims 1,000 nodes from two queues by scenarios, against the empty cluster",
        60.0,
    ),
    ("the same with 2,000 nodes against 500", 4.9),
    ("consolidation of 2,000 nodes for 250 against 500 for 62", 4.9),
    ("peak memory of a process with 20,000 nodes and 160,000 pods", 300.0),
];

/// One figure with the bar that it should not pass.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub at_most: Option<f64>,
    /// The time behind it.
    pub nanos: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub figures: Vec<Figure>,
    /// What could not be measured, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<String>,
}

/// Bars that were passed, and what has a bar and could not be measured; a line each.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Missed(pub Vec<String>);

impl Figure {
    /// Also a figure that is no number is not below its bar.
    fn is_over(&self) -> bool {
        self.at_most.is_some_and(|bar| self.value.is_nan() || self.value > bar)
    }
}

impl Figures {
    /// Takes a figure with the bar that its name has.
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
    fn what_could_not_be_measured_misses_its_bar() {
        let figures =
            Figures { unmeasured: vec!["memory: no such file".into()], ..Figures::default() };
        let missed = figures.check().expect_err("it has a bar");
        assert_eq!(missed.to_string(), "not measured: memory: no such file");
    }
}
