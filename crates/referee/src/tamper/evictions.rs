//! False evictions.

use crate::cluster::{Amounts, Disruptions, Pod};
use crate::config::Mode;
use crate::gangs::{complete_since, lacks};
use crate::generate::racks::FAMILY;
use crate::output::{Eviction, Output};
use crate::rules::choice::REFUSED;
use crate::tamper::{Tampering, changed, eviction_like, stays};
use crate::timeline::{Moment, Story};

pub const KINDS: &[Tampering] = &[
    Tampering { name: "eviction of a protected pod", seen_by: "protected", change: protected },
    Tampering {
        name: "eviction by an action that is off",
        seen_by: "protected",
        change: not_configured,
    },
    Tampering { name: "eviction for no gang", seen_by: "protected", change: for_none },
    Tampering {
        name: "eviction of a pod that is elsewhere",
        seen_by: "adds-up",
        change: elsewhere,
    },
    Tampering { name: "preemption of a higher priority", seen_by: "preempt", change: higher },
    Tampering { name: "preemption in another queue", seen_by: "preempt", change: other_queue },
    Tampering { name: "reclaim in its own queue", seen_by: "reclaim", change: own_queue },
    Tampering {
        name: "reclaim where a queue has no more than it deserves",
        seen_by: "reclaim",
        change: poor_queue,
    },
    Tampering { name: "eviction that a budget forbids", seen_by: "budgets", change: over_budget },
    Tampering { name: "part of a gang left behind", seen_by: "whole", change: left_behind },
    Tampering { name: "gang broken in mode task", seen_by: "whole", change: broken },
    Tampering { name: "gang broken before its time", seen_by: "run-time", change: too_early },
    Tampering { name: "stale eviction of a whole gang", seen_by: "stale", change: not_stale },
    Tampering { name: "eviction that is not needed", seen_by: "needed", change: needless },
    Tampering {
        name: "eviction for a gang without a nomination",
        seen_by: "beneficiary",
        change: in_vain,
    },
    Tampering {
        name: "eviction of what was bound just now",
        seen_by: "no-bind-in-vain",
        change: just_bound,
    },
    Tampering { name: "another rack cleared", seen_by: "choice", change: other_rack },
    Tampering { name: "refusal not told", seen_by: "refusal-told", change: untold },
];

fn untold(story: &Story) -> Option<Output> {
    let is_refused = |one: &Eviction| one.reason.contains(REFUSED);
    let at = story.output.evictions.iter().position(is_refused)?;
    if story.case.family != FAMILY {
        return None;
    }
    changed(story, |output| output.evictions[at].reason.clear())
}

fn add(story: &Story, eviction: Eviction) -> Option<Output> {
    changed(story, |output| output.evictions.push(eviction))
}

/// The first eviction and other pod that runs then for which something holds, as another eviction.
fn another(story: &Story, wrong: impl Fn(&Moment, &Eviction, &str) -> bool) -> Option<Eviction> {
    story.output.evictions.iter().filter(|one| one.preemptor.is_some()).find_map(|one| {
        let moment = &story.moments[one.cycle - 1];
        let pod = stays(moment).find(|pod| wrong(moment, one, pod))?;
        Some(eviction_like(one, moment, pod))
    })
}

fn is_ours(story: &Story, pod: &str) -> bool {
    story.pod(pod).is_some_and(|pod| !pod.foreign)
}

fn protected(story: &Story) -> Option<Output> {
    let one = another(story, |_, _, pod| {
        story.pod(pod).is_some_and(|pod| pod.preemptable == Some(false) || pod.foreign)
    });
    add(story, one?)
}

fn not_configured(story: &Story) -> Option<Output> {
    let off = ["preempt", "reclaim", "consolidate"].into_iter();
    let action = off.clone().find(|action| !story.case.config.acts(action))?;
    changed(story, |output| {
        output.evictions.first_mut().into_iter().for_each(|one| one.action = action.into())
    })
    .filter(|output| !output.evictions.is_empty())
}

fn for_none(story: &Story) -> Option<Output> {
    let at = story.output.evictions.iter().position(|one| one.preemptor.is_some())?;
    changed(story, |output| output.evictions[at].preemptor = None)
}

fn elsewhere(story: &Story) -> Option<Output> {
    let first = story.output.evictions.first()?;
    let node = story.cluster().nodes.iter().find(|node| node.name != first.node)?;
    changed(story, |output| output.evictions[0].node = node.name.clone())
}

fn higher(story: &Story) -> Option<Output> {
    let priority = |gang: &str| story.cluster().priority(gang);
    let one = another(story, |_, one, pod| {
        let gang = story.gang_key(pod);
        let preemptor = one.preemptor.as_deref().unwrap_or_default();
        one.action == "preempt"
            && is_ours(story, pod)
            && gang != preemptor
            && priority(&gang) >= priority(preemptor)
    });
    add(story, one?)
}

fn other_queue(story: &Story) -> Option<Output> {
    let one = another(story, |_, one, pod| {
        let preemptor = one.preemptor.as_deref().unwrap_or_default();
        one.action == "preempt" && story.queue_of(pod) != story.queue_of_gang(preemptor)
    });
    add(story, one?)
}

fn own_queue(story: &Story) -> Option<Output> {
    let one = another(story, |_, one, pod| {
        let preemptor = one.preemptor.as_deref().unwrap_or_default();
        one.action == "reclaim" && story.queue_of(pod) == story.queue_of_gang(preemptor)
    });
    add(story, one?)
}

/// All pods of the queue together request no more than it deserves.
fn poor_queue(story: &Story) -> Option<Output> {
    if story.case.config.reclaim == Mode::Scenario {
        return None;
    }
    let cluster = story.cluster();
    let poor = |name: &str| {
        let Some(queue) = cluster.queue(name) else { return false };
        let below =
            |pod: &&Pod| cluster.lineage(cluster.queue_of(pod)).iter().any(|q| q.name == name);
        let all: Amounts = cluster.pods.iter().filter(below).map(|pod| pod.request).sum();
        (0..3).all(|at| all.0[at] <= queue.deserved[at].unwrap_or(0))
    };
    let one = another(story, |_, one, pod| {
        one.action == "reclaim" && is_ours(story, pod) && poor(story.queue_of(pod))
    });
    add(story, one?)
}

fn over_budget(story: &Story) -> Option<Output> {
    let one = another(story, |moment, one, pod| {
        let budgets = &story.cluster().budgets;
        let none_left = budgets.iter().any(|budget| {
            let covers = |pod: &str| story.pod(pod).is_some_and(|pod| budget.covers(pod));
            let Disruptions::MinAvailable(least) = budget.limit else {
                return false;
            };
            covers(pod)
                && moment.staying().filter(|(pod, _)| covers(pod)).count() <= least
                && moment.evictions.iter().all(|one| story.case.config.keeps_budgets(&one.action))
        });
        story.case.config.keeps_budgets(&one.action) && none_left
    });
    add(story, one?)
}

/// The gang of a pod has all that it needs, and would not without the pod.
fn needs(story: &Story, moment: &Moment, pod: &str) -> bool {
    let gang = story.gang_key(pod);
    let lack = |with: bool| {
        let pairs = moment.staying().filter(|(other, _)| with || *other != pod);
        let pods: Vec<_> = story.pods_of(&gang, pairs).into_iter().map(|(pod, _)| pod).collect();
        lacks(story.cluster().gang(&gang), &pods)
    };
    lack(true).is_none() && lack(false).is_some()
}

fn broken(story: &Story) -> Option<Output> {
    let one = another(story, |moment, one, pod| {
        let gang = story.gang_key(pod);
        let size = story.pods_of(&gang, moment.occupied()).len();
        let unbroken = !moment.evictions.iter().any(|one| story.gang_key(&one.pod) == gang);
        is_ours(story, pod)
            && one.preemptor.as_ref() != Some(&gang)
            && makes(one, story) == Mode::Task
            && size > 1
            && unbroken
            && needs(story, moment, pod)
    });
    add(story, one?)
}

fn makes(one: &Eviction, story: &Story) -> Mode {
    story.case.config.mode_of(&one.action)
}

fn left_behind(story: &Story) -> Option<Output> {
    let one = another(story, |moment, one, pod| {
        let gang = story.gang_key(pod);
        let node = &moment.placed[pod].node;
        let on_node = story.pods_of(&gang, moment.staying());
        let mates = on_node.iter().filter(|(mate, at)| mate.key() != pod && at == node).count();
        let nominated = moment
            .nominations
            .iter()
            .any(|(pod, at)| at == node && Some(story.gang_key(pod)) == one.preemptor);
        is_ours(story, pod)
            && makes(one, story) != Mode::Task
            && one.preemptor.as_ref() != Some(&gang)
            && mates > 0
            && nominated
            && needs(story, moment, pod)
    });
    add(story, one?)
}

fn too_early(story: &Story) -> Option<Output> {
    let (preempt, _) = story.case.config.min_runtimes.filter(|(preempt, _)| *preempt > 0)?;
    let one = another(story, |moment, one, pod| {
        let gang = story.gang_key(pod);
        let queues = story.cluster().lineage(story.queue_of(pod));
        let default = queues.iter().all(|queue| queue.preempt_min_runtime.is_none());
        let running = story
            .pods_of(&gang, moment.occupied())
            .into_iter()
            .filter_map(|(pod, _)| Some((pod, moment.placed.get(&pod.key())?.since)));
        let since = complete_since(story.cluster().gang(&gang), running.collect());
        is_ours(story, pod)
            && one.action != "reclaim"
            && one.preemptor.as_ref() != Some(&gang)
            && default
            && since.is_some_and(|since| moment.now() - since < preempt)
            && !moment.evictions.iter().any(|one| story.gang_key(&one.pod) == gang)
            && needs(story, moment, pod)
    });
    add(story, one?)
}

fn not_stale(story: &Story) -> Option<Output> {
    let moment = story.moments.first()?;
    let pod = stays(moment).find(|pod| {
        let gang = story.gang_key(pod);
        let pods = story.pods_of(&gang, moment.staying());
        let pods: Vec<_> = pods.into_iter().map(|(pod, _)| pod).collect();
        let plain = story.gang_of(pod).is_some_and(|gang| gang.subgroups.is_none());
        plain && lacks(story.cluster().gang(&gang), &pods).is_none()
    })?;
    let node = moment.placed[pod].node.clone();
    add(
        story,
        Eviction {
            pod: pod.to_owned(),
            gang: story.gang_key(pod),
            node,
            cycle: moment.cycle,
            action: "stalegangeviction".to_owned(),
            preemptor: None,
            moves_to: None,
            reason: String::new(),
        },
    )
}

/// A pod that its gang can spare, on a node where the preemptor gets nothing, in a plan that no limit
/// or rule between pods could explain.
fn needless(story: &Story) -> Option<Output> {
    if story.case.config.capacity {
        return None;
    }
    let one = another(story, |moment, one, pod| {
        let gang = story.gang_key(pod);
        let node = &moment.placed[pod].node;
        let served = |key: &str| {
            Some(story.gang_key(key)) == one.preemptor
                || moment.evictions.iter().any(|one| one.pod == key && one.moves_to.is_some())
        };
        let elsewhere = moment.kept().all(|(key, at)| !served(key) || at != node);
        let plain = |key: &str| {
            story.pod(key).is_some_and(|pod| pod.anti_affinity.is_empty() && pod.spread.is_none())
        };
        let unbroken = !moment.evictions.iter().any(|one| story.gang_key(&one.pod) == gang);
        let simple = story.gang_of(pod).is_some_and(|gang| gang.subgroups.is_none());
        let rules = moment.kept().all(|(key, _)| plain(key));
        is_ours(story, pod)
            && plain(pod)
            && elsewhere
            && rules
            && unbroken
            && simple
            && !needs(story, moment, pod)
    });
    add(story, one?)
}

fn in_vain(story: &Story) -> Option<Output> {
    let idle = |moment: &Moment, gang: &str| {
        !moment.nominations.keys().any(|pod| story.gang_key(pod) == gang)
    };
    let (at, gang) = story.output.evictions.iter().enumerate().find_map(|(at, one)| {
        let moment = &story.moments[one.cycle - 1];
        let gangs = story.cluster().gangs.iter().map(|gang| gang.key());
        one.preemptor.as_ref()?;
        Some((at, gangs.into_iter().find(|gang| idle(moment, gang))?))
    })?;
    changed(story, |output| output.evictions[at].preemptor = Some(gang))
}

fn just_bound(story: &Story) -> Option<Output> {
    let one = story.output.evictions.iter().find_map(|one| {
        let moment = &story.moments[one.cycle - 1];
        let before = story.moments.get(one.cycle.checked_sub(2)?)?;
        one.preemptor.as_ref().filter(|_| !moment.recreated)?;
        let pod = before.binds.iter().map(|(pod, _)| pod).find(|pod| !moment.evicts(pod))?;
        Some(eviction_like(one, moment, pod))
    });
    add(story, one?)
}

fn other_rack(story: &Story) -> Option<Output> {
    if story.case.family != crate::generate::racks::FAMILY {
        return None;
    }
    let cleared = story.output.evictions.first()?;
    let moment = &story.moments[cleared.cycle - 1];
    let other = stays(moment).find(|pod| {
        story.pod(pod).is_some_and(|pod| pod.preemptable == Some(false))
            || story.gang_of(pod).is_some_and(|gang| gang.preemptable == Some(false))
    })?;
    let other = eviction_like(cleared, moment, other);
    changed(story, |output| {
        output.evictions.retain(|one| one.gang != cleared.gang);
        output.evictions.push(other);
    })
}
