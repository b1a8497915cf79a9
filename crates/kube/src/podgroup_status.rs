//! Whether PodGroups have a status subresource: with our CRD they have, with Volcano's they
//! haven't.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Request;
use kube::Client;
use serde::Deserialize;

#[derive(Default)]
pub struct PodGroupStatusPath(AtomicBool);

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
}

impl PodGroupStatusPath {
    pub fn has(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks the server. True if the answer differs from what we assumed.
    pub async fn look(&self, client: &Client) -> Result<bool, kube::Error> {
        let request = Request::get("/apis/scheduling.volcano.sh/v1beta1").body(Vec::new());
        let found = client.request::<Resources>(request.expect("a constant address")).await?;
        let has = found.resources.iter().any(|resource| resource.name == "podgroups/status");
        let before = self.0.swap(has, Ordering::Relaxed);
        Ok(before != has)
    }
}
