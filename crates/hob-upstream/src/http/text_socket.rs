//! A WebSocket that carries text messages.
//! The same connector as for requests opens it, so addresses and certificates mean the same.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, RETRY_AFTER};
use hyper::http::uri::{Scheme, Uri};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::connector::{Connector, Stream};
use super::{HttpError, bearer};

/// An event of a realtime session is far smaller.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// How long a message may wait until the server takes it.
const SEND_TIME_MAX: Duration = Duration::from_secs(20);

/// An open WebSocket.
pub struct TextSocket {
    stream: WebSocketStream<TokioIo<Stream>>,
}

/// Why a WebSocket does not open, or ended.
#[derive(Debug, thiserror::Error)]
pub enum TextSocketError {
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server did not upgrade the connection. `retry_after_s`: seconds after which it may do so.
    #[error("the server answered {status}")]
    Refused { status: StatusCode, body: String, retry_after_s: Option<u64> },
    /// The server closed the socket with a reason (RFC 6455, section 7.4).
    #[error("the server closed the connection: {reason} ({code})")]
    Closed { code: u16, reason: String },
    #[error("the connection broke: {0}")]
    Broken(String),
}

impl std::fmt::Debug for TextSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextSocket").finish_non_exhaustive()
    }
}

impl TextSocket {
    /// Opens a WebSocket at an `http:` or `https:` address. `path` may have a query.
    ///
    /// # Errors
    /// The server cannot be reached within `open_time_max`, or refuses.
    pub async fn open(
        address: &str,
        path: &str,
        key: Option<&str>,
        open_time_max: Duration,
    ) -> Result<TextSocket, TextSocketError> {
        let uri: Uri = address.parse().map_err(|error| HttpError::failed(&error))?;
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let scheme = if is_tls { "wss" } else { "ws" };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let mut request =
            format!("{scheme}://{authority}{path}").into_client_request().map_err(broken)?;
        if let Some(key) = key {
            request.headers_mut().insert(AUTHORIZATION, bearer(key)?);
        }
        let opening = async {
            let stream = Connector::new(&uri, Some(open_time_max))?.open().await?;
            let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX));
            let opened =
                client_async_with_config(request, TokioIo::new(stream), Some(config)).await;
            opened.map(|(stream, _)| TextSocket { stream }).map_err(broken)
        };
        let late =
            TextSocketError::Broken(format!("no answer within {} s", open_time_max.as_secs()));
        timeout(open_time_max, Box::pin(opening)).await.unwrap_or(Err(late))
    }

    /// Sends a text message.
    ///
    /// # Errors
    /// The socket is closed, or the server takes nothing for 20 s.
    pub async fn send(&mut self, text: String) -> Result<(), TextSocketError> {
        let sent = timeout(SEND_TIME_MAX, self.stream.send(Message::text(text))).await;
        let late = || TextSocketError::Broken("the server reads nothing".to_owned());
        sent.map_err(|_elapsed| late())?.map_err(broken)
    }

    /// The next text message. `None`: the server ended the connection normally. Can be dropped while it waits.
    ///
    /// # Errors
    /// The server closed the socket for a reason, or the connection broke.
    pub async fn next(&mut self) -> Result<Option<String>, TextSocketError> {
        loop {
            match self.stream.next().await.transpose().map_err(broken)? {
                None => return Ok(None),
                Some(Message::Text(text)) => return Ok(Some(text.as_str().to_owned())),
                Some(Message::Close(frame)) => {
                    let frame =
                        frame.map(|frame| (u16::from(frame.code), frame.reason.to_string()));
                    return match frame {
                        None | Some((1000, _)) => Ok(None),
                        Some((code, reason)) => Err(TextSocketError::Closed { code, reason }),
                    };
                }
                Some(_) => {}
            }
        }
    }

    /// Sends a close frame. An error means that the server is gone, so it is ignored.
    pub async fn close(mut self) {
        let _gone = timeout(SEND_TIME_MAX, self.stream.close(None)).await;
    }
}

fn broken(error: Error) -> TextSocketError {
    let Error::Http(response) = error else {
        return TextSocketError::Broken(error.to_string());
    };
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    TextSocketError::Refused {
        status: response.status(),
        retry_after_s: seconds.and_then(|seconds| seconds.parse().ok()),
        body: String::from_utf8_lossy(response.body().as_deref().unwrap_or_default()).into_owned(),
    }
}
