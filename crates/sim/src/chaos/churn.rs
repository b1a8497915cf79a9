//! What users, controllers and machines do to the cluster meanwhile.

use muster_api::QueueState;
use muster_api::core::{Condition, Namespace, Taint};
use muster_api::keys::QUEUE_NAME;
use muster_api::kinds::Kind;
use muster_api::manifest::Object;
use muster_engine::Event;

use super::{Day, work};

/// How many names gangs share: few, so that names come back.
const NAMES: u64 = 24;

type Deed<'c> = fn(&mut Day<'c>);

impl<'c> Day<'c> {
    pub(super) fn churn(&mut self) {
        let deeds: [(u64, Deed<'c>); 21] = [
            (24, Self::gang_arrives),
            (4, Self::group_follows_its_pods),
            (5, Self::other_scheduler_binds),
            (8, Self::pod_finishes),
            (8, Self::pod_is_deleted),
            (4, Self::gang_is_deleted),
            (2, Self::group_is_deleted),
            (2, Self::group_is_made_again),
            (3, Self::group_changes),
            (3, Self::gates_are_lifted),
            (3, Self::pod_changes),
            (3, Self::node_is_lost),
            (4, Self::node_returns),
            (4, Self::node_changes),
            (3, Self::node_is_cordoned_or_not),
            (3, Self::queue_changes),
            (1, Self::queue_goes_or_comes),
            (1, Self::namespace_changes),
            (3, Self::domain_comes_or_changes),
            (1, Self::domain_goes),
            (2, Self::group_moves_closer_or_apart),
        ];
        let deed = self.dice.pick(&deeds);
        deed(self);
    }

    fn any_pod(&mut self, wanted: impl Fn(&muster_api::core::Pod) -> bool) -> Option<String> {
        let keys: Vec<String> = self
            .world
            .pods
            .iter()
            .filter(|(_, pod)| wanted(pod))
            .map(|(key, _)| key.clone())
            .collect();
        self.dice.one_of(&keys).cloned()
    }

    pub(super) fn any_group(&mut self) -> Option<String> {
        let keys: Vec<String> = self.world.groups.keys().cloned().collect();
        self.dice.one_of(&keys).cloned()
    }

    fn any_node(&mut self) -> Option<String> {
        let keys: Vec<String> = self.world.nodes.keys().cloned().collect();
        self.dice.one_of(&keys).cloned()
    }

    fn gang_arrives(&mut self) {
        let index = self.dice.below(NAMES);
        let arrival = work::gang(index, self.world.now, self.crowded, &mut self.dice);
        let free =
            arrival.pods.iter().all(|pod| !self.world.pods.contains_key(&pod.metadata.key()))
                && arrival.group.as_ref().is_none_or(|group| {
                    let key = group.metadata.key();
                    !self.world.groups.contains_key(&key)
                });
        if !free {
            return;
        }
        self.history.arrivals += 1;
        // Sometimes a controller makes the PodGroup only after the pods.
        let late = self.dice.chance(if self.crowded { 3 } else { 20 });
        let group = arrival.group.filter(|_| !late);
        if let Some(group) = group {
            let event = self.world.put_group(group);
            self.tell(event);
        }
        for pod in arrival.pods {
            let event = self.world.put_pod(pod);
            self.tell(event);
        }
    }

    fn group_follows_its_pods(&mut self) {
        let index = self.dice.below(NAMES);
        // A PodGroup without pods only keeps a name.
        if self.crowded {
            return;
        }
        if let Some(group) = work::gang(index, self.world.now, self.crowded, &mut self.dice).group {
            let key = group.metadata.key();
            if !self.world.groups.contains_key(&key) {
                let event = self.world.put_group(group);
                self.tell(event);
            }
        }
    }

    fn other_scheduler_binds(&mut self) {
        let others = |pod: &muster_api::core::Pod| {
            pod.spec.scheduler_name == "default-scheduler" && pod.spec.node_name.is_none()
        };
        let (Some(key), Some(node)) = (self.any_pod(others), self.any_node()) else { return };
        let uid = self.world.pods[&key].metadata.uid.clone();
        if let Ok(event) = self.world.bind(&key, &uid, &node, &[]) {
            self.tell(event);
        }
    }

    fn pod_finishes(&mut self) {
        let Some(key) = self.any_pod(|pod| pod.status.phase == "Running") else { return };
        let phase = if self.dice.chance(70) { "Succeeded" } else { "Failed" };
        if let Some(event) = self.world.change_pod(&key, |pod| pod.status.phase = phase.into()) {
            self.tell(event);
        }
    }

    fn pod_is_deleted(&mut self) {
        let Some(key) = self.any_pod(|_| true) else { return };
        self.delete_pod(&key);
    }

    /// Pods on nodes are asked first, most of the time.
    fn delete_pod(&mut self, key: &str) {
        self.history.deletions += 1;
        let graceful = self.world.pods[key].spec.node_name.is_some() && self.dice.chance(80);
        let now = self.world.now;
        let event = if graceful {
            self.world.change_pod(key, |pod| pod.metadata.deletion_timestamp = Some(now))
        } else {
            self.world.remove_pod(key)
        };
        if let Some(event) = event {
            self.tell(event);
        }
    }

    fn gang_is_deleted(&mut self) {
        let Some(group) = self.any_group() else { return };
        let mine = format!("{group}-");
        let pods: Vec<String> =
            self.world.pods.keys().filter(|key| key.starts_with(&mine)).cloned().collect();
        let group_first = self.dice.chance(50);
        if group_first {
            self.delete_group(&group);
        }
        for pod in pods {
            self.delete_pod(&pod);
        }
        if !group_first {
            self.delete_group(&group);
        }
    }

    fn delete_group(&mut self, key: &str) {
        if let Some(event) = self.world.remove_group(key) {
            self.tell(event);
        }
    }

    fn group_is_deleted(&mut self) {
        if let Some(key) = self.any_group() {
            self.delete_group(&key);
        }
    }

    fn group_is_made_again(&mut self) {
        let Some(key) = self.any_group() else { return };
        let mut group = self.world.groups[&key].clone();
        self.delete_group(&key);
        group.status = None;
        group.spec.queue = self.dice.one_of(&work::QUEUES).expect("five").to_string();
        let event = self.world.put_group(group);
        self.tell(event);
    }

    fn group_changes(&mut self) {
        let Some(key) = self.any_group() else { return };
        let mut group = self.world.groups[&key].clone();
        match self.dice.below(3) {
            0 => group.spec.min_member = self.dice.below(4) as i32,
            1 => group.spec.queue = self.dice.one_of(&work::QUEUES).expect("five").to_string(),
            _ => {
                group.spec.priority_class_name =
                    if self.dice.chance(50) { "high".into() } else { String::new() }
            }
        }
        self.world.insert(Object::from(group));
        let event = Event::from(self.world.groups[&key].clone());
        self.tell(event);
    }

    fn gates_are_lifted(&mut self) {
        let Some(key) = self.any_pod(|pod| !pod.spec.scheduling_gates.is_empty()) else { return };
        if let Some(event) = self.world.change_pod(&key, |pod| pod.spec.scheduling_gates.clear()) {
            self.tell(event);
        }
    }

    fn pod_changes(&mut self) {
        let Some(key) = self.any_pod(|_| true) else { return };
        let (label, value) = self.dice.pick(&[
            (2, ("app", "x")),
            (2, ("app", "y")),
            (2, ("app", "z")),
            (1, ("part", "0")),
            (1, ("part", "1")),
        ]);
        if let Some(event) = self
            .world
            .change_pod(&key, |pod| drop(pod.metadata.labels.insert(label.into(), value.into())))
        {
            self.tell(event);
        }
    }

    /// The node goes, and later what was on it.
    fn node_is_lost(&mut self) {
        if self.world.nodes.len() <= 2 {
            return;
        }
        let Some(name) = self.any_node() else { return };
        self.history.node_losses += 1;
        let event = self.world.remove_node(&name).expect("just chosen");
        self.tell(event);
        let stranded: Vec<String> = self
            .world
            .pods
            .iter()
            .filter(|(_, pod)| pod.spec.node_name.as_deref() == Some(&name))
            .map(|(key, _)| key.clone())
            .collect();
        if self.dice.chance(70) {
            for key in stranded {
                self.delete_pod(&key);
            }
        }
    }

    fn node_returns(&mut self) {
        let absent: Vec<u64> =
            (0..9).filter(|index| !self.world.nodes.contains_key(&format!("n{index}"))).collect();
        let Some(&index) = self.dice.one_of(&absent) else { return };
        let node = work::node(index, &mut self.dice);
        let event = self.world.put_node(node);
        self.tell(event);
    }

    fn node_changes(&mut self) {
        let Some(name) = self.any_node() else { return };
        let mut node = self.world.nodes[&name].clone();
        match self.dice.below(4) {
            0 => {
                let zone = self.dice.pick(&[(1, "a"), (1, "b"), (1, "c")]);
                node.metadata.labels.insert("zone".into(), zone.into());
            }
            1 if node.spec.taints.is_empty() => {
                node.spec.taints.push(Taint {
                    key: "infra".into(),
                    value: String::new(),
                    effect: "NoSchedule".into(),
                });
            }
            1 => node.spec.taints.clear(),
            2 => {
                let status = if self.dice.chance(50) { "True" } else { "False" };
                node.status.conditions = vec![Condition {
                    kind: "Ready".into(),
                    status: status.into(),
                    ..Condition::default()
                }];
            }
            _ => {
                let cpu = muster_api::Quantity::from_units(2 + self.dice.below(8) as i64);
                node.status.allocatable.insert("cpu".into(), cpu);
            }
        }
        let event = self.world.put_node(node);
        self.tell(event);
    }

    fn node_is_cordoned_or_not(&mut self) {
        let Some(name) = self.any_node() else { return };
        let mut node = self.world.nodes[&name].clone();
        node.spec.unschedulable = !node.spec.unschedulable;
        let event = self.world.put_node(node);
        self.tell(event);
    }

    fn queue_changes(&mut self) {
        let keys: Vec<String> = self.world.queues.keys().cloned().collect();
        let Some(key) = self.dice.one_of(&keys).cloned() else { return };
        let mut queue = if self.dice.chance(50) {
            work::queue(&key, &mut self.dice)
        } else {
            self.world.queues[&key].clone()
        };
        if self.dice.chance(30) {
            let open = self.dice.chance(60);
            queue.status.get_or_insert_default().state =
                if open { QueueState::Open } else { QueueState::Closed };
        }
        self.put_queue(queue);
    }

    fn put_queue(&mut self, queue: muster_api::Queue) {
        let object = Object::from(queue);
        let key = object.key();
        self.world.insert(object);
        let event = Event::from(self.world.queues[&key].clone());
        self.tell(event);
    }

    fn queue_goes_or_comes(&mut self) {
        let name = work::QUEUES[1 + self.dice.below(3) as usize];
        if self.world.queues.remove(name).is_some() {
            self.tell(Event::gone(Kind::Queue, name));
        } else {
            let queue = work::queue(name, &mut self.dice);
            self.put_queue(queue);
        }
    }

    fn namespace_changes(&mut self) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = "team".into();
        if self.dice.chance(50) {
            let queue = self.dice.pick(&[(1, "red"), (1, "blue")]);
            namespace.metadata.annotations.insert(QUEUE_NAME.into(), queue.into());
        }
        self.world.insert(Object::from(namespace.clone()));
        self.tell(Event::from(namespace));
    }
}
