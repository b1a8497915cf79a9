//! A client for tests: objects as JSON, thousands at once, and waiting for conditions.

use std::fmt::Display;
use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use muster_api::core::Pod;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Result;
use crate::workload::{Gang, Nodes};

/// How many requests are under way at once; more don't make an API server on a few cores any
/// faster.
const CONCURRENCY: usize = 64;

pub const NODES: &str = "/api/v1/nodes";
pub const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
pub const HYPERNODES: &str = "/apis/topology.volcano.sh/v1alpha1/hypernodes";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

pub fn podgroups(namespace: &str) -> String {
    format!("/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups")
}

/// Which definitions of our custom resources an API server has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Definitions {
    /// As printed by `muster crds`.
    Muster,
    /// As installed by Volcano: PodGroups have no status subresource.
    Volcano,
}

/// A connection to an API server. Raw calls return the server's own error, so that tests can look
/// at its code.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
}

impl Cluster {
    pub async fn connect(kubeconfig: &Path) -> Result<Cluster> {
        let config = Kubeconfig::read_from(kubeconfig)?;
        Cluster::new(
            kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?,
        )
    }

    /// A server without authentication.
    pub fn plain(url: &str) -> Result<Cluster> {
        Cluster::new(kube::Config::new(url.parse()?))
    }

    fn new(mut config: kube::Config) -> Result<Cluster> {
        // A caller that waits for a server repeats its request itself; kube would take minutes to
        // report that the server is busy.
        config.default_retry = false;
        Ok(Cluster { client: kube::Client::try_from(config)? })
    }

    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    pub async fn text(&self, path: &str) -> kube::Result<String> {
        self.client.request_text(request("GET", path, "", &Value::Null)).await
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> kube::Result<T> {
        self.client.request(request("GET", path, "", &Value::Null)).await
    }

    pub async fn create(&self, path: &str, object: &Value) -> kube::Result<Value> {
        self.client.request(request("POST", path, "application/json", object)).await
    }

    /// A merge patch of `path`, which may name a subresource.
    pub async fn patch(&self, path: &str, change: &Value) -> kube::Result<Value> {
        self.client.request(request("PATCH", path, "application/merge-patch+json", change)).await
    }

    /// Deletes one object or a collection.
    pub async fn delete(&self, path: &str) -> kube::Result<()> {
        self.client.request_text(request("DELETE", path, "", &Value::Null)).await.map(|_| ())
    }

    /// Creates many objects at once, without reading the answers.
    pub async fn create_all(
        &self,
        path: &str,
        objects: impl IntoIterator<Item = Value>,
    ) -> Result<()> {
        let requests =
            objects.into_iter().map(|object| request("POST", path, "application/json", &object));
        let answers =
            futures::stream::iter(requests.map(|request| self.client.request_text(request)));
        let answers = answers.buffer_unordered(CONCURRENCY);
        Ok(answers.try_for_each(|_| std::future::ready(Ok(()))).await?)
    }

    pub async fn create_nodes(&self, nodes: &Nodes) -> Result<()> {
        self.create_all(NODES, nodes.objects()).await
    }

    /// Creates the PodGroup, then the pods.
    pub async fn create_gang(&self, gang: &Gang) -> Result<()> {
        self.create(&podgroups(&gang.namespace), &gang.podgroup()).await?;
        self.create_pods(gang).await
    }

    /// Creates the pods of a gang without its PodGroup.
    pub async fn create_pods(&self, gang: &Gang) -> Result<()> {
        self.create_all(&pods(&gang.namespace), gang.pods()).await
    }

    pub async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        self.create("/api/v1/namespaces", &namespace).await?;
        Ok(())
    }

    pub async fn create_queue(&self, name: &str, spec: Value) -> Result<()> {
        self.create(QUEUES, &crate::workload::queue(name, spec)).await?;
        Ok(())
    }

    pub async fn create_priority(&self, name: &str, value: i32) -> Result<()> {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": value,
        });
        self.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
        Ok(())
    }

    /// The requests that a scheduler makes.
    pub async fn bind(&self, namespace: &str, pod: &str, node: &str) -> kube::Result<Value> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": pod, "namespace": namespace },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        self.create(&format!("{}/{pod}/binding", pods(namespace)), &binding).await
    }

    /// The pods of a namespace, by name.
    pub async fn pods(&self, namespace: &str) -> kube::Result<Vec<Pod>> {
        #[derive(Deserialize)]
        struct List {
            items: Vec<Pod>,
        }
        let list: List = self.get(&pods(namespace)).await?;
        Ok(list.items)
    }

    /// Waits until the pods of a namespace are as wanted, and returns them; on failure shows the
    /// last state.
    pub async fn wait_for_pods(
        &self,
        namespace: &str,
        timeout: Duration,
        wanted: impl Fn(&[Pod]) -> bool,
    ) -> Result<Vec<Pod>> {
        wait(timeout, async || {
            let pods = self.pods(namespace).await.map_err(|error| error.to_string())?;
            if wanted(&pods) { Ok(pods) } else { Err(describe(&pods)) }
        })
        .await
    }

    /// Installs our custom resources on the API server, and waits until it accepts them.
    pub async fn install_crds(&self, definitions: Definitions) -> Result<()> {
        for crd in crds(definitions) {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let path = format!("{CRDS}/{name}");
            self.create(CRDS, &crd)
                .await
                .map_err(|error| format!("{name} was refused: {error}"))?;
            wait(Duration::from_secs(60), async || {
                let crd: Value = self.get(&path).await.map_err(|error| error.to_string())?;
                accepted(&crd).map_err(|conditions| format!("{name} is not accepted: {conditions}"))
            })
            .await?;
        }
        // Established means that the server is about to serve them; for a moment it may still
        // answer 404.
        wait(Duration::from_secs(60), async || {
            for path in [QUEUES, HYPERNODES, &podgroups("default")] {
                self.text(path).await?;
            }
            Ok::<(), kube::Error>(())
        })
        .await
    }
}

/// The definitions, for an API server that has none.
pub fn crds(definitions: Definitions) -> Vec<Value> {
    let mut crds = muster_api::crds();
    if definitions == Definitions::Volcano {
        for crd in crds.iter_mut().filter(|crd| crd["spec"]["names"]["kind"] == "PodGroup") {
            let version =
                crd["spec"]["versions"][0].as_object_mut().expect("a definition has a version");
            version.remove("subresources");
        }
    }
    crds
}

/// Established, and without problems: conditions such as NonStructuralSchema appear only when
/// something is wrong.
fn accepted(crd: &Value) -> std::result::Result<(), &Value> {
    let conditions = &crd["status"]["conditions"];
    let all = conditions.as_array().map_or(&[][..], Vec::as_slice);
    let is_true =
        |name: &str| all.iter().any(|found| found["type"] == name && found["status"] == "True");
    let fine = is_true("Established") && is_true("NamesAccepted") && all.len() == 2;
    if fine { Ok(()) } else { Err(conditions) }
}

/// Repeats a question until the answer is `Ok` or the time is up; then the last answer is the
/// error. Sleeps four times as long as a question took, so that it doesn't slow down what it waits
/// for.
pub async fn wait<T, E, F>(timeout: Duration, mut ask: impl FnMut() -> F) -> Result<T>
where
    E: Display,
    F: Future<Output = std::result::Result<T, E>>,
{
    let start = Instant::now();
    loop {
        let asked = Instant::now();
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(state) if start.elapsed() > timeout => {
                return Err(format!("still not so after {timeout:?}:\n{state}").into());
            }
            Err(_) => {
                tokio::time::sleep((asked.elapsed() * 4).max(Duration::from_millis(20))).await
            }
        }
    }
}

/// One line for each pod, at most 50.
fn describe(pods: &[Pod]) -> String {
    let line = |pod: &Pod| {
        let node = pod.spec.node_name.as_deref().unwrap_or("no node");
        let leaving = if pod.metadata.deletion_timestamp.is_some() { " leaving" } else { "" };
        let why = pod.status.conditions.iter().find(|condition| condition.kind == "PodScheduled");
        let why = why.map(|condition| condition.message.as_str()).unwrap_or_default();
        format!("{} {} on {node}{leaving} {why}", pod.metadata.name, pod.status.phase)
    };
    let lines: Vec<String> = pods.iter().take(50).map(line).collect();
    format!("{} pods\n{}", pods.len(), lines.join("\n"))
}

/// The code of an API server's error, for example 409.
pub fn code<T>(answer: &kube::Result<T>) -> Option<u16> {
    match answer {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

fn request(method: &str, path: &str, content_type: &str, body: &Value) -> Request<Vec<u8>> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let builder = Request::builder().method(method).uri(path);
    let builder = if content_type.is_empty() {
        builder
    } else {
        builder.header("content-type", content_type)
    };
    builder.body(body).expect("paths in tests are valid")
}
