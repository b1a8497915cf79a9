//! Configurations that are valid but probably not intended, and the one that contradicts itself.

use std::ptr;

use crate::actions::{allocate, enqueue, shuffle};
use crate::config::actions::Named;
use crate::config::tiers::Chosen;
use crate::order::session::Action;
use crate::plugins::{binpack, capacity, drf, gang, nodeorder, predicates, proportion, tdm};
use crate::policy::plugin::Entry;
use crate::policy::question::Question;
use crate::settings::diagnostic::{Class, Place, Report};

/// A configuration as it is written.
pub(super) struct Setup<'y> {
    pub actions: &'y Named,
    pub plugins: &'y [Chosen<'y>],
    pub tiers_at: Place,
}

struct Finding {
    at: Place,
    key: &'static str,
    message: String,
    help: String,
}

type Rule = fn(&Setup) -> Option<Finding>;

const RULES: &[(Class, Rule)] = &[
    (Class::Warning, allocate_is_missing),
    (Class::Warning, pods_go_where_they_are_refused),
    (Class::Warning, gangs_start_in_part),
    (Class::Advice, queues_have_no_quota),
    (Class::Warning, queues_have_two_quotas),
    (Class::Advice, no_votes_on_admission),
    (Class::Warning, votes_are_not_asked_for),
    (Class::Advice, spreading_pulls_against_packing),
    (Class::Warning, closed_zones_are_not_left),
];

impl<'y> Setup<'y> {
    pub fn lint(&self, report: &mut Report) {
        let found = RULES.iter().filter_map(|(class, rule)| Some((*class, rule(self)?)));
        let weightless = self.plugins.iter().filter_map(weighs_nothing);
        let weightless = weightless.map(|finding| (Class::Warning, finding));
        for (class, Finding { at, key, message, help }) in found.chain(weightless) {
            report.remark(class, at, key, message, help);
        }
    }

    pub fn conflicts(&self, report: &mut Report) {
        let (drf, proportion) = (self.with_tree(&drf::ENTRY), self.plugin(&proportion::ENTRY));
        let (Some(drf), Some(proportion)) = (drf, proportion) else { return };
        let message = format!(
            "drf with a hierarchy and proportion (line {}) each decide what a queue deserves, and they disagree",
            proportion.at.line
        );
        let at = drf.hierarchy_key.map_or(drf.at, Place::from);
        let help = "remove proportion, or write enableHierarchy: false";
        // As in Volcano, the order of tiers settles it where they are in different ones.
        if drf.tier == proportion.tier {
            report.error(at, "enableHierarchy", message, help);
        } else {
            report.warning(at, "enableHierarchy", message, help);
        }
    }

    fn runs(&self, action: &'static Action) -> bool {
        self.actions.runs(action)
    }

    fn plugin(&self, entry: &'static Entry) -> Option<&'y Chosen<'y>> {
        self.plugins.iter().find(|chosen| ptr::eq(chosen.entry, entry))
    }

    /// A plugin whose answers to a question count.
    fn asked(&self, entry: &'static Entry, question: Question) -> Option<&'y Chosen<'y>> {
        self.plugin(entry).filter(|chosen| question.counts(&chosen.switches))
    }

    /// A plugin that makes queues a tree.
    fn with_tree(&self, entry: &'static Entry) -> Option<&'y Chosen<'y>> {
        self.plugin(entry).filter(|chosen| chosen.switches.hierarchy)
    }

    /// The warning that no plugin answers a question, placed at the plugin if that is only switched
    /// off.
    fn unanswered(&self, entry: &'static Entry, switch: &str, consequence: &str) -> Finding {
        let name = entry.name;
        let (at, key, message, help) = match self.plugin(entry) {
            Some(off) => (
                off.at,
                "name",
                format!("{name} is switched off by {switch}: {consequence}"),
                format!("write {switch}: true, or remove it"),
            ),
            None => (
                self.tiers_at,
                "tiers",
                format!("there is no {name} plugin: {consequence}"),
                format!("add - name: {name}"),
            ),
        };
        Finding { at, key, message, help }
    }
}

fn allocate_is_missing(setup: &Setup) -> Option<Finding> {
    (!setup.runs(&allocate::ACTION)).then(|| Finding {
        at: setup.actions.at,
        key: "actions",
        message: "allocate is missing: pods that request resources are never placed".to_owned(),
        help: "add allocate, after enqueue if there is one".to_owned(),
    })
}

fn pods_go_where_they_are_refused(setup: &Setup) -> Option<Finding> {
    if setup.asked(&predicates::ENTRY, Question::Filter).is_some() {
        return None;
    }
    let consequence = "pods may be placed on nodes that refuse them (taints, affinity, ports)";
    Some(setup.unanswered(&predicates::ENTRY, "enablePredicate", consequence))
}

fn gangs_start_in_part(setup: &Setup) -> Option<Finding> {
    if setup.asked(&gang::ENTRY, Question::Ready).is_some() {
        return None;
    }
    let consequence = "every gang's minimum is 1, so gangs start in part";
    Some(setup.unanswered(&gang::ENTRY, "enableJobReady", consequence))
}

fn queues_have_no_quota(setup: &Setup) -> Option<Finding> {
    let (capacity, proportion) = (setup.plugin(&capacity::ENTRY), setup.plugin(&proportion::ENTRY));
    if capacity.or(proportion).or(setup.with_tree(&drf::ENTRY)).is_some() {
        return None;
    }
    Some(Finding {
        at: setup.tiers_at,
        key: "tiers",
        message:
            "there is no quota plugin: queues have no limits and are served in order of creation"
                .to_owned(),
        help: "add - name: capacity".to_owned(),
    })
}

fn queues_have_two_quotas(setup: &Setup) -> Option<Finding> {
    let (capacity, proportion) =
        (setup.plugin(&capacity::ENTRY)?, setup.plugin(&proportion::ENTRY)?);
    Some(Finding {
        at: proportion.at,
        key: "name",
        message: format!(
            "proportion and capacity (line {}) are both quota plugins: a queue gets the lesser of two shares",
            capacity.at.line
        ),
        help: "remove one of them; capacity is the newer".to_owned(),
    })
}

fn no_votes_on_admission(setup: &Setup) -> Option<Finding> {
    let votes = |chosen: &Chosen| {
        chosen.answers.contains(&Question::Enqueue) && Question::Enqueue.counts(&chosen.switches)
    };
    if !setup.runs(&enqueue::ACTION) || setup.plugins.iter().any(votes) {
        return None;
    }
    Some(Finding {
        at: setup.actions.at,
        key: "actions",
        message: "enqueue admits every gang, as no plugin votes on admission".to_owned(),
        help: "add - name: overcommit (or capacity, proportion, resourcequota), or remove enqueue"
            .to_owned(),
    })
}

fn votes_are_not_asked_for(setup: &Setup) -> Option<Finding> {
    if setup.runs(&enqueue::ACTION) {
        return None;
    }
    let only_votes =
        |chosen: &&Chosen| chosen.answers.iter().all(|answer| *answer == Question::Enqueue);
    let voters = setup.plugins.iter().filter(only_votes);
    let voter = voters.min_by_key(|chosen| chosen.entry.name)?;
    Some(Finding {
        at: voter.at,
        key: "name",
        message: format!("{} has no effect, as it only votes on admission", voter.entry.name),
        help: "put enqueue first among the actions, or remove the plugin".to_owned(),
    })
}

fn closed_zones_are_not_left(setup: &Setup) -> Option<Finding> {
    let tdm = setup.plugin(&tdm::ENTRY).filter(|_| !setup.runs(&shuffle::ACTION))?;
    Some(Finding {
        at: tdm.at,
        key: "name",
        message: "there is no action shuffle: pods stay in zones whose window has closed"
            .to_owned(),
        help: "add shuffle to the actions".to_owned(),
    })
}

fn spreading_pulls_against_packing(setup: &Setup) -> Option<Finding> {
    let nodeorder = setup.asked(&nodeorder::ENTRY, Question::Score)?;
    let binpack = setup.asked(&binpack::ENTRY, Question::Score)?;
    if nodeorder.number("leastrequested.weight")? == 0 || binpack.number("binpack.weight")? == 0 {
        return None;
    }
    Some(Finding {
        at: nodeorder.at,
        key: "leastrequested.weight",
        message: format!(
            "leastrequested prefers empty nodes and binpack (line {}) full ones: they pull against each other",
            binpack.at.line
        ),
        help: "write leastrequested.weight: 0 under nodeorder's arguments, or remove binpack"
            .to_owned(),
    })
}

fn weighs_nothing(chosen: &Chosen) -> Option<Finding> {
    let is_weight = |name: &&str| *name == "weight" || name.ends_with(".weight");
    let weights: Vec<&str> =
        chosen.entry.arguments.iter().map(|argument| argument.name).filter(is_weight).collect();
    if weights.is_empty()
        || !chosen.switches.score
        || weights.iter().any(|name| chosen.number(name) != Some(0))
    {
        return None;
    }
    let name = chosen.entry.name;
    Some(Finding {
        at: chosen.at,
        key: "name",
        message: format!("all weights of {name} are 0: it has no say in where pods go"),
        help: format!("give a weight above 0, or remove {name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Class, Config};

    const SOUND: &str = "\
actions: enqueue, allocate
tiers:
- plugins:
  - name: gang
  - name: capacity
  - name: predicates
  - name: nodeorder
";

    /// Checks the warnings about a sound configuration in which one text is replaced.
    #[track_caller]
    fn lints(from: &str, to: &str, expected: &str) {
        assert!(SOUND.contains(from));
        let text = SOUND.replace(from, to);
        let config = Config::parse("f", &text).unwrap_or_else(|errors| {
            panic!("{text}{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>())
        });
        let warnings: String =
            config.warnings.iter().map(|warning| format!("{warning}\n")).collect();
        assert_eq!(warnings, expected, "\n{text}");
    }

    #[test]
    fn what_works_as_written_is_advice_and_what_has_no_effect_a_warning() {
        let classes = |from: &str, to: &str| -> Vec<Class> {
            let config = Config::parse("f", &SOUND.replace(from, to)).expect("it is valid");
            config.warnings.iter().map(|found| found.class).collect()
        };
        assert_eq!(classes("  - name: capacity\n", ""), [Class::Advice, Class::Advice]);
        assert_eq!(
            classes("  - name: nodeorder\n", "  - name: nodeorder\n  - name: binpack\n"),
            [Class::Advice]
        );
        assert_eq!(classes("  - name: predicates\n", ""), [Class::Warning]);
        assert_eq!(classes("actions: enqueue, allocate", "actions: enqueue"), [Class::Warning]);
    }

    #[test]
    fn a_sound_configuration_has_no_warnings() {
        lints("", "", "");
    }

    #[test]
    fn allocate_should_run() {
        lints(
            "enqueue, allocate",
            "enqueue",
            "f:1:1: actions: allocate is missing: pods that request resources are never placed\n  \
             help: add allocate, after enqueue if there is one\n",
        );
    }

    #[test]
    fn nodes_should_be_filtered() {
        let consequence = "pods may be placed on nodes that refuse them (taints, affinity, ports)";
        lints(
            "  - name: predicates\n",
            "",
            &format!(
                "f:2:1: tiers: there is no predicates plugin: {consequence}\n  help: add - name: predicates\n"
            ),
        );
        lints(
            "  - name: predicates\n",
            "  - name: predicates\n    enablePredicate: false\n",
            &format!(
                "f:6:11: name: predicates is switched off by enablePredicate: {consequence}\n  \
                 help: write enablePredicate: true, or remove it\n"
            ),
        );
    }

    #[test]
    fn gangs_should_be_whole() {
        lints(
            "  - name: gang\n",
            "",
            "f:2:1: tiers: there is no gang plugin: every gang's minimum is 1, so gangs start in part\n  \
             help: add - name: gang\n",
        );
    }

    #[test]
    fn queues_should_have_one_quota() {
        lints(
            "  - name: capacity\n",
            "  - name: overcommit\n",
            "f:2:1: tiers: there is no quota plugin: queues have no limits and are served in order of creation\n  \
             help: add - name: capacity\n",
        );
        lints(
            "  - name: capacity\n",
            "  - name: capacity\n  - name: proportion\n",
            "f:6:11: name: proportion and capacity (line 5) are both quota plugins: \
             a queue gets the lesser of two shares\n  help: remove one of them; capacity is the newer\n",
        );
    }

    #[test]
    fn admission_should_be_asked_for_and_voted_on() {
        lints(
            "  - name: capacity\n",
            "  - name: capacity\n    enableJobEnqueued: false\n",
            "f:1:1: actions: enqueue admits every gang, as no plugin votes on admission\n  \
             help: add - name: overcommit (or capacity, proportion, resourcequota), or remove enqueue\n",
        );
        lints(
            "enqueue, allocate\ntiers:\n- plugins:\n",
            "allocate\ntiers:\n- plugins:\n  - name: overcommit\n",
            "f:4:11: name: overcommit has no effect, as it only votes on admission\n  \
             help: put enqueue first among the actions, or remove the plugin\n",
        );
    }

    #[test]
    fn spreading_and_packing_should_not_meet() {
        lints(
            "  - name: nodeorder\n",
            "  - name: nodeorder\n  - name: binpack\n",
            "f:7:11: leastrequested.weight: leastrequested prefers empty nodes and binpack (line 8) full ones: \
             they pull against each other\n  \
             help: write leastrequested.weight: 0 under nodeorder's arguments, or remove binpack\n",
        );
        lints(
            "  - name: nodeorder\n",
            "  - name: nodeorder\n    arguments: {leastrequested.weight: \"0\"}\n  - name: binpack\n",
            "",
        );
    }

    #[test]
    fn closed_zones_should_be_left() {
        lints(
            "  - name: nodeorder\n",
            "  - name: nodeorder\n  - name: tdm\n",
            "f:8:11: name: there is no action shuffle: pods stay in zones whose window has closed\n  \
             help: add shuffle to the actions\n",
        );
    }

    #[test]
    fn a_plugin_should_weigh_something() {
        lints(
            "  - name: nodeorder\n",
            "  - name: nodeorder\n  - name: binpack\n    arguments: {binpack.weight: 0}\n",
            "f:8:11: name: all weights of binpack are 0: it has no say in where pods go\n  \
             help: give a weight above 0, or remove binpack\n",
        );
    }
}
