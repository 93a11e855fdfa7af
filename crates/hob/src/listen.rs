//! The address to listen on, as the user writes it.
//! Names other than localhost are rejected, because name resolution could return an unexpected address.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The default port.
pub(crate) const DEFAULT_PORT: u16 = 8484;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Listen(pub(crate) SocketAddr);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an address to listen on; write 127.0.0.1:8484, [::1]:8484, or just a port")]
pub(crate) struct NotAnAddress(String);

impl Default for Listen {
    fn default() -> Listen {
        Listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT))
    }
}

impl FromStr for Listen {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Listen, NotAnAddress> {
        let numeric = text.replace("localhost", "127.0.0.1");
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let whole = numeric.parse::<SocketAddr>().ok();
        let port = || numeric.strip_prefix(':').unwrap_or(&numeric).parse().ok().map(loopback);
        let host = || numeric.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, DEFAULT_PORT));
        whole.or_else(port).or_else(host).map(Listen).ok_or_else(|| NotAnAddress(text.to_owned()))
    }
}

impl TryFrom<String> for Listen {
    type Error = NotAnAddress;

    fn try_from(text: String) -> Result<Listen, NotAnAddress> {
        text.parse()
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> String {
        listen.to_string()
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What to do when the system refuses to listen on an address that is free.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if cfg!(target_os = "linux") => {
            "choose a port from 1024 on, or give hob the capability CAP_NET_BIND_SERVICE"
        }
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on",
        _ => "set --listen or server.listen to an address of this machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_needs_more_rights_is_not_called_another_machines_address() {
        let said = |kind: io::ErrorKind| remedy(&kind.into());
        assert!(said(io::ErrorKind::PermissionDenied).starts_with("choose a port from 1024 on"));
        assert!(said(io::ErrorKind::AddrNotAvailable).ends_with("an address of this machine"));
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let rows = [
            ("127.0.0.1:8484", Some("127.0.0.1:8484")),
            ("localhost:9000", Some("127.0.0.1:9000")),
            ("localhost", Some("127.0.0.1:8484")),
            ("9000", Some("127.0.0.1:9000")),
            (":9000", Some("127.0.0.1:9000")),
            ("0.0.0.0", Some("0.0.0.0:8484")),
            ("[::1]:80", Some("[::1]:80")),
            ("::1", Some("[::1]:8484")),
            ("example.org:80", None),
            ("127.0.0.1:99999", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let read = text.parse::<Listen>().ok().map(|listen| listen.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
