//! The history of gangs, from the events of a run.

use std::collections::BTreeMap;

use muster_api::Time;

use muster_sim::Report;

/// Into how many parts the time is divided for utilisation.
const PARTS: i64 = 96;

pub struct Gang {
    arrived: Time,
    minimum: u32,
    class: String,
    running: u32,
    pods: u32,
    done: u32,
    started: Option<Time>,
    finished: Option<Time>,
}

pub struct History {
    gangs: BTreeMap<String, Gang>,
    /// When pods started and stopped running, with their GPUs; in order of time.
    changes: Vec<(Time, i64)>,
    pub broken: usize,
    pub wasted_gpu_ms: i64,
}

impl Gang {
    pub fn new(arrived: Time, minimum: u32, class: String) -> Gang {
        Gang {
            arrived,
            minimum,
            class,
            running: 0,
            pods: 0,
            done: 0,
            started: None,
            finished: None,
        }
    }
}

impl History {
    /// Each pod is given with its gang and its GPUs.
    pub fn read(
        report: &Report,
        gangs: BTreeMap<String, Gang>,
        members: BTreeMap<String, (String, i64)>,
    ) -> History {
        let mut history = History { gangs, changes: Vec::new(), broken: 0, wasted_gpu_ms: 0 };
        for (gang, _) in members.values() {
            history.gangs.get_mut(gang).expect("pods have a gang").pods += 1;
        }
        let parse = |text: &String| Time::parse(text).expect("written by us");
        let times: Vec<Time> = report.cycles.iter().map(|line| parse(&line.now)).collect();
        let mut running: BTreeMap<&str, Time> = BTreeMap::new();
        let mut lines =
            report.events.iter().filter(|line| members.contains_key(&line.object)).peekable();
        while let Some(first) = lines.peek() {
            // Whatever happens between two cycles is dated to the next one.
            let (cycle, now) = (first.cycle, times[first.cycle as usize]);
            let mut hit: Vec<&str> = Vec::new();
            while let Some(line) = lines.next_if(|line| line.cycle == cycle) {
                let (gang, gpus) = &members[&line.object];
                match line.event.as_str() {
                    "Running" => {
                        running.insert(&line.object, now);
                        history.change(gang, now, *gpus, 1);
                    }
                    "Succeeded" | "Failed" => {
                        running.remove(line.object.as_str());
                        history.change(gang, now, -gpus, -1);
                        history.finish(gang, now);
                    }
                    "Gone" => {
                        if let Some(since) = running.remove(line.object.as_str()) {
                            history.wasted_gpu_ms += gpus * (now.0 - since.0);
                            history.change(gang, now, -gpus, -1);
                            hit.push(gang);
                        }
                    }
                    _ => {}
                }
            }
            hit.sort_unstable();
            hit.chunk_by(|a, b| a == b)
                .for_each(|evicted| history.hit(evicted[0], evicted.len() as u32));
            history.start(now);
        }
        history
    }

    fn change(&mut self, gang: &str, now: Time, gpus: i64, pods: i32) {
        self.changes.push((now, gpus));
        let gang = self.gangs.get_mut(gang).expect("pods have a gang");
        gang.running = gang.running.checked_add_signed(pods).expect("a pod that ends has run");
    }

    fn finish(&mut self, gang: &str, now: Time) {
        let gang = self.gangs.get_mut(gang).expect("pods have a gang");
        gang.done += 1;
        if gang.done == gang.pods {
            gang.finished = Some(now);
        }
    }

    /// A gang has lost this many pods.
    fn hit(&mut self, gang: &str, lost: u32) {
        let gang = &self.gangs[gang];
        let left = gang.running + gang.done;
        self.broken += usize::from(left < gang.minimum && left + lost >= gang.minimum);
    }

    /// The gangs that reach their minimum for the first time.
    fn start(&mut self, now: Time) {
        for gang in self.gangs.values_mut().filter(|gang| gang.started.is_none()) {
            if gang.running + gang.done >= gang.minimum {
                gang.started = Some(now);
            }
        }
    }

    /// How long gangs waited for their first start, in order; of one priority class or of all.
    pub fn waits(&self, class: Option<&str>) -> Vec<i64> {
        let gangs =
            self.gangs.values().filter(|gang| class.is_none_or(|class| gang.class == class));
        let mut waits: Vec<i64> =
            gangs.filter_map(|gang| Some(gang.started?.0 - gang.arrived.0)).collect();
        waits.sort_unstable();
        waits
    }

    pub fn finished_by(&self, end: Time) -> usize {
        self.gangs.values().filter(|gang| gang.finished.is_some_and(|time| time <= end)).count()
    }

    /// The share of GPUs that ran a pod, for each part of the time.
    pub fn utilisation(&self, begin: Time, end: Time, gpus: i64) -> Vec<f64> {
        let part = (end.0 - begin.0) / PARTS;
        let mut changes = self.changes.iter().peekable();
        let (mut now, mut busy) = (begin.0, 0);
        let mut shares = Vec::new();
        for at in 1..=PARTS {
            let until = begin.0 + at * part;
            let mut used = 0;
            while let Some(&(time, gpus)) = changes.next_if(|(time, _)| time.0 <= until) {
                used += busy * (time.0 - now);
                now = time.0;
                busy += gpus;
            }
            used += busy * (until - now);
            now = until;
            shares.push(used as f64 / (part * gpus) as f64);
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_sim::report::{CycleLine, EventLine};

    /// Cycles ten seconds apart, and what happens after them.
    fn report(cycles: i64, events: &[(u64, &str, &str)]) -> Report {
        let mut report = Report::new(Time(0));
        report.cycles = (0..cycles)
            .map(|at| CycleLine {
                cycle: at as u64 + 1,
                now: Time(at * 10_000).to_string(),
                duration_micros: 0,
                binds: 0,
                evictions: 0,
                nominations: 0,
            })
            .collect();
        let line = |&(cycle, pod, event): &(u64, &str, &str)| EventLine {
            cycle,
            object: pod.to_owned(),
            event: event.to_owned(),
        };
        report.events = events.iter().map(line).collect();
        report
    }

    fn history(minimum: u32, events: &[(u64, &str, &str)]) -> History {
        let gangs =
            BTreeMap::from([("ring".to_owned(), Gang::new(Time(0), minimum, "high".into()))]);
        let member = |pod: &str| (pod.to_owned(), ("ring".to_owned(), 4));
        History::read(&report(10, events), gangs, BTreeMap::from(["a", "b"].map(member)))
    }

    #[test]
    fn an_evicted_gang_has_wasted_its_time() {
        let events =
            [(1, "a", "Running"), (1, "b", "Running"), (3, "b", "Gone"), (3, "b", "Pending")];
        let broken = history(2, &events);
        assert_eq!((broken.broken, broken.wasted_gpu_ms), (1, 4 * 20_000));
        assert_eq!(history(1, &events).broken, 0, "the pod is surplus");
    }

    #[test]
    fn waiting_ends_with_the_first_start() {
        let events =
            [(1, "a", "Running"), (2, "b", "Running"), (3, "b", "Gone"), (5, "b", "Running")];
        assert_eq!(history(2, &events).waits(Some("high")), [20_000]);
        assert!(history(2, &events).waits(Some("spot")).is_empty());
        assert!(history(2, &events[..1]).waits(None).is_empty(), "it never started");
    }

    #[test]
    fn a_gang_is_done_when_all_its_pods_are() {
        let events = [
            (1, "a", "Running"),
            (1, "b", "Running"),
            (2, "a", "Succeeded"),
            (4, "b", "Succeeded"),
        ];
        let done = history(2, &events);
        assert_eq!([30_000, 40_000].map(|end| done.finished_by(Time(end))), [0, 1]);
        // In 80 seconds one gang runs for 10 and the other for 30, each on 4 of 8 GPUs.
        let shares = done.utilisation(Time(0), Time(80_000), 8);
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 0.25).abs() < 1e-3, "{mean}");
    }
}
