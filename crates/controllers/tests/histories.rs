//! Random histories of Jobs: pods that run, fail, end and are deleted, commands, refused writes, and
//! controllers that are killed and start again. A seed always makes the same history. Whatever
//! happens, a finished Job stays finished, no Job fails more often than it may, the status says what
//! there is, and every Job comes to an end when its pods succeed.

mod support;

use serde_json::Value;
use support::scene::Scene;

const SEEDS: u64 = 150;
const STEPS: u32 = 40;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

#[test]
fn every_history_keeps_the_rules_and_comes_to_an_end() {
    for seed in 1..=SEEDS {
        let mut dice = Dice(seed);
        let mut scene = Scene::new();
        let events = ["PodFailed", "PodEvicted", "*", "PodFailed+PodEvicted", "TaskCompleted"];
        let actions =
            ["RestartJob", "RestartTask", "RestartPod", "RestartPartition", "CompleteJob"];
        let job = format!(
            "job j a:{}/on={}:{} b:4/part=2x2/on={}:{} min={} retry={} on={}:{} plugin=svc",
            1 + dice.below(3),
            dice.one(&events),
            dice.one(&actions),
            dice.one(&events),
            dice.one(&actions),
            1 + dice.below(5),
            1 + dice.below(4),
            dice.one(&events),
            dice.one(&actions),
        );
        scene.step(&job);
        let mut ended: Option<String> = None;
        for step in 0..STEPS {
            let line = next_step(&mut dice, &scene);
            scene.step(&line);
            check(&scene, &mut ended, &format!("seed {seed}, step {step}: {line}\n{job}"));
        }
        finish(&mut scene, &mut ended, &format!("seed {seed}\n{job}"));
    }
}

fn next_step(dice: &mut Dice, scene: &Scene) -> String {
    let pods = scene.server.names("Pod");
    let pod = (!pods.is_empty()).then(|| pods[dice.below(pods.len())].clone());
    match (dice.below(16), pod) {
        (0..=3, Some(pod)) if !has_ended(scene, &pod) => format!("run {pod}"),
        (4, Some(pod)) if !has_ended(scene, &pod) => format!("end {pod} {}", 1 + dice.below(3)),
        (5 | 6, Some(pod)) if !has_ended(scene, &pod) => format!("end {pod} 0"),
        (7, Some(pod)) => format!("delete Pod {pod}"),
        (8, _) => "restart".to_owned(),
        (9, _) => "hold".to_owned(),
        (10, _) => "let go".to_owned(),
        (11, _) => format!(
            "refuse {}: later",
            dice.one(&["create Pod", "delete Pod", "status j", "patch Job"])
        ),
        (12, _) => format!("conflict {}", dice.one(&["status j", "patch Job", "delete PodGroup"])),
        (13, _) if dice.below(3) == 0 => {
            format!("command j {}", dice.one(&["AbortJob", "ResumeJob", "RestartJob"]))
        }
        (14, _) => format!("scale j a {}", 1 + dice.below(3)),
        _ => "let in".to_owned(),
    }
}

fn has_ended(scene: &Scene, pod: &str) -> bool {
    let phase = scene.server.get("Pod", pod).map(|pod| pod["status"]["phase"].clone());
    matches!(phase.as_ref().and_then(Value::as_str), Some("Succeeded" | "Failed"))
}

fn check(scene: &Scene, ended: &mut Option<String>, at: &str) {
    let job = scene.server.get("Job", "j").expect("nothing deletes the Job");
    let status = &job["status"];
    let phase = status["state"]["phase"].as_str().unwrap_or("Pending");
    if let Some(ended) = ended {
        assert_eq!(phase, ended, "{at}: a finished Job stays finished\n{}", scene.told);
    }
    if matches!(phase, "Completed" | "Failed" | "Terminated") {
        *ended = Some(phase.to_owned());
    }
    let resumed =
        job["metadata"]["annotations"]["muster.sh/resumed-at"].as_str().unwrap_or_default();
    let resumed = resumed.split(',').filter(|number| !number.is_empty()).count() as i64;
    let retries = status["retryCount"].as_i64().unwrap_or_default();
    let most = job["spec"]["maxRetry"].as_i64().expect("it is written");
    assert!(
        retries - resumed <= most,
        "{at}: {retries} retries, {resumed} resumed\n{}",
        scene.told
    );
    // No pod of an older version counts.
    let version = status["version"].as_i64().unwrap_or_default();
    let running = scene.server.names("Pod").into_iter().filter(|name| {
        let pod = scene.server.get("Pod", name).expect("it was listed");
        let own = pod["metadata"]["annotations"]["volcano.sh/job-version"].as_str();
        pod["status"]["phase"] == "Running"
            && pod["metadata"]["deletionTimestamp"].is_null()
            && own.and_then(|own| own.parse::<i64>().ok()) == Some(version)
    });
    let said = status["running"].as_i64().unwrap_or_default();
    assert!(
        said <= running.count() as i64,
        "{at}: {said} pods run, says the status\n{}",
        scene.told
    );
}

/// From now on nothing goes wrong: the Job ends.
fn finish(scene: &mut Scene, ended: &mut Option<String>, at: &str) {
    scene.server.refusals.clear();
    scene.step("let go");
    scene.step("after 2m");
    for round in 0..20 {
        let job = scene.server.get("Job", "j").expect("nothing deletes the Job");
        let phase = job["status"]["state"]["phase"].as_str().unwrap_or("Pending").to_owned();
        match phase.as_str() {
            "Completed" | "Failed" | "Terminated" => return,
            "Aborted" => scene.step("command j ResumeJob"),
            _ => scene.step("let in"),
        }
        let live: Vec<String> =
            scene.server.names("Pod").into_iter().filter(|pod| !has_ended(scene, pod)).collect();
        for pod in live {
            if scene.server.get("Pod", &pod).is_some() {
                scene.step(&format!("end {pod} 0"));
            }
        }
        check(scene, ended, &format!("{at}, round {round} of the end"));
    }
    panic!("{at}: no end\n{}", scene.told);
}
