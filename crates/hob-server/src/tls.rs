//! Encrypted connections, on the same port as plain ones: the first byte of a connection tells them apart.
//! Programs on this machine may connect without encryption. Other machines are sent to the encrypted address.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::api_error::ApiError;
use crate::page;
use crate::socket::Socket;

/// The first byte of a TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;

/// Path of the page that explains how a device comes to trust this server.
const EXPLANATION: &str = "/tls";

/// The server's certificates.
pub trait Certificates: Debug + Send + Sync {
    /// The certificate and key for a connection to this address of the machine.
    ///
    /// # Errors
    /// There is no certificate that can be used.
    fn for_address(&self, address: IpAddr) -> io::Result<Arc<ServerConfig>>;

    /// The certificate of the authority that a device must trust, as PEM. `None`: devices know the authority already.
    fn authority(&self) -> Option<String>;
}

/// A connection whose first byte has arrived.
pub(crate) enum OpenedConnection {
    Encrypted(Box<TlsStream<Socket>>),
    Plain(Socket),
    /// Plain, from another machine.
    PlainRemote(Socket),
}

/// Waits for the first byte, and performs the handshake of an encrypted connection.
///
/// # Errors
/// The client left, there is no certificate, or the handshake failed.
pub(crate) async fn open(
    socket: TcpStream,
    wrap: impl FnOnce(TcpStream) -> Socket,
    certificates: &dyn Certificates,
) -> io::Result<OpenedConnection> {
    let mut first = [0];
    let is_encrypted = socket.peek(&mut first).await? == 1 && first[0] == HANDSHAKE;
    if !is_encrypted {
        let is_local = is_this_machine(socket.peer_addr()?.ip(), socket.local_addr()?.ip());
        let socket = wrap(socket);
        return Ok(match is_local {
            true => OpenedConnection::Plain(socket),
            false => OpenedConnection::PlainRemote(socket),
        });
    }
    let config = certificates.for_address(socket.local_addr()?.ip().to_canonical())?;
    let stream = TlsAcceptor::from(config).accept(wrap(socket)).await?;
    Ok(OpenedConnection::Encrypted(Box::new(stream)))
}

/// A program of this machine connects from loopback, or from the address that it connects to.
fn is_this_machine(peer: IpAddr, own: IpAddr) -> bool {
    peer.to_canonical().is_loopback() || peer == own
}

/// The explanation, and the authority's certificate.
pub(crate) fn explanation_routes(certificates: &Arc<dyn Certificates>) -> Router {
    let certificates = Arc::clone(certificates);
    let authority = move |name: Result<Path<String>, PathRejection>| {
        let pem = certificates.authority();
        async move {
            let Path(name) = name.map_err(|_| ApiError::PathNotUtf8)?;
            authority_file(pem.filter(|_| name == "hob-authority.crt"), &name)
        }
    };
    Router::new()
        .route(EXPLANATION, get(async |request: Request| page::file("tls.html", &request)))
        .route("/tls/{name}", get(authority))
}

/// What other machines get without encryption: the explanation, and for all else the encrypted address.
pub(crate) fn plain_remote_routes(certificates: &Arc<dyn Certificates>) -> Router {
    explanation_routes(certificates)
        .route("/", get(async || Redirect::temporary(EXPLANATION)))
        .route("/tls.js", get(page::asset))
        .route("/style.css", get(page::asset))
        .route("/favicon.svg", get(page::asset))
        .fallback(to_encrypted)
}

/// Phones offer to install a file of this type.
fn authority_file(pem: Option<String>, name: &str) -> Result<Response, ApiError> {
    let pem = pem.ok_or_else(|| ApiError::NoSuchPath { path: format!("{EXPLANATION}/{name}") })?;
    Ok(([(CONTENT_TYPE, "application/x-x509-ca-cert")], pem).into_response())
}

async fn to_encrypted(request: Request) -> Result<Redirect, ApiError> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.filter(|host| !host.is_empty() && !host.contains(['/', '\\', '@', '?', '#']));
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match host {
        // The method and the body of a request stay the same.
        Some(host) => Ok(Redirect::permanent(&format!("https://{host}{path}"))),
        None => Err(ApiError::ForeignHost { host: String::new() }),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::http::header::LOCATION;
    use tower::ServiceExt as _;

    use super::*;

    #[derive(Debug)]
    struct NoCertificates;

    impl Certificates for NoCertificates {
        fn for_address(&self, _address: IpAddr) -> io::Result<Arc<ServerConfig>> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn authority(&self) -> Option<String> {
            None
        }
    }

    async fn ask(path: &str, host: Option<&str>) -> (StatusCode, Option<String>) {
        let certificates: Arc<dyn Certificates> = Arc::new(NoCertificates);
        let mut request = Request::builder().uri(path);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = plain_remote_routes(&certificates).oneshot(request).await.expect("an answer");
        let location = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        (answer.status(), location.map(str::to_owned))
    }

    #[test]
    fn a_program_of_this_machine_may_also_connect_to_its_address_in_the_network() {
        for (peer, own, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("::ffff:127.0.0.1", "::ffff:127.0.0.1", true),
            ("192.168.1.5", "192.168.1.5", true),
            ("fd00::5", "fd00::5", true),
            ("192.168.1.6", "192.168.1.5", false),
            ("fd00::6", "fd00::5", false),
        ] {
            let [peer, own] = [peer, own].map(|ip| ip.parse::<IpAddr>().expect("an address"));
            assert_eq!(is_this_machine(peer, own), expected, "{peer} to {own}");
        }
    }

    #[tokio::test]
    async fn other_machines_are_sent_to_the_encrypted_address() {
        for (path, host, status, location) in [
            ("/", Some("10.0.0.5:8484"), 307, Some("/tls")),
            ("/tls", Some("10.0.0.5:8484"), 200, None),
            ("/style.css", Some("10.0.0.5:8484"), 200, None),
            ("/v1/models?a=b", Some("nas:8484"), 308, Some("https://nas:8484/v1/models?a=b")),
            ("/v1/models", None, 421, None),
            ("/v1/models", Some("evil/@x"), 421, None),
        ] {
            let (found, to) = ask(path, host).await;
            assert_eq!((found.as_u16(), to.as_deref()), (status, location), "{path} {host:?}");
        }
    }
}
