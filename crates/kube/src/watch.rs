//! One watch per kind: every object there is, then every change, passed on as events. A watch that
//! breaks continues where it was; if its resource version has expired, everything is listed again
//! and objects that disappeared in between are reported.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::core::params::{ListParams, WatchParams};
use kube::core::{Request, Status, WatchEvent};
use muster_api::core::Meta;
use muster_api::kinds::{Presence, Resource};
use muster_engine::Event;
use tokio::sync::mpsc::Sender;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;
use crate::news::News;
use crate::page::{Page, decode};

/// The server ends a watch after this long, so that a dead connection is noticed.
const WATCH_SECONDS: u32 = 240;
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);
/// How long the beginning of a watch, or a page of a list, may take: a connection can also die
/// before the answer. An API server itself gives up on a page after a minute.
const ANSWER: Duration = Duration::from_secs(60);
/// Objects per page of a list. Streamed lists (`sendInitialEvents`) would need no pages, but took
/// an API server twice as long when measured.
const PAGE: u32 = 1_000;
/// The first pause after a failure; it doubles up to the maximum.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long until we look again for an optional kind that the server lacks.
const UNKNOWN_KIND: Duration = Duration::from_secs(10);

/// Watches one kind until the receiver is gone.
pub async fn watch<T: Resource>(client: Client, news: Sender<News>, metrics: Arc<Metrics>) {
    let mut watch = Watch::<T> {
        client,
        news,
        metrics,
        known: HashMap::new(),
        listed: false,
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
                info!(kind = %T::KIND, "the watch can't go on from where it is, listing anew");
                watch.metrics.relists.inc();
                version = None;
                continue;
            }
            Stop::Unknown if T::KIND.presence() == Presence::Optional => {
                // A server without the kind has no such objects.
                if watch.end_of_list(&HashSet::new()).await.is_err() {
                    return;
                }
                tokio::time::sleep(UNKNOWN_KIND).await;
                continue;
            }
            Stop::Unknown => {
                let path = T::KIND.path();
                warn!(
                    kind = %T::KIND,
                    path, "the server doesn't know this kind; waiting (install `muster crds`)"
                );
            }
            Stop::Failed(cause) => {
                watch.metrics.watch_error(T::KIND.name());
                warn!(kind = %T::KIND, %cause, "the watch broke, trying again");
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
    /// The objects that the engine was told of, with their uids, so that it can be told which ones
    /// disappeared during a gap.
    known: HashMap<String, String>,
    /// Whether a whole list has been passed on once.
    listed: bool,
    kind: std::marker::PhantomData<fn() -> T>,
}

/// Why a watch ended.
enum Stop {
    /// The receiver is gone.
    Deaf,
    /// The resource version has expired, or an object can't be read.
    Expired,
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

impl<T: Resource> Watch<T> {
    /// Watches from a version, or lists everything first. Returns when the connection ends
    /// normally.
    async fn follow(
        &mut self,
        version: &mut Option<String>,
        pause: &mut Duration,
    ) -> Result<(), Stop> {
        let from = match version.take() {
            Some(version) => version,
            None => self.list().await?,
        };
        let from = version.insert(from);
        let params = WatchParams { timeout: Some(WATCH_SECONDS), ..WatchParams::default() };
        let request = Request::new(T::KIND.path()).watch(&params, from)?;
        let stream = in_time(self.client.request_events::<T>(request)).await?;
        *pause = PAUSE;
        let mut stream = std::pin::pin!(stream);
        loop {
            let next = tokio::time::timeout(SILENCE, stream.next()).await;
            let next =
                next.map_err(|_| Stop::Failed("the watch was silent for too long".to_owned()))?;
            let Some(next) = next else { return Ok(()) };
            match next {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    *version = Some(self.tell(object).await?);
                }
                Ok(WatchEvent::Deleted(object)) => {
                    let id = Id::from(object.meta());
                    *version = Some(id.version.clone());
                    self.known.remove(&id.key);
                    self.send(has_gone::<T>(id.key, id.uid)).await?;
                }
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    *version = Some(bookmark.metadata.resource_version)
                }
                Ok(WatchEvent::Error(status)) => return Err(Stop::from(*status)),
                Err(kube::Error::SerdeError(error)) => {
                    self.metrics.watch_error(T::KIND.name());
                    // Listing reads the object more leniently, or leaves it out with a note.
                    warn!(kind = %T::KIND, %error, "an object can't be read");
                    return Err(Stop::Expired);
                }
                Err(error) => return Err(Stop::from(error)),
            }
        }
    }

    /// Passes on every object there is, and returns the version of the list.
    async fn list(&mut self) -> Result<String, Stop> {
        let mut seen = HashSet::new();
        let (mut page, mut notes) = read::<T>(self.client.clone(), String::new()).await?;
        loop {
            // The server prepares the next page while this one is passed on.
            let token = page.metadata.next.take().filter(|token| !token.is_empty());
            let following = token.map(|token| tokio::spawn(read::<T>(self.client.clone(), token)));
            for note in notes.drain(..) {
                self.metrics.watch_error(T::KIND.name());
                warn!("{note}");
            }
            for object in page.items {
                seen.insert(object.meta().key());
                self.tell(object).await?;
            }
            match following {
                Some(following) => {
                    (page, notes) =
                        following.await.map_err(|error| Stop::Failed(error.to_string()))??;
                }
                None => {
                    self.end_of_list(&seen).await?;
                    return Ok(page.metadata.resource_version);
                }
            }
        }
    }

    /// The list is complete: objects that we knew and that are not in it have gone.
    async fn end_of_list(&mut self, seen: &HashSet<String>) -> Result<(), Stop> {
        let gone: Vec<(String, String)> =
            self.known.extract_if(|key, _| !seen.contains(key)).collect();
        for (key, uid) in gone {
            self.send(has_gone::<T>(key, uid)).await?;
        }
        if !std::mem::replace(&mut self.listed, true) {
            debug!(kind = %T::KIND, objects = self.known.len(), "in sync");
            self.send(News::InSync(T::KIND)).await?;
        }
        Ok(())
    }

    /// Passes on an object and returns its version.
    async fn tell(&mut self, object: T) -> Result<String, Stop> {
        let Id { key, uid, version } = Id::from(object.meta());
        self.known.insert(key, uid);
        self.send(News::Event(Event::from(object))).await?;
        Ok(version)
    }

    async fn send(&self, news: News) -> Result<(), Stop> {
        self.news.send(news).await.map_err(|_| Stop::Deaf)
    }
}

/// The key and version of an object.
struct Id {
    key: String,
    uid: String,
    version: String,
}

impl From<&Meta> for Id {
    fn from(meta: &Meta) -> Id {
        let version = meta.resource_version.clone().unwrap_or_default();
        Id { key: meta.key(), uid: meta.uid.clone(), version }
    }
}

fn has_gone<T: Resource>(key: String, uid: String) -> News {
    News::Event(Event::Gone { kind: T::KIND, key, uid })
}

async fn in_time<T>(answer: impl Future<Output = kube::Result<T>>) -> Result<T, Stop> {
    match tokio::time::timeout(ANSWER, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Stop::Failed("no answer in time".to_owned())),
    }
}

/// A page, and notes on objects in it that can't be read.
async fn read<T: Resource>(client: Client, token: String) -> Result<(Page<T>, Vec<String>), Stop> {
    let mut params = ListParams::default().limit(PAGE);
    params.continue_token = Some(token).filter(|token| !token.is_empty());
    let text = in_time(client.request_text(Request::new(T::KIND.path()).list(&params)?)).await?;
    let mut notes = Vec::new();
    let page = decode(&text, &mut notes).map_err(|error| Stop::Failed(error.to_string()))?;
    Ok((page, notes))
}
