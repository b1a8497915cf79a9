//! An API server in a few lines: keeps objects as JSON, takes writes, and tells of every change. A
//! pod that is deleted leaves at once, unless it is held.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::Time;
use muster_api::kinds::{Kind, Object};
use muster_api::manifest::merge_patch;
use muster_controllers::{
    Event, Level, Part, PodPhase, Refusal, SeenPod, Target, What, Write, WriteId,
};
use serde_json::{Value, json};

#[derive(Default)]
pub struct Server {
    pub now: Time,
    objects: BTreeMap<(String, String), Value>,
    /// What the next look at each pod says beyond its object.
    exit_codes: BTreeMap<String, Vec<i32>>,
    finished: BTreeMap<String, Time>,
    unready: BTreeSet<String>,
    restarts: BTreeMap<String, i32>,
    version: u64,
    uids: u64,
    /// Pods stay, terminating, until they are let go.
    pub holds: bool,
    /// The next writes whose line begins so are refused with this message.
    pub refusals: Vec<(String, String)>,
    pub news: Vec<Event>,
    /// Every write that was taken or refused, one line each.
    pub log: Vec<String>,
}

impl Server {
    pub fn at(now: Time) -> Server {
        Server { now, ..Server::default() }
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind.to_owned(), key(kind, name)))
    }

    /// The names of the objects of a kind, in order.
    pub fn names(&self, kind: &str) -> Vec<String> {
        let of_kind = self.objects.iter().filter(|((its, _), _)| its == kind);
        of_kind.map(|(_, object)| text(object, "/metadata/name")).collect()
    }

    /// Everything there is, as to a controller that starts now.
    pub fn list(&mut self) {
        self.news.clear();
        let all: Vec<(String, String)> = self.objects.keys().cloned().collect();
        for (kind, key) in all {
            self.tell(&kind, &key);
        }
    }

    pub fn put(&mut self, mut object: Value) {
        let kind = text(&object, "/kind");
        let name = text(&object, "/metadata/name");
        let key = key(&kind, &name);
        let before = self.objects.get(&(kind.clone(), key.clone())).cloned();
        let meta = object["metadata"].as_object_mut().expect("objects have metadata");
        if kind != "Queue" && kind != "PriorityClass" {
            meta.entry("namespace").or_insert("default".into());
        }
        let uid = before.as_ref().map(|before| before["metadata"]["uid"].clone());
        let next = format!("uid-{kind}-{}", self.uids).to_lowercase();
        self.uids += u64::from(uid.is_none());
        meta.insert("uid".to_owned(), uid.unwrap_or(next.into()));
        let created = before.as_ref().map(|before| before["metadata"]["creationTimestamp"].clone());
        meta.insert("creationTimestamp".to_owned(), created.unwrap_or(json!(self.now)));
        if let Some(status) = before.as_ref().and_then(|before| before.get("status")) {
            object["status"] = status.clone();
        }
        self.objects.insert((kind.clone(), key.clone()), object);
        self.tell(&kind, &key);
    }

    pub fn change(&mut self, kind: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let key = key(kind, name);
        let at = (kind.to_owned(), key.clone());
        change(self.objects.get_mut(&at).unwrap_or_else(|| panic!("no {kind} {name}")));
        self.tell(kind, &key);
    }

    pub fn end_pod(&mut self, name: &str, codes: &[i32]) {
        self.exit_codes.insert(name.to_owned(), codes.to_vec());
        let phase = if codes.iter().all(|code| *code == 0) { "Succeeded" } else { "Failed" };
        self.finished.insert(name.to_owned(), self.now);
        self.set_phase(name, phase);
    }

    pub fn set_phase(&mut self, name: &str, phase: &str) {
        self.change("Pod", name, |pod| pod["status"] = json!({ "phase": phase }));
    }

    pub fn set_ready(&mut self, name: &str, is_ready: bool) {
        match is_ready {
            true => drop(self.unready.remove(name)),
            false => drop(self.unready.insert(name.to_owned())),
        }
        self.tell("Pod", &key("Pod", name));
    }

    pub fn set_restarts(&mut self, name: &str, count: i32) {
        self.restarts.insert(name.to_owned(), count);
        self.tell("Pod", &key("Pod", name));
    }

    /// Asks an object to leave, as anyone may.
    pub fn delete(&mut self, kind: &str, name: &str) {
        let now = self.now;
        if kind == "Pod" {
            self.change(kind, name, |pod| pod["metadata"]["deletionTimestamp"] = json!(now));
        }
        if kind != "Pod" || !self.holds {
            self.remove(kind, name);
        }
    }

    /// The object is gone, and with it what belongs to it.
    pub fn remove(&mut self, kind: &str, name: &str) {
        let key = key(kind, name);
        let Some(gone) = self.objects.remove(&(kind.to_owned(), key.clone())) else { return };
        self.exit_codes.remove(name);
        self.finished.remove(name);
        self.restarts.remove(name);
        let uid = text(&gone, "/metadata/uid");
        let kind_known = Kind::named(kind);
        self.news.push(match kind_known {
            Some(kind) => Event::Gone { kind, key, uid: uid.clone() },
            None => Event::PartGone { kind: kind.to_owned(), key, uid: uid.clone() },
        });
        let belongs = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid.as_str()))
        };
        let below: Vec<(String, String)> = self
            .objects
            .iter()
            .filter(|(_, object)| belongs(object))
            .map(|((kind, _), object)| (kind.clone(), text(object, "/metadata/name")))
            .collect();
        below.into_iter().for_each(|(kind, name)| self.remove(&kind, &name));
    }

    fn tell(&mut self, kind: &str, key: &str) {
        self.version += 1;
        let at = (kind.to_owned(), key.to_owned());
        let object = self.objects.get_mut(&at).expect("it was just written");
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let object = object.clone();
        self.news.push(self.event(kind, &object));
    }

    fn event(&self, kind: &str, object: &Value) -> Event {
        let name = text(object, "/metadata/name");
        if kind == "Pod" {
            let phase = PodPhase::read(&text(object, "/status/phase"));
            let codes = self.exit_codes.get(&name).cloned().unwrap_or_default();
            return Event::Pod(SeenPod {
                metadata: serde_json::from_value(object["metadata"].clone()).expect("metadata"),
                phase,
                ready: phase == PodPhase::Running && !self.unready.contains(&name),
                restarts: self.restarts.get(&name).copied().unwrap_or_default(),
                finished_at: self.finished.get(&name).copied(),
                exit_codes: codes.into_iter().filter(|code| *code != 0).collect(),
            });
        }
        match Kind::named(kind) {
            Some(kind) => Event::Object(kind.with_type(Read(object))),
            None => Event::Part(Part {
                kind: kind.to_owned(),
                metadata: serde_json::from_value(object["metadata"].clone()).expect("metadata"),
            }),
        }
    }

    /// Takes a write, or refuses it, and tells of it.
    pub fn take(&mut self, write: Write) {
        let line = self.line(&write.what);
        let refused = self.refusals.iter().position(|(begin, _)| line.starts_with(begin.as_str()));
        if let Some(place) = refused {
            let (_, message) = self.refusals.remove(place);
            self.log.push(format!("{line}: refused"));
            let result = match message.as_str() {
                "conflict" => Err(Refusal::Conflict),
                _ => Err(Refusal::Refused(message)),
            };
            return self.answer(write.id, result);
        }
        let result = self.perform(write.what);
        self.log.push(match &result {
            Ok(()) => line,
            Err(refusal) => format!("{line}: {refusal:?}"),
        });
        self.answer(write.id, result);
    }

    fn answer(&mut self, id: WriteId, result: Result<(), Refusal>) {
        self.news.push(Event::Answer { id, result });
    }

    fn perform(&mut self, what: What) -> Result<(), Refusal> {
        match what {
            What::CreateWithKeys { mut object, keys } => {
                object["stringData"]["id_rsa"] = format!("{keys:?}").into();
                return self.perform(What::Create(object));
            }
            What::Create(object) => {
                let (kind, name) = (text(&object, "/kind"), text(&object, "/metadata/name"));
                if let Some(there) = self.get(&kind, &name) {
                    let owner = text(there, "/metadata/ownerReferences/0/uid");
                    let owner = Some(owner).filter(|uid| !uid.is_empty());
                    return Err(Refusal::Exists { owner });
                }
                self.put(object);
            }
            What::SetStatus { object, status, version } => {
                let there = self.there(&object)?;
                if version.is_some_and(|version| there["metadata"]["resourceVersion"] != version) {
                    return Err(Refusal::Conflict);
                }
                self.change(&object.kind, &object.name, |object| object["status"] = status);
            }
            What::Merge { object, patch } => {
                self.there(&object)?;
                self.change(&object.kind, &object.name, |object| merge_patch(object, patch));
            }
            What::Delete { object, .. } => {
                self.there(&object)?;
                self.delete(&object.kind, &object.name);
            }
            What::Tell { .. } => {}
        }
        Ok(())
    }

    fn there(&self, target: &Target) -> Result<&Value, Refusal> {
        let there = self.get(&target.kind, &target.name).ok_or(Refusal::NotFound)?;
        match there["metadata"]["uid"] == target.uid.as_str() {
            true => Ok(there),
            false => Err(Refusal::Conflict),
        }
    }

    /// A write on one line.
    fn line(&self, what: &What) -> String {
        match what {
            What::Create(object) => {
                let kind = text(object, "/kind");
                let name = text(object, "/metadata/name");
                format!("create {kind} {}{}", short(&name), details(&kind, object))
            }
            What::CreateWithKeys { object, keys } => {
                format!(
                    "create {} {} with keys {keys:?}",
                    text(object, "/kind"),
                    text(object, "/metadata/name")
                )
            }
            What::SetStatus { object, status, .. } => {
                format!("status {} {}", object.name, status_words(&object.kind, status))
            }
            What::Merge { object, patch } => {
                format!("patch {} {} {patch}", object.kind, short(&object.name))
            }
            What::Delete { object, .. } => {
                format!("delete {} {}", object.kind, short(&object.name))
            }
            What::Tell { object, level, reason, message } => {
                let level = if *level == Level::Warning { "Warning " } else { "" };
                format!("tell {} {level}{reason}: {message}", object.name)
            }
        }
    }
}

struct Read<'v>(&'v Value);

impl muster_api::kinds::WithType for Read<'_> {
    type Output = Object;

    fn call<T: muster_api::kinds::Resource>(self) -> Object {
        T::deserialize(self.0).expect("a good object").into()
    }
}

/// PodGroups are named after UIDs, which say nothing here.
fn short(name: &str) -> &str {
    name.split("-uid-").next().unwrap_or(name)
}

fn key(kind: &str, name: &str) -> String {
    match kind {
        "Queue" | "PriorityClass" => name.to_owned(),
        _ => format!("default/{name}"),
    }
}

pub fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What matters of an object that is created.
fn details(kind: &str, object: &Value) -> String {
    match kind {
        "Pod" => {
            let annotations = &object["metadata"]["annotations"];
            let number = |key: &str, word: &str| match annotations[key].as_str() {
                Some("0") | None => String::new(),
                Some(text) => format!(" {word}={text}"),
            };
            number("volcano.sh/job-version", "version")
                + &number("volcano.sh/job-retry-count", "retry")
        }
        "PodGroup" => {
            let spec = &object["spec"];
            let tasks = spec["minTaskMember"].as_object().into_iter().flatten();
            let tasks: Vec<String> = tasks.map(|(task, least)| format!("{task}:{least}")).collect();
            format!(" min={} tasks={}", spec["minMember"], tasks.join(","))
        }
        _ => String::new(),
    }
}

fn status_words(kind: &str, status: &Value) -> String {
    if kind == "JobFlow" {
        let mut words = vec![status["state"]["phase"].as_str().unwrap_or("Pending").to_owned()];
        for list in ["pending", "running", "completed", "failed", "terminated"] {
            if let Some(names) = status[format!("{list}Jobs")].as_array() {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                words.push(format!("{list}={}", names.join(",")));
            }
        }
        return words.join(" ");
    }
    let phase = status["state"]["phase"].as_str().unwrap_or("Pending");
    let mut words = vec![phase.to_owned()];
    for (key, word) in [
        ("pending", "pending"),
        ("running", "running"),
        ("succeeded", "succeeded"),
        ("failed", "failed"),
        ("unknown", "unknown"),
        ("terminating", "terminating"),
        ("version", "version"),
        ("retryCount", "retry"),
    ] {
        if let Some(number) = status[key].as_i64().filter(|number| *number != 0) {
            words.push(format!("{word}={number}"));
        }
    }
    let words = words.join(" ");
    match (status["state"]["reason"].as_str(), status["state"]["message"].as_str()) {
        (Some(reason), Some(message)) => format!("{words} ({reason}: {message})"),
        _ => words,
    }
}
