//! A configuration of the scheduler, as its file says it.

use serde_json::{Map, Value, json};

use crate::cluster::Seconds;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    Task,
    Gang,
    Scenario,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub actions: Vec<&'static str>,
    pub preempt: Mode,
    pub reclaim: Mode,
    pub pdb: bool,
    /// Pods are deleted instead of evicted, so that budgets hold nothing.
    pub preempt_deletes: bool,
    pub reclaim_deletes: bool,
    /// Plugin minruntime: its defaults for preempt and reclaim.
    pub min_runtimes: Option<(Seconds, Seconds)>,
    pub capacity: bool,
    pub hierarchy: bool,
    /// Plugins that only order or score.
    pub flavours: Vec<&'static str>,
    pub whole_bundles: bool,
    pub evict_broken_gangs: bool,
    pub priority_first: bool,
    pub max_domains: Option<usize>,
    pub staleness_grace: Seconds,
    pub traverse_head_wait: Option<Seconds>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            actions: vec!["enqueue", "allocate", "backfill", "reclaim", "preempt"],
            preempt: Mode::Gang,
            reclaim: Mode::Gang,
            pdb: true,
            preempt_deletes: false,
            reclaim_deletes: false,
            min_runtimes: None,
            capacity: true,
            hierarchy: false,
            flavours: Vec::new(),
            whole_bundles: true,
            evict_broken_gangs: false,
            priority_first: false,
            max_domains: None,
            staleness_grace: 60,
            traverse_head_wait: None,
        }
    }
}

impl Config {
    pub fn file(&self) -> Value {
        let plugin = |name: &&str| json!({"name": name});
        let mut first = vec![json!({"name": "priority"}), json!({"name": "gang"})];
        first.push(json!({"name": "conformance"}));
        first.extend(self.pdb.then(|| json!({"name": "pdb"})));
        first.extend(self.min_runtimes.map(|(preempt, reclaim)| {
            json!({"name": "minruntime", "arguments": {
                "defaultPreemptMinRuntime": format!("{preempt}s"),
                "defaultReclaimMinRuntime": format!("{reclaim}s"),
            }})
        }));
        let mut second = vec![json!({"name": "predicates"})];
        second.extend(self.capacity.then(|| match self.hierarchy {
            true => json!({"name": "capacity", "enableHierarchy": true}),
            false => json!({"name": "capacity"}),
        }));
        second.extend(self.flavours.iter().map(plugin));
        json!({
            "actions": self.actions.join(", "),
            "tiers": [{"plugins": first}, {"plugins": second}],
            "configurations": self.configurations(),
        })
    }

    fn configurations(&self) -> Vec<Value> {
        let mut all = vec![json!({
            "name": "stalegangeviction",
            "arguments": {"defaultStalenessGracePeriod": format!("{}s", self.staleness_grace)},
        })];
        for (name, mode, deletes) in [
            ("preempt", self.preempt, self.preempt_deletes),
            ("reclaim", self.reclaim, self.reclaim_deletes),
        ] {
            all.push(json!({"name": name, "arguments": self.evicting(name, mode, deletes)}));
        }
        if let Some(wait) = self.traverse_head_wait {
            all.push(json!({
                "name": "allocate", "arguments": {"traverseHeadWait": format!("{wait}s")},
            }));
        }
        if let Some(count) = self.max_domains {
            all.push(json!({"name": "consolidate", "arguments": {"maxDomains": count}}));
        }
        all
    }

    fn evicting(&self, name: &str, mode: Mode, deletes: bool) -> Map<String, Value> {
        let mut arguments = Map::new();
        let mut set = |key: &str, value: Value| arguments.insert(key.to_owned(), value);
        match mode {
            Mode::Task => {}
            Mode::Gang => drop(set("mode", json!("gang"))),
            Mode::Scenario => drop(set("mode", json!("scenario"))),
        }
        if !self.whole_bundles {
            set("allowWholeBundle", json!(false));
        }
        if self.evict_broken_gangs {
            set("evictBrokenGang", json!(true));
        }
        if self.priority_first && name == "preempt" {
            set("order", json!("priority-first"));
        }
        if deletes {
            set("evictionMethod", json!("delete"));
        }
        if let Some(count) = self.max_domains {
            set("maxDomains", json!(count));
        }
        arguments
    }

    pub fn acts(&self, action: &str) -> bool {
        self.actions.contains(&action)
    }

    pub fn mode_of(&self, action: &str) -> Mode {
        match action {
            "preempt" | "gangpreempt" => self.preempt,
            "reclaim" | "gangreclaim" => self.reclaim,
            _ => Mode::Scenario,
        }
    }

    /// Whether budgets hold against an action.
    pub fn keeps_budgets(&self, action: &str) -> bool {
        self.pdb
            && match action {
                "preempt" => !self.preempt_deletes,
                "reclaim" => !self.reclaim_deletes,
                "consolidate" => true,
                _ => false,
            }
    }
}
