//! Reads the events of one connection, within limits of time and memory.
//! Every future here may be dropped and called again: what has arrived is kept.

use std::sync::Arc;
use std::time::Duration;

use hob_wire::{WyomingDecoder, WyomingEvent};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use crate::api_error::ApiError;
use crate::body_memory::{BodyReservation, IncomingBody, SMALL_BYTES_MAX};
use crate::context::Services;
use crate::request_body::unless_slow;

/// Maximum bytes of one read.
const READ_BYTES: usize = 16 << 10;

pub(super) struct EventReader<R> {
    socket: R,
    decoder: WyomingDecoder,
    piece: Box<[u8]>,
    services: Arc<Services>,
    /// Start of the wait for the next event.
    waiting_since: Option<Instant>,
    /// When the first byte of an incomplete event arrived.
    begun_at: Option<Instant>,
    /// Memory for an event over 64 KiB.
    memory: Option<(BodyReservation, Arc<IncomingBody>)>,
}

impl<R: AsyncRead + Unpin> EventReader<R> {
    pub(super) fn new(socket: R, services: Arc<Services>) -> EventReader<R> {
        EventReader {
            socket,
            decoder: WyomingDecoder::default(),
            piece: vec![0; READ_BYTES].into(),
            services,
            waiting_since: None,
            begun_at: None,
            memory: None,
        }
    }

    /// The next event; `None` when the client has closed the connection. `silence_max` limits the time without any
    /// event.
    ///
    /// # Errors
    /// The bytes are not an event, the event does not arrive in time, or there is no memory for it.
    pub(super) async fn next(
        &mut self,
        silence_max: Option<Duration>,
    ) -> Result<Option<WyomingEvent>, ApiError> {
        self.waiting_since.get_or_insert_with(Instant::now);
        loop {
            if let Some(event) = self.decoder.next_event()? {
                (self.waiting_since, self.begun_at, self.memory) = (None, None, None);
                return Ok(Some(event));
            }
            self.reserve_memory().await?;
            let count = self.read(silence_max).await?;
            if count == 0 {
                return Ok(None);
            }
            self.decoder.push(&self.piece[..count]);
            if let Some((_, incoming)) = &self.memory {
                incoming.add_received(count);
            }
        }
    }

    async fn reserve_memory(&mut self) -> Result<(), ApiError> {
        let bytes = self.decoder.announced_bytes();
        if bytes > SMALL_BYTES_MAX && self.memory.is_none() {
            self.memory = Some(self.services.bodies.reserve(bytes).await?);
        }
        Ok(())
    }

    /// Bytes that arrived in `piece`; 0 at the end. A broken connection has ended, too.
    async fn read(&mut self, silence_max: Option<Duration>) -> Result<usize, ApiError> {
        if self.decoder.is_in_event() {
            self.begun_at.get_or_insert_with(Instant::now);
        }
        let time_max = self.services.options.read_time_max;
        let late = self.begun_at.map(|at| (at + time_max, ApiError::BodyTooSlow { time_max }));
        let silent = self
            .waiting_since
            .zip(silence_max)
            .map(|(since, time_max)| (since + time_max, ApiError::ClientSilent { time_max }));
        let incoming = self.memory.as_ref().map(|(_, incoming)| &**incoming);
        let read = unless_slow(incoming, self.socket.read(&mut self.piece));
        let read = match late.or(silent) {
            None => read.await?,
            Some((by, error)) => timeout_at(by, read).await.map_err(|_| error)??,
        };
        Ok(read.unwrap_or(0))
    }
}
