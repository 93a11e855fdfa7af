//! The address of a server, and connections to it.
//! Callers do not see whether a connection uses TLS.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::Bytes;

use super::tls::{Tls, Trust};
use crate::socket::Socket;

/// Read timeout, after which a waiting thread checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Limit of a connection that only shows whether a server is there.
const PROBE_TIME_MAX: Duration = Duration::from_millis(500);

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    /// None without TLS.
    trust: Option<Trust>,
    /// Prefix of every path, such as `/api`; usually empty.
    pub prefix: String,
}

/// Why a URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("'{url}' is not a URL (expected http:// or https://)")]
    NoScheme { url: String },
    #[error("cannot use TLS for '{url}': {reason}")]
    Trust { url: String, reason: String },
    #[error("'{url}' has no valid host and port")]
    NoHost { url: String },
}

impl Endpoint {
    /// Parses a URL. Its path becomes the prefix of every path, without a `/v1` at its end.
    ///
    /// # Errors
    /// The URL is malformed, or TLS cannot be used.
    pub fn parse(url: &str) -> Result<Endpoint, EndpointError> {
        Endpoint::trusting(url, Trust::of_system)
    }

    pub(super) fn trusting(
        url: &str,
        trust: impl FnOnce(&str) -> Result<Trust, rustls::Error>,
    ) -> Result<Endpoint, EndpointError> {
        let owned = || url.to_owned();
        let schemes = [("http://", 80), ("https://", 443)];
        let scheme = |(scheme, port)| url.strip_prefix(scheme).map(|rest| (rest, port));
        let (rest, usual_port) =
            schemes.into_iter().find_map(scheme).ok_or(EndpointError::NoScheme { url: owned() })?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let no_host = || EndpointError::NoHost { url: owned() };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| no_host())?)
            }
            _ => (authority, usual_port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains(['@', ' ']) {
            return Err(no_host());
        }
        let path = path.trim_end_matches('/');
        let prefix = path.strip_suffix("/v1").unwrap_or(path);
        let trust = url.starts_with("https://").then(|| trust(host)).transpose();
        let trust = trust
            .map_err(|error| EndpointError::Trust { url: owned(), reason: error.to_string() })?;
        Ok(Endpoint { host: host.to_owned(), port, trust, prefix: prefix.to_owned() })
    }

    /// The value of the `host` header.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// A whole POST request with a body of JSON. `headers` are whole lines, each with its line end.
    pub fn post(&self, path: &str, headers: &str, body: &str) -> Bytes {
        let (prefix, host, length) = (&self.prefix, self.authority(), body.len());
        format!(
            "POST {prefix}{path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .into()
    }

    /// Whether it is on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// Whether a server accepts connections there.
    pub(crate) fn is_open(&self) -> bool {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        let is_open = |address| TcpStream::connect_timeout(&address, PROBE_TIME_MAX).is_ok();
        addresses.is_ok_and(|mut addresses| addresses.any(is_open))
    }

    pub(crate) fn connect(&self, within: Duration) -> io::Result<BenchConnection> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, within) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    socket.set_read_timeout(Some(LOOK_EVERY))?;
                    socket.set_write_timeout(Some(within))?;
                    return Ok(match &self.trust {
                        None => BenchConnection::Plain(Socket::new(socket)),
                        Some(trust) => BenchConnection::Tls(Box::new(
                            trust.handshake(Socket::new(socket), within)?,
                        )),
                    });
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

/// A connection. Reads time out regularly, so a waiting thread can check whether to stop.
#[derive(Debug)]
pub(crate) enum BenchConnection {
    Plain(Socket),
    Tls(Box<Tls>),
}

impl BenchConnection {
    /// See [`Socket::read_delay`]; with TLS, of the last encrypted bytes.
    pub(crate) fn read_delay(&self) -> Duration {
        match self {
            BenchConnection::Plain(socket) => socket.read_delay(),
            BenchConnection::Tls(tls) => tls.read_delay(),
        }
    }

    /// How long a read waits at most. Not zero.
    pub(crate) fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        let stream = match self {
            BenchConnection::Plain(socket) => socket.stream(),
            BenchConnection::Tls(tls) => tls.stream(),
        };
        stream.set_read_timeout(Some(time))
    }
}

impl Read for BenchConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            BenchConnection::Plain(socket) => socket.read(buffer),
            BenchConnection::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for BenchConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            BenchConnection::Plain(socket) => socket.write(bytes),
            BenchConnection::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            BenchConnection::Plain(socket) => socket.flush(),
            BenchConnection::Tls(tls) => tls.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_over_tls() {
        let parse = |url| Endpoint::trusting(url, |_| Err(rustls::Error::General("none".into())));
        let refused = parse("https://box/v1").expect_err("no trusted certificates");
        let expected = "cannot use TLS for 'https://box/v1': unexpected error: none";
        assert_eq!(refused.to_string(), expected);
        assert!(parse("http://box").is_ok(), "plain HTTP needs no certificates");
        let endpoint = Endpoint::parse("https://box.example/v1").expect("an address");
        assert_eq!(endpoint.authority(), "box.example:443");
    }

    #[test]
    fn addresses() {
        let rows = [
            ("http://127.0.0.1:8484", Ok(("127.0.0.1:8484", ""))),
            ("http://box/v1/", Ok(("box:80", ""))),
            ("http://box:1/api/v1", Ok(("box:1", "/api"))),
            ("http://[::1]:8484/v1", Ok(("[::1]:8484", ""))),
            ("http://[::1]", Ok(("[::1]:80", ""))),
            ("box:1", Err("'box:1' is not a URL")),
            ("ftp://box", Err("'ftp://box' is not a URL")),
            ("https://:1", Err("'https://:1' has no valid host")),
            ("http://:1", Err("'http://:1' has no valid host")),
            ("http://a@b:1", Err("'http://a@b:1' has no valid host")),
            ("http://box:99999", Err("'http://box:99999' has no valid host")),
        ];
        for (url, expected) in rows {
            match (Endpoint::parse(url), expected) {
                (Ok(endpoint), Ok((authority, prefix))) => {
                    assert_eq!(
                        (endpoint.authority().as_str(), endpoint.prefix.as_str()),
                        (authority, prefix)
                    );
                }
                (Err(error), Err(start)) => {
                    assert!(error.to_string().starts_with(start), "{error}")
                }
                (got, _) => panic!("{url}: {got:?}"),
            }
        }
    }
}
