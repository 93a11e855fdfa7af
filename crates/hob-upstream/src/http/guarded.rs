//! Fetches pages for models. A text may lead a model to addresses that it must not reach: those of the network behind this machine.
//! Every address that a name leads to is checked, and the connection goes to a checked address, so that a name cannot lead
//! elsewhere between check and connection. Each redirect is checked again.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures::future::BoxFuture;
use hyper::header::{ACCEPT, HOST, HeaderValue, USER_AGENT};
use hyper::http::uri::{Scheme, Uri};
use hyper::{Method, Request};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::timeout;
use tower::{Service, ServiceExt, service_fn};
use url::Url;

use super::body::Body;
use super::connection::{Connection, SendError};
use super::connector::{Stream, trust};
use super::{HttpError, HttpResponse};

const REDIRECTS_MAX: usize = 5;
const AGENT: &str = concat!("hob/", env!("CARGO_PKG_VERSION"));

/// Limits of a fetch.
#[derive(Clone, Debug)]
pub struct GuardOptions {
    /// `host` or `host:port` that may be reached although it is not public. Without a port, every port. An IPv6 address with
    /// a port has brackets.
    pub allow_hosts: Vec<String>,
    /// Public addresses may be reached too, at ports 80 and 443.
    pub is_public_allowed: bool,
    pub bytes_max: usize,
    /// For all redirects together.
    pub time_max: Duration,
}

/// An answer, perhaps not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// After redirects.
    pub url: String,
    pub status: u16,
    pub content_type: String,
    pub body: Vec<u8>,
    /// The body is longer than the limit.
    pub is_cut: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("'{0}' is not an http or https address without a user name")]
    BadUrl(String),
    #[error("'{host}' is not reached: {reason}")]
    Refused { host: String, reason: &'static str },
    #[error("the name '{0}' has no address")]
    NoAddress(String),
    #[error("there were more than {REDIRECTS_MAX} redirects")]
    TooManyRedirects,
    #[error("there was no whole answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// Fetches `url` with GET, or only its head.
///
/// # Errors
/// See [`GuardError`].
pub async fn guarded_fetch(
    url: &str,
    is_head: bool,
    options: &GuardOptions,
) -> Result<Fetched, GuardError> {
    let fetching = follow(url, is_head, options, &SystemNetwork);
    timeout(options.time_max, fetching).await.map_err(|_| GuardError::TimedOut(options.time_max))?
}

/// How names become addresses, and where a connection to an address goes. Tests have names of their own.
trait Network: Send + Sync {
    /// The addresses of a name.
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'_, io::Result<Vec<SocketAddr>>>;

    /// Where a connection to an address goes that may be reached.
    fn route(&self, address: SocketAddr) -> SocketAddr {
        address
    }
}

/// The network of this machine.
struct SystemNetwork;

impl Network for SystemNetwork {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'_, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

async fn follow(
    url: &str,
    is_head: bool,
    options: &GuardOptions,
    network: &dyn Network,
) -> Result<Fetched, GuardError> {
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        let address = GuardedUrl::parse(&url)?;
        let mut response = address.ask(is_head, options, network).await?;
        let location = response.header("location");
        match location.filter(|_| response.status().is_redirection()) {
            Some(location) => url = address.joined(location)?,
            None => return read(url, &mut response, options.bytes_max).await,
        }
    }
    Err(GuardError::TooManyRedirects)
}

async fn read(
    url: String,
    response: &mut HttpResponse,
    bytes_max: usize,
) -> Result<Fetched, GuardError> {
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(bytes) = response.chunk().await? {
        let room = bytes_max - body.len();
        body.extend(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            is_cut = true;
            break;
        }
    }
    let content_type = response.header("content-type").unwrap_or_default().to_owned();
    Ok(Fetched { url, status: response.status().as_u16(), content_type, body, is_cut })
}

/// An address that may be asked.
struct GuardedUrl {
    uri: Uri,
    host: String,
    port: u16,
}

impl GuardedUrl {
    fn parse(url: &str) -> Result<GuardedUrl, GuardError> {
        let bad = || GuardError::BadUrl(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let default_port = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => 80,
            Some(scheme) if *scheme == Scheme::HTTPS => 443,
            _ => return Err(bad()),
        };
        let authority = uri
            .authority()
            .filter(|authority| !authority.as_str().contains('@'))
            .ok_or_else(bad)?;
        let host =
            authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(default_port);
        if host.is_empty() { Err(bad()) } else { Ok(GuardedUrl { uri, host, port }) }
    }

    /// Where a redirect leads.
    fn joined(&self, location: &str) -> Result<String, GuardError> {
        let joined = Url::parse(&self.uri.to_string()).and_then(|url| url.join(location));
        Ok(joined.map_err(|_| GuardError::BadUrl(location.to_owned()))?.into())
    }

    fn is_named(&self, allowed: &str) -> bool {
        let is_ipv6 = self.host.contains(':');
        let host = if is_ipv6 { format!("[{}]", self.host) } else { self.host.clone() };
        let with_port = format!("{host}:{}", self.port);
        [&self.host, &host, &with_port].into_iter().any(|name| allowed.eq_ignore_ascii_case(name))
    }

    async fn ask(
        &self,
        is_head: bool,
        options: &GuardOptions,
        network: &dyn Network,
    ) -> Result<HttpResponse, GuardError> {
        let addresses = self.checked_addresses(options, network).await?;
        let addresses = addresses.into_iter().map(|address| network.route(address));
        let stream = self.open(addresses.collect()).await?;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::new(Body::default());
        *request.method_mut() = if is_head { Method::HEAD } else { Method::GET };
        *request.uri_mut() = path.parse().map_err(|_| GuardError::BadUrl(path.to_owned()))?;
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let host = HeaderValue::from_str(authority)
            .map_err(|_| GuardError::BadUrl(authority.to_owned()))?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("text/html, text/*, application/json, */*;q=0.1"),
        );
        let sent = Connection::handshake(stream).await?.send(request).await;
        let (answer, connection) = sent.map_err(|error| match error {
            SendError::Failed(error) => error,
            SendError::NotSent(_) => {
                HttpError::Failed { reason: "the server closed the connection".to_owned() }
            }
        })?;
        let (head, body) = answer.into_parts();
        Ok(HttpResponse { head, body, connection: Some(connection), pool: Default::default() })
    }

    /// All addresses of the host, if all of them may be reached.
    async fn checked_addresses(
        &self,
        options: &GuardOptions,
        network: &dyn Network,
    ) -> Result<Vec<SocketAddr>, GuardError> {
        let refused = |reason| GuardError::Refused { host: self.host.clone(), reason };
        let is_named = options.allow_hosts.iter().any(|allowed| self.is_named(allowed));
        if !is_named && !options.is_public_allowed {
            return Err(refused("it is not among the hosts that are allowed"));
        }
        if !is_named && !matches!(self.port, 80 | 443) {
            return Err(refused("only ports 80 and 443 are allowed"));
        }
        let found = network.resolve(self.host.clone(), self.port).await;
        let addresses = found.map_err(|_| GuardError::NoAddress(self.host.clone()))?;
        if addresses.is_empty() {
            return Err(GuardError::NoAddress(self.host.clone()));
        }
        if !is_named && !addresses.iter().all(|address| is_public(address.ip())) {
            return Err(refused("it leads into a private network"));
        }
        Ok(addresses)
    }

    /// Connects to one of these addresses, whatever the name leads to now.
    async fn open(&self, addresses: Vec<SocketAddr>) -> Result<Stream, GuardError> {
        let resolver = service_fn(move |_name| {
            let addresses = addresses.clone();
            async move { Ok::<_, io::Error>(addresses.into_iter()) }
        });
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(trust()?);
        let mut connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        let ready = connector.ready().await.map_err(|error| HttpError::failed(&*error))?;
        Ok(ready.call(self.uri.clone()).await.map_err(|error| HttpError::failed(&*error))?)
    }
}

/// Whether everybody on the Internet can reach the address. Sources: the IANA special-purpose address registries for IPv4
/// (RFC 6890) and IPv6. Addresses that carry an IPv4 address (mapped, NAT64, 6to4, Teredo) are not public, because they may
/// lead to one that is not.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (18..20).contains(&b))
        || a >= 224;
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is global unicast; in it, 2001::/23 and 2002::/16 have special purposes, and 3fff::/20 and 2001:db8::/32
    // are for documentation.
    let is_global = a & 0xe000 == 0x2000;
    let is_special =
        (a == 0x2001 && (b < 0x200 || b == 0xdb8)) || a == 0x2002 || (a == 0x3fff && b < 0x1000);
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn private_addresses_are_known_in_every_form() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "::1",
            "::",
            "fc00::1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "::7f00:1",
        ] {
            assert!(!is_public(address.parse().expect(address)), "{address}");
        }
        for address in
            ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
        {
            assert!(is_public(address.parse().expect(address)), "{address}");
        }
    }

    fn options(allow_hosts: &[&str]) -> GuardOptions {
        let allow_hosts = allow_hosts.iter().map(|host| (*host).to_owned()).collect();
        GuardOptions {
            allow_hosts,
            is_public_allowed: true,
            bytes_max: 20,
            time_max: Duration::from_secs(60),
        }
    }

    #[tokio::test]
    async fn what_is_not_public_is_refused_before_a_connection() {
        for (url, part) in [
            ("http://127.0.0.1/", "private network"),
            ("http://localhost/", "private network"),
            ("http://[::1]/", "private network"),
            ("http://[::ffff:10.0.0.1]/", "private network"),
            ("http://0.0.0.0/", "private network"),
            ("http://169.254.169.254/latest/meta-data/", "private network"),
            ("http://[::ffff:169.254.169.254]/", "private network"),
            ("http://[::ffff:7f00:1]/", "private network"),
            ("http://127.0.0.1:8484/", "ports 80 and 443"),
            ("http://user@example.com/", "user name"),
            ("file:///etc/passwd", "not an http"),
            ("ftp://example.com/", "not an http"),
            ("nothing", "not an http"),
        ] {
            let error = guarded_fetch(url, false, &options(&[])).await.expect_err(url).to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
        // How a system reads a number as a host name differs; no reading may lead to a private address.
        for host in ["2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "127.1", "0"] {
            let url = format!("http://{host}/");
            let error = guarded_fetch(&url, false, &options(&[])).await.expect_err(host);
            let is_refused = matches!(error, GuardError::Refused { .. } | GuardError::NoAddress(_));
            assert!(is_refused, "{url}: {error}");
        }
    }

    /// Otherwise, the port could be the last part of another address.
    #[test]
    fn an_ipv6_address_with_a_port_has_brackets() {
        let url = GuardedUrl::parse("http://[fd00::1]:8080/").expect("an address");
        for (allowed, is_named) in [
            ("fd00::1", true),
            ("[FD00::1]", true),
            ("[fd00::1]:8080", true),
            ("[fd00::1]:80", false),
            ("fd00::1:8080", false),
        ] {
            assert_eq!(url.is_named(allowed), is_named, "{allowed}");
        }
    }

    /// Names with addresses that change. Every connection goes to a server of this test.
    struct Names {
        /// The addresses of a host that was asked for this many times before.
        addresses: fn(&str, usize) -> Vec<&'static str>,
        server: SocketAddr,
        asked: Mutex<Vec<String>>,
        connected: Mutex<Vec<String>>,
    }

    impl Names {
        fn new(addresses: fn(&str, usize) -> Vec<&'static str>, server: SocketAddr) -> Names {
            Names { addresses, server, asked: Mutex::default(), connected: Mutex::default() }
        }

        /// The addresses that were connected to.
        fn connected(&self) -> Vec<String> {
            self.connected.lock().expect("a list").clone()
        }
    }

    impl Network for Names {
        fn resolve(&self, host: String, port: u16) -> BoxFuture<'_, io::Result<Vec<SocketAddr>>> {
            let mut asked = self.asked.lock().expect("a list");
            let before = asked.iter().filter(|name| **name == host).count();
            let found = (self.addresses)(&host, before).into_iter();
            asked.push(host);
            let found: Vec<SocketAddr> =
                found.map(|ip| SocketAddr::new(ip.parse().expect(ip), port)).collect();
            Box::pin(async move { Ok(found) })
        }

        fn route(&self, address: SocketAddr) -> SocketAddr {
            self.connected.lock().expect("a list").push(address.to_string());
            self.server
        }
    }

    const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage";

    fn redirect(location: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
    }

    #[tokio::test]
    async fn a_name_that_changes_its_address_is_never_reached_at_a_private_one() {
        let rebound = |_: &str, before: usize| match before {
            0 => vec!["8.8.8.8"],
            _ => vec!["127.0.0.1"],
        };
        let (server, _serving) = server(vec![PAGE.to_owned(), PAGE.to_owned()]).await;
        let names = Names::new(rebound, server);
        let options = options(&[]);
        let fetch = || follow("http://name.test/", false, &options, &names);
        let page = fetch().await.expect("a page");
        assert_eq!(&*page.body, b"page");
        // The connection goes to the address that was checked: the name is not asked for again.
        assert_eq!(*names.asked.lock().expect("a list"), ["name.test"]);
        assert_eq!(names.connected(), ["8.8.8.8:80"]);
        let error = fetch().await.expect_err("private now").to_string();
        assert!(error.contains("private network"), "{error}");
        assert_eq!(names.connected(), ["8.8.8.8:80"]);
    }

    #[tokio::test]
    async fn a_redirect_reaches_no_private_address_in_any_form() {
        let addresses = |host: &str, before: usize| match host {
            "start.test" if before == 0 => vec!["8.8.8.8"],
            "mixed.test" => vec!["8.8.8.8", "10.0.0.1"],
            "mapped.test" => vec!["::ffff:127.0.0.1"],
            "cloud.test" => vec!["169.254.169.254"],
            "any.test" => vec!["0.0.0.0"],
            "64:ff9b::7f00:1" => vec!["64:ff9b::7f00:1"],
            // Names that change, and the forms of 127.0.0.1 that systems read.
            _ => vec!["127.0.0.1"],
        };
        for location in [
            "/again",
            "//name.test/",
            "http://start.test:80/",
            "http://mixed.test/",
            "http://mapped.test/",
            "http://cloud.test/latest/meta-data/",
            "http://any.test/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://[64:ff9b::7f00:1]/",
            "https://name.test/",
            // Browsers read a backslash as a slash.
            r"/\name.test/",
        ] {
            let (server, _serving) = server(vec![redirect(location), PAGE.to_owned()]).await;
            let names = Names::new(addresses, server);
            let options = options(&[]);
            let followed = follow("http://start.test/", false, &options, &names).await;
            let error = followed.expect_err(location).to_string();
            assert!(error.contains("private network"), "{location}: {error}");
            assert_eq!(names.connected(), ["8.8.8.8:80"], "{location}");
        }
    }

    /// Serves these answers, one for each connection.
    async fn server(answers: Vec<String>) -> (SocketAddr, tokio::task::JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move {
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let mut request = vec![0; 4096];
                let _read = stream.read(&mut request).await;
                let _written = stream.write_all(answer.as_bytes()).await;
            }
        });
        (address, serving)
    }

    #[tokio::test]
    async fn a_redirect_is_checked_like_the_first_address() {
        let page = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz";
        let (address, _serving) =
            server(vec![redirect("/b"), page.to_owned(), redirect("http://localhost/secret")])
                .await;
        let allowed = options(&[&address.to_string()]);
        let url = format!("http://{address}/a");
        let fetched = guarded_fetch(&url, false, &allowed).await.expect("a page");
        assert_eq!(
            (fetched.status, fetched.is_cut, &*fetched.body),
            (200, true, &b"abcdefghijklmnopqrst"[..])
        );
        assert_eq!(
            (fetched.url, fetched.content_type),
            (format!("http://{address}/b"), "text/plain".to_owned())
        );
        let error =
            guarded_fetch(&url, false, &allowed).await.expect_err("it leads elsewhere").to_string();
        assert!(error.contains("private network"), "{error}");
    }

    #[test]
    fn a_location_is_an_address_or_leads_to_the_same_server() {
        let url = GuardedUrl::parse("http://a.test:81/b/c?d=1").expect("an address");
        for (location, expected) in [
            ("https://x.test/y", "https://x.test/y"),
            ("//x.test/y", "http://x.test/y"),
            ("/y", "http://a.test:81/y"),
            ("y", "http://a.test:81/b/y"),
            ("?e=2", "http://a.test:81/b/c?e=2"),
            ("../y", "http://a.test:81/y"),
            ("/login?next=https://x.test/", "http://a.test:81/login?next=https://x.test/"),
        ] {
            assert_eq!(url.joined(location).expect(location), expected);
        }
        for location in ["http://x.test@127.0.0.1/", "file:///etc/passwd", "ftp://x.test/"] {
            let joined = url.joined(location).expect(location);
            assert!(GuardedUrl::parse(&joined).is_err(), "{location}");
        }
    }

    #[tokio::test]
    async fn redirects_in_a_circle_end() {
        let (address, _serving) = server(vec![redirect("/"); 10]).await;
        let error = guarded_fetch(&format!("http://{address}/"), true, &options(&["127.0.0.1"]))
            .await
            .expect_err("a circle");
        assert!(matches!(error, GuardError::TooManyRedirects), "{error}");
    }
}
