//! Checks the host name of a request, the web page it came from, and its key. Lets some pages read answers (CORS).
//! Any web page can make a browser send requests to loopback; it cannot choose these headers.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::{IntoResponse, NoContent, Response};
use futures::future::Either;
use tower::{Layer, Service};

use crate::api_error::ApiError;
use crate::context::RequestContext;

/// The host names that requests may use.
#[derive(Debug)]
pub(crate) struct Guard {
    listen: IpAddr,
    allowed_hosts: Vec<String>,
}

impl Guard {
    pub(crate) fn new(listen: IpAddr, allowed_hosts: &[String]) -> Guard {
        let allowed_hosts = allowed_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Guard { listen: listen.to_canonical(), allowed_hosts }
    }

    /// DNS rebinding needs a host name that an attacker controls. So on an address that other
    /// machines can reach anyway, every IP address is allowed.
    fn knows(&self, host: &str) -> bool {
        let host = normal(host);
        let is_address = host.parse::<IpAddr>().is_ok();
        (is_address && !self.listen.is_loopback()) || self.trusts(&host) || self.allows("*")
    }

    /// Whether this names the computer itself, or is one of the allowed names.
    fn trusts(&self, host: &str) -> bool {
        let is_own = match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        };
        is_own || self.allows(host)
    }

    fn allows(&self, host: &str) -> bool {
        self.allowed_hosts.iter().any(|allowed| allowed == host)
    }

    fn check_host(&self, authority: &str) -> Result<(), ApiError> {
        match host_of(authority) {
            Some(host) if self.knows(host) => Ok(()),
            _ => Err(ApiError::ForeignHost { host: authority.to_owned() }),
        }
    }

    fn check_origin(&self, origin: &str, request: &HeaderMap) -> Result<(), ApiError> {
        match host_of_page(origin) {
            Some(host) if self.knows_page(host, request) => Ok(()),
            _ => Err(ApiError::ForeignOrigin { origin: origin.to_owned() }),
        }
    }

    /// A web site on the Internet may have an address and no name. So a page at such an address may call only the host that
    /// it came from, as hob's own page does.
    fn knows_page(&self, page: &str, request: &HeaderMap) -> bool {
        let page = normal(page);
        let is_own =
            |host: &HeaderValue| host_of(&text(host)).is_some_and(|host| normal(host) == page);
        let may_be_site = is_public(&page) && !self.allows(&page) && !self.allows("*");
        self.knows(&page) && (!may_be_site || request.get(HOST).is_some_and(is_own))
    }

    /// The origin of the request's page, if that page may read answers from another origin. Neither an IP address nor
    /// `*` is enough: any web site may have an address, and `*` stands for every web site.
    pub(crate) fn reader(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let page = text(origin);
        self.trusts(&normal(host_of_page(&page)?)).then(|| origin.clone())
    }

    /// Checks the host name and origin, and the size of the headers. A request without `Host` does not come from a
    /// browser.
    pub(crate) fn check(&self, request: &Request) -> Result<(), ApiError> {
        check_size(request.headers())?;
        if let Some(authority) = request.uri().authority() {
            self.check_host(authority.as_str())?;
        }
        for host in request.headers().get_all(HOST) {
            self.check_host(&text(host))?;
        }
        for origin in request.headers().get_all(ORIGIN) {
            self.check_origin(&text(origin), request.headers())?;
        }
        Ok(())
    }
}

/// Answers a browser that asks before a page's request whether the page may send it. `None` for other requests.
pub(crate) fn preflight(request: &Request) -> Option<Response> {
    let asked = request.headers();
    if request.method() != Method::OPTIONS || !asked.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = NoContent.into_response();
    let headers = response.headers_mut();
    headers
        .insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, DELETE"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if let Some(names) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    Some(response)
}

/// Lets pages of this origin read the answer.
pub(crate) fn share(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// Maximum bytes of all headers together. hyper itself stops at some 400 KiB or 100 headers.
const HEADERS_BYTES_MAX: usize = 64 << 10;

fn check_size(headers: &HeaderMap) -> Result<(), ApiError> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let bytes_max = HEADERS_BYTES_MAX;
    if bytes > bytes_max { Err(ApiError::HeadersTooLarge { bytes_max }) } else { Ok(()) }
}

/// Which key a route needs. As a layer of the route, it refuses other requests. axum's function layers would do the same
/// and copy the route for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// For requests that cost something or reveal something.
    Required,
    /// For lists and chats: the default key of Pipelines will do, too.
    RequiredForChat,
    /// For a list, which needs no key. Clients verify their key by asking for a list.
    IfSent,
}

impl KeyRule {
    fn check(self, context: &RequestContext) -> Result<(), ApiError> {
        match self {
            KeyRule::Required => context.check_key(),
            KeyRule::RequiredForChat => context.check_chat_key(),
            KeyRule::IfSent => match context.check_chat_key() {
                Ok(()) | Err(ApiError::NoKey) => Ok(()),
                Err(refused) => Err(refused),
            },
        }
    }
}

impl<S> Layer<S> for KeyRule {
    type Service = KeyChecked<S>;

    fn layer(&self, inner: S) -> KeyChecked<S> {
        KeyChecked { rule: *self, inner }
    }
}

/// A route below a [`KeyRule`].
#[derive(Clone)]
pub(crate) struct KeyChecked<S> {
    rule: KeyRule,
    inner: S,
}

impl<S: Service<Request, Response = Response>> Service<Request> for KeyChecked<S> {
    type Response = Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response, S::Error>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.rule.check(RequestContext::within(request.extensions())) {
            Ok(()) => Either::Right(self.inner.call(request)),
            Err(refused) => Either::Left(ready(Ok(refused.into_response()))),
        }
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// The host in the origin of a web page.
fn host_of_page(origin: &str) -> Option<&str> {
    let web = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    web.and_then(host_of)
}

/// The host of `host`, `host:port` or `[v6]:port`; `None` for any other text.
fn host_of(authority: &str) -> Option<&str> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return (port.is_empty() || is_port(port.strip_prefix(':')?)).then_some(host);
    }
    match authority.split_once(':') {
        Some((host, port)) => (is_port(port) && is_host(host)).then_some(host),
        None => is_host(authority).then_some(authority),
    }
}

/// Whether this is an IP address outside of this computer, of local networks, and of what providers share (100.64.0.0/10).
fn is_public(host: &str) -> bool {
    match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => {
            let [a, b, ..] = address.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            !(address.is_loopback() || address.is_private() || address.is_link_local() || is_shared)
        }
        Ok(IpAddr::V6(address)) => {
            !(address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local())
        }
        Err(_) => false,
    }
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(listen: &str, allowed: &[&str]) -> Guard {
        let allowed: Vec<String> = allowed.iter().map(|&host| host.to_owned()).collect();
        Guard::new(listen.parse().expect("an address"), &allowed)
    }

    #[test]
    fn a_loopback_server_answers_to_loopback_names() {
        let guard = guard("127.0.0.1", &["hob.lan"]);
        for host in [
            "localhost",
            "localhost:8484",
            "LOCALHOST.",
            "hob.localhost:1",
            "127.0.0.1:9",
            "127.3.2.1",
            "[::1]:8484",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "HOB.lan:80",
        ] {
            assert!(guard.check_host(host).is_ok(), "{host}");
            let page = guard.check_origin(&format!("http://{host}"), &HeaderMap::new());
            assert!(page.is_ok(), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example:8484",
            "192.168.1.7",
            "[fe80::1]:8484",
            "localhost:",
            "localhost:x",
            "localhost@evil.example",
            "[::1",
            "[::1]x",
            "::1",
            "notlocalhost",
            "hob.lan.evil.example",
            "localhost/x",
        ] {
            assert!(guard.check_host(host).is_err(), "{host}");
            let page = guard.check_origin(&format!("http://{host}"), &HeaderMap::new());
            assert!(page.is_err(), "{host}");
        }
    }

    #[test]
    fn origins_are_web_pages_of_known_hosts() {
        let guard = guard("127.0.0.1", &[]);
        assert!(guard.check_origin("https://localhost:3000", &HeaderMap::new()).is_ok());
        for origin in
            ["null", "", "localhost", "file://", "ftp://localhost", "chrome-extension://abc"]
        {
            assert!(guard.check_origin(origin, &HeaderMap::new()).is_err(), "{origin}");
        }
    }

    #[test]
    fn an_open_server_answers_to_addresses_but_not_to_any_name() {
        let guard = guard("0.0.0.0", &[]);
        for (host, known) in [
            ("192.168.1.7:8484", true),
            ("[fe80::1]", true),
            ("localhost", true),
            ("box.lan", false),
        ] {
            assert_eq!(guard.check_host(host).is_ok(), known, "{host}");
        }
        assert!(self::guard("0.0.0.0", &["*"]).check_host("box.lan").is_ok());
    }

    #[test]
    fn a_page_at_an_address_may_call_an_open_server_and_not_read_its_answers() {
        let guard = guard("0.0.0.0", &["hob.lan"]);
        for (origin, may_read) in [
            ("http://192.168.1.7:3000", false),
            ("http://[fe80::1]", false),
            ("http://[::1]:3000", true),
            ("https://HOB.lan.", true),
        ] {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
            assert!(guard.check_origin(origin, &headers).is_ok(), "{origin}");
            assert_eq!(guard.reader(&headers).is_some(), may_read, "{origin}");
        }
    }

    #[test]
    fn a_page_at_an_address_of_the_internet_may_call_only_the_server_that_has_sent_it() {
        for (origin, host, allowed, is_known) in [
            ("http://203.0.113.5", "192.168.1.7:8484", "hob.lan", false),
            ("http://[2001:db8::5]", "192.168.1.7:8484", "hob.lan", false),
            ("http://203.0.113.5", "203.0.113.6", "hob.lan", false),
            ("http://203.0.113.5", "203.0.113.5:8484", "hob.lan", true),
            ("http://[2001:db8::5]:80", "[2001:DB8::5]", "hob.lan", true),
            ("http://203.0.113.5", "192.168.1.7:8484", "203.0.113.5", true),
            ("http://203.0.113.5", "192.168.1.7:8484", "*", true),
            ("http://100.64.0.9", "192.168.1.7:8484", "hob.lan", true),
            ("http://[fd00::9]", "192.168.1.7:8484", "hob.lan", true),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            let page = guard("0.0.0.0", &[allowed]).check_origin(origin, &headers);
            assert_eq!(page.is_ok(), is_known, "{origin} {host} {allowed}");
        }
    }
}
