//! One connection, and who moves its bytes: nobody but the task that waits for something on it.
//! A task of its own for each connection would be woken for each event, and wake the reader in turn.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use std::future::poll_fn;

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};

use super::HttpError;
use super::body::Body;
use super::door::Stream;

type Driver = http1::Connection<Stream, Body>;

#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    /// None: it is closed.
    driver: Option<Box<Driver>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unsent {
    /// Nothing of it left: the connection was closed before.
    Back(Box<Request<Body>>),
    Failed(HttpError),
}

impl Connection {
    pub(super) async fn over(stream: Stream) -> Result<Connection, HttpError> {
        let shaken = http1::handshake(stream).await;
        let (sender, driver) = shaken.map_err(|error| HttpError::failed(&error))?;
        Ok(Connection { sender, driver: Some(Box::new(driver)) })
    }

    /// The head of the answer, and the connection that its body comes on.
    pub(super) async fn send(
        mut self,
        request: Request<Body>,
    ) -> Result<(Response<Incoming>, Connection), Unsent> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let answer = poll_fn(|cx| drive(&mut self.driver, cx, |cx| answer.as_mut().poll(cx))).await;
        match answer {
            Ok(answer) => Ok((answer, self)),
            Err(mut refused) => Err(match refused.take_message() {
                Some(request) => Unsent::Back(Box::new(request)),
                None => Unsent::Failed(HttpError::failed(refused.error())),
            }),
        }
    }

    /// The next piece of a body that comes on this connection.
    pub(super) async fn frame(
        &mut self,
        body: &mut Incoming,
    ) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        let mut body = pin!(body);
        poll_fn(|cx| drive(&mut self.driver, cx, |cx| body.as_mut().poll_frame(cx))).await
    }

    /// Whether another request may go out on it. Looks whether the server has closed it.
    pub(super) fn is_free(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        move_bytes(&mut self.driver, &mut cx);
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Waits for what a connection brings. Bytes are moved only if it is not there yet.
fn drive<T>(
    driver: &mut Option<Box<Driver>>,
    cx: &mut Context<'_>,
    mut waits: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let there = waits(cx);
    if there.is_ready() {
        return there;
    }
    move_bytes(driver, cx);
    waits(cx)
}

/// A driver that is done is dropped: whoever still waits hears of it, and no driver is asked twice.
fn move_bytes(driver: &mut Option<Box<Driver>>, cx: &mut Context<'_>) {
    if let Some(moving) = driver
        && pin!(moving).poll(cx).is_ready()
    {
        *driver = None;
    }
}
