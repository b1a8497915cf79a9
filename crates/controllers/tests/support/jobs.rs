//! Jobs on one line: `job j t:2 min=1 on=PodFailed:RestartJob@10m`. Words with `=` are fields of the
//! Job: `min`, `success`, `retry` (maxRetry), `ttl`, `queue`, `plugin=svc,ARG`, `volume=/path:CLAIM`.
//! Other words are tasks with their replicas, and behind slashes what else they have:
//! `w:4/min=2/part=2x2/least=1/after=a+b/any/on=PodFailed:RestartTask/code=3:RestartPod/
//! retry=-1/cpu=2/init`. Plugin arguments are separated by commas.

use serde_json::{Map, Value, json};

pub fn job(line: &str) -> Value {
    let mut words = line.split_whitespace().skip(1);
    let name = words.next().expect("a name");
    let mut spec = Map::new();
    let mut metadata = json!({ "name": name });
    for word in words {
        match word.split_once('=') {
            Some((key, value)) if !key.contains(':') => field(&mut spec, &mut metadata, key, value),
            _ => push(&mut spec, "tasks", task(word)),
        }
    }
    json!({ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec })
}

fn field(spec: &mut Map<String, Value>, metadata: &mut Value, key: &str, value: &str) {
    let number = || value.parse::<i64>().unwrap_or_else(|_| panic!("{key}: {value}"));
    let mut set = |name: &str, value: Value| drop(spec.insert(name.to_owned(), value));
    match key {
        "min" => set("minAvailable", number().into()),
        "success" => set("minSuccess", number().into()),
        "retry" => set("maxRetry", number().into()),
        "ttl" => set("ttlSecondsAfterFinished", number().into()),
        "queue" => set("queue", value.into()),
        "estimate" => set("runningEstimate", value.into()),
        "on" | "code" => push(spec, "policies", policy(key, value)),
        "note" => {
            metadata["annotations"][value.split(':').next().unwrap_or_default()] = "true".into()
        }
        "plugin" => {
            let mut parts = value.split(',');
            let name = parts.next().expect("a name").to_owned();
            let plugins = spec.entry("plugins").or_insert_with(|| json!({}));
            plugins[name] = parts.collect();
        }
        "volume" => {
            let (path, claim) = value.split_once(':').expect("a path and a claim");
            let mut volume = json!({ "mountPath": path });
            match claim {
                "new" => volume["volumeClaim"] = json!({ "resources": {} }),
                name => volume["volumeClaimName"] = name.into(),
            }
            push(spec, "volumes", volume);
        }
        _ => panic!("no field {key}"),
    }
}

fn push(map: &mut Map<String, Value>, key: &str, value: Value) {
    let list = map.entry(key).or_insert_with(|| json!([]));
    list.as_array_mut().expect("a list").push(value);
}

/// `PodFailed+PodEvicted:RestartJob@10m`, or an exit code instead of events.
fn policy(key: &str, text: &str) -> Value {
    let (what, rest) = text.split_once(':').expect("an action");
    let (action, timeout) = match rest.split_once('@') {
        Some((action, timeout)) => (action, Some(timeout)),
        None => (rest, None),
    };
    let mut policy = json!({ "action": action });
    match key {
        "code" => policy["exitCode"] = what.parse::<i32>().expect("a code").into(),
        _ => policy["events"] = what.split('+').collect(),
    }
    if let Some(timeout) = timeout {
        policy["timeout"] = timeout.into();
    }
    policy
}

fn task(word: &str) -> Value {
    let mut parts = word.split('/');
    let (name, replicas) =
        parts.next().and_then(|head| head.split_once(':')).expect("name:replicas");
    let mut container = json!({ "name": "main", "image": "img" });
    let mut pod = json!({});
    let mut task = json!({ "name": name, "replicas": replicas.parse::<i64>().expect("a number") });
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key {
            "min" => task["minAvailable"] = value.parse::<i64>().expect("a number").into(),
            "retry" => task["maxRetry"] = value.parse::<i64>().expect("a number").into(),
            "after" => task["dependsOn"]["name"] = value.split('+').collect(),
            "any" => task["dependsOn"]["iteration"] = "any".into(),
            "cpu" => container["resources"]["requests"]["cpu"] = value.into(),
            "init" => pod["initContainers"] = json!([{ "name": "init", "image": "img" }]),
            "host" => pod["hostname"] = value.into(),
            "container" => container["name"] = value.into(),
            "part" => {
                let (total, size) = value.split_once('x').expect("2x2");
                let policy = &mut task["partitionPolicy"];
                policy["totalPartitions"] = total.parse::<i64>().expect("a number").into();
                policy["partitionSize"] = size.parse::<i64>().expect("a number").into();
            }
            "least" => {
                let least = value.parse::<i64>().expect("a number");
                task["partitionPolicy"]["minPartitions"] = least.into();
            }
            "on" | "code" => {
                let map = task.as_object_mut().expect("made above");
                push(map, "policies", policy(key, value));
            }
            _ => panic!("{word}: no {key}"),
        }
    }
    pod["containers"] = json!([container]);
    task["template"] = json!({ "spec": pod });
    task
}

pub fn command(job: &str, uid: Value, action: &str) -> Value {
    let target = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": uid,
    });
    json!({
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": { "name": format!("{job}-{}", action.to_lowercase()) },
        "action": action,
        "target": target,
    })
}
