//! Reads everything that scheduling needs from a cluster, once, page by page. Only lists: nothing
//! is written or watched.
//!
//! An object that can't be read is left out with a note, and so is a kind that the server doesn't
//! have: one bad object must not hide the others.

use std::error::Error;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use kube::Client;
use kube::core::Request;
use kube::core::params::ListParams;
use muster_api::kinds::{Kind, Object, Presence, Resource, WithType};

use crate::page::decode;

/// Objects per page: a page of pods is about 5 MB on the wire.
const PAGE: u32 = 500;
/// How long the server may take for one page.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a list is restarted because its resource version had expired; after that it is read in
/// one piece.
const RESTARTS: u32 = 3;
/// How often a page is requested while the server is overloaded or starting, with a pause in
/// between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);

/// What a cluster has.
#[derive(Debug, Default)]
pub struct Listing {
    pub objects: Vec<Object>,
    /// What was left out.
    pub notes: Vec<String>,
    /// About objects that can't be read and are left out.
    pub warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error(
        "the cluster may not be read with these credentials; they need the verb list, in all namespaces, for {}: {message}",
        .resources.join(", ")
    )]
    Forbidden { resources: Vec<String>, message: String },
    #[error("the API server doesn't accept these credentials (have they expired?): {message}")]
    Unauthorized { message: String },
    #[error("the API server can't be reached: {cause}")]
    Unreachable { cause: String },
    #[error("the API server has not listed {resource} within {} seconds", PATIENCE.as_secs())]
    Silent { resource: String },
    #[error("listing {resource}: {message} ({code})")]
    Refused { resource: String, message: String, code: u16 },
    #[error("listing {resource}: this is no answer of a Kubernetes API server: {cause}")]
    Nonsense { resource: String, cause: String },
}

/// Reads all kinds. `progress` is called after each page with the number of objects of the kind
/// that were read.
pub async fn list_all(
    client: &Client,
    progress: impl FnMut(&'static str, usize),
) -> Result<Listing, ListError> {
    let mut reader = Reader {
        client,
        progress,
        listing: Listing::default(),
        forbidden: Vec::new(),
        message: String::new(),
    };
    for kind in Kind::of_scheduler() {
        kind.with_type(List(&mut reader)).await?;
    }
    match reader.forbidden.is_empty() {
        true => Ok(reader.listing),
        false => Err(ListError::Forbidden { resources: reader.forbidden, message: reader.message }),
    }
}

struct Reader<'c, P> {
    client: &'c Client,
    progress: P,
    listing: Listing,
    /// What we may not list. It is reported all at once.
    forbidden: Vec<String>,
    /// The server's message for the first refusal.
    message: String,
}

/// Why a list ended early.
enum Stop {
    /// The resource version of the next page has expired.
    Expired,
    /// The server doesn't have this kind.
    Unknown,
    Forbidden(String),
    Failed(ListError),
}

/// Lists a kind.
struct List<'l, 'c, P>(&'l mut Reader<'c, P>);

impl<'l, P: FnMut(&'static str, usize)> WithType for List<'l, '_, P> {
    type Output = LocalBoxFuture<'l, Result<(), ListError>>;

    fn call<T: Resource>(self) -> Self::Output {
        Box::pin(self.0.kind::<T>())
    }
}

impl<P: FnMut(&'static str, usize)> Reader<'_, P> {
    async fn kind<T: Resource>(&mut self) -> Result<(), ListError> {
        for restart in 0.. {
            let page = if restart < RESTARTS { Some(PAGE) } else { None };
            match self.pages::<T>(page).await {
                Ok((objects, warnings)) => {
                    self.listing.objects.extend(objects);
                    self.listing.warnings.extend(warnings);
                    break;
                }
                Err(Stop::Expired) => {}
                Err(Stop::Unknown) => {
                    let note = format!(
                        "the cluster has no {} objects: {} is not installed",
                        T::KIND,
                        T::KIND.resource()
                    );
                    self.listing.notes.push(note);
                    break;
                }
                Err(Stop::Forbidden(message)) => {
                    if self.forbidden.is_empty() {
                        self.message = message;
                    }
                    self.forbidden.push(T::KIND.resource());
                    break;
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// All objects of a kind, and notes on those that can't be read.
    async fn pages<T: Resource>(
        &mut self,
        limit: Option<u32>,
    ) -> Result<(Vec<Object>, Vec<String>), Stop> {
        let (mut objects, mut notes) = (Vec::new(), Vec::new());
        let mut params = ListParams { limit, ..ListParams::default() };
        loop {
            let text = self.page::<T>(&params).await?;
            let page = decode::<T>(&text, &mut notes).map_err(|error| {
                Stop::Failed(ListError::Nonsense {
                    resource: T::KIND.resource(),
                    cause: error.to_string(),
                })
            })?;
            objects.extend(page.items.into_iter().map(Into::into));
            (self.progress)(T::KIND.name(), objects.len());
            match page.metadata.next.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok((objects, notes)),
            }
        }
    }

    /// One page as the server sends it; a busy server is asked again.
    async fn page<T: Resource>(&self, params: &ListParams) -> Result<String, Stop> {
        for attempt in 1.. {
            let request = Request::new(T::KIND.path()).list(params).map_err(|error| {
                Stop::Failed(ListError::Nonsense {
                    resource: T::KIND.resource(),
                    cause: error.to_string(),
                })
            })?;
            match tokio::time::timeout(PATIENCE, self.client.request_text(request)).await {
                Ok(Ok(text)) => return Ok(text),
                Ok(Err(kube::Error::Api(status))) if is_busy(status.code) && attempt < TRIES => {
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(Err(error)) => return Err(stop::<T>(error, params.continue_token.is_some())),
                Err(_) => break,
            }
        }
        Err(Stop::Failed(ListError::Silent { resource: T::KIND.resource() }))
    }
}

fn is_busy(code: u16) -> bool {
    matches!(code, 429 | 500..)
}

fn stop<T: Resource>(error: kube::Error, continued: bool) -> Stop {
    let kube::Error::Api(status) = error else {
        return Stop::Failed(ListError::Unreachable { cause: root(&error) });
    };
    let (message, code) = (status.message.clone(), status.code);
    match code {
        410 if continued => Stop::Expired,
        // A server that has not even the built-in kinds is not an API server.
        404 if T::KIND.presence() != Presence::Always => Stop::Unknown,
        403 => Stop::Forbidden(message),
        401 => Stop::Failed(ListError::Unauthorized { message }),
        _ => Stop::Failed(ListError::Refused { resource: T::KIND.resource(), message, code }),
    }
}

/// The innermost cause: the errors around it only say that something failed.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    match at.is::<tokio::time::error::Elapsed>() {
        true => "it doesn't answer".to_owned(),
        false => at.to_string(),
    }
}

#[cfg(test)]
mod tests;
