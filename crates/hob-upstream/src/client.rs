//! One server: its address, key, connections and slots.
//! Follows no redirects, and forwards no client headers except the hop count.

mod lists;

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use hob_core::routing::RetryBudget;
use hob_core::{Clock, Fault, Voice, locked};
use hob_wire::{HttpFailure, fault_of};
use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use tokio::sync::Notify;

use crate::http::{Body, Form, HttpClient, HttpError, HttpResponse};
use crate::options::{AttemptTimeouts, UpstreamKind, UpstreamOptions};
use crate::slots::Slots;
use lists::ServedList;

/// Bytes of an error's body that are read: enough for any message.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// Longer waits are ignored: quotas last a day, and a larger number is a date or a mistake.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// Time limit for reading the body of an error.
const ERROR_TIME_MAX: Duration = Duration::from_secs(2);
/// Tells another hob how many hob servers the request has passed through.
const HOPS: HeaderName = HeaderName::from_static("x-hob-hops");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const ANTHROPIC_VERSION: &str = "2023-06-01";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Another server.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) options: UpstreamOptions,
    pub(crate) slots: Slots,
    pub(crate) budget: Mutex<RetryBudget>,
    pub(crate) served: Mutex<ServedList>,
    pub(crate) timeouts: AttemptTimeouts,
    /// Notified when a request finds the server unreachable. The server's list is then refreshed sooner.
    pub(crate) lost: Notify,
    /// The voices of another hob, once its list was read.
    pub(crate) voices: OnceLock<Vec<Voice>>,
    /// OpenAI's own, or Azure's with OpenAI's models: other servers refuse `max_completion_tokens`, or ignore it.
    pub(crate) is_openais: bool,
    /// Without a slash at the end, and without OpenAI's `/v1`.
    root: String,
    /// `/v1`, or nothing if the address names another version.
    version: &'static str,
    http: HttpClient,
    found: OnceLock<UpstreamKind>,
}

/// An upstream whose settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    #[error("upstream '{name}' has no url, and its kind has no usual one")]
    NoUrl { name: String },
    #[error("upstream '{name}' has an invalid url: {reason}")]
    BadUrl { name: String, reason: String },
    #[error("upstream '{name}' has a key that no header can hold")]
    BadKey { name: String },
    #[error("upstream '{name}' cannot be asked: {reason}")]
    NoClient { name: String, reason: String },
}

impl Upstream {
    /// # Errors
    /// The address or the key is invalid.
    pub(crate) fn new(options: UpstreamOptions) -> Result<Upstream, UpstreamError> {
        let name = options.name.clone();
        let written = if options.url.is_empty() { options.kind.url() } else { Some(&*options.url) };
        let written = written.ok_or_else(|| UpstreamError::NoUrl { name: name.clone() })?;
        let url = checked(&name, written)?;
        let timeouts = options.timeouts.or(AttemptTimeouts::defaults(is_near(&url)));
        let http = http(&options, &url, timeouts)?;
        let root = written.trim().trim_end_matches('/');
        let unversioned = root.strip_suffix("/v1");
        // Anthropic's protocol has one version. Its usual addresses leave it out, also behind a gateway's own version.
        let has_own_version = unversioned.is_none()
            && options.kind != UpstreamKind::Anthropic
            && names_version(url.path());
        let root = unversioned.unwrap_or(root).to_owned();
        Ok(Upstream {
            slots: Slots::new(options.slots, options.queue_max),
            budget: Mutex::default(),
            served: Mutex::default(),
            lost: Notify::new(),
            timeouts,
            voices: OnceLock::new(),
            is_openais: url.host().is_some_and(|host| {
                host.ends_with(".openai.com") || host.ends_with(".openai.azure.com")
            }),
            version: if has_own_version { "" } else { "/v1" },
            root,
            http,
            found: OnceLock::new(),
            options,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.options.name
    }

    /// The kind of the server. If the configuration does not state it, hob detects it with requests.
    pub(crate) async fn kind(&self) -> UpstreamKind {
        if self.options.kind != UpstreamKind::Auto {
            return self.options.kind;
        }
        if let Some(kind) = self.found.get() {
            return *kind;
        }
        match self.probe().await {
            Some(kind) => *self.found.get_or_init(|| kind),
            // The server may be asleep. The next request tries again.
            None => UpstreamKind::OpenAi,
        }
    }

    /// The kind, as far as it is known without a request.
    pub(crate) fn known_kind(&self) -> UpstreamKind {
        self.found.get().copied().unwrap_or(self.options.kind)
    }

    /// Sends a JSON body to a path below `/v1`, or below the root if the path begins with a slash.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: String,
        hops: u32,
    ) -> Result<HttpResponse, Fault> {
        self.sent(path, (JSON, [body].into_iter().collect()), hops).await
    }

    /// Like `post`, with a form.
    pub(crate) async fn post_form(
        &self,
        path: &str,
        form: Form,
        hops: u32,
    ) -> Result<HttpResponse, Fault> {
        self.sent(path, form.into_body(), hops).await
    }

    async fn sent(
        &self,
        path: &str,
        body: (HeaderValue, Body),
        hops: u32,
    ) -> Result<HttpResponse, Fault> {
        locked(&self.budget).count_request(std::time::Instant::now());
        let hops = (HOPS, HeaderValue::from(hops + 1));
        self.answered(self.http.post(&self.path(path), body, hops).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<HttpResponse, Fault> {
        self.answered(self.http.get(&self.path(path)).await).await
    }

    /// The fault for an error while reading an answer.
    pub(crate) fn broken(&self, error: &HttpError) -> Fault {
        tracing::debug!(upstream = self.name(), %error, "an answer broke off");
        Fault::CutOff
    }

    /// The whole body of an answer.
    ///
    /// # Errors
    /// It breaks off, or has more than `bytes_max` bytes.
    pub(crate) async fn whole(
        &self,
        response: &mut HttpResponse,
        bytes_max: usize,
    ) -> Result<String, Fault> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > bytes_max {
                return Err(too_large(bytes_max, "ask for less in one request"));
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Removes the key from a text.
    pub(crate) fn scrubbed(&self, text: &str) -> String {
        self.options.key.as_ref().map_or_else(|| text.to_owned(), |key| key.scrub(text))
    }

    /// The address as the user wrote it, without a key.
    pub(crate) fn url(&self) -> &str {
        &self.root
    }

    /// The path to request on a connection to the server.
    fn path(&self, path: &str) -> String {
        let (_, behind) = self.root.split_once("://").unwrap_or_default();
        let before = behind.find('/').map_or("", |slash| &behind[slash..]);
        if path.starts_with('/') {
            format!("{before}{path}")
        } else {
            format!("{before}{}/{path}", self.version)
        }
    }

    /// A successful response, or the fault.
    async fn answered(&self, sent: Result<HttpResponse, HttpError>) -> Result<HttpResponse, Fault> {
        let response = sent.map_err(unsent).inspect_err(|fault| self.note_contact(Err(fault)))?;
        self.note_contact(Ok(()));
        if response.status().is_success() {
            return Ok(response);
        }
        let status = HttpFailure {
            code: response.status().as_u16(),
            retry_after: retry_after(response.headers()),
        };
        let is_final = response.headers().get(SHOULD_RETRY).is_some_and(|said| said == "false");
        let body = tokio::time::timeout(ERROR_TIME_MAX, error_body(response)).await;
        let fault = fault_of(status, self.scrubbed(&body.unwrap_or_default()).as_bytes());
        Err(match fault {
            // The server itself says that a retry does not help.
            Fault::Overloaded { message, retry_after: None } if is_final => {
                Fault::Failed { message }
            }
            fault => fault,
        })
    }

    /// Requests paths that only one kind of server has.
    async fn probe(&self) -> Option<UpstreamKind> {
        for (path, word, kind) in [
            ("/api/hob/ps", "\"models\"", UpstreamKind::Hob),
            ("/api/version", "\"version\"", UpstreamKind::Ollama),
            ("/props", "\"default_generation_settings\"", UpstreamKind::LlamaServer),
        ] {
            match self.get(path).await {
                Ok(mut answer) => {
                    if self.whole(&mut answer, lists::BYTES_MAX).await.ok()?.contains(word) {
                        return Some(kind);
                    }
                }
                // The server answers more once it has loaded its model.
                Err(Fault::Overloaded { .. } | Fault::Unreachable { .. }) => return None,
                Err(_) => {}
            }
        }
        let has = async |path| self.get(path).await.is_ok();
        let models = self.fetch("models").await.ok()?;
        if models.contains("\"vllm\"") {
            return Some(UpstreamKind::Vllm);
        }
        if models.contains("\"sglang\"") {
            return Some(UpstreamKind::Sglang);
        }
        if models.contains("tabbyAPI") || has("model").await {
            return Some(UpstreamKind::Tabby);
        }
        Some(UpstreamKind::OpenAi)
    }
}

/// The fault of an answer that is held until its end and is too large for it, with what its client can do.
pub(crate) fn too_large(bytes_max: usize, to_do: &str) -> Fault {
    let detail = format!(
        "the answer has more than {bytes_max} bytes, which is the limit of one that is not \
         streamed; {to_do}"
    );
    Fault::InvalidAnswer { detail }
}

/// The content type of an answer, without its parameters.
///
/// # Errors
/// [`Fault::InvalidAnswer`]: the answer is a web page.
pub(crate) fn media_type(response: &HttpResponse) -> Result<&str, Fault> {
    let called = response.header("content-type").unwrap_or_default();
    match called.split(';').next().unwrap_or_default().trim() {
        "text/html" => {
            let detail = "a web page instead of an answer; is the address right?".to_owned();
            Err(Fault::InvalidAnswer { detail })
        }
        media_type => Ok(media_type),
    }
}

/// Whether the path of an address names a version, such as `/v1beta/openai` or `/api/paas/v4`. hob adds no `/v1` to such an
/// address.
pub fn names_version(path: &str) -> bool {
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    path.split('/').any(is_version)
}

fn checked(name: &str, written: &str) -> Result<Uri, UpstreamError> {
    let bad = |reason: String| UpstreamError::BadUrl { name: name.to_owned(), reason };
    // Checked first, because the address may contain a password, which must not be repeated.
    if written.contains('@') {
        return Err(bad("it holds a password; put it into key".to_owned()));
    }
    if written.contains('?') {
        return Err(bad("it has a question mark; hob adds paths to its end".to_owned()));
    }
    let url: Uri = written.trim().parse().map_err(|error| bad(format!("'{written}': {error}")))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none_or(str::is_empty) {
        return Err(bad(format!("'{written}' does not begin with http:// or https://")));
    }
    Ok(url)
}

fn unsent(error: HttpError) -> Fault {
    match error {
        HttpError::ConnectTimedOut { after } => Fault::TimedOut { clock: Clock::Connect, after },
        HttpError::Refused { reason } | HttpError::Failed { reason } => {
            Fault::Unreachable { detail: reason }
        }
    }
}

/// On this machine or in the local network.
fn is_near(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(address)) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        Ok(std::net::IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
        Err(_) => {
            let is_bare = !host.contains('.');
            is_bare
                || [".local", ".lan", ".home", ".internal"].iter().any(|end| host.ends_with(end))
        }
    }
}

fn http(
    options: &UpstreamOptions,
    url: &Uri,
    timeouts: AttemptTimeouts,
) -> Result<HttpClient, UpstreamError> {
    let name = || options.name.clone();
    let headers = headers(options).ok_or_else(|| UpstreamError::BadKey { name: name() })?;
    HttpClient::new(url, headers, timeouts.connect)
        .map_err(|error| UpstreamError::NoClient { name: name(), reason: error.to_string() })
}

/// `None`: the key contains characters that are not allowed in a header.
fn headers(options: &UpstreamOptions) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let agent = concat!("hob/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    if options.kind == UpstreamKind::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    if let Some(key) = &options.key {
        let (name, text) = match options.kind {
            UpstreamKind::Anthropic => {
                (HeaderName::from_static("x-api-key"), key.expose().to_owned())
            }
            _ => (AUTHORIZATION, format!("Bearer {}", key.expose())),
        };
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Some(headers)
}

async fn error_body(mut response: HttpResponse) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= ERROR_BYTES_MAX {
            body.truncate(ERROR_BYTES_MAX);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// Reads seconds, with or without a fraction, or the milliseconds of OpenAI's own header. Dates are ignored,
/// because the timeouts may differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: HeaderName| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let milliseconds = number(HeaderName::from_static("retry-after-ms")).map(|ms| ms / 1000.0);
    let seconds = milliseconds.or_else(|| number(RETRY_AFTER))?;
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| *wait <= RETRY_AFTER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> UpstreamOptions {
        UpstreamOptions::plain("gpu", UpstreamKind::LlamaServer, url)
    }

    #[test]
    fn an_address_is_taken_with_and_without_its_version() {
        for url in
            ["http://gpu:8081", "http://gpu:8081/", "http://gpu:8081/v1", "http://gpu:8081/v1/"]
        {
            let upstream = Upstream::new(options(url)).expect(url);
            assert_eq!(upstream.path("models"), "/v1/models");
            assert_eq!(upstream.path("/props"), "/props");
        }
        let behind = Upstream::new(options("https://x.ai/api/v1")).expect("a path");
        assert_eq!(behind.path("models"), "/api/v1/models");
    }

    #[test]
    fn an_address_with_another_version_is_used_as_it_is() {
        for (url, models) in [
            ("https://x.ai/v1beta/openai/", "/v1beta/openai/models"),
            ("https://x.ai/api/paas/v4", "/api/paas/v4/models"),
            ("https://x.ai/v1/openai", "/v1/openai/models"),
            ("https://x.ai/client/v4/ai/v1", "/client/v4/ai/v1/models"),
            ("https://x.ai/vllm", "/vllm/v1/models"),
            ("https://v4.x.ai", "/v1/models"),
        ] {
            assert_eq!(Upstream::new(options(url)).expect(url).path("models"), models, "{url}");
        }
        let url = "https://x.ai/v1/me/anthropic";
        let anthropic = UpstreamOptions::plain("claude", UpstreamKind::Anthropic, url);
        let upstream = Upstream::new(anthropic).expect(url);
        assert_eq!(upstream.path("messages"), "/v1/me/anthropic/v1/messages");
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        for url in [
            "gpu:8081",
            "file:///x",
            "",
            "http://",
            "https://me:secret@x.ai",
            "https://x.ai/v1?key=secret",
        ] {
            let refused = Upstream::new(options(url)).expect_err(url).to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn near_servers_have_shorter_time_limits() {
        for (url, near) in [
            ("http://127.0.0.1:1", true),
            ("http://10.0.0.5", true),
            ("http://nas", true),
            ("http://nas.lan:80", true),
            ("http://[::1]:8", true),
            ("https://api.openai.com", false),
            ("http://8.8.8.8", false),
        ] {
            assert_eq!(is_near(&url.parse().expect(url)), near, "{url}");
        }
    }

    #[test]
    fn waits_are_read_in_each_unit() {
        for (name, value, expected) in [
            ("retry-after", "2", Some(2.0)),
            ("retry-after", "0.5", Some(0.5)),
            ("retry-after-ms", "250", Some(0.25)),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", None),
            ("retry-after", "-1", None),
            ("retry-after", "86400", Some(86_400.0)),
            ("retry-after", "99999999999999", None),
            ("retry-after-ms", "1764000000000000", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            assert_eq!(retry_after(&headers).map(|wait| wait.as_secs_f64()), expected, "{value}");
        }
    }
}
