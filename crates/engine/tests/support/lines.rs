//! The short form of objects: one line each, as manifests.
//!
//! ```text
//! node a b    cpu=4 gpu=8 label=zone:x taint=infra cordoned notready
//! queue red   weight=2 parent=p cap.cpu=4 deserved.cpu=2 guarantee.cpu=1 fifo closed preemptmin=10m reclaimmin=1m
//! gang ring   x3 min=3 gpu=8 queue=red class=high role=lead:1 minres.cpu=3 estimate=40s
//! pod p       cpu=1 on=a gang=ring role=lead terminating gated succeeded never unstarted
//! domain s0   tier=1 nodes=a,b pattern=^n label=rack:r1 domains=s1,s2 tiername=rack own=zone:x
//! domain s1   tier=2 domainlabel=zone:x
//! gang ring   x8 gpu=8 close=hard:2 groups=4:hard:1 mingroups=2
//! gang ring   min=8 groups.lead=2:hard:1 mingroups.lead=1
//! node c      cards=2x8000 broken=1
//! pod p       gpumem=4000 on=c card=0
//! node v      vcards=2x8000x10
//! pod p       vgpu=2 vmem=3000 vcores=50 on=v vcard=v-0,NVIDIA,3000,50:v-1,NVIDIA,3000,50:
//! gang ring   preemptable=true revocable=* jdbmin=50% jdbmax=1 cooldown=10m saved=2026-01-04T23:59:00Z ends=2026-01-05T01:00:00Z
//! gang ring   grace=-1s stale=2026-01-04T23:59:00Z kaistale=2026-01-04T23:59:00Z
//! budget b    label=app:web min=1 allowed=0
//! ```
//!
//! `close` is hard or soft, with or without the highest tier by number or name; `groups` puts so
//! many pods after each other into one subgroup, with the closeness of each; `groups.ROLE` is about
//! pods of that role, which say their `part`. `cards` are so many of so much memory, `vcards` are
//! shared by so many pods each.

use std::fmt::Write;

pub struct Line<'t> {
    pub kind: &'t str,
    pub names: Vec<&'t str>,
    /// In the order of writing; a key may come more than once.
    pub values: Vec<(&'t str, &'t str)>,
    pub flags: Vec<&'t str>,
}

const FLAGS: [&str; 10] = [
    "cordoned",
    "notready",
    "fifo",
    "closed",
    "terminating",
    "gated",
    "succeeded",
    "never",
    "default!",
    "unstarted",
];

impl<'t> Line<'t> {
    pub fn parse(text: &'t str) -> Option<Line<'t>> {
        let mut words = text.split_whitespace();
        let mut line =
            Line { kind: words.next()?, names: Vec::new(), values: Vec::new(), flags: Vec::new() };
        for word in words {
            match word.split_once('=') {
                Some(pair) => line.values.push(pair),
                None if FLAGS.contains(&word) => line.flags.push(word),
                None => line.names.push(word),
            }
        }
        Some(line)
    }

    pub fn get(&self, key: &str) -> Option<&'t str> {
        self.values.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    pub fn all<'k>(&self, key: &'k str) -> impl Iterator<Item = &'t str> + use<'_, 't, 'k> {
        self.values.iter().filter(move |(known, _)| *known == key).map(|(_, value)| *value)
    }

    pub fn is(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// `cap.cpu=4 cap.gpu=2` as a map of resources.
    fn resources(&self, prefix: &str) -> String {
        let named = self.values.iter().filter_map(|(key, value)| {
            let short = key.strip_prefix(prefix)?;
            let name = match short {
                "cpu" | "pods" => short,
                "mem" => "memory",
                "gpu" => "nvidia.com/gpu",
                "gpumem" => "volcano.sh/gpu-memory",
                "gpunum" => "volcano.sh/gpu-number",
                "vgpu" => "volcano.sh/vgpu-number",
                "vmem" => "volcano.sh/vgpu-memory",
                "vpercent" => "volcano.sh/vgpu-memory-percentage",
                "vcores" => "volcano.sh/vgpu-cores",
                _ => return None,
            };
            Some(format!("{name}: {value}"))
        });
        named.collect::<Vec<_>>().join(", ")
    }

    fn pairs(&self, key: &str) -> String {
        let pairs = self.all(key).map(|pair| pair.replacen(':', ": ", 1));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// The manifests of the line. `born` is when its objects were made, `serial` tells incarnations
    /// apart.
    pub fn manifests(&self, born: &str, serial: u64) -> String {
        let mut text = String::new();
        for name in &self.names {
            match self.kind {
                "node" => self.node(name, &mut text),
                "queue" => self.queue(name, born, &mut text),
                "class" => self.class(name, &mut text),
                "space" => self.space(name, &mut text),
                "budget" => self.budget(name, &mut text),
                "quota" => self.quota(name, &mut text),
                "volume" => self.volume(name, &mut text),
                "claim" => self.preemptor(name, &mut text),
                "gang" if !name.starts_with('x') => self.gang(name, born, serial, &mut text),
                "domain" => self.domain(name, born, &mut text),
                "pod" => self.pod(name, self.get("gang"), None, born, serial, &mut text),
                _ => {}
            }
        }
        text
    }

    /// What pods and PodGroups say alike: a gang's own lines put it on the PodGroup, not on its
    /// pods.
    pub fn notes(&self) -> impl Iterator<Item = (&'static str, &'t str)> + '_ {
        let keys = [
            ("cooldown", "volcano.sh/cooldown-time"),
            ("grace", "volcano.sh/staleness-grace-period"),
            ("kaistale", "kai.scheduler/stale-podgroup-timestamp"),
            ("stale", "volcano.sh/stale-since"),
            ("ends", "volcano.sh/expected-end-time"),
            ("jdbmax", "volcano.sh/jdb-max-unavailable"),
            ("jdbmin", "volcano.sh/jdb-min-available"),
            ("preemptable", "volcano.sh/preemptable"),
            ("revocable", "volcano.sh/revocable-zone"),
            ("saved", "volcano.sh/last-checkpoint-time"),
        ];
        keys.into_iter().filter_map(|(key, name)| self.get(key).map(|value| (name, value)))
    }

    fn budget(&self, name: &str, out: &mut String) {
        let field = |key: &str, field: &str| {
            self.get(key).map_or(String::new(), |value| format!("{field}: {value}, "))
        };
        writeln!(
            out,
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {name}, namespace: default}}\nspec: \
             {{{}{}selector: {{matchLabels: {{{}}}}}}}\nstatus: {{{}}}\n---",
            field("min", "minAvailable"),
            field("max", "maxUnavailable"),
            self.pairs("label"),
            field("allowed", "disruptionsAllowed"),
        )
        .expect("a string");
    }

    fn node(&self, name: &str, out: &mut String) {
        let taints: Vec<String> =
            self.all("taint").map(|key| format!("{{key: {key}, effect: NoSchedule}}")).collect();
        let ready = if self.is("notready") { "False" } else { "True" };
        let pods = self.get("pods").unwrap_or("110");
        let resources = self.resources("");
        let room = if self.get("pods").is_some() {
            resources
        } else {
            format!("{resources}, pods: {pods}")
        };
        let (cards, notes) = self.cards(name);
        let room = format!("{}{cards}", room.trim_start_matches(", "));
        writeln!(
            out,
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{host: {name}, {}}}, \
             annotations: {{{notes}}}}}\nspec: {{unschedulable: {}, taints: [{}]}}\nstatus: {{allocatable: {{{room}}}, conditions: [{{type: Ready, status: \"{ready}\"}}]}}\n---",
            self.pairs("label"),
            self.is("cordoned"),
            taints.join(", "),
        )
        .expect("a string");
    }

    /// The cards of a node: what is allocatable of them, and its annotations about them.
    fn cards(&self, node: &str) -> (String, String) {
        let number = |text: &str| text.parse::<i64>().expect("a number");
        let numbers = |text: &str| text.split('x').map(number).collect::<Vec<_>>();
        let mut notes = Vec::new();
        let room = self.get("cards").map(|text| {
            let [count, memory] = numbers(text)[..] else { panic!("cards=2x8000") };
            format!(", volcano.sh/gpu-number: {count}, volcano.sh/gpu-memory: {}", count * memory)
        });
        if let Some(text) = self.get("vcards") {
            let [count, memory, pods] = numbers(text)[..] else { panic!("vcards=2x8000x10") };
            let broken =
                |card: i64| self.get("broken").is_some_and(|broken| number(broken) == card);
            let card = |card| {
                format!(
                    "{node}-{card},{pods},{memory},NVIDIA-{memory},{},hami-core:",
                    !broken(card)
                )
            };
            let cards: String = (0..count).map(card).collect();
            notes.push(format!("volcano.sh/node-vgpu-register: \"{cards}\""));
        }
        notes.extend(
            self.get("broken").map(|card| format!("volcano.sh/gpu-unhealthy-ids: \"{card}\"")),
        );
        (room.unwrap_or_default(), notes.join(", "))
    }

    fn queue(&self, name: &str, born: &str, out: &mut String) {
        let mut spec = String::new();
        for (key, field) in [
            ("weight", "weight"),
            ("parent", "parent"),
            ("priority", "priority"),
            ("reclaimable", "reclaimable"),
        ] {
            if let Some(value) = self.get(key) {
                write!(spec, "{field}: {value}, ").expect("a string");
            }
        }
        for (prefix, field) in [("cap.", "capability"), ("deserved.", "deserved")] {
            let list = self.resources(prefix);
            if !list.is_empty() {
                write!(spec, "{field}: {{{list}}}, ").expect("a string");
            }
        }
        let guarantee = self.resources("guarantee.");
        if !guarantee.is_empty() {
            write!(spec, "guarantee: {{resource: {{{guarantee}}}}}, ").expect("a string");
        }
        if let Some(group) = self.get("group") {
            write!(
                spec,
                "affinity: {{nodeGroupAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{group}]}}}}, "
            )
            .expect("a string");
        }
        if self.is("fifo") {
            spec += "dequeueStrategy: fifo, ";
        }
        let weights = self.get("path").map(|_| self.get("weights").unwrap_or("1"));
        let notes = [
            ("volcano.sh/hierarchy", self.get("path")),
            ("volcano.sh/hierarchy-weights", weights),
            ("volcano.sh/preempt-min-runtime", self.get("preemptmin")),
            ("volcano.sh/reclaim-min-runtime", self.get("reclaimmin")),
        ];
        let notes = notes.iter().filter_map(|(key, text)| Some(format!("{key}: \"{}\"", (*text)?)));
        let notes = notes.collect::<Vec<_>>().join(", ");
        let state = if self.is("closed") { "Closed" } else { "Open" };
        writeln!(
            out,
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}, creationTimestamp: \
             \"{born}\", annotations: {{{notes}}}}}\nspec: {{{spec}}}\nstatus: {{state: {state}}}\n---"
        )
        .expect("a string");
    }

    fn class(&self, name: &str, out: &mut String) {
        let value = self.get("value").unwrap_or("0");
        writeln!(
            out,
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n\
             globalDefault: {}\n---",
            self.is("default!")
        )
        .expect("a string");
    }

    fn space(&self, name: &str, out: &mut String) {
        let queue = self
            .get("queue")
            .map_or(String::new(), |queue| format!("scheduling.volcano.sh/queue-name: {queue}"));
        writeln!(
            out,
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, annotations: {{{queue}}}}}\n---"
        )
        .expect("a string");
    }

    fn quota(&self, name: &str, out: &mut String) {
        writeln!(
            out,
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: quota, namespace: {name}}}\nspec: {{hard: {{{}}}}}\n---",
            self.resources("")
        )
        .expect("a string");
    }

    fn volume(&self, name: &str, out: &mut String) {
        let node = self.get("node").expect("volume NAME node=NODE");
        writeln!(
            out,
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec: {{nodeAffinity: {{required: \
             {{nodeSelectorTerms: [{{matchExpressions: [{{key: host, operator: In, values: [{node}]}}]}}]}}}}}}\n---"
        )
        .expect("a string");
    }

    fn preemptor(&self, name: &str, out: &mut String) {
        let volume = self.get("volume").unwrap_or("\"\"");
        writeln!(
            out,
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, namespace: default}}\nspec: \
             {{volumeName: {volume}}}\n---"
        )
        .expect("a string");
    }

    fn gang(&self, name: &str, born: &str, serial: u64, out: &mut String) {
        let count: u64 =
            self.names.iter().find_map(|word| word.strip_prefix('x')?.parse().ok()).unwrap_or(0);
        let minimum = self.get("min").map_or(count.to_string(), str::to_owned);
        let mut spec = format!("minMember: {minimum}");
        if let Some(queue) = self.get("queue") {
            write!(spec, ", queue: {queue}").expect("a string");
        }
        if let Some(class) = self.get("class") {
            write!(spec, ", priorityClassName: {class}").expect("a string");
        }
        let least = self.resources("minres.");
        if !least.is_empty() {
            write!(spec, ", minResources: {{{least}}}").expect("a string");
        }
        if let Some(close) = self.get("close") {
            write!(spec, ", networkTopology: {}", tier_limit(close)).expect("a string");
        }
        let rules: Vec<String> =
            self.values.iter().filter_map(|(key, value)| self.rule(key, value)).collect();
        if !rules.is_empty() {
            write!(spec, ", subGroupPolicy: [{}]", rules.join(", ")).expect("a string");
        }
        if self.get("role").is_some() {
            write!(spec, ", minTaskMember: {{{}}}", self.pairs("role")).expect("a string");
        }
        let mut annotations = Vec::new();
        if let Some(estimate) = self.get("estimate") {
            annotations.push(format!("volcano.sh/running-estimate: {estimate}"));
        }
        if let Some(wait) = self.get("sla") {
            annotations.push(format!("sla-waiting-time: {wait}"));
        }
        annotations.extend(self.notes().map(|(key, text)| format!("{key}: \"{text}\"")));
        let space = self.get("ns").unwrap_or("default");
        writeln!(
            out,
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}, namespace: {space}, uid: \
             g{serial}, creationTimestamp: \"{born}\", annotations: {{{}}}}}\nspec: {{{spec}}}\n---",
            annotations.join(", ")
        )
        .expect("a string");
        let size: Option<u64> =
            self.get("groups").and_then(|text| text.split(':').next()?.parse().ok());
        for index in 0..count {
            self.pod(
                &format!("{name}-{index}"),
                Some(name),
                size.map(|size| index / size),
                born,
                serial,
                out,
            );
        }
    }

    /// `groups=4:hard:1` is about all pods, `groups.lead=2` about those of a role.
    fn rule(&self, key: &str, groups: &str) -> Option<String> {
        let role = key.strip_prefix("groups")?;
        let (size, close) = groups.split_once(':').unwrap_or((groups, ""));
        let close = if close.is_empty() {
            String::new()
        } else {
            format!(", networkTopology: {}", tier_limit(close))
        };
        let (name, selector) = match role.strip_prefix('.') {
            Some(role) => (
                role,
                format!(", labelSelector: {{matchLabels: {{volcano.sh/task-spec: {role}}}}}"),
            ),
            None => ("part", String::new()),
        };
        let minimum = self.get(&format!("mingroups{role}")).unwrap_or("0");
        let keys = "matchLabelKeys: [volcano.sh/partition-id]";
        Some(format!(
            "{{name: {name}, {keys}, subGroupSize: {size}, minSubGroups: {minimum}{close}{selector}}}"
        ))
    }

    fn domain(&self, name: &str, born: &str, out: &mut String) {
        let mut members = Vec::new();
        let listed = |key: &str| self.get(key).into_iter().flat_map(|names| names.split(','));
        for (kind, key) in [("Node", "nodes"), ("HyperNode", "domains")] {
            members.extend(listed(key).map(|name| {
                format!("{{type: {kind}, selector: {{exactMatch: {{name: {name}}}}}}}")
            }));
        }
        let pattern = |pattern| {
            format!("{{type: Node, selector: {{regexMatch: {{pattern: \"{pattern}\"}}}}}}")
        };
        members.extend(self.get("pattern").map(pattern));
        for (kind, key) in [("Node", "label"), ("HyperNode", "domainlabel")] {
            members.extend(self.get(key).map(|label| {
                let label = label.replacen(':', ": ", 1);
                format!("{{type: {kind}, selector: {{labelMatch: {{matchLabels: {{{label}}}}}}}}}")
            }));
        }
        let tier_name =
            self.get("tiername").map_or(String::new(), |name| format!(", tierName: {name}"));
        writeln!(
            out,
            "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}, labels: {{{}}}, creationTimestamp: \
             \"{born}\"}}\nspec: {{tier: {}{tier_name}, members: [{}]}}\n---",
            self.pairs("own"),
            self.get("tier").unwrap_or("1"),
            members.join(", ")
        )
        .expect("a string");
    }

    fn pod(
        &self,
        name: &str,
        gang: Option<&str>,
        part: Option<u64>,
        born: &str,
        serial: u64,
        out: &mut String,
    ) {
        let mut annotations = Vec::new();
        if let Some(gang) = gang {
            annotations.push(format!("scheduling.k8s.io/group-name: {gang}"));
        } else if let Some(queue) = self.get("queue") {
            annotations.push(format!("scheduling.volcano.sh/queue-name: {queue}"));
        }
        if let Some((mode, tier)) =
            self.get("close").filter(|_| gang.is_none()).and_then(|c| c.split_once(':'))
        {
            annotations.push(format!("volcano.sh/network-topology-mode: {mode}"));
            annotations.push(format!("volcano.sh/network-topology-highest-tier: \"{tier}\""));
        }
        if let Some(estimate) = self.get("estimate").filter(|_| gang.is_none()) {
            annotations.push(format!("volcano.sh/running-estimate: {estimate}"));
        }
        for (key, name) in [
            ("order", "volcano.sh/task-priority"),
            ("nominated", "volcano.sh/pipelined-node"),
            ("card", "volcano.sh/gpu-index"),
            ("vcard", "volcano.sh/vgpu-ids-new"),
            ("usetype", "nvidia.com/use-gputype"),
        ] {
            annotations.extend(self.get(key).map(|value| format!("{name}: \"{value}\"")));
        }
        if self.kind == "pod" {
            annotations.extend(self.notes().map(|(key, text)| format!("{key}: \"{text}\"")));
        }
        if self.get("nominated").is_some() {
            annotations.push("volcano.sh/pipelined-status: \"true\"".into());
        }
        let mut labels = self.pairs("label");
        if let Some(role) = self.get("role").filter(|_| self.kind == "pod") {
            let comma = if labels.is_empty() { "" } else { ", " };
            write!(labels, "{comma}volcano.sh/task-spec: {role}").expect("a string");
        }
        if let Some(part) = part.map(|part| part.to_string()).as_deref().or(self.get("part")) {
            let comma = if labels.is_empty() { "" } else { ", " };
            write!(labels, "{comma}volcano.sh/partition-id: \"{part}\"").expect("a string");
        }
        let leaving = if self.is("terminating") {
            format!(", deletionTimestamp: \"{born}\"")
        } else {
            String::new()
        };
        let phase = match self.get("on") {
            _ if self.is("succeeded") => "Succeeded",
            Some(_) => "Running",
            None => "Pending",
        };
        let started = self.get("on").filter(|_| !self.is("unstarted"));
        let started = started.map_or(String::new(), |_| format!(", startTime: \"{born}\""));
        writeln!(
            out,
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {}, uid: {name}.{serial}, creationTimestamp: \
             \"{born}\", labels: {{{labels}}}, annotations: {{{}}}{leaving}}}\nspec: {{{}}}\nstatus: {{phase: \
             {phase}{started}}}\n---",
            self.get("ns").unwrap_or("default"),
            annotations.join(", "),
            self.pod_spec(gang)
        )
        .expect("a string");
    }

    fn pod_spec(&self, gang: Option<&str>) -> String {
        let mut spec = format!("schedulerName: {}", self.get("scheduler").unwrap_or("volcano"));
        let optional =
            |key: &str, field: &str| self.get(key).map(|value| format!(", {field}: {value}"));
        spec.extend(optional("on", "nodeName"));
        spec.extend(optional("prio", "priority"));
        if gang.is_none() || self.kind == "pod" {
            spec.extend(optional("class", "priorityClassName"));
        }
        if self.is("never") {
            spec += ", preemptionPolicy: Never";
        }
        if self.is("gated") {
            spec += ", schedulingGates: [{name: hold}]";
        }
        if self.get("select").is_some() {
            write!(spec, ", nodeSelector: {{{}}}", self.pairs("select")).expect("a string");
        }
        if let Some(key) = self.get("tolerate") {
            write!(spec, ", tolerations: [{{key: {key}, operator: Exists}}]").expect("a string");
        }
        let term = |text: &str| {
            let (label, key) = text.split_once('/').expect("label:value/key");
            format!(
                "topologyKey: {key}, labelSelector: {{matchLabels: {{{}}}}}",
                label.replacen(':', ": ", 1)
            )
        };
        let rule = |key: &str, field: &str| {
            self.get(key).map(|text| {
                format!(
                    "{field}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{{}}}]}}",
                    term(text)
                )
            })
        };
        let rules: Vec<String> = [rule("with", "podAffinity"), rule("apart", "podAntiAffinity")]
            .into_iter()
            .flatten()
            .collect();
        if !rules.is_empty() {
            write!(spec, ", affinity: {{{}}}", rules.join(", ")).expect("a string");
        }
        if let Some(text) = self.get("spread") {
            let term = term(text);
            write!(
                spec,
                ", topologySpreadConstraints: [{{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, {term}}}]"
            )
            .expect("a string");
        }
        if let Some(preemptor) = self.get("claim") {
            write!(
                spec,
                ", volumes: [{{name: data, persistentVolumeClaim: {{claimName: {preemptor}}}}}]"
            )
            .expect("a string");
        }
        let port = self.get("port").map_or(String::new(), |port| {
            format!(", ports: [{{containerPort: 80, hostPort: {port}}}]")
        });
        write!(
            spec,
            ", containers: [{{name: main, image: app{port}, resources: {{requests: {{{}}}}}}}]",
            self.resources("")
        )
        .expect("a string");
        spec
    }
}

/// `hard:2` as the API has it.
fn tier_limit(text: &str) -> String {
    let (mode, highest) = text.split_once(':').unwrap_or((text, ""));
    let highest = match highest.parse::<u32>() {
        Ok(tier) => format!(", highestTierAllowed: {tier}"),
        Err(_) if highest.is_empty() => String::new(),
        Err(_) => format!(", highestTierName: {highest}"),
    };
    format!("{{mode: {mode}{highest}}}")
}
