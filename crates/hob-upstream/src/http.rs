//! HTTP/1.1 to one server. The task that waits for data also drives its connection: no
//! event is handed from thread to thread, and dropping an answer closes its connection ([decision 10]).
//!
//! [decision 10]: ../../../docs/decisions/0010-the-waiting-task-drives-the-connection.md

mod body;
mod connection;
mod connector;
mod form;
mod guarded;
mod pool;
mod text_socket;
mod wake_ups;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Method, Request, StatusCode};

pub(crate) use body::Body;
use connection::{Connection, SendError};
use connector::Connector;
pub(crate) use form::Form;
pub use guarded::{Fetched, GuardError, GuardOptions, guarded_fetch};
use pool::ConnectionPool;
pub use text_socket::{TextSocket, TextSocketError};

/// One server and its connection pool.
#[derive(Debug)]
pub struct HttpClient {
    connector: Connector,
    host: HeaderValue,
    /// Headers of every request.
    headers: HeaderMap,
    pool: Arc<ConnectionPool>,
}

/// A failed request. The text contains no address and no header.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("there was no connection after {after:?}")]
    ConnectTimedOut { after: Duration },
    /// Nothing listens at the address.
    #[error("{reason}")]
    Refused { reason: String },
    #[error("{reason}")]
    Failed { reason: String },
}

impl HttpError {
    /// The innermost cause, such as `Connection refused`, without the errors around it.
    fn failed(error: &(dyn Error + 'static)) -> HttpError {
        let mut innermost = error;
        while let Some(inner) = innermost.source() {
            innermost = inner;
        }
        let reason = innermost.to_string();
        match innermost.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => HttpError::Refused { reason },
            _ => HttpError::Failed { reason },
        }
    }
}

impl HttpClient {
    /// # Errors
    /// The address has no host, or the system's trusted certificates cannot be read.
    pub(crate) fn new(
        address: &Uri,
        headers: HeaderMap,
        connect_time_max: Option<Duration>,
    ) -> Result<HttpClient, HttpError> {
        let authority = address.authority().map(|authority| authority.as_str());
        let host = HeaderValue::from_str(authority.unwrap_or_default());
        let host = host.map_err(|error| HttpError::failed(&error))?;
        let connector = Connector::new(address, connect_time_max)?;
        Ok(HttpClient { connector, host, headers, pool: Arc::default() })
    }

    /// A client without upstream settings, for the server at an `http:` or `https:` address.
    ///
    /// # Errors
    /// The address or the key is invalid.
    pub fn to(
        address: &str,
        key: Option<&str>,
        connect_time_max: Duration,
    ) -> Result<HttpClient, HttpError> {
        let uri: Uri = address.parse().map_err(|error| HttpError::failed(&error))?;
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, bearer(key)?);
        }
        HttpClient::new(&uri, headers, Some(connect_time_max))
    }

    /// Sends a further header with each request. A value that no header can have is left out.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> HttpClient {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// # Errors
    /// The server cannot be reached, or sends no valid answer.
    pub async fn get(&self, path: &str) -> Result<HttpResponse, HttpError> {
        self.send(self.request(Method::GET, path, Body::default())?).await
    }

    /// Sends JSON.
    ///
    /// # Errors
    /// The server cannot be reached, or sends no valid answer.
    pub async fn post_json(&self, path: &str, json: String) -> Result<HttpResponse, HttpError> {
        let mut request = self.request(Method::POST, path, [json].into_iter().collect())?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(request).await
    }

    /// Sends a body of this content type.
    pub(crate) async fn post(
        &self,
        path: &str,
        (content_type, body): (HeaderValue, Body),
        extra_header: (hyper::header::HeaderName, HeaderValue),
    ) -> Result<HttpResponse, HttpError> {
        let mut request = self.request(Method::POST, path, body)?;
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        request.headers_mut().insert(extra_header.0, extra_header.1);
        self.send(request).await
    }

    fn request(&self, method: Method, path: &str, body: Body) -> Result<Request<Body>, HttpError> {
        let path: PathAndQuery = path.parse().map_err(|error| HttpError::failed(&error))?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.into();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(HOST, self.host.clone());
        Ok(request)
    }

    /// Uses a pooled connection. Opens a new one if the pool is empty, or if the server has closed all of them.
    async fn send(&self, mut request: Request<Body>) -> Result<HttpResponse, HttpError> {
        while let Some(connection) = self.pool.take() {
            match connection.send(request).await {
                Ok((answer, connection)) => return Ok(self.response(answer, connection)),
                Err(SendError::NotSent(unsent)) => request = *unsent,
                Err(SendError::Failed(error)) => return Err(error),
            }
        }
        match Connection::handshake(self.connector.open().await?).await?.send(request).await {
            Ok((answer, connection)) => Ok(self.response(answer, connection)),
            Err(SendError::Failed(error)) => Err(error),
            Err(SendError::NotSent(_)) => Err(HttpError::Failed {
                reason: "the server closed the new connection before hob sent the request"
                    .to_owned(),
            }),
        }
    }

    fn response(&self, answer: hyper::Response<Incoming>, connection: Connection) -> HttpResponse {
        let (head, body) = answer.into_parts();
        HttpResponse { head, body, connection: Some(connection), pool: Arc::clone(&self.pool) }
    }
}

/// The value of `Authorization` for this key. Debug output does not show it.
fn bearer(key: &str) -> Result<HeaderValue, HttpError> {
    let bearer = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut bearer = bearer.map_err(|error| HttpError::failed(&error))?;
    bearer.set_sensitive(true);
    Ok(bearer)
}

/// A response whose body is read on demand.
#[derive(Debug)]
pub struct HttpResponse {
    head: Parts,
    body: Incoming,
    /// `None` after the end of the body, or after an error.
    connection: Option<Connection>,
    pool: Arc<ConnectionPool>,
}

impl HttpResponse {
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// A header's value, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Keeps the connection for another request, although the end of the body may not have come. For an answer that has
    /// said that it is complete: many servers send the end of the body in a packet of its own.
    pub(crate) fn leave(self) {
        if let Some(connection) = self.connection {
            self.pool.keep_unended(connection, self.body);
        }
    }

    /// The next bytes; `None` at the end. Cancel-safe: after dropping the future, call `chunk` again.
    ///
    /// # Errors
    /// The connection broke off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(connection) = &mut self.connection {
            match connection.frame(&mut self.body).await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    self.connection = None;
                    return Err(HttpError::failed(&error));
                }
                None => {
                    if let Some(connection) = self.connection.take() {
                        self.pool.keep(connection);
                    }
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
