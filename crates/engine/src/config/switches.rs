//! Volcano's switches on a plugin: which of its answers count.

use muster_yaml::{Key, Yaml};

use crate::policy::question::Switches;
use crate::settings::diagnostic::{Report, describe};
use crate::settings::scalar;

/// Where a switch is stored. Without a place it is accepted and has no effect.
type Target = Option<fn(&mut Switches) -> &mut bool>;

/// As Volcano spells them. Each is also read with `enabled` for `enable` and the other way round,
/// since they are easily mixed up.
const SWITCHES: &[(&str, Target)] = &[
    ("enableJobOrder", Some(|switches| &mut switches.gang_order)),
    ("enableHierarchy", Some(|switches| &mut switches.hierarchy)),
    ("enableJobReady", Some(|switches| &mut switches.ready)),
    ("enableJobPipelined", None),
    ("enableTaskOrder", Some(|switches| &mut switches.pod_order)),
    ("enablePreemptable", Some(|switches| &mut switches.preemptable)),
    ("enableReclaimable", Some(|switches| &mut switches.reclaimable)),
    ("enablePreemptive", None),
    ("enableQueueOrder", Some(|switches| &mut switches.queue_order)),
    ("enabledClusterOrder", None),
    ("enablePredicate", Some(|switches| &mut switches.filter)),
    ("enableBestNode", None),
    ("enableNodeOrder", Some(|switches| &mut switches.score)),
    ("enableTargetJob", None),
    ("enableReservedNodes", None),
    ("enableJobEnqueued", Some(|switches| &mut switches.enqueue)),
    ("enabledVictim", Some(|switches| &mut switches.shuffle)),
    ("enableJobStarving", None),
    ("enabledOverused", Some(|switches| &mut switches.overused)),
    ("enabledAllocatable", Some(|switches| &mut switches.may_allocate)),
    ("enabledHyperNodeOrder", Some(|switches| &mut switches.domains)),
    ("enabledSubJobReady", None),
    ("enabledSubJobPipelined", None),
    ("enabledSubJobOrder", None),
    ("enabledHyperNodeGradient", None),
];

pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    SWITCHES.iter().map(|(name, _)| *name)
}

/// The subject of the switch: the name without `enable` or `enabled`.
fn subject(name: &str) -> Option<&str> {
    name.strip_prefix("enabled").or_else(|| name.strip_prefix("enable"))
}

fn find(name: &str) -> Option<usize> {
    let wanted = subject(name)?;
    SWITCHES.iter().position(|(name, _)| subject(name) == Some(wanted))
}

/// The switches of one plugin while they are read.
#[derive(Default)]
pub(super) struct Reader<'y> {
    pub switches: Switches,
    seen: Vec<(usize, &'y Key)>,
}

impl<'y> Reader<'y> {
    /// Whether the key is a switch. If so, it is set, or reported if it can't be.
    pub fn take(&mut self, key: &'y Key, value: &Yaml, report: &mut Report) -> bool {
        let Some(index) = find(&key.name) else { return false };
        if let Some((_, first)) = self.seen.iter().find(|(seen, _)| *seen == index) {
            let message = format!(
                "the same switch is set twice: here and as {} in line {}",
                first.name, first.line
            );
            report.error(key.into(), &key.name, message, "remove one of them");
        }
        self.seen.push((index, key));
        match (scalar::boolean(&value.value), SWITCHES[index].1) {
            (Some(on), Some(target)) => *target(&mut self.switches) = on,
            (Some(_), None) => {}
            (None, _) => {
                let message = format!("expected true or false, found {}", describe(value));
                report.error(key.into(), &key.name, message, "");
            }
        }
        true
    }

    /// The key that set a switch, if one did.
    pub fn key(&self, name: &str) -> Option<&'y Key> {
        let index = find(name)?;
        self.seen.iter().find(|(seen, _)| *seen == index).map(|(_, key)| *key)
    }
}
