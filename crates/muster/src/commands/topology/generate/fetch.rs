//! Requests the list of ports from UFM.

use std::path::PathBuf;
use std::time::Duration;

use futures::AsyncReadExt;
use http::{Request, Uri};
use kube::config::AuthInfo;
use kube::{Client, Config};
use muster_topology_sources::ufm::PATH;
use thiserror::Error;

use crate::failure::Failure;

/// How long UFM may take for all its ports; as long as Volcano waits.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than the ports of the largest fabrics need, at about a kilobyte each; the same limit as
/// Volcano's.
const BYTES: u64 = 100 << 20;

/// The credentials.
pub struct Access {
    pub user: Option<String>,
    pub password: Option<String>,
    /// Certificates to trust instead of the system's.
    pub certificates: Option<PathBuf>,
    pub insecure: bool,
}

#[derive(Debug, Error)]
enum AddressError {
    #[error("{url}: {source}; write for example https://ufm.example.com")]
    Unreadable { url: String, source: http::uri::InvalidUri },
    #[error("{url}: not a web address; write for example https://ufm.example.com")]
    NotOfTheWeb { url: String },
    // Neither the address nor the visible arguments of a command may contain a password; nor may
    // this message.
    #[error(
        "the address of {host} has a user in it: write --ufm-user, and the password to the variable UFM_PASSWORD"
    )]
    NamesUser { host: String },
}

#[derive(Debug, Error)]
enum FetchError {
    #[error("no answer within {} seconds", PATIENCE.as_secs())]
    NoAnswer,
    #[error("it refused with status {0}: check --ufm-user and the variable UFM_PASSWORD")]
    Refused(u16),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("the answer has more than {BYTES} bytes")]
    TooLong,
    #[error("reading the answer: {}", reason(.0))]
    CutOff(#[source] std::io::Error),
    #[error("{}", reason(.0))]
    Client(#[source] kube::Error),
    #[error("{0}")]
    Request(#[from] http::Error),
}

/// The list of ports as text. It uses the HTTP client for clusters, which has TLS and basic
/// authentication.
pub fn fetch(url: &str, access: &Access) -> Result<String, Failure> {
    let url = address(url).map_err(Failure::input)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::work(format_args!("starting: {error}")))?;
    let answer =
        runtime.block_on(async { tokio::time::timeout(PATIENCE, get(&url, access)).await });
    let answer = answer.unwrap_or(Err(FetchError::NoAnswer));
    answer.map_err(|error| Failure::work(format_args!("asking UFM at {url}: {error}")))
}

/// The whole address, from the host alone or from a whole address.
fn address(url: &str) -> Result<Uri, AddressError> {
    let base = url.trim_end_matches('/');
    let whole = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
    let unreadable = |source| AddressError::Unreadable { url: url.to_owned(), source };
    let uri: Uri = whole.parse().map_err(unreadable)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(AddressError::NotOfTheWeb { url: url.to_owned() });
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(AddressError::NamesUser { host: uri.host().unwrap_or_default().to_owned() });
    }
    Ok(uri)
}

async fn get(url: &Uri, access: &Access) -> Result<String, FetchError> {
    let mut base = url.clone().into_parts();
    let request = base
        .path_and_query
        .replace("/".parse().expect("a path"))
        .unwrap_or_else(|| PATH.parse().expect("a path"));
    let mut config = Config::new(Uri::from_parts(base).expect("it was a whole address"));
    config.accept_invalid_certs = access.insecure;
    config.root_cert_file = access.certificates.clone();
    config.auth_info = AuthInfo {
        username: access.user.clone(),
        password: access.password.clone().map(Into::into),
        ..AuthInfo::default()
    };
    let client = Client::try_from(config).map_err(FetchError::Client)?;
    let request = Request::get(request.as_str()).body(Vec::new())?;
    let body = client.request_stream(request).await.map_err(refusal)?;
    let mut text = String::new();
    let read = body.take(BYTES + 1).read_to_string(&mut text).await;
    match read {
        Ok(length) if length as u64 > BYTES => Err(FetchError::TooLong),
        Ok(_) => Ok(text),
        Err(error) => Err(FetchError::CutOff(error)),
    }
}

fn refusal(error: kube::Error) -> FetchError {
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
            FetchError::Refused(status.code)
        }
        kube::Error::Api(status) => FetchError::Status(status.code),
        error => FetchError::Client(error),
    }
}

/// The error with its causes: the outermost alone often only says that something went wrong.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup_by(|next, former| former.contains(next.as_str()));
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_added_where_it_is_missing() {
        let whole = |url| address(url).expect(url).to_string();
        assert_eq!(whole("https://ufm"), "https://ufm/ufmRest/resources/ports");
        assert_eq!(whole("http://ufm:8080/"), "http://ufm:8080/ufmRest/resources/ports");
        assert_eq!(whole("https://gate/site1"), "https://gate/site1/ufmRest/resources/ports");
        assert_eq!(
            whole("https://ufm/ufmRest/resources/ports/"),
            "https://ufm/ufmRest/resources/ports"
        );
    }

    #[test]
    fn a_password_in_the_address_is_refused_and_not_repeated() {
        let problem = address("https://admin:hush@ufm").expect_err("it has a password").to_string();
        assert!(problem.contains("UFM_PASSWORD") && !problem.contains("hush"), "{problem}");
        assert!(
            address("ftp://ufm")
                .expect_err("it is no web address")
                .to_string()
                .contains("https://ufm.example.com")
        );
        assert!(address("https://").is_err());
    }
}
