//! Priorities of pods and gangs, from their classes.

use crate::base::ids::{GangId, PodId, Symbol};
use crate::model::Cluster;
use crate::model::gangs::Origin;

impl Cluster {
    pub(in crate::model) fn class_value(&self, class: Option<Symbol>) -> i32 {
        match class {
            Some(name) => self.priority_classes.get(&name).map_or(0, |class| class.value),
            None => self.default_class().unwrap_or(0),
        }
    }

    /// The value of the cluster's default class; of several (an error in the cluster) the lowest,
    /// as in Kubernetes.
    pub(in crate::model) fn default_class(&self) -> Option<i32> {
        self.priority_classes
            .values()
            .filter(|class| class.global_default)
            .map(|class| class.value)
            .min()
    }

    pub(in crate::model) fn prioritize(&mut self, id: GangId) {
        let gang = &self.gangs[id];
        let highest =
            || gang.pods.iter().map(|&pod| self.pods.fact[pod].priority).max().unwrap_or(0);
        let priority = match (gang.origin, gang.priority_class) {
            (Origin::Group, Some(name)) => {
                self.priority_classes.get(&name).map_or(0, |class| class.value)
            }
            (Origin::Group, None) => self.default_class().unwrap_or_else(highest),
            _ => highest(),
        };
        self.gangs[id].priority = priority;
    }

    /// A pod has joined: its priority may become the gang's.
    pub(in crate::model) fn raise(&mut self, id: GangId, pod: PodId) {
        let gang = &self.gangs[id];
        if gang.pods.len() == 1 {
            self.prioritize(id);
        } else if gang.origin != Origin::Group
            || gang.priority_class.is_none() && self.default_class().is_none()
        {
            self.gangs[id].priority = gang.priority.max(self.pods.fact[pod].priority);
        }
    }

    pub(in crate::model) fn reprioritize(&mut self) {
        let pods: Vec<PodId> = self.pods.live().collect();
        for pod in pods {
            let fact = &self.pods.fact[pod];
            let priority = if fact.says_priority {
                fact.priority
            } else {
                self.class_value(fact.priority_class)
            };
            self.pods.order[pod] = fact.explicit_order.unwrap_or(priority);
            self.pods.fact[pod].priority = priority;
        }
        let gangs: Vec<GangId> = self.gangs.ids().collect();
        for gang in gangs {
            self.prioritize(gang);
        }
    }
}
