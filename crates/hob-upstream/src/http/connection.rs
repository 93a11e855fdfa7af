//! One connection. The task that waits for data on it also moves its bytes.
//! A separate task for each connection would wake up for each event, and then wake up the reader.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use std::future::poll_fn;

use bytes::Bytes;
use futures::FutureExt;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};

use super::HttpError;
use super::body::Body;
use super::connector::Stream;
use super::wake_ups::WakeUps;

type Driver = http1::Connection<Stream, Body>;

#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    /// `None` when the connection is closed.
    driver: Option<Box<Driver>>,
    wake_ups: WakeUps,
}

/// Why a request got no answer.
#[derive(Debug)]
pub(super) enum SendError {
    /// The connection was closed before any byte was sent, so the request can be sent again.
    NotSent(Box<Request<Body>>),
    Failed(HttpError),
}

impl Connection {
    pub(super) async fn handshake(stream: Stream) -> Result<Connection, HttpError> {
        let shaken = http1::handshake(stream).await;
        let (sender, driver) = shaken.map_err(|error| HttpError::failed(&error))?;
        Ok(Connection { sender, driver: Some(Box::new(driver)), wake_ups: WakeUps::new() })
    }

    /// The head of the answer, and the connection on which its body arrives.
    pub(super) async fn send(
        mut self,
        request: Request<Body>,
    ) -> Result<(Response<Incoming>, Connection), SendError> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let (driver, wake_ups) = (&mut self.driver, &self.wake_ups);
        let answer =
            poll_fn(|cx| wake_ups.poll(cx, |cx| drive(driver, cx, |cx| answer.as_mut().poll(cx))))
                .await;
        match answer {
            Ok(answer) => Ok((answer, self)),
            Err(mut refused) => Err(match refused.take_message() {
                Some(request) => SendError::NotSent(Box::new(request)),
                None => SendError::Failed(HttpError::failed(refused.error())),
            }),
        }
    }

    /// The next piece of the body on this connection.
    pub(super) async fn frame(
        &mut self,
        body: &mut Incoming,
    ) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        let (driver, wake_ups) = (&mut self.driver, &self.wake_ups);
        let mut body = pin!(body);
        poll_fn(|cx| wake_ups.poll(cx, |cx| drive(driver, cx, |cx| body.as_mut().poll_frame(cx))))
            .await
    }

    /// Whether this body has come to its end, as far as the bytes that are there tell.
    pub(super) fn has_ended(&mut self, body: &mut Incoming) -> bool {
        matches!(self.frame(body).now_or_never(), Some(None))
    }

    /// The task that waited needs nothing more of this connection: bytes that arrive wake no task.
    pub(super) fn forget_task(&self) {
        self.wake_ups.forget_task();
    }

    /// Whether another request can be sent. Checks whether the server has closed the connection.
    pub(super) fn is_free(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        move_bytes(&mut self.driver, &mut cx);
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Waits for data on a connection. Moves bytes only if the data is not there yet.
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

/// Drops a driver that has ended: waiting readers then see the end, and it is not polled again.
fn move_bytes(driver: &mut Option<Box<Driver>>, cx: &mut Context<'_>) {
    if let Some(moving) = driver
        && pin!(moving).poll(cx).is_ready()
    {
        *driver = None;
    }
}
