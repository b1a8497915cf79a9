//! What a watch has not told yet. Each object has a lane of its own in which nothing overtakes;
//! between lanes everything does. Some things are told twice, and some old versions are told again.

use std::collections::{BTreeMap, VecDeque};

use muster_engine::Event;

use super::History;
use super::dice::Dice;

#[derive(Default)]
pub struct Wire {
    lanes: BTreeMap<String, Lane>,
}

#[derive(Default)]
struct Lane {
    coming: VecDeque<(u64, Event)>,
    /// The oldest first.
    told: Vec<Event>,
}

impl Wire {
    /// The scheduler has listed all objects: nothing is on its way any more.
    pub fn start_over(&mut self, listed: &[Event]) {
        self.lanes.clear();
        for event in listed {
            self.lanes.entry(lane_of(event)).or_default().told.push(event.clone());
        }
    }

    pub fn send(&mut self, due: u64, event: Event) {
        let lane = self.lanes.entry(lane_of(&event)).or_default();
        let due = lane.coming.back().map_or(due, |(last, _)| due.max(*last));
        lane.coming.push_back((due, event));
    }

    /// What is told up to a step, in one of many possible orders.
    pub fn deliver(&mut self, dice: &mut Dice, until: u64, history: &mut History) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let due = |lane: &Lane| lane.coming.front().is_some_and(|(due, _)| *due <= until);
            let ready: Vec<String> = self
                .lanes
                .iter()
                .filter(|(_, lane)| due(lane))
                .map(|(key, _)| key.clone())
                .collect();
            let Some(key) = dice.one_of(&ready) else { return events };
            let lane = self.lanes.get_mut(key).expect("just listed");
            let (_, event) = lane.coming.pop_front().expect("due");
            events.push(event.clone());
            if matches!(event, Event::Bound { .. } | Event::BindFailed { .. }) {
                continue;
            }
            if dice.chance(10) {
                history.duplicates += 1;
                events.push(event.clone());
            }
            // After the news that an object is gone nothing tells an old version from a new object.
            if dice.chance(10)
                && !is_gone(&event)
                && let Some(old) = dice.one_of(&lane.told).filter(|old| can_be_told_apart(old))
            {
                history.stale += 1;
                events.push(old.clone());
            }
            lane.told.push(event);
        }
    }
}

fn is_gone(event: &Event) -> bool {
    matches!(
        event,
        Event::NodeGone(_)
            | Event::PodGone { .. }
            | Event::PodGroupGone { .. }
            | Event::QueueGone(_)
            | Event::HyperNodeGone(_)
    )
}

/// By its version or uid.
fn can_be_told_apart(event: &Event) -> bool {
    matches!(
        event,
        Event::Node(_)
            | Event::Pod(_)
            | Event::PodGroup(_)
            | Event::Queue(_)
            | Event::HyperNode(_)
            | Event::PodGone { .. }
            | Event::PodGroupGone { .. }
    )
}

fn lane_of(event: &Event) -> String {
    match event {
        Event::Node(node) => format!("node {}", node.metadata.name),
        Event::NodeGone(name) => format!("node {name}"),
        Event::Pod(pod) => format!("pod {}", pod.metadata.key()),
        Event::PodGone { key, .. } => format!("pod {key}"),
        Event::PodGroup(group) => format!("group {}", group.metadata.key()),
        Event::PodGroupGone { key, .. } => format!("group {key}"),
        Event::Queue(queue) => format!("queue {}", queue.metadata.name),
        Event::QueueGone(name) => format!("queue {name}"),
        Event::Usage(_) => "usage".to_owned(),
        Event::Bound { key, uid, .. }
        | Event::BindFailed { key, uid, .. }
        | Event::NominationRefused { key, uid, .. }
        | Event::EvictionRefused { key, uid, .. } => format!("write {key} {uid}"),
        Event::HyperNode(domain) => format!("domain {}", domain.metadata.name),
        Event::HyperNodeGone(name) => format!("domain {name}"),
        Event::PodDisruptionBudget(budget) => format!("budget {}", budget.metadata.key()),
        Event::PodDisruptionBudgetGone(key) => format!("budget {key}"),
        Event::PriorityClass(class) => format!("class {}", class.metadata.name),
        Event::PriorityClassGone(name) => format!("class {name}"),
        Event::Namespace(space) => format!("namespace {}", space.metadata.name),
        Event::NamespaceGone(name) => format!("namespace {name}"),
        Event::ResourceQuota(quota) => format!("quota {}", quota.metadata.key()),
        Event::ResourceQuotaGone(key) => format!("quota {key}"),
        Event::PersistentVolume(volume) => format!("volume {}", volume.metadata.name),
        Event::PersistentVolumeGone(name) => format!("volume {name}"),
        Event::PersistentVolumeClaim(claim) => format!("claim {}", claim.metadata.key()),
        Event::PersistentVolumeClaimGone(key) => format!("claim {key}"),
    }
}
