use std::fs;
use std::path::Path;

use crate::config::lists::{ACTIONS, PLUGINS, VOLCANO_ONLY};
use crate::policy::question::Switches;

use super::*;

fn shown(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

#[track_caller]
fn parsed(text: &str) -> Config {
    Config::parse("f", text).unwrap_or_else(|errors| panic!("{text}\n{}", shown(&errors)))
}

#[track_caller]
fn refused(text: &str) -> Vec<Diagnostic> {
    Config::parse("f", text).err().unwrap_or_else(|| panic!("accepted:\n{text}"))
}

/// Checks all errors of a configuration, as they are printed.
#[track_caller]
fn errors(text: &str, expected: &str) {
    assert_eq!(shown(&refused(text)), expected, "\n{text}");
}

/// A configuration with the lines of its only tier.
fn with_plugin(lines: &str) -> String {
    format!("actions: allocate\ntiers:\n- plugins:\n{lines}\n")
}

fn switched(config: &Config, plugin: &str) -> Switches {
    config
        .policy
        .plugins
        .iter()
        .find(|configured| configured.name == plugin)
        .expect("it is configured")
        .switches
        .clone()
}

#[test]
fn the_builtin_configuration_has_no_warnings() {
    let config = Config::builtin();
    assert_eq!(shown(&config.warnings), "");
    let actions: Vec<&str> = config.actions.iter().map(|action| action.name).collect();
    assert_eq!(actions, ["enqueue", "allocate", "backfill", "reclaim", "preempt"]);
    let plugins: Vec<&str> =
        config.policy.plugins.iter().map(|configured| configured.name).collect();
    assert_eq!(
        plugins,
        [
            "priority",
            "gang",
            "conformance",
            "pdb",
            "overcommit",
            "drf",
            "predicates",
            "capacity",
            "nodeorder",
            "binpack",
            "network-topology-aware"
        ]
    );
    let gangs = || EvictionSettings { mode: Mode::Gang, ..EvictionSettings::default() };
    assert_eq!(
        config.settings,
        Settings { preempt: gangs(), reclaim: gangs(), ..Settings::default() }
    );
}

#[test]
fn an_empty_configuration_is_refused_with_an_example() {
    let help =
        "write, for example, actions: \"enqueue, allocate, backfill\" and tiers: with the plugins";
    for text in ["", "# nothing\n", "~"] {
        let found = refused(text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(
            (found[0].key.as_str(), found[0].message.as_str()),
            ("", "the configuration is empty")
        );
        assert_eq!(found[0].help, help);
    }
    for (text, found) in
        [("allocate", "the string \"allocate\""), ("- a", "a list"), ("7", "the number 7")]
    {
        errors(
            text,
            &format!(
                "f:1:1: expected a mapping with actions and tiers, found {found}\n  help: {help}\n"
            ),
        );
    }
}

#[test]
fn broken_yaml_is_refused_with_its_line() {
    let found = refused("actions: allocate\ntiers: [\n- x: {\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].line >= 2, "{}", found[0]);
}

#[test]
fn unknown_keys_are_refused_with_the_nearest() {
    errors(
        "actions: allocate\ntires: []\nkind: x\n",
        "f:2:1: tires: there is no such key\n  help: did you mean tiers?\n\
         f:3:1: kind: there is no such key\n  help: valid are actions, tiers, configurations, metrics\n",
    );
    errors(
        "actions: allocate\ntiers:\n- plugin:\n  - name: gang\n",
        "f:3:3: plugin: a tier has no such key\n  help: did you mean plugins?\n",
    );
}

#[test]
fn metrics_are_ignored_with_a_warning() {
    let config = parsed("actions: allocate\nmetrics:\n  type: prometheus\n");
    let warnings = shown(&config.warnings);
    assert!(
        warnings.contains("f:2:1: metrics: ignored: no built plugin reads measured load"),
        "{warnings}"
    );
}

#[test]
fn actions_are_a_text_or_a_list() {
    for text in [
        "actions: \"enqueue, allocate\"",
        "actions: enqueue,allocate,",
        "actions: [enqueue, allocate]",
        "actions:\n- enqueue\n- allocate",
    ] {
        let names: Vec<&str> = parsed(text).actions.iter().map(|action| action.name).collect();
        assert_eq!(names, ["enqueue", "allocate"], "{text}");
    }
}

#[test]
fn missing_actions_are_refused_with_an_example() {
    let message = "actions: there are no actions, so nothing would ever be scheduled";
    let help = "write, for example, actions: \"enqueue, allocate, backfill\"";
    for (text, place) in [
        ("tiers: []", "1:1"),
        ("tiers: []\nactions:", "1:1"),
        ("tiers: []\nactions: \"\"", "2:1"),
        ("tiers: []\nactions: \" , \"", "2:1"),
        ("tiers: []\nactions: []", "2:1"),
    ] {
        errors(text, &format!("f:{place}: {message}\n  help: {help}\n"));
    }
    errors(
        "actions: {allocate: true}",
        &format!(
            "f:1:10: actions: expected the names of actions, found a mapping\n  help: {help}\n"
        ),
    );
}

#[test]
fn unknown_and_repeated_actions_are_refused() {
    errors(
        "actions: \"enqueue, alocate\"",
        "f:1:10: actions: there is no action \"alocate\"\n  help: did you mean allocate?\n",
    );
    errors(
        "actions:\n- allocate\n- prempt\n- allocate\n",
        "f:3:3: actions: there is no action \"prempt\"\n  help: did you mean preempt?\n\
         f:4:3: actions: \"allocate\" is there twice\n  help: remove one of them\n",
    );
}

#[test]
fn volcanos_arguments_of_built_actions_are_accepted() {
    let config = parsed(
        "actions: allocate, backfill\n\
         configurations:\n\
         - name: allocate\n  arguments:\n    predicateErrorCacheEnable: true\n\
         - name: backfill\n",
    );
    assert_eq!(config.settings, Settings::default());
}

#[test]
fn configurations_are_checked() {
    errors(
        "actions: allocate\n\
         configurations:\n\
         - name: alocate\n\
         - arguments: {}\n\
         - allocate\n\
         - name: allocate\n  argument: {}\n\
         - name: allocate\n  arguments: 7\n\
         - name: [allocate]\n",
        "f:3:9: name: there is no action \"alocate\"\n  help: did you mean allocate?\n\
         f:4:3: name: the name of the action is missing\n  help: write - name: and the name of the action\n\
         f:5:3: configurations: expected an action with its arguments, found the string \"allocate\"\n  \
         help: write - name: and arguments:\n\
         f:7:3: argument: a configuration has no such key\n  help: did you mean arguments?\n\
         f:8:9: name: \"allocate\" is there twice: in line 6 and in line 8\n  \
         help: write all of its arguments in one place\n\
         f:9:3: arguments: expected a mapping, found the number 7\n  \
         help: write one argument per line, as in binpack.weight: 5\n\
         f:10:3: name: expected the name of the action, found a list\n  \
         help: write - name: and the name of the action\n",
    );
    let found = refused(
        "actions: allocate\nconfigurations:\n- name: allocate\n  arguments:\n    nonsense: 1\n",
    );
    assert_eq!((found[0].line, found[0].column, found[0].key.as_str()), (5, 5, "nonsense"));
    assert_eq!(found[0].message, "allocate has no such argument");
    errors(
        "actions: allocate\nconfigurations: allocate\n",
        "f:2:1: configurations: expected a list, found the string \"allocate\"\n  \
         help: write one - name: for each action, with its arguments:\n",
    );
}

#[test]
fn arguments_of_an_action_that_does_not_run_are_warned_of() {
    let config = parsed("actions: allocate\nconfigurations:\n- name: backfill\n");
    let warnings = shown(&config.warnings);
    assert!(
        warnings.contains(
            "f:3:9: name: backfill is not among the actions, so its arguments have no effect\n  \
             help: add backfill to actions, or remove this\n"
        ),
        "{warnings}"
    );
}

#[test]
fn tiers_and_plugins_have_their_shape() {
    errors(
        "actions: allocate\ntiers: gang\n",
        "f:2:1: tiers: expected a list, found the string \"gang\"\n  \
         help: write - plugins: under tiers:, once for each tier\n",
    );
    errors(
        "actions: allocate\ntiers:\n- gang\n- plugins: gang\n",
        "f:3:3: tiers: expected a tier, found the string \"gang\"\n  \
         help: write - plugins: and below it the plugins of the tier\n\
         f:4:3: plugins: expected a list, found the string \"gang\"\n  \
         help: write one - name: for each plugin\n",
    );
    errors(
        &with_plugin("  - gang\n  - arguments: {}\n  - name: 7"),
        "f:4:5: plugins: expected a plugin, found the string \"gang\"\n  help: write - name: gang\n\
         f:5:5: name: the name of the plugin is missing\n  help: write - name: and the name of the plugin\n\
         f:6:5: name: expected the name of the plugin, found the number 7\n  \
         help: write - name: and the name of the plugin\n",
    );
    parsed("actions: allocate\ntiers:\n- plugins:\n");
    parsed("actions: allocate\ntiers:\n");
}

#[test]
fn unknown_and_repeated_plugins_are_refused() {
    errors(
        &with_plugin(
            "  - name: gagn\n  - name: gang\n- plugins:\n  - name: gang\n  - name: telescope",
        ),
        &format!(
            "f:4:11: name: there is no plugin \"gagn\"\n  help: did you mean gang?\n\
             f:7:11: name: \"gang\" is there twice: in line 5 and in line 7\n  help: remove one of them\n\
             f:8:11: name: there is no plugin \"telescope\"\n  help: valid are {}\n",
            PLUGINS
                .iter()
                .map(|entry| entry.name)
                .chain(VOLCANO_ONLY.iter().copied())
                .collect::<Vec<_>>()
                .join(", ")
        ),
    );
}

#[test]
fn plugins_that_only_volcano_has_are_ignored_with_one_warning_each() {
    for name in VOLCANO_ONLY {
        let config =
            parsed(&with_plugin(&format!("  - name: {name}\n    arguments: {{x: {{y: [1]}}}}")));
        assert!(config.policy.plugins.is_empty());
        let expected = format!("f:4:11: name: {name} is ignored: not built yet\n");
        assert_eq!(
            shown(&config.warnings).matches(&expected).count(),
            1,
            "{}",
            shown(&config.warnings)
        );
    }
}

#[test]
fn arguments_are_checked_with_their_place() {
    errors(
        &with_plugin(
            "  - name: binpack\n    arguments:\n      binpack.wieght: 5\n      binpack.cpu: many",
        ),
        "f:6:7: binpack.wieght: binpack has no such argument\n  help: did you mean binpack.weight?\n\
         f:7:7: binpack.cpu: expected a whole number from 0 to 10000, found the string \"many\"\n",
    );
    errors(
        &with_plugin("  - name: binpack\n    binpack.weight: 5"),
        "f:5:5: binpack.weight: this is an argument of binpack, not a key of a plugin\n  \
         help: write it under arguments:\n",
    );
}

#[test]
fn hours_and_time_zones_are_checked() {
    errors(
        &with_plugin(
            "  - name: tdm\n    arguments:\n      tdm.revocable-zone.night: 22-06\n      tdm.time-zone: Europe/Berlin\n      \
             tdm.evict.period: often\n      tdm.zone: x",
        ),
        "f:6:7: tdm.revocable-zone.night: expected hours like 22:00-06:00, found \"22-06\"\n\
         f:7:7: tdm.time-zone: expected UTC or an offset like +08:00, found \"Europe/Berlin\"\n  \
         help: names of time zones are not known here; write the offset from UTC\n\
         f:8:7: tdm.evict.period: expected a duration like 90s, 30m or 1h30m, found the string \"often\"\n\
         f:9:7: tdm.zone: tdm has no such argument\n  help: did you mean tdm.time-zone?\n",
    );
}

#[test]
fn whole_gangs_are_taken_by_one_setting_and_two_that_disagree_are_an_error() {
    let with = |arguments: &str| {
        format!(
            "actions: preempt, reclaim\nconfigurations:\n- name: preempt\n  arguments: {{{arguments}}}\ntiers:\n- plugins:\n  - name: priority\n"
        )
    };
    for arguments in
        ["mode: gang", "gangAwareEnable: true", "preempt.gangAwareEnable: true, mode: gang"]
    {
        let config =
            Config::parse("f", &with(arguments)).unwrap_or_else(|errors| panic!("{errors:?}"));
        assert_eq!(config.settings.preempt.mode, Mode::Gang, "{arguments}");
        assert_eq!(config.settings.reclaim.mode, Mode::Task, "{arguments}");
    }
    errors(
        &with("mode: task, gangAwareEnable: true, order: any"),
        "f:4:27: gangAwareEnable: this puts preempt in mode gang, but mode in line 4 says task\n  help: remove one of the two\n\
         f:4:50: order: expected safe-first or priority-first, found the string \"any\"\n",
    );
    errors(
        &with("reclaim.gangAwareEnable: true, gangAwareEnable: maybe"),
        "f:4:15: reclaim.gangAwareEnable: preempt has no such argument\n  help: did you mean preempt.gangAwareEnable?\n\
         f:4:46: gangAwareEnable: expected true or false, found the string \"maybe\"\n",
    );
}

#[test]
fn minimum_run_times_are_durations_and_resolved_in_one_of_two_ways() {
    let with = |arguments: &str| {
        with_plugin(&format!("  - name: minruntime\n    arguments: {{{arguments}}}"))
    };
    parsed(&with(
        "defaultPreemptMinRuntime: 10m, defaultReclaimMinRuntime: -5s, reclaimResolveMethod: queue",
    ));
    parsed(&with("reclaimResolveMethod: lca"));
    errors(
        &with("defaultPreemptMinRuntime: soon, reclaimResolveMethod: root, minRuntime: 1m"),
        "f:5:17: defaultPreemptMinRuntime: expected a duration like 90s, 30m or -1s, found the string \"soon\"\n\
         f:5:49: reclaimResolveMethod: expected lca or queue, found the string \"root\"\n\
         f:5:77: minRuntime: minruntime has no such argument\n  help: valid are defaultPreemptMinRuntime, \
         defaultReclaimMinRuntime, reclaimResolveMethod\n",
    );
}

#[test]
fn the_grace_of_stale_gangs_has_two_names_and_one_value() {
    let with = |arguments: &str| {
        format!(
            "actions: stalegangeviction\nconfigurations:\n- name: stalegangeviction\n  arguments: {{{arguments}}}\n\
             tiers:\n- plugins:\n  - name: gang\n"
        )
    };
    for (arguments, expected) in [
        ("defaultStalenessGracePeriod: 90s", 90_000),
        ("gracePeriod: 90", 90_000),
        ("gracePeriod: 90s, defaultStalenessGracePeriod: 1m30s", 90_000),
        ("defaultStalenessGracePeriod: -1s, gracePeriod: -5", -1),
    ] {
        assert_eq!(parsed(&with(arguments)).settings.stale_after_ms, expected, "{arguments}");
    }
    errors(
        &with("defaultStalenessGracePeriod: 90s, gracePeriod: 60s"),
        "f:4:49: gracePeriod: gracePeriod and defaultStalenessGracePeriod are the same argument, and they disagree\n  \
         help: remove gracePeriod\n",
    );
    errors(
        &with("defaultStalenessGracePeriod: soon"),
        "f:4:15: defaultStalenessGracePeriod: expected a duration like 90s, 30m or -1s, found the string \"soon\"\n",
    );
}

/// Modes of preempt and reclaim with these lines as the only tier.
#[track_caller]
fn modes(tier: &str) -> (Mode, Mode) {
    let config = parsed(&format!("actions: allocate, preempt, reclaim\ntiers:\n{tier}"));
    (config.settings.preempt.mode, config.settings.reclaim.mode)
}

#[test]
fn whole_gangs_are_taken_wherever_that_is_written_in_tiers() {
    // As the design has it: beside the list of plugins.
    let design = "  - plugins:\n    - name: gang\n    - name: binpack\n    arguments:\n      preempt.gangAwareEnable: true\n      \
                  reclaim.gangAwareEnable: true\n";
    assert_eq!(modes(design), (Mode::Gang, Mode::Gang));
    let plugin = |arguments: &str| {
        format!(
            "- plugins:\n  - name: gang\n  - name: binpack\n    arguments: {{binpack.weight: 5, {arguments}}}\n"
        )
    };
    assert_eq!(modes(&plugin("preempt.gangAwareEnable: \"true\"")), (Mode::Gang, Mode::Task));
    assert_eq!(modes(&plugin("reclaim.gangAwareEnable: true")), (Mode::Task, Mode::Gang));
    assert_eq!(modes(&plugin("gangAwareEnable: true")), (Mode::Gang, Mode::Gang));
    assert_eq!(modes(&plugin("gangAwareEnable: false")), (Mode::Task, Mode::Task));
    let foreign =
        "- plugins:\n  - name: usage\n    arguments: {preempt.gangAwareEnable: true, x: 1}\n";
    assert_eq!(modes(foreign), (Mode::Gang, Mode::Task), "also with a plugin that is ignored");
}

#[test]
fn places_that_disagree_about_whole_gangs_are_both_named() {
    let text = |actions: &str, plugin: &str, tier: &str| {
        format!(
            "actions: preempt, reclaim\ntiers:\n- plugins:\n  - name: gang\n    arguments: {{{plugin}}}\n  arguments: {{{tier}}}\nconfigurations:\n\
             - name: preempt\n  arguments: {{{actions}}}\n"
        )
    };
    errors(
        &text("mode: task", "preempt.gangAwareEnable: true", ""),
        "f:5:17: preempt.gangAwareEnable: this puts preempt in mode gang, but mode in line 9 says task\n  \
         help: remove one of the two\n",
    );
    errors(
        &text("mode: gang", "", "gangAwareEnable: false"),
        "f:6:15: gangAwareEnable: this keeps preempt from mode gang, but mode in line 9 says gang\n  \
         help: remove one of the two\n",
    );
    errors(
        &text("", "reclaim.gangAwareEnable: true", "gangAwareEnable: false"),
        "f:5:17: reclaim.gangAwareEnable: this puts reclaim in mode gang, but gangAwareEnable in line 6 says false\n  \
         help: remove one of the two\n",
    );
    errors(
        &text("mode: scenario", "gangAwareEnable: true", ""),
        "f:5:17: gangAwareEnable: this puts preempt in mode gang, but mode in line 9 says scenario\n  \
         help: remove one of the two\n",
    );
    parsed(&text("mode: gang", "preempt.gangAwareEnable: true", "reclaim.gangAwareEnable: false"));
}

#[test]
fn other_arguments_of_a_tier_are_refused() {
    errors(
        "actions: preempt\ntiers:\n- plugins:\n  - name: gang\n  arguments:\n    preempt.gangAware: true\n    gangAwareEnable: 7\n",
        "f:6:5: preempt.gangAware: a tier has no such argument\n  help: did you mean preempt.gangAwareEnable?\n\
         f:7:5: gangAwareEnable: expected true or false, found the number 7\n",
    );
}

#[test]
fn gang_awareness_of_actions_that_do_not_run_is_warned_of() {
    let config = parsed(
        "actions: allocate, gangpreempt\ntiers:\n- plugins:\n  - name: gang\n    arguments: {preempt.gangAwareEnable: true}\n",
    );
    let warnings = shown(&config.warnings);
    assert!(
        warnings.contains(
            "f:5:17: preempt.gangAwareEnable: no effect: preempt is not among the actions\n  help: add preempt to actions\n"
        ),
        "{warnings}"
    );
}

#[test]
fn every_switch_has_two_spellings() {
    type Get = fn(&Switches) -> bool;
    let cases: [(&str, Get); 14] = [
        ("JobOrder", |switches| switches.gang_order),
        ("QueueOrder", |switches| switches.queue_order),
        ("TaskOrder", |switches| switches.pod_order),
        ("JobReady", |switches| switches.ready),
        ("JobEnqueued", |switches| switches.enqueue),
        ("Overused", |switches| switches.overused),
        ("Allocatable", |switches| switches.may_allocate),
        ("Predicate", |switches| switches.filter),
        ("NodeOrder", |switches| switches.score),
        ("HyperNodeOrder", |switches| switches.domains),
        ("Preemptable", |switches| switches.preemptable),
        ("Reclaimable", |switches| switches.reclaimable),
        ("Victim", |switches| switches.shuffle),
        ("Hierarchy", |switches| switches.hierarchy),
    ];
    for (subject, get) in cases {
        for spelling in ["enable", "enabled"] {
            for (value, on) in [("true", true), ("false", false), ("\"false\"", false)] {
                let line = format!("    {spelling}{subject}: {value}");
                let config = parsed(&with_plugin(&format!("  - name: gang\n{line}")));
                assert_eq!(get(&switched(&config, "gang")), on, "{line}");
            }
        }
    }
}

#[test]
fn the_other_switches_of_volcano_have_no_effect() {
    for subject in [
        "JobPipelined",
        "Preemptive",
        "ClusterOrder",
        "BestNode",
        "TargetJob",
        "ReservedNodes",
        "JobStarving",
        "SubJobReady",
        "SubJobPipelined",
        "SubJobOrder",
        "HyperNodeGradient",
    ] {
        for spelling in ["enable", "enabled"] {
            let config =
                parsed(&with_plugin(&format!("  - name: gang\n    {spelling}{subject}: false")));
            let unchanged = format!("{:?}", Switches::default());
            assert_eq!(format!("{:?}", switched(&config, "gang")), unchanged, "{subject}");
        }
    }
}

#[test]
fn wrong_switches_are_refused() {
    errors(
        &with_plugin(
            "  - name: gang\n    enableJobOder: true\n    enableJobReady: sometimes\n    enablePredicate: 1\n    \
             enableNodeOrder: true\n    enabledNodeOrder: true\n    weight: 3",
        ),
        "f:5:5: enableJobOder: a plugin has no such key or switch\n  help: did you mean enableJobOrder?\n\
         f:6:5: enableJobReady: expected true or false, found the string \"sometimes\"\n\
         f:7:5: enablePredicate: expected true or false, found the number 1\n\
         f:9:5: enabledNodeOrder: the same switch is set twice: here and as enableNodeOrder in line 8\n  \
         help: remove one of them\n\
         f:10:5: weight: a plugin has no such key or switch\n  \
         help: valid are name, arguments, enableJobOrder, enableHierarchy, enableJobReady, enableJobPipelined, \
         enableTaskOrder, enablePreemptable, enableReclaimable, enablePreemptive, enableQueueOrder, \
         enabledClusterOrder, enablePredicate, enableBestNode, enableNodeOrder, enableTargetJob, \
         enableReservedNodes, enableJobEnqueued, enabledVictim, enableJobStarving, enabledOverused, \
         enabledAllocatable, enabledHyperNodeOrder, enabledSubJobReady, enabledSubJobPipelined, \
         enabledSubJobOrder, enabledHyperNodeGradient\n",
    );
}

#[test]
fn a_drf_hierarchy_and_proportion_exclude_each_other_within_a_tier() {
    let complaint = |line: u32| {
        format!(
            "f:5:5: enableHierarchy: drf with a hierarchy and proportion (line {line}) each decide what a queue \
             deserves, and they disagree\n  help: remove proportion, or write enableHierarchy: false\n"
        )
    };
    let text = with_plugin("  - name: drf\n    enableHierarchy: true\n  - name: proportion");
    errors(&text, &complaint(6));
    parsed(&text.replace("true", "false"));
    let apart =
        with_plugin("  - name: drf\n    enableHierarchy: true\n- plugins:\n  - name: proportion");
    assert!(
        shown(&parsed(&apart).warnings).contains(&complaint(7)),
        "a warning only: the tiers are in order"
    );
}

#[test]
fn all_errors_are_reported_at_once_in_the_order_of_the_text() {
    let found = refused(
        "configurations:\n- name: x\ntiers:\n- plugins:\n  - name: y\n  - name: gang\n    z: 1\nactions: w\n",
    );
    let lines: Vec<u32> = found.iter().map(|error| error.line).collect();
    assert_eq!(lines, [2, 5, 7, 8]);
}

#[test]
fn every_plugin_and_action_takes_its_defaults_without_complaint() {
    for entry in PLUGINS {
        parsed(&with_plugin(&format!("  - name: {}", entry.name)));
    }
    for action in ACTIONS {
        parsed(&format!("actions: {0}\nconfigurations:\n- name: {0}\n", action.name));
    }
}

#[test]
fn all_shared_cases_are_read() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let Ok(folders) = fs::read_dir(cases) else { return };
    let mut refused = String::new();
    for folder in folders {
        let file = folder.expect("the folder can be listed").path().join("config.yaml");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        if let Err(errors) = Config::parse(&file.display().to_string(), &text) {
            refused.push_str(&shown(&errors));
        }
    }
    assert_eq!(refused, "");
}
