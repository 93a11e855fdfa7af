//! Wyoming, Home Assistant's protocol for voice services: one port for speech, one for transcription.
//! Its requests take the path of every other request (decision 14). The protocol has no keys, so none is checked.

mod conversation;
mod event_reader;
mod programs;
mod request;
mod speech;
mod transcription;

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::conversation::Conversation;
use crate::connections::ConnectionSlot;
use crate::context::{RequestContext, Services, next_id};
use crate::reloadable_state::ReloadableState;
use crate::socket::Socket;

/// A port on which hob speaks Wyoming.
#[derive(Debug)]
pub struct WyomingPort {
    pub listener: TcpListener,
    pub service: WyomingService,
    /// The model or alias of requests that name none; `None`: the server's default.
    pub model: Option<String>,
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WyomingService {
    Speech,
    Transcription,
}

/// What every connection to a port needs.
pub(crate) struct WyomingPortContext {
    pub(crate) service: WyomingService,
    pub(crate) model: Option<String>,
    pub(crate) state: ReloadableState,
    pub(crate) services: Arc<Services>,
    pub(crate) stall_time_max: Duration,
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
}

impl WyomingPortContext {
    /// The context of a new request. Its caller has no key.
    fn context(&self) -> RequestContext {
        let (config, services) = (self.state.config(), Arc::clone(&self.services));
        RequestContext::new(next_id(), &HeaderMap::new(), config, services)
    }
}

/// Serves one connection until the client leaves, an error was sent, or the server stops.
pub(crate) async fn wyoming_connection(
    socket: TcpStream,
    slot: ConnectionSlot,
    port: Arc<WyomingPortContext>,
) {
    let socket = Socket::new(socket, port.stall_time_max);
    let (reading, writing) = tokio::io::split(socket);
    // One event waits for the socket. So a model is not asked for more than the client reads.
    let (answers, unsent) = mpsc::channel(1);
    let writing = conversation::write(writing, unsent);
    tokio::pin!(writing);
    let close = slot.close.clone();
    let conversation = Conversation::new(reading, answers, slot, port);
    tokio::select! {
        // This connection is idle, and another one waits for a slot.
        () = close.cancelled() => return,
        // The client reads no more.
        _ = &mut writing => return,
        () = conversation.run() => {}
    }
    // The last events are on their way. An error means that the client has left.
    if let Err(error) = writing.await {
        tracing::debug!(%error, "a Wyoming connection ended early");
    }
}
