//! The domains in which evicting whole gangs could make room for a starving one.

use std::collections::BTreeMap;

use muster_engine::explain::{counted, grouped};
use muster_facts::{BundleFacts, DomainSearch, PassFacts, SearchFacts};

use super::searches::short;
use super::{MARGIN, Page};
use crate::render::text::{DIM, styled};

/// How many bundles, gangs or domains are named in one place.
const NAMES: usize = 4;
const CLUSTER: &str = "the cluster";

impl Page {
    pub(super) fn passes(&mut self, search: &SearchFacts, space: &str) {
        if search.passes.is_empty() {
            search.reasons.iter().for_each(|reason| self.entry("", reason));
        }
        for pass in &search.passes {
            let how = match pass.bundles {
                "safe" => "if no gang may break",
                _ => "if whole gangs may be evicted",
            };
            self.entry("", &format!("{how}, {}:", verdict(pass)));
            let trials = pass.domains.iter();
            self.trials(
                trials
                    .map(|trial| (place(trial), trial.chosen, trial_text(trial, space)))
                    .collect(),
            );
            if pass.more_domains > 0 {
                self.remark(&format!(
                    "{} more, use --all",
                    counted(pass.more_domains as u64, "domain")
                ));
            }
            let rest = [
                (&pass.not_tried, "not tried, beyond maxDomains or no better than what was found"),
                (&pass.too_small, "too small, even without other pods"),
            ];
            for (domains, what) in rest.into_iter().filter(|(domains, _)| !domains.is_empty()) {
                let count = counted(domains.len() as u64, "domain");
                self.remark(&format!(
                    "{count} {what}: {}",
                    named(domains.iter().map(|name| &**name))
                ));
            }
        }
    }

    fn remark(&mut self, text: &str) {
        for (at, line) in self.screen.beside(MARGIN).wrap(text).iter().enumerate() {
            self.line(&styled(DIM, format!("{}{line}", " ".repeat(if at == 0 { 4 } else { 6 }))));
        }
    }
}

fn verdict(pass: &PassFacts) -> String {
    match pass.domains.first() {
        Some(best) if best.chosen => format!("{} is cheapest", place(best)),
        Some(one) if one.domain.is_none() => "it would not free enough".to_owned(),
        Some(_) => "no domain would free enough".to_owned(),
        None => "no domain can be tried".to_owned(),
    }
}

fn place(trial: &DomainSearch) -> &str {
    trial.domain.as_deref().unwrap_or(CLUSTER)
}

/// The trial of a domain: "evict 2 pods that search can spare, the whole gang pair (2 pods, ROI 1.00):
/// cost 1.00".
fn trial_text(trial: &DomainSearch, space: &str) -> String {
    let victims = listed(trial.leave.iter().map(|bundle| bundle_text(bundle, space)).collect());
    let why = trial.why.as_deref().unwrap_or_default();
    let mut text = match trial.cost_ppm {
        Some(cost) => format!("evict {victims}: cost {}", hundredths(cost)),
        None if trial.leave.is_empty() => why.to_owned(),
        None => format!("evicting {victims} is not enough: {why}"),
    };
    if !trial.moved.is_empty() {
        let place = |(pod, node): &(String, String)| format!("{} to {node}", short(pod, space));
        text += &format!("; moved: {}", listed(trial.moved.iter().map(place).collect()));
    }
    let mut rules: BTreeMap<&str, (Vec<&str>, usize)> = BTreeMap::new();
    for kept in &trial.kept {
        let (gangs, pods) = rules.entry(kept.rule).or_default();
        gangs.push(short(&kept.gang, space));
        *pods += kept.pods.len();
    }
    for (rule, (gangs, pods)) in rules {
        let pods = counted(pods as u64, "pod");
        text += &format!("; {pods} of {} kept by {rule}", named(gangs.into_iter()));
    }
    text
}

fn bundle_text(bundle: &BundleFacts, space: &str) -> String {
    let (gang, pods) = (short(&bundle.gang, space), counted(bundle.pods.len() as u64, "pod"));
    match bundle.kind {
        "whole" => {
            let roi =
                bundle.roi_ppm.map_or(String::new(), |roi| format!(", ROI {}", hundredths(roi)));
            format!("the whole gang {gang} ({pods}{roi})")
        }
        "broken" => format!("{pods} of {gang}, which is broken already"),
        _ => format!("{pods} that {gang} can spare"),
    }
}

fn named<'n>(names: impl Iterator<Item = &'n str>) -> String {
    listed(names.map(str::to_owned).collect())
}

/// The first few of them, and how many more there are.
fn listed(names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
    format!("{}{more}", names[..names.len().min(NAMES)].join(", "))
}

/// Parts per million with two digits after the point, rounded down.
fn hundredths(ppm: i64) -> String {
    format!("{}.{:02}", ppm / 1_000_000, ppm % 1_000_000 / 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::Screen;

    #[test]
    fn the_chosen_domain_comes_first_with_its_cost() {
        let bundle = |gang: &str, kind, pods: usize, roi_ppm| BundleFacts {
            gang: format!("default/{gang}"),
            kind,
            priority: 1,
            pods: vec![String::new(); pods],
            roi_ppm,
        };
        let trial = |domain: &str, chosen, leave, cost| DomainSearch {
            domain: Some(domain.to_owned()),
            works: true,
            chosen,
            leave,
            moved: Vec::new(),
            cost_ppm: Some(cost),
            kept: Vec::new(),
            why: None,
        };
        let spare =
            vec![bundle("search", "spare", 1, None), bundle("pair", "whole", 2, Some(500_000))];
        let pass = PassFacts {
            bundles: "whole",
            domains: vec![
                trial("rack-a", true, vec![bundle("ring", "whole", 4, Some(1_000_000))], 1_000_000),
                trial("rack-b", false, spare, 1_250_000),
            ],
            more_domains: 0,
            not_tried: vec!["rack-c".to_owned()],
            too_small: Vec::new(),
        };
        let (passes, pods, reasons) = (vec![pass], Vec::new(), Vec::new());
        let search = SearchFacts { action: "preempt", placed: 2, wanted: 2, pods, passes, reasons };
        let mut page = Page::new(Screen::columns(80));
        page.passes(&search, "default");
        let plain = crate::terminal::plain(&page.text);
        let expected = "            if whole gangs may be evicted, rack-a is cheapest:
  → rack-a  evict the whole gang ring (4 pods, ROI 1.00): cost 1.00
    rack-b  evict 1 pod that search can spare, the whole gang pair (2 pods, ROI
            0.50): cost 1.25
    1 domain not tried, beyond maxDomains or no better than what was
      found: rack-c
";
        assert_eq!(plain, expected);
    }
}
