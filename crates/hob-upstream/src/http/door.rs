//! How a connection is opened: the address looked up, each of its families tried, TLS where it is said.
//! Whom to trust is the operating system's affair.

use std::fmt;
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

/// A connection that nobody uses is looked after by the system, so that a dead one is not kept.
const PROBE_EVERY: Duration = Duration::from_secs(30);

pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

pub(super) struct Door {
    address: Uri,
    connector: Connector,
    time_max: Option<Duration>,
}

#[derive(Clone)]
enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Door {
    pub(super) fn new(address: &Uri, time_max: Option<Duration>) -> Result<Door, HttpError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(PROBE_EVERY));
        tcp.enforce_http(false);
        let connector = if address.scheme() == Some(&Scheme::HTTPS) {
            let builder = HttpsConnectorBuilder::new().with_tls_config(trust()?);
            Connector::Tls(builder.https_only().enable_http1().wrap_connector(tcp))
        } else {
            Connector::Plain(tcp)
        };
        Ok(Door { address: address.clone(), connector, time_max })
    }

    /// # Errors
    /// Nobody is there, nobody is there in time, or it is not who it says it is.
    pub(super) async fn open(&self) -> Result<Stream, HttpError> {
        let opening = self.connector.clone().open(self.address.clone());
        let opened = match self.time_max {
            Some(after) => timeout(after, opening)
                .await
                .map_err(|_elapsed| HttpError::ConnectTimedOut { after })?,
            None => opening.await,
        };
        opened.map_err(|error| HttpError::failed(&*error))
    }
}

impl Connector {
    async fn open(self, address: Uri) -> Result<Stream, Box<dyn std::error::Error + Send + Sync>> {
        match self {
            Connector::Plain(mut tcp) => {
                Ok(MaybeHttpsStream::Http(tcp.ready().await?.call(address).await?))
            }
            Connector::Tls(mut tls) => tls.ready().await?.call(address).await,
        }
    }
}

fn trust() -> Result<ClientConfig, HttpError> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
    let config = config.and_then(BuilderVerifierExt::with_platform_verifier);
    let config = config.map_err(|error| HttpError::failed(&io::Error::other(error)))?;
    Ok(config.with_no_client_auth())
}
