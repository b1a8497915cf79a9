//! What each queue should have, and step by step why.

mod svg;

use muster_engine::Dimensions;
use muster_engine::explain::counted;
use muster_engine::ids::ResourceId;
use muster_engine::shares::PPM;
use muster_facts::{
    DivisionSteps, FairShares, QueueShare, ResourceShares, Standing, SurplusPart, SurplusRound,
};

use super::screen::Screen;
use super::table::{Row, Table};
use super::text::{BAD, BOLD, DIM, GOOD, WAITS, readable, rounded, styled, width};

pub use svg::svg;

/// The column in which the text of a step starts.
const MARGIN: usize = 12;
/// Larger weights were computed from past usage and are shown in percent.
const READABLE: i64 = 10_000;

pub fn lines(shares: &FairShares, dimensions: &Dimensions, screen: Screen) -> Vec<String> {
    if shares.resources.is_empty() {
        return vec!["no queue wants anything".to_owned()];
    }
    let parts = shares.resources.iter().map(|resource| {
        let shown = Shown { dimensions, resource: resource.id, screen };
        [shown.queues(resource), shown.divisions(resource)].concat()
    });
    parts.collect::<Vec<_>>().join(&String::new())
}

/// Whether there is anything to show about a queue.
fn concerned(queue: &&QueueShare) -> bool {
    queue.wanted > 0 || queue.used > 0 || queue.deserved > 0
}

/// "4 below", "2 over".
fn standing(queue: &QueueShare, show: impl Fn(i64) -> String) -> String {
    match queue.standing {
        Standing::Over => format!("{} over", show(queue.used - queue.fair_share)),
        Standing::Within => "even".to_owned(),
        Standing::Below => format!("{} below", show(queue.fair_share - queue.used)),
    }
}

/// A resource, how its amounts are written, and where.
struct Shown<'d> {
    dimensions: &'d Dimensions,
    resource: ResourceId,
    screen: Screen,
}

impl Shown<'_> {
    fn amount(&self, amount: i64) -> String {
        readable(&self.dimensions.show(self.resource, amount))
    }

    fn name(&self) -> &str {
        self.dimensions.name(self.resource)
    }

    fn queues(&self, shares: &ResourceShares) -> Vec<String> {
        let mut title = format!("{} to divide", self.amount(shares.total));
        if shares.used_by_others > 0 {
            let (all, others) =
                (self.amount(shares.allocatable), self.amount(shares.used_by_others));
            title += &format!(": nodes have {all}, other schedulers use {others}");
        }
        let mut lines = vec![format!("{}  {title}", styled(BOLD, self.name()))];
        lines.extend(self.table(&shares.queues).lines(self.screen.end()));
        let idle = shares.queues.len() - shares.queues.iter().filter(concerned).count();
        if idle > 0 {
            let text = format!("{} more, not wanted", counted(idle as u64, "queue"));
            lines.push(styled(DIM, text));
        }
        lines
    }

    /// Columns with the same value in every row are left out.
    fn table(&self, queues: &[QueueShare]) -> Table {
        let shown: Vec<&QueueShare> = queues.iter().filter(concerned).collect();
        let prior = shown.iter().any(|queue| queue.priority != shown[0].priority);
        let remembers = shown.iter().any(|queue| queue.usage_ppm > 0);
        let limited = shown.iter().any(|queue| queue.capability.is_some());
        let mut headers = vec!["QUEUE"];
        headers.extend(prior.then_some("PRIORITY"));
        headers.extend(["WEIGHT", "DESERVED"]);
        headers.extend(limited.then_some("LIMIT"));
        headers.extend(["USED", "WANTS"]);
        headers.extend(remembers.then_some("USAGE"));
        headers.extend(["FAIR SHARE", "STANDING"]);
        let mut table = Table::new(&headers);
        for queue in shown {
            let mut row =
                Row::default().cell(format!("{}{}", "  ".repeat(queue.depth), queue.name));
            if prior {
                row = row.cell(queue.priority);
            }
            row = row.cell(queue.weight).cell(self.some(queue.deserved));
            if limited {
                row = row.cell(queue.capability.map_or("-".to_owned(), |most| self.rounded(most)));
            }
            row = row.cell(self.rounded(queue.used)).cell(self.rounded(queue.wanted));
            if remembers {
                row = row.cell(percent(queue.usage_ppm, PPM));
            }
            let style = match queue.standing {
                Standing::Over => BAD,
                Standing::Within => GOOD,
                Standing::Below => WAITS,
            };
            let stands = standing(queue, |amount| self.rounded(amount));
            table.push(row.cell(self.rounded(queue.fair_share)).styled(stands, style));
        }
        table
    }

    fn rounded(&self, amount: i64) -> String {
        rounded(&self.dimensions.show(self.resource, amount))
    }

    fn some(&self, amount: i64) -> String {
        if amount == 0 { "-".to_owned() } else { self.rounded(amount) }
    }

    fn divisions(&self, shares: &ResourceShares) -> Vec<String> {
        let happens = |division: &&DivisionSteps| {
            !division.in_quota.is_empty() || !division.surplus.is_empty()
        };
        let used = |division: &DivisionSteps| {
            let siblings = division.surplus.iter().flat_map(|round| &round.parts);
            let queue = |name: &str| shares.queues.iter().find(|queue| queue.name == name);
            siblings.filter_map(|part| queue(&part.queue)).any(|queue| queue.usage_ppm > 0)
        };
        let divisions = shares.divisions.iter().filter(happens);
        divisions.flat_map(|division| self.division(division, used(division))).collect()
    }

    fn division(&self, division: &DivisionSteps, used: bool) -> Vec<String> {
        let whose = match division.parent.as_str() {
            "root" => "the cluster".to_owned(),
            parent => parent.to_owned(),
        };
        let mut lines = vec![
            String::new(),
            format!("how the {} of {whose} are divided", self.amount(division.total)),
        ];
        let mut left = division.total;
        if division.enough {
            let text =
                format!("every queue gets what it wants, {} are left", self.amount(division.left));
            self.entry(&mut lines, "enough", &text);
            return lines;
        }
        if !division.in_quota.is_empty() {
            left -= division.in_quota.iter().map(|given| given.amount).sum::<i64>();
            let given: Vec<String> = division
                .in_quota
                .iter()
                .map(|given| format!("{} {}", given.queue, self.amount(given.amount)))
                .collect();
            let rest = match left {
                0.. => format!("{} left", self.amount(left)),
                _ => format!("{} more than there is", self.amount(-left)),
            };
            self.entry(&mut lines, "deserved", &format!("{}; {rest}", given.join(", ")));
        }
        let priorities =
            division.surplus.windows(2).any(|pair| pair[0].priority != pair[1].priority);
        let weighed = if used { ", less by past usage" } else { "" };
        for round in &division.surplus {
            left = round.surplus - round.parts.iter().map(|part| part.got).sum::<i64>();
            let among = if priorities {
                format!(" among priority {}", round.priority)
            } else {
                String::new()
            };
            let text = self.round(round, left, &(among + weighed));
            self.entry(&mut lines, if round.round == 1 { "by weight" } else { "again" }, &text);
            if !round.units.is_empty() {
                left -= round.units.len() as i64;
                self.entry(&mut lines, "rounding", &self.units(round));
            }
        }
        if left > 0 && !division.surplus.is_empty() {
            self.entry(&mut lines, "left", &format!("{}: no queue wants more", self.amount(left)));
        }
        lines
    }

    fn round(&self, round: &SurplusRound, left: i64, how: &str) -> String {
        let part = |part: &SurplusPart| {
            let of = match round.weights < READABLE {
                true => format!("{}/{}", part.weight, round.weights),
                false => percent(part.weight, round.weights),
            };
            let enough = if part.got < part.share { " (wants no more)" } else { "" };
            format!("{} {of} → {}{enough}", part.queue, self.amount(part.got))
        };
        let parts: Vec<String> = round.parts.iter().map(part).collect();
        let (surplus, left) = (self.amount(round.surplus), self.amount(left));
        format!("{surplus}{how}: {}; {left} left", parts.join(", "))
    }

    /// A label in the margin and text beside it.
    fn entry(&self, lines: &mut Vec<String>, label: &str, text: &str) {
        for (at, line) in self.screen.beside(MARGIN + 2).wrap(text).iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let space = " ".repeat(MARGIN - width(label));
            lines.push(format!("  {}{space}{line}", styled(DIM, label)));
        }
    }

    fn units(&self, round: &SurplusRound) -> String {
        let (unit, names) = (self.amount(1), round.units.join(", "));
        match round.units.len() {
            1 => format!("{unit} more to {names}, which lost most by rounding"),
            _ => format!("{unit} more each to {names}, which lost most by rounding"),
        }
    }
}

fn percent(part: i64, whole: i64) -> String {
    let tenths = (i128::from(part) * 1000 + i128::from(whole) / 2) / i128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}
