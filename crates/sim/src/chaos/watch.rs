//! What a watch has not told yet. Each object has a lane of its own in which nothing overtakes;
//! between lanes everything does. Some things are told twice, and some old versions are told again.

use std::collections::{BTreeMap, VecDeque};

use muster_api::kinds::Kind;
use muster_engine::Event;

use super::History;
use super::dice::Dice;

#[derive(Default)]
pub struct Watch {
    lanes: BTreeMap<String, Lane>,
}

#[derive(Default)]
struct Lane {
    coming: VecDeque<(u64, Event)>,
    /// The oldest first.
    told: Vec<Event>,
}

impl Watch {
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
                && !matches!(event, Event::Gone { .. })
                && let Some(old) = dice.one_of(&lane.told).filter(|old| can_be_told_apart(old))
            {
                history.stale += 1;
                events.push(old.clone());
            }
            lane.told.push(event);
        }
    }
}

/// By its version or uid.
fn can_be_told_apart(event: &Event) -> bool {
    match event {
        Event::Object(object) => matches!(
            object.kind(),
            Kind::Node | Kind::Pod | Kind::PodGroup | Kind::Queue | Kind::HyperNode
        ),
        Event::Gone { kind, .. } => matches!(kind, Kind::Pod | Kind::PodGroup),
        _ => false,
    }
}

fn lane_of(event: &Event) -> String {
    match event {
        Event::Object(object) => lane(object.kind(), &object.key()),
        Event::Gone { kind, key, .. } => lane(*kind, key),
        Event::Usage(_) => "usage".to_owned(),
        Event::Bound { key, uid, .. }
        | Event::BindFailed { key, uid, .. }
        | Event::NominationRefused { key, uid, .. }
        | Event::EvictionRefused { key, uid, .. } => format!("write {key} {uid}"),
    }
}

/// The names decide the order of the lanes, and so what a seed makes of them: these stay.
fn lane(kind: Kind, key: &str) -> String {
    match kind {
        Kind::HyperNode => format!("domain {key}"),
        Kind::PodGroup => format!("group {key}"),
        kind => format!("{} {key}", kind.name().to_lowercase()),
    }
}
