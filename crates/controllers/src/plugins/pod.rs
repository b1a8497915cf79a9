//! Changes to pods that several plugins make.

use serde_json::{Map, Value, json};

use crate::job::list_in;

/// Which containers of a pod are meant.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Which {
    /// Those that run.
    Main,
    /// Those and the initial ones.
    All,
}

/// Calls the function with each container.
pub fn each_container(
    pod: &mut Value,
    which: Which,
    mut change: impl FnMut(&mut Map<String, Value>),
) {
    let keys: &[&str] = match which {
        Which::Main => &["containers"],
        Which::All => &["containers", "initContainers"],
    };
    for key in keys {
        let containers = pod["spec"].get_mut(*key).and_then(Value::as_array_mut);
        containers.into_iter().flatten().filter_map(Value::as_object_mut).for_each(&mut change);
    }
}

/// Sets a variable of the environment, whatever the template says of it.
pub fn set_env(container: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    put_env(container, name, json!({ "name": name, "value": value.into() }));
}

/// Sets a variable to what a ConfigMap says.
pub fn set_env_from(container: &mut Map<String, Value>, name: &str, config_map: &str) {
    let from = json!({ "configMapKeyRef": { "name": config_map, "key": name } });
    put_env(container, name, json!({ "name": name, "valueFrom": from }));
}

fn put_env(container: &mut Map<String, Value>, name: &str, entry: Value) {
    let env = list_in(container, "env");
    env.retain(|there| there["name"] != name);
    env.push(entry);
}

/// Opens a port, unless the container has opened that number under any name.
pub fn open_port(container: &mut Map<String, Value>, name: &str, port: i64) {
    let ports = list_in(container, "ports");
    if !ports.iter().any(|there| there["containerPort"] == port) {
        ports.push(json!({ "name": name, "containerPort": port }));
    }
}

/// Mounts a volume in the container, unless something is mounted at that path.
pub fn mount(container: &mut Map<String, Value>, mount: Value) {
    let mounts = list_in(container, "volumeMounts");
    if !mounts.iter().any(|there| there["mountPath"] == mount["mountPath"]) {
        mounts.push(mount);
    }
}

/// Sets a text of the pod's spec that the template leaves open.
pub fn fill_in(pod: &mut Value, field: &str, text: &str) {
    let missing = pod["spec"][field].as_str().is_none_or(str::is_empty);
    if missing {
        pod["spec"][field] = text.into();
    }
}

pub fn add_volume(pod: &mut Value, volume: Value) {
    let spec = pod["spec"].as_object_mut().expect("pods have a spec");
    list_in(spec, "volumes").push(volume);
}
