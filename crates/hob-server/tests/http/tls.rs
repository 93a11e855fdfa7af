//! Encrypted and plain connections on one port.
//! The client is a TLS library, so that half handshakes and closed connections are seen as they are.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hob_server::{Certificates, ServerOptions};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};

use crate::client::no_hang;
use crate::server::Server;

/// One certificate for every address.
#[derive(Debug)]
struct OneCertificate {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl OneCertificate {
    fn new() -> Arc<OneCertificate> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a key that fits");
        Arc::new(OneCertificate { config: Arc::new(config), certificate: cert.der().clone() })
    }

    /// Sends a request over TLS and returns all that comes back.
    async fn ask(&self, address: SocketAddr, request: &[u8]) -> io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a root");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let socket = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
        stream.write_all(request).await?;
        let mut answer = String::new();
        // Without a close of TLS's own, the library reports an error.
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

impl Certificates for OneCertificate {
    fn for_address(&self, address: IpAddr) -> io::Result<Arc<ServerConfig>> {
        assert_eq!(address, IpAddr::from([127, 0, 0, 1]));
        Ok(Arc::clone(&self.config))
    }

    fn authority(&self) -> Option<String> {
        Some("a certificate".to_owned())
    }
}

async fn server(certificates: &Arc<OneCertificate>, header_time_max: Duration) -> Server {
    let certificates = Some(Arc::clone(certificates) as Arc<dyn Certificates>);
    let options = ServerOptions { certificates, header_time_max, ..ServerOptions::default() };
    Server::start_with(options).await
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn one_port_answers_encrypted_and_plain_requests_of_this_machine() {
    let certificates = OneCertificate::new();
    let server = server(&certificates, LONG).await;
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let encrypted = no_hang(certificates.ask(server.address, request)).await.expect("an answer");
    assert!(encrypted.starts_with("HTTP/1.1 200 OK"), "{encrypted}");
    assert_eq!(server.get("/health").await.status(), 200);
    let authority = server.get("/tls/hob-authority.crt").await;
    assert_eq!(authority.text(), "a certificate");
    assert_eq!(authority.header("content-type"), Some("application/x-x509-ca-cert"));
    assert!(server.get("/tls").await.text().contains("fingerprint"));
    assert_eq!(server.get("/tls/authority.key").await.status(), 404);
    let unreadable = server.get("/tls/%ff").await;
    assert_eq!(unreadable.status(), 400);
    assert_eq!(unreadable.json()["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn without_certificates_there_is_no_explanation() {
    let server = Server::start_with(ServerOptions::default()).await;
    assert_eq!(server.get("/tls").await.status(), 404);
    assert_eq!(server.get("/tls/hob-authority.crt").await.status(), 404);
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed_and_others_are_served() {
    let certificates = OneCertificate::new();
    let server = server(&certificates, Duration::from_secs(1)).await;
    // A silent connection, the beginning of a handshake, and a damaged handshake.
    let mut stalled = Vec::new();
    for beginning in [&b""[..], &[0x16, 3, 1], &[0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5]] {
        let mut socket = TcpStream::connect(server.address).await.expect("a connection");
        socket.write_all(beginning).await.expect("sent");
        stalled.push(socket);
    }
    assert_eq!(server.get("/health").await.status(), 200);
    for mut socket in stalled {
        let mut rest = Vec::new();
        // A reset, an alert, or a plain end: each one closes the connection.
        let _how_it_ended = no_hang(socket.read_to_end(&mut rest)).await;
    }
}
