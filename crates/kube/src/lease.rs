//! Leader election with a Lease: one of several replicas decides. Whether we may write depends on
//! the time, which is checked before every write: a process that was frozen finds that its time is
//! over when it wakes up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use kube::Client;
use muster_api::Time;
use serde::Deserialize;
use serde_json::json;
use tracing::{debug, info, warn};

use crate::clock::wall_clock;

#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Without an election we lead from the start; there must be one replica only.
    pub elect: bool,
    pub namespace: String,
    pub name: String,
    pub identity: String,
    /// Other replicas wait this long after the last renewal that they saw.
    pub duration: Duration,
    /// A leader that could not renew for this long stops. Must be less than `duration`.
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}

/// Whether this process may write. Shared by all parts that write.
pub struct Leadership {
    start: Instant,
    /// Milliseconds after `start` until which the lease is certainly ours.
    until: AtomicU64,
}

impl Leadership {
    pub fn none() -> Leadership {
        Leadership { start: Instant::now(), until: AtomicU64::new(0) }
    }

    pub fn holds(&self) -> bool {
        self.start.elapsed().as_millis() < u128::from(self.until.load(Ordering::Acquire))
    }

    fn set(&self, until: Instant) {
        let until = until.saturating_duration_since(self.start).as_millis() as u64;
        self.until.store(until, Ordering::Release);
    }

    pub fn for_ever(&self) {
        self.until.store(u64::MAX, Ordering::Release);
    }

    pub fn end(&self) {
        self.until.store(0, Ordering::Release);
    }
}

pub struct Elector {
    client: Client,
    options: LeaseOptions,
    /// The lease as last seen, and when we saw it change. The clocks of other machines are not
    /// trusted.
    seen: Option<(Spec, Instant)>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    renew_time: Option<String>,
    lease_transitions: Option<i64>,
}

impl Elector {
    pub fn new(client: Client, options: LeaseOptions) -> Elector {
        Elector { client, options, seen: None }
    }

    /// Waits until the lease is ours.
    pub async fn acquire(&mut self, leadership: &Leadership) {
        if !self.options.elect {
            leadership.for_ever();
            return;
        }
        let mut waiting_for = None;
        loop {
            let begin = Instant::now();
            let deadline = self.options.renew_deadline;
            match tokio::time::timeout(deadline, self.try_hold()).await {
                Ok(Ok(None)) => {
                    leadership.set(begin + deadline);
                    info!(identity = self.options.identity, "leading");
                    return;
                }
                Ok(Ok(Some(holder))) => {
                    if waiting_for.as_ref() != Some(&holder) {
                        info!(%holder, "another replica leads, waiting");
                        waiting_for = Some(holder);
                    }
                }
                Ok(Err(cause)) => warn!(%cause, "the lease can't be read or taken, trying again"),
                Err(_) => warn!("no answer about the lease in time, trying again"),
            }
            tokio::time::sleep(self.options.retry_period).await;
        }
    }

    /// Renews the lease until it is lost.
    pub async fn renew(&mut self, leadership: &Leadership) {
        if !self.options.elect {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(self.options.retry_period).await;
            let begin = Instant::now();
            let deadline = self.options.renew_deadline;
            match tokio::time::timeout(deadline, self.try_hold()).await {
                Ok(Ok(None)) if leadership.holds() => leadership.set(begin + deadline),
                // Meanwhile writes were dropped that the engine believes to be under way.
                Ok(Ok(None)) => warn!("the lease was renewed too late"),
                Ok(Ok(Some(holder))) => {
                    leadership.end();
                    warn!(%holder, "the lease is another's now");
                    return;
                }
                Ok(Err(cause)) => warn!(%cause, "the lease could not be renewed, trying again"),
                Err(_) => warn!("the lease could not be renewed in time"),
            }
            if !leadership.holds() {
                return;
            }
        }
    }

    /// Lets another replica take over at once.
    pub async fn release(&mut self, leadership: &Leadership) {
        let held = leadership.holds();
        leadership.end();
        if !self.options.elect || !held {
            return;
        }
        match tokio::time::timeout(self.options.renew_deadline, self.give_back()).await {
            Ok(Ok(())) => info!("the lease is released"),
            Ok(Err(cause)) => {
                warn!(%cause, "the lease could not be released; it runs out by itself")
            }
            Err(_) => warn!("no answer about the lease in time; it runs out by itself"),
        }
    }

    async fn give_back(&self) -> Result<(), kube::Error> {
        let Some(lease) = self.read().await? else { return Ok(()) };
        if lease.spec.holder_identity.as_deref() != Some(&self.options.identity) {
            return Ok(());
        }
        let spec = json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(wall_clock()) });
        self.write(&lease, spec).await
    }

    /// Takes or renews the lease, or returns its holder.
    async fn try_hold(&mut self) -> Result<Option<String>, kube::Error> {
        let now = micro_time(wall_clock());
        let seconds = self.options.duration.as_secs().max(1);
        let ours = json!({
            "holderIdentity": self.options.identity,
            "leaseDurationSeconds": seconds,
            "renewTime": now,
        });
        let Some(lease) = self.read().await? else {
            let mut spec = ours;
            spec["acquireTime"] = json!(now);
            spec["leaseTransitions"] = json!(0);
            self.create(spec).await?;
            return Ok(None);
        };
        let changed = self.seen.as_ref().is_none_or(|(seen, _)| *seen != lease.spec);
        if changed {
            self.seen = Some((lease.spec.clone(), Instant::now()));
        }
        let holder = lease.spec.holder_identity.clone().unwrap_or_default();
        if holder == self.options.identity {
            self.write(&lease, ours).await?;
            return Ok(None);
        }
        let last = self.seen.as_ref().map_or_else(Instant::now, |(_, at)| *at);
        let patience = Duration::from_secs(lease.spec.lease_duration_seconds.unwrap_or(seconds));
        if !holder.is_empty() && last.elapsed() < patience {
            return Ok(Some(holder));
        }
        debug!(%holder, "taking the lease over");
        let mut spec = ours;
        spec["acquireTime"] = json!(now);
        spec["leaseTransitions"] = json!(lease.spec.lease_transitions.unwrap_or(0) + 1);
        match self.write(&lease, spec).await {
            Ok(()) => Ok(None),
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Ok(Some("another replica".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    fn path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.options.namespace)
    }

    async fn read(&self) -> Result<Option<Lease>, kube::Error> {
        let request = Request::get(format!("{}/{}", self.path(), self.options.name));
        let request = request.body(Vec::new()).map_err(kube::Error::HttpError)?;
        match self.client.request::<Lease>(request).await {
            Ok(lease) => Ok(Some(lease)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, spec: serde_json::Value) -> Result<(), kube::Error> {
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.options.name, "namespace": self.options.namespace },
            "spec": spec,
        });
        let request = Request::post(self.path()).header("content-type", "application/json");
        let request =
            request.body(body.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await.map(drop)
    }

    /// Updates the lease if it has not changed since we read it.
    async fn write(&self, lease: &Lease, spec: serde_json::Value) -> Result<(), kube::Error> {
        let body = json!({ "metadata": { "resourceVersion": lease.metadata.resource_version }, "spec": spec });
        let request = Request::patch(format!("{}/{}", self.path(), self.options.name))
            .header("content-type", "application/merge-patch+json")
            .body(body.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await.map(drop)
    }
}

/// Kubernetes requires microseconds here, with exactly six digits.
pub fn micro_time(time: Time) -> String {
    let text = Time(time.0 - time.0.rem_euclid(1000)).to_string();
    format!("{}.{:03}000Z", text.trim_end_matches('Z'), time.0.rem_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits_after_the_point() {
        assert_eq!(micro_time(Time(0)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(micro_time(Time(1_050)), "1970-01-01T00:00:01.050000Z");
    }

    #[test]
    fn leadership_ends_by_time_and_by_resigning() {
        let leadership = Leadership::none();
        assert!(!leadership.holds());
        leadership.for_ever();
        assert!(leadership.holds());
        leadership.set(Instant::now());
        std::thread::sleep(Duration::from_millis(2));
        assert!(!leadership.holds(), "the time is over");
        leadership.for_ever();
        leadership.end();
        assert!(!leadership.holds());
    }
}
