//! A server, the controllers, and the steps of scenarios between them.

use std::fmt::Write as _;

use muster_api::manifest::merge_patch;
use muster_api::{Time, parse_duration};
use muster_controllers::{Controllers, Event, What};
use serde_json::{Value, json};

use super::jobs;
use super::server::Server;

/// 2026-01-05T00:00:00Z
const START: Time = Time(1_767_571_200_000);
/// Time passes by itself to a wake-up that is this near (in milliseconds).
const NEAR: i64 = 5_000;
/// A step after which there are still writes after so many turns does not come to rest.
const TURNS: u32 = 100;

pub struct Scene {
    pub server: Server,
    controllers: Controllers,
    /// Each step with what was written because of it.
    pub told: String,
}

impl Scene {
    pub fn new() -> Scene {
        let mut server = Server::at(START);
        for name in ["root", "default"] {
            server.put(json!({ "kind": "Queue", "metadata": { "name": name }, "spec": {} }));
        }
        Scene { server, controllers: Controllers::default(), told: String::new() }
    }

    pub fn step(&mut self, line: &str) {
        self.act(line);
        self.come_to_rest(line);
        let lines = std::mem::take(&mut self.server.log);
        if !lines.is_empty() {
            let _ = writeln!(self.told, "{line}");
            for line in lines {
                let _ = writeln!(self.told, "  {line}");
            }
        }
    }

    /// The controllers take their turns until they want nothing more.
    fn come_to_rest(&mut self, line: &str) {
        for _ in 0..TURNS {
            for event in std::mem::take(&mut self.server.news) {
                self.controllers.apply(event);
            }
            let plan = self.controllers.turn(self.server.now);
            let is_idle = plan.writes.iter().all(|write| matches!(write.what, What::Tell { .. }));
            plan.writes.into_iter().for_each(|write| self.server.take(write));
            if is_idle && self.server.news.iter().all(is_told) {
                match plan.wake.filter(|wake| wake.0 - self.server.now.0 <= NEAR) {
                    Some(wake) => self.server.now = wake.max(self.server.now.plus_ms(1)),
                    None => return,
                }
            }
        }
        panic!("{line}: no end after {TURNS} turns:\n{}", self.server.log.join("\n"));
    }

    fn act(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let done =
            self.on_pods(&words) || self.on_objects(line, &words) || self.on_all(line, &words);
        assert!(done, "{line}: no such step");
    }

    /// Steps about pods. Says whether it was one.
    fn on_pods(&mut self, words: &[&str]) -> bool {
        let server = &mut self.server;
        let pods = |server: &Server, glob: &str| -> Vec<String> {
            let names = server.names("Pod").into_iter().filter(|name| fits(glob, name));
            let names: Vec<String> = names.collect();
            assert!(!names.is_empty(), "no pod is named {glob}");
            names
        };
        match *words {
            ["run", glob] => {
                pods(server, glob).iter().for_each(|pod| server.set_phase(pod, "Running"))
            }
            ["pend", glob] => {
                pods(server, glob).iter().for_each(|pod| server.set_phase(pod, "Pending"))
            }
            ["lose", glob] => {
                pods(server, glob).iter().for_each(|pod| server.set_phase(pod, "Unknown"))
            }
            ["end", glob, ref codes @ ..] => {
                let codes: Vec<i32> =
                    codes.iter().map(|code| code.parse().expect("a code")).collect();
                pods(server, glob).iter().for_each(|pod| server.end_pod(pod, &codes));
            }
            ["restarts", pod, count] => server.set_restarts(pod, count.parse().expect("a count")),
            ["unready", glob] => {
                pods(server, glob).iter().for_each(|pod| server.set_ready(pod, false))
            }
            ["ready", glob] => {
                pods(server, glob).iter().for_each(|pod| server.set_ready(pod, true))
            }
            ["hold"] => server.holds = true,
            ["let", "go"] => release(server),
            ["gone", pod] => server.remove("Pod", pod),
            _ => return false,
        }
        true
    }

    /// Steps about other objects. Says whether it was one.
    fn on_objects(&mut self, line: &str, words: &[&str]) -> bool {
        let server = &mut self.server;
        match *words {
            ["job", ..] => server.put(jobs::job(line)),
            ["let", "in"] => set_groups(server, "*", "Inqueue"),
            ["let", "in", name] => set_groups(server, name, "Inqueue"),
            ["group", name, phase] => set_groups(server, name, phase),
            ["delete", kind, name] => server.delete(kind, &full_name(server, kind, name)),
            ["scale", job, task, count] => {
                let count: i32 = count.parse().expect("a count");
                server.change("Job", job, |job| scale(job, task, count));
            }
            ["set", job, ..] => {
                let patch = line.splitn(3, ' ').nth(2).expect("a patch");
                let patch = serde_json::from_str(patch).expect("JSON");
                server.change("Job", job, |job| merge_patch(job, patch));
            }
            ["command", job, action] => {
                let uid = server.get("Job", job).map(|job| job["metadata"]["uid"].clone());
                server.put(jobs::command(job, uid.unwrap_or("gone".into()), action));
            }
            ["queue", name] => {
                server.put(json!({ "kind": "Queue", "metadata": { "name": name }, "spec": {} }));
            }
            ["claim", name] => {
                server
                    .put(json!({ "kind": "PersistentVolumeClaim", "metadata": { "name": name } }));
            }
            ["put", ..] => {
                let object = line.strip_prefix("put ").expect("an object");
                server.put(serde_json::from_str(object).expect("JSON"));
            }
            ["show", kind, name, pointer] => {
                let name = full_name(server, kind, name);
                let object = server.get(kind, &name).unwrap_or(&Value::Null);
                let shown = object.pointer(pointer).unwrap_or(&Value::Null).to_string();
                server.log.push(shown);
            }
            _ => return false,
        }
        true
    }

    /// Steps about time, processes and the server. Says whether it was one.
    fn on_all(&mut self, line: &str, words: &[&str]) -> bool {
        match *words {
            ["after", time] => self.pass(line, parse_duration(time).expect("a duration")),
            ["restart"] => {
                self.controllers = Controllers::default();
                self.server.list();
            }
            ["refuse", ..] => {
                let rule = line.strip_prefix("refuse ").expect("a write");
                let (begin, message) = rule.split_once(": ").expect("a message");
                self.server.refusals.push((begin.to_owned(), message.to_owned()));
            }
            ["conflict", ..] => {
                let begin = line.strip_prefix("conflict ").expect("a write");
                self.server.refusals.push((begin.to_owned(), "conflict".to_owned()));
            }
            _ => return false,
        }
        true
    }

    /// Time goes by, with a turn whenever the controllers asked for one.
    fn pass(&mut self, line: &str, milliseconds: i64) {
        let end = self.server.now.plus_ms(milliseconds);
        loop {
            self.come_to_rest(line);
            match self.controllers.turn(self.server.now).wake.filter(|wake| *wake < end) {
                Some(wake) => self.server.now = wake.max(self.server.now.plus_ms(1)),
                None => break,
            }
        }
        self.server.now = self.server.now.max(end);
    }
}

fn is_told(event: &Event) -> bool {
    matches!(event, Event::Answer { result: Ok(()), .. })
}

/// Pods that are terminating go at last.
fn release(server: &mut Server) {
    server.holds = false;
    for name in server.names("Pod") {
        let pod = server.get("Pod", &name);
        if pod.is_some_and(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
            server.remove("Pod", &name);
        }
    }
}

fn set_groups(server: &mut Server, job: &str, phase: &str) {
    let of_job = |name: &String| job == "*" || name.split("-uid-").next() == Some(job);
    for name in server.names("PodGroup").iter().filter(|name| of_job(name)) {
        server.change("PodGroup", name, |group| group["status"] = json!({ "phase": phase }));
    }
}

fn scale(job: &mut Value, task: &str, count: i32) {
    let tasks = job["spec"]["tasks"].as_array_mut().expect("tasks");
    let task = tasks.iter_mut().find(|its| its["name"] == task).expect("a task");
    task["replicas"] = count.into();
}

/// PodGroups are called by their Jobs.
fn full_name(server: &Server, kind: &str, name: &str) -> String {
    let names = server.names(kind);
    let is_it = |full: &&String| *full == name || full.split("-uid-").next() == Some(name);
    names.iter().find(is_it).cloned().unwrap_or(name.to_owned())
}

fn fits(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        None => glob == name,
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
    }
}
