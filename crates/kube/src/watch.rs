//! One watch per kind: everything there is, then every change, told as events. A watch that breaks goes on where it
//! was; one whose place in history is gone lists anew and tells of what disappeared in between.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::core::params::{ListParams, WatchParams};
use kube::core::{Request, Status, WatchEvent};
use muster_engine::Event;
use serde::Deserialize;
use tokio::sync::mpsc::Sender;
use tracing::{debug, info, warn};

use crate::kinds::{Id, Watched};
use crate::metrics::Metrics;
use crate::news::News;

/// The server ends a watch after this long, so that a connection that died without a word is noticed.
const WATCH_SECONDS: u32 = 240;
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);
/// Objects per page, where the server can't stream a list.
const PAGE: u32 = 500;
/// The first pause after a failure; it doubles up to the last.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long until a kind that nobody needs is looked for again.
const UNKNOWN_KIND: Duration = Duration::from_secs(30);

/// Marks the end of a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Watches one kind for ever, or until nobody listens any more.
pub async fn watch<T: Watched>(client: Client, news: Sender<News>, metrics: Arc<Metrics>) {
    let mut watch = Watch::<T> {
        client,
        news,
        metrics,
        known: HashMap::new(),
        listed: false,
        streams: true,
        kind: std::marker::PhantomData,
    };
    let mut pause = PAUSE;
    let mut version = None;
    loop {
        let Err(stop) = watch.follow(&mut version, &mut pause).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        match stop {
            Stop::Deaf => return,
            Stop::Expired => {
                info!(kind = T::KIND, "the watch is too far behind, listing anew");
                watch.metrics.relists.inc();
                version = None;
                continue;
            }
            Stop::NoStreaming => {
                debug!(kind = T::KIND, "the server can't stream lists, reading pages");
                watch.streams = false;
                continue;
            }
            Stop::Unknown if !T::REQUIRED => {
                // Without the kind there are none.
                if watch.end_of_list(&HashSet::new()).await.is_err() {
                    return;
                }
                tokio::time::sleep(UNKNOWN_KIND).await;
                continue;
            }
            Stop::Unknown => {
                let path = T::PATH;
                warn!(kind = T::KIND, path, "the server doesn't know this kind; waiting (install `muster crds`)");
            }
            Stop::Failed(cause) => {
                watch.metrics.watch_error(T::KIND);
                warn!(kind = T::KIND, %cause, "the watch broke, trying again");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

struct Watch<T> {
    client: Client,
    news: Sender<News>,
    metrics: Arc<Metrics>,
    /// What the engine was told of, with its uid, so that it can be told what a gap has swallowed.
    known: HashMap<String, String>,
    /// A whole list has been told once.
    listed: bool,
    streams: bool,
    kind: std::marker::PhantomData<fn() -> T>,
}

/// Why a watch ended.
enum Stop {
    /// The scheduler has gone.
    Deaf,
    /// History no longer reaches back to where we are.
    Expired,
    NoStreaming,
    /// The server doesn't have this kind.
    Unknown,
    Failed(String),
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Stop {
        match error {
            kube::Error::Api(status) => Stop::from(*status),
            other => Stop::Failed(other.to_string()),
        }
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Stop {
        match status.code {
            410 => Stop::Expired,
            404 => Stop::Unknown,
            _ => Stop::Failed(format!("{} ({})", status.message, status.code)),
        }
    }
}

impl From<kube::core::request::Error> for Stop {
    fn from(error: kube::core::request::Error) -> Stop {
        Stop::Failed(error.to_string())
    }
}

impl<T: Watched> Watch<T> {
    /// Watches from a version, or lists everything first. Returns when the connection ends in the normal way.
    async fn follow(&mut self, version: &mut Option<String>, pause: &mut Duration) -> Result<(), Stop> {
        if version.is_none() && !self.streams {
            *version = Some(self.list_pages().await?);
        }
        let mut seen = version.is_none().then(HashSet::new);
        let params = WatchParams {
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            send_initial_events: seen.is_some(),
            ..WatchParams::default()
        };
        let request = Request::new(T::PATH).watch(&params, version.as_deref().unwrap_or(""))?;
        let stream = self.client.request_events::<T>(request).await.map_err(|error| match error {
            kube::Error::Api(status) if seen.is_some() && matches!(status.code, 400 | 422) => Stop::NoStreaming,
            other => Stop::from(other),
        })?;
        *pause = PAUSE;
        let mut stream = std::pin::pin!(stream);
        loop {
            let next = tokio::time::timeout(SILENCE, stream.next()).await;
            let next = next.map_err(|_| Stop::Failed("nothing was heard for too long".to_owned()))?;
            let Some(next) = next else { return Ok(()) };
            match next {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    let id = object.id();
                    *version = seen.is_none().then(|| id.version.clone()).or(version.take());
                    if let Some(seen) = &mut seen {
                        seen.insert(id.key.clone());
                    }
                    self.known.insert(id.key, id.uid);
                    self.tell(Event::from(object.object())).await?;
                }
                Ok(WatchEvent::Deleted(object)) => {
                    let id = object.id();
                    *version = seen.is_none().then(|| id.version.clone()).or(version.take());
                    if let Some(seen) = &mut seen {
                        seen.remove(&id.key);
                    }
                    self.known.remove(&id.key);
                    self.tell(T::gone(id)).await?;
                }
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    if bookmark.metadata.annotations.contains_key(INITIAL_EVENTS_END)
                        && let Some(seen) = seen.take()
                    {
                        self.end_of_list(&seen).await?;
                    }
                    if seen.is_none() {
                        *version = Some(bookmark.metadata.resource_version);
                    }
                }
                Ok(WatchEvent::Error(status)) => return Err(Stop::from(*status)),
                Err(kube::Error::SerdeError(error)) => {
                    self.metrics.watch_error(T::KIND);
                    warn!(kind = T::KIND, %error, "an object can't be read and is left out");
                }
                Err(error) => return Err(Stop::from(error)),
            }
        }
    }

    async fn list_pages(&mut self) -> Result<String, Stop> {
        let mut seen = HashSet::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let request = Request::new(T::PATH).list(&params)?;
            let page: Page<T> = self.client.request(request).await?;
            for object in page.items {
                let id = object.id();
                seen.insert(id.key.clone());
                self.known.insert(id.key, id.uid);
                self.tell(Event::from(object.object())).await?;
            }
            match page.metadata.next {
                Some(token) if !token.is_empty() => params.continue_token = Some(token),
                _ => {
                    self.end_of_list(&seen).await?;
                    return Ok(page.metadata.resource_version);
                }
            }
        }
    }

    /// Everything has been told: what we knew and is not among it has gone.
    async fn end_of_list(&mut self, seen: &HashSet<String>) -> Result<(), Stop> {
        let gone: Vec<(String, String)> = self.known.extract_if(|key, _| !seen.contains(key)).collect();
        for (key, uid) in gone {
            self.tell(T::gone(Id { key, uid, version: String::new() })).await?;
        }
        if !std::mem::replace(&mut self.listed, true) {
            debug!(kind = T::KIND, objects = self.known.len(), "in sync");
            self.news.send(News::InSync(T::KIND)).await.map_err(|_| Stop::Deaf)?;
        }
        Ok(())
    }

    async fn tell(&self, event: Event) -> Result<(), Stop> {
        self.news.send(News::Event(event)).await.map_err(|_| Stop::Deaf)
    }
}

#[derive(Deserialize)]
struct Page<T> {
    metadata: PageMeta,
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}
