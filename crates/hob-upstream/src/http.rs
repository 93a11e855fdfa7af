//! HTTP/1.1 to one server. A connection is driven by whoever waits for what it brings, in their own task: no
//! event is handed from thread to thread, and dropping an answer closes its connection ([decision 10]).
//!
//! [decision 10]: ../../../docs/decisions/0010-the-waiting-task-drives-the-connection.md

mod body;
mod connection;
mod door;
mod form;
mod kept;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Method, Request, StatusCode};

pub(crate) use body::Body;
use connection::{Connection, Unsent};
use door::Door;
pub(crate) use form::Form;
use kept::Kept;

/// One server, and the connections to it that wait for another request.
#[derive(Debug)]
pub(crate) struct Http {
    door: Door,
    host: HeaderValue,
    /// Of every request.
    headers: HeaderMap,
    kept: Arc<Kept>,
}

/// What did not work; its text holds no address and no header.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("there was no connection after {after:?}")]
    ConnectTimedOut { after: Duration },
    #[error("{reason}")]
    Failed { reason: String },
}

impl HttpError {
    /// The reason behind the reasons: `Connection refused`, and nothing around it.
    fn failed(error: &(dyn Error + 'static)) -> HttpError {
        let mut innermost = error;
        while let Some(inner) = innermost.source() {
            innermost = inner;
        }
        HttpError::Failed { reason: innermost.to_string() }
    }
}

impl Http {
    /// # Errors
    /// The address has no host, or nothing on this machine knows whom to trust.
    pub(crate) fn new(
        address: &Uri,
        headers: HeaderMap,
        connect_time_max: Option<Duration>,
    ) -> Result<Http, HttpError> {
        let authority = address.authority().map(|authority| authority.as_str());
        let host = HeaderValue::from_str(authority.unwrap_or_default());
        let host = host.map_err(|error| HttpError::failed(&error))?;
        let door = Door::new(address, connect_time_max)?;
        Ok(Http { door, host, headers, kept: Arc::default() })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Response, HttpError> {
        self.send(self.request(Method::GET, path, Body::default())?).await
    }

    /// Sends a body of this type.
    pub(crate) async fn post(
        &self,
        path: &str,
        (content_type, body): (HeaderValue, Body),
        more: (hyper::header::HeaderName, HeaderValue),
    ) -> Result<Response, HttpError> {
        let mut request = self.request(Method::POST, path, body)?;
        request.headers_mut().insert(hyper::header::CONTENT_TYPE, content_type);
        request.headers_mut().insert(more.0, more.1);
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

    /// On a kept connection; on a new one where there is none, or where the server closed it meanwhile.
    async fn send(&self, mut request: Request<Body>) -> Result<Response, HttpError> {
        while let Some(connection) = self.kept.take() {
            match connection.send(request).await {
                Ok((answer, connection)) => return Ok(self.response(answer, connection)),
                Err(Unsent::Back(unsent)) => request = *unsent,
                Err(Unsent::Failed(error)) => return Err(error),
            }
        }
        match Connection::over(self.door.open().await?).await?.send(request).await {
            Ok((answer, connection)) => Ok(self.response(answer, connection)),
            Err(Unsent::Failed(error)) => Err(error),
            Err(Unsent::Back(_)) => {
                Err(HttpError::Failed { reason: "the connection was closed at once".to_owned() })
            }
        }
    }

    fn response(&self, answer: hyper::Response<Incoming>, connection: Connection) -> Response {
        let (head, body) = answer.into_parts();
        Response { head, body, connection: Some(connection), kept: Arc::clone(&self.kept) }
    }
}

/// An answer whose body comes as it is asked for.
#[derive(Debug)]
pub(crate) struct Response {
    head: Parts,
    body: Incoming,
    /// None: the body is over.
    connection: Option<Connection>,
    kept: Arc<Kept>,
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The next bytes; `None` at the end. May be dropped and called again while it waits.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
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
                None => self.connection.take().into_iter().for_each(|over| self.kept.keep(over)),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
