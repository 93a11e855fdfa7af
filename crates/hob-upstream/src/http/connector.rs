//! Opens connections: looks up the address, tries each address family, and adds TLS for `https`.
//! The operating system decides which certificates are trusted.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::http::uri::{Scheme, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::{Service, ServiceExt};

use super::HttpError;

/// Interval of TCP keep-alive probes, which detect dead connections: idle ones, and those on which a client waits.
const PROBE_EVERY: Duration = Duration::from_secs(30);
/// A connection is dead after this many probes without an answer.
const PROBES_MAX: u32 = 3;

pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

pub(super) struct Connector {
    address: Uri,
    transport: Transport,
    time_max: Option<Duration>,
}

#[derive(Clone)]
enum Transport {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

hob_core::debug_fields!(Connector: address);

impl Connector {
    pub(super) fn new(address: &Uri, time_max: Option<Duration>) -> Result<Connector, HttpError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(PROBE_EVERY));
        tcp.set_keepalive_interval(Some(PROBE_EVERY));
        tcp.set_keepalive_retries(Some(PROBES_MAX));
        tcp.enforce_http(false);
        let transport = if address.scheme() == Some(&Scheme::HTTPS) {
            let builder = HttpsConnectorBuilder::new().with_tls_config(trust()?);
            Transport::Tls(builder.https_only().enable_http1().wrap_connector(tcp))
        } else {
            Transport::Plain(tcp)
        };
        Ok(Connector { address: address.clone(), transport, time_max })
    }

    /// # Errors
    /// Connection refused, connect timeout, or TLS verification failed.
    pub(super) async fn open(&self) -> Result<Stream, HttpError> {
        let opening = self.transport.clone().open(self.address.clone());
        let opened = match self.time_max {
            Some(after) => timeout(after, opening)
                .await
                .map_err(|_elapsed| HttpError::ConnectTimedOut { after })?,
            None => opening.await,
        };
        opened.map_err(|error| HttpError::failed(&*error))
    }
}

impl Transport {
    async fn open(self, address: Uri) -> Result<Stream, Box<dyn std::error::Error + Send + Sync>> {
        match self {
            Transport::Plain(mut tcp) => {
                Ok(MaybeHttpsStream::Http(tcp.ready().await?.call(address).await?))
            }
            Transport::Tls(mut tls) => tls.ready().await?.call(address).await,
        }
    }
}

pub(super) fn trust() -> Result<ClientConfig, HttpError> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
    let config = config.and_then(BuilderVerifierExt::with_platform_verifier);
    let config = config.map_err(|error| HttpError::failed(&io::Error::other(error)))?;
    Ok(config.with_no_client_auth())
}
