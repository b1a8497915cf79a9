//! Days on which the law must hold: configurations, and the objects that they need.

use muster_api::core::Image;
use muster_api::kinds::Object;
use muster_api::{NodeGroupAffinity, QueueAffinity};
use muster_engine::Event;
use muster_engine::config::BUILTIN;

pub struct Day {
    pub name: &'static str,
    /// Used one after the other.
    pub configs: &'static [&'static str],
    /// Changes the events of the fault simulator.
    pub twist: Option<fn(&mut Event)>,
}

const WEIGHTS: &str = include_str!("../../../sim/tests/shares-by-weight.conf");

const PATHS: &str = r#"
actions: "enqueue, allocate, backfill"
configurations:
- name: enqueue
  arguments: {admissionTimeout: 20s}
- name: allocate
  arguments: {traverseHeadWait: 15s}
tiers:
- plugins:
  - name: gang
  - name: conformance
- plugins:
  - name: drf
    enableHierarchy: true
  - name: predicates
  - name: overcommit
  - name: resourcequota
  - name: nodegroup
    arguments: {strict: false}
  - name: nodeorder
"#;

const BARE: &str = r#"
actions: "allocate, backfill, stalegangeviction"
configurations:
- name: stalegangeviction
  arguments: {gracePeriod: 3s}
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
    arguments: {usageHalfLife: 30s}
  - name: binpack
"#;

pub const DAYS: &[Day] = &[
    Day { name: "builtin", configs: &[BUILTIN], twist: None },
    Day { name: "shares by weight", configs: &[WEIGHTS], twist: None },
    Day { name: "paths and groups", configs: &[PATHS], twist: Some(paths_and_groups) },
    Day {
        name: "changing configurations",
        configs: &[BUILTIN, BARE, WEIGHTS, PATHS],
        twist: Some(paths_and_groups),
    },
];

/// Queues have paths with weights and prefer groups of nodes; nodes say which images they have.
fn paths_and_groups(event: &mut Event) {
    match event {
        Event::Object(Object::Queue(queue)) => {
            let name = queue.metadata.name.clone();
            let annotations = &mut queue.metadata.annotations;
            let (path, weights) = match name.as_str() {
                "red" | "blue" => (format!("root/colours/{name}"), "1/3/2"),
                _ => (format!("root/{name}"), "1/1"),
            };
            annotations.insert("volcano.sh/hierarchy".into(), path);
            annotations.insert("volcano.sh/hierarchy-weights".into(), weights.into());
            let groups = NodeGroupAffinity { preferred: Vec::new(), required: vec!["b".into()] };
            let affinity =
                QueueAffinity { node_group_affinity: Some(groups), node_group_anti_affinity: None };
            queue.spec.affinity = Some(affinity).filter(|_| name == "small");
        }
        Event::Object(Object::Node(node)) => {
            if let Some(zone) = node.metadata.labels.get("zone").cloned() {
                let images = vec![Image { names: vec!["busybox".into()], size_bytes: 400 << 20 }];
                node.status.images = if zone == "c" { images } else { Vec::new() };
                if zone == "b" {
                    node.metadata.labels.insert("volcano.sh/nodegroup-name".into(), zone);
                }
            }
        }
        _ => {}
    }
}
