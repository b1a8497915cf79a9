//! Everything that happened to pods and PodGroups in the API server's own order, and checks of it.
//! Versions of all objects come from one counter, so "before" and "after" are exact.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use http::Request;
use kube::core::WatchEvent;
use muster_api::core::Pod;
use muster_api::keys::{GROUP_NAME, PIPELINED_NODE, RESERVATIONS};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::Result;
use crate::cluster::{Cluster, wait};

const PODS: &str = "/api/v1/pods";
const PODGROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
const GPU: &str = "nvidia.com/gpu";
const PATIENCE: Duration = Duration::from_secs(120);

/// Watches until it is dropped. It must not use the connection that is being broken.
pub struct Witness {
    cluster: Cluster,
    story: Arc<Mutex<Story>>,
    tasks: Vec<AbortHandle>,
}

#[derive(Clone, Debug, Default)]
pub struct Story {
    /// By uid.
    pub pods: BTreeMap<String, Life>,
    pub sayings: Vec<Saying>,
    /// The last version of each object, by uid.
    seen: HashMap<String, u64>,
    /// Why something may have been missed.
    gap: Option<String>,
}

/// A pod from its creation to its end, by versions.
#[derive(Clone, Debug)]
pub struct Life {
    pub name: String,
    pub gang: String,
    pub scheduler: String,
    pub gpus: i64,
    pub created: u64,
    pub bound: Option<(u64, String)>,
    /// When it was deleted.
    pub leaves: Option<u64>,
    pub gone: Option<u64>,
    /// Each node that it was nominated to, and each end of a nomination.
    pub nominations: Vec<(u64, Option<String>)>,
}

/// The conditions of a PodGroup.
#[derive(Clone, Debug)]
pub struct Saying {
    pub gang: String,
    pub version: u64,
    pub minimum: i64,
    pub phase: String,
    pub scheduled: bool,
    /// The places that are reserved for pods of it which will be recreated.
    pub reservations: Option<String>,
}

#[derive(Deserialize)]
struct List<T> {
    metadata: ListMeta,
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

impl Witness {
    pub async fn start(cluster: &Cluster) -> Result<Witness> {
        let mut witness =
            Witness { cluster: cluster.clone(), story: Arc::default(), tasks: Vec::new() };
        witness.follow::<Pod>(PODS, |story, pod, gone| story.pod(&pod, gone)).await?;
        witness.follow::<Value>(PODGROUPS, |story, group, gone| story.group(&group, gone)).await?;
        Ok(witness)
    }

    async fn follow<T>(&mut self, path: &'static str, tell: fn(&mut Story, T, bool)) -> Result<()>
    where
        T: DeserializeOwned + Clone + Send + 'static,
    {
        let list: List<T> = self.cluster.get(path).await?;
        list.items.into_iter().for_each(|object| tell(&mut lock(&self.story), object, false));
        let (cluster, story) = (self.cluster.clone(), self.story.clone());
        let version = list.metadata.resource_version;
        let task = tokio::spawn(async move {
            if let Err(why) =
                watch(&cluster, path, version, |object, gone| tell(&mut lock(&story), object, gone))
                    .await
            {
                lock(&story).gap = Some(format!("{path}: {why}"));
            }
        });
        self.tasks.push(task.abort_handle());
        Ok(())
    }

    /// How many pods it has seen bound so far, including those that are gone.
    pub fn bound(&self) -> usize {
        lock(&self.story).pods.values().filter(|life| life.bound.is_some()).count()
    }

    /// The names of pods for which this is true, as far as it has seen.
    pub fn names(&self, what: impl Fn(&Life) -> bool) -> Vec<String> {
        lock(&self.story)
            .pods
            .values()
            .filter(|life| what(life))
            .map(|life| life.name.clone())
            .collect()
    }

    /// Looks at what it has seen so far.
    pub fn look<T>(&self, at: impl FnOnce(&Story) -> T) -> T {
        at(&lock(&self.story))
    }

    /// The history up to now, once all of it was seen.
    pub async fn tells(&self) -> Result<Story> {
        let mut now = HashMap::new();
        let pods: List<Pod> = self.cluster.get(PODS).await?;
        now.extend(
            pods.items
                .iter()
                .map(|pod| (pod.metadata.uid.clone(), version(&pod.metadata.resource_version))),
        );
        let groups: List<Value> = self.cluster.get(PODGROUPS).await?;
        now.extend(groups.items.iter().map(|group| (uid(group), version_of(group))));
        wait(PATIENCE, async || {
            let story = lock(&self.story);
            let behind = now
                .iter()
                .filter(|(uid, version)| story.seen.get(*uid).is_none_or(|seen| seen < version));
            match (behind.count(), &story.gap) {
                (_, Some(why)) => Err(format!("the witness has missed something: {why}")),
                (0, None) => Ok(story.clone()),
                (behind, None) => Err(format!("the witness is {behind} objects behind")),
            }
        })
        .await
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn lock(story: &Mutex<Story>) -> MutexGuard<'_, Story> {
    story.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches from a version, again and again; the error says why that is no longer possible.
async fn watch<T>(
    cluster: &Cluster,
    path: &str,
    mut from: String,
    tell: impl Fn(T, bool),
) -> Result<()>
where
    T: DeserializeOwned + Clone + Send + 'static,
{
    loop {
        let address = format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={from}");
        let stream = match cluster
            .client()
            .request_events::<Value>(Request::get(address).body(Vec::new())?)
            .await
        {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) if status.code == 410 => {
                return Err(status.message.into());
            }
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let mut stream = std::pin::pin!(stream);
        while let Ok(Some(event)) = stream.try_next().await {
            let (object, gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    from = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => return Err(status.message.into()),
            };
            from = version_of(&object).to_string();
            tell(serde_json::from_value(object)?, gone);
        }
    }
}

impl Life {
    /// The node to which it is nominated at the end.
    pub fn nomination(&self) -> Option<&str> {
        self.nominations.last().and_then(|(_, node)| node.as_deref())
    }

    /// The node to which it was nominated at a version.
    pub fn nominated_at(&self, version: u64) -> Option<&str> {
        let before = self.nominations.iter().rfind(|(at, _)| *at < version);
        before.and_then(|(_, node)| node.as_deref())
    }
}

impl Story {
    fn pod(&mut self, pod: &Pod, gone: bool) {
        let at = version(&pod.metadata.resource_version);
        self.seen.insert(pod.metadata.uid.clone(), at);
        let requests = pod
            .spec
            .containers
            .iter()
            .filter_map(|container| container.resources.requests.get(GPU));
        let life = self.pods.entry(pod.metadata.uid.clone()).or_insert_with(|| Life {
            name: pod.metadata.name.clone(),
            gang: pod.metadata.annotations.get(GROUP_NAME[0]).cloned().unwrap_or_default(),
            scheduler: pod.spec.scheduler_name.clone(),
            gpus: requests.map(|amount| amount.value()).sum(),
            created: at,
            bound: None,
            leaves: None,
            gone: None,
            nominations: Vec::new(),
        });
        if let (None, Some(node)) = (&life.bound, &pod.spec.node_name) {
            life.bound = Some((at, node.clone()));
        }
        if pod.metadata.deletion_timestamp.is_some() {
            life.leaves.get_or_insert(at);
        }
        // A bind can only empty it.
        let nominated = pod.metadata.annotations.get(PIPELINED_NODE);
        let nominated = nominated.filter(|node| !node.is_empty()).cloned();
        if life.nomination() != nominated.as_deref() {
            life.nominations.push((at, nominated));
        }
        life.gone = gone.then_some(at);
    }

    fn group(&mut self, group: &Value, gone: bool) {
        self.seen.insert(uid(group), version_of(group));
        let conditions = group["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let is_true =
            |condition: &Value| condition["type"] == "Scheduled" && condition["status"] == "True";
        if !gone {
            self.sayings.push(Saying {
                gang: group["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                version: version_of(group),
                minimum: group["spec"]["minMember"].as_i64().unwrap_or(1),
                phase: group["status"]["phase"].as_str().unwrap_or_default().to_owned(),
                scheduled: conditions.iter().any(is_true),
                reservations: group["metadata"]["annotations"][RESERVATIONS]
                    .as_str()
                    .map(str::to_owned),
            });
        }
    }

    /// The pods of a gang, by name.
    pub fn gang(&self, name: &str) -> Vec<&Life> {
        let mut pods: Vec<&Life> = self.pods.values().filter(|life| life.gang == name).collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        pods
    }

    /// Pods that were deleted, by name.
    pub fn leavers(&self) -> Vec<&Life> {
        let mut pods: Vec<&Life> =
            self.pods.values().filter(|life| life.leaves.is_some()).collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        pods
    }

    /// How many pods of a gang were bound before a version.
    pub fn bound_before(&self, gang: &str, version: u64) -> i64 {
        let bound = |life: &&Life| {
            life.gang == gang && life.bound.as_ref().is_some_and(|(at, _)| *at < version)
        };
        self.pods.values().filter(bound).count() as i64
    }

    /// PodGroups that were reported as scheduled or running while less than their minimum was
    /// bound.
    pub fn lies(&self) -> Vec<String> {
        let claims =
            self.sayings.iter().filter(|saying| saying.scheduled || saying.phase == "Running");
        let lies = claims.filter_map(|saying| {
            let bound = self.bound_before(&saying.gang, saying.version);
            let Saying { gang, version, minimum, phase, scheduled, .. } = saying;
            (bound < *minimum).then(|| {
                format!(
                    "{gang} said {phase}, scheduled {scheduled}, at {version} with {bound} of {minimum} bound"
                )
            })
        });
        lies.collect()
    }

    /// Existing pods that are bound, by node.
    pub fn by_node(&self) -> BTreeMap<&str, Vec<&Life>> {
        let mut nodes: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
        for life in self.pods.values().filter(|life| life.gone.is_none()) {
            if let Some((_, node)) = &life.bound {
                nodes.entry(node).or_default().push(life);
            }
        }
        nodes
    }

    /// Nodes whose pods have more GPUs than each node has.
    pub fn crowded(&self, gpus: i64) -> Vec<String> {
        let used = self
            .by_node()
            .into_iter()
            .map(|(node, pods)| (node, pods.iter().map(|pod| pod.gpus).sum::<i64>()));
        used.filter(|(_, used)| *used > gpus)
            .map(|(node, used)| format!("{node} has {used} of {gpus} GPUs"))
            .collect()
    }

    /// The same at any time: pods that were bound while other pods still used the room.
    pub fn ever_crowded(&self, gpus: i64) -> Vec<String> {
        let mut nodes: BTreeMap<&str, Vec<(u64, &Life)>> = BTreeMap::new();
        for life in self.pods.values() {
            if let Some((at, node)) = &life.bound {
                nodes.entry(node).or_default().push((*at, life));
            }
        }
        let mut crowded = Vec::new();
        for (node, pods) in nodes {
            for (at, pod) in &pods {
                let there = |(since, other): &&(u64, &Life)| {
                    since <= at && other.gone.is_none_or(|gone| gone > *at)
                };
                let used: i64 = pods.iter().filter(there).map(|(_, other)| other.gpus).sum();
                if used > gpus {
                    crowded.push(format!("{} makes {used} of {gpus} GPUs of {node}", pod.name));
                }
            }
        }
        crowded
    }

    /// The places that were reserved for a gang's pods just before a version.
    pub fn reservations_before(&self, gang: &str, version: u64) -> Option<&str> {
        let said =
            self.sayings.iter().rfind(|saying| saying.gang == gang && saying.version < version);
        said.and_then(|saying| saying.reservations.as_deref())
    }

    /// Pods of ours that were bound where the scheduler knew that the room was in use: by a pod
    /// that was bound there before this one was created, or by a pod of ours. Exact if each gang
    /// was bound before the next was created.
    pub fn blind(&self, gpus: i64, ours: &str) -> Vec<String> {
        let mut blind = Vec::new();
        for (node, pods) in self.by_node() {
            for pod in pods.iter().filter(|pod| pod.scheduler == ours) {
                let known = |other: &&&Life| match other.scheduler == ours {
                    true => other.created <= pod.created || other.gang == pod.gang,
                    false => other.bound.as_ref().is_some_and(|(at, _)| *at < pod.created),
                };
                let used: i64 = pods.iter().filter(known).map(|other| other.gpus).sum();
                if used > gpus {
                    blind.push(format!("{} makes {used} of {gpus} GPUs of {node}", pod.name));
                }
            }
        }
        blind
    }

    /// Gangs of which only a part is bound, less than `minimum`, as `name: bound`.
    pub fn split(&self, minimum: impl Fn(&str) -> usize) -> Vec<String> {
        let mut gangs: BTreeMap<&str, usize> = BTreeMap::new();
        for life in self.pods.values().filter(|life| life.gone.is_none() && life.bound.is_some()) {
            *gangs.entry(&life.gang).or_default() += 1;
        }
        let split = gangs.into_iter().filter(|(gang, bound)| *bound < minimum(gang));
        split.map(|(gang, bound)| format!("{gang}: {bound}")).collect()
    }
}

fn version(text: &Option<String>) -> u64 {
    text.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn version_of(object: &Value) -> u64 {
    version(&object["metadata"]["resourceVersion"].as_str().map(str::to_owned))
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}
