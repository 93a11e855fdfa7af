//! A kept connection that asks the same thing again and again, from bytes that were made before.
//! An answer counts if it is whole and says what the mock said; anything else is an error, never a time.

use std::io;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::events::Events;
use super::{Mode, Target};
use crate::answer::Answer;

/// A small one would cut what is there into several reads.
const READ_BYTES: usize = 64 << 10;
/// What is kept of a refusal, to be shown.
const REFUSAL_BYTES_MAX: usize = 300;
/// Events with content that a measured model sends: a gateway that drops some is not faster for it.
const TOKENS: usize = 64;

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) latency: Duration,
    pub(super) ttft: Option<Duration>,
    pub(super) gap: Option<Duration>,
    pub(super) events: usize,
}

#[derive(Debug)]
pub(super) struct Connection {
    target: Target,
    socket: TcpStream,
    request: Bytes,
    unread: BytesMut,
}

impl Connection {
    pub(super) async fn open(target: &Target) -> io::Result<Connection> {
        let socket = TcpStream::connect(&target.address).await?;
        socket.set_nodelay(true)?;
        let (request, unread) = (request(target), BytesMut::with_capacity(READ_BYTES));
        Ok(Connection { target: target.clone(), socket, request, unread })
    }

    /// Begins anew: what is left of a broken answer would be taken for the next one's.
    pub(super) async fn reopen(&mut self) -> io::Result<()> {
        *self = Connection::open(&self.target).await?;
        Ok(())
    }

    /// Asks, and reads the answer to its end.
    pub(super) async fn ask(&mut self) -> io::Result<Sample> {
        let mut hearing = Hearing::of(self.target.mode);
        // A request is one packet: nothing of the way is left out, and writing it is not waited for.
        let sent = Instant::now();
        self.socket.write_all(&self.request).await?;
        let mut now = sent;
        while !hearing.answer.is_over() {
            self.unread.reserve(READ_BYTES);
            let bytes = self.socket.read_buf(&mut self.unread).await?;
            now = Instant::now();
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            hearing.take(&mut self.unread, now)?;
        }
        hearing.sample(sent, now)
    }
}

fn request(target: &Target) -> Bytes {
    let Target { address, model, .. } = target;
    let stream = if target.mode == Mode::Stream {
        r#""stream":true,"stream_options":{"include_usage":true},"#
    } else {
        ""
    };
    let body = format!(
        r#"{{"model":"{model}",{stream}"max_tokens":64,"messages":[{{"role":"user","content":"Say hello."}}]}}"#
    );
    let key = target.key.as_ref().map(|key| format!("authorization: Bearer {key}\r\n"));
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         {}content-length: {}\r\n\r\n",
        key.unwrap_or_default(),
        body.len()
    );
    [head, body].concat().into()
}

/// An answer while it is read.
#[derive(Debug)]
struct Hearing {
    answer: Answer,
    mode: Mode,
    events: Events,
    /// Of an answer in one piece, or of a refusal.
    text: Vec<u8>,
    first: Option<Instant>,
    last: Option<Instant>,
    gap: Option<Duration>,
}

impl Hearing {
    fn of(mode: Mode) -> Hearing {
        let (answer, events, text) = (Answer::expected(), Events::default(), Vec::new());
        Hearing { answer, mode, events, text, first: None, last: None, gap: None }
    }

    fn take(&mut self, unread: &mut BytesMut, now: Instant) -> io::Result<()> {
        let before = self.events.with_content;
        let Hearing { answer, mode, events, text, .. } = self;
        answer.take(unread, |bytes| match mode {
            Mode::Whole => text.extend_from_slice(bytes),
            Mode::Stream => {
                events.take(bytes);
                // In case it turns out to be a refusal.
                if text.len() < REFUSAL_BYTES_MAX {
                    text.extend_from_slice(bytes);
                }
            }
        })?;
        if self.events.with_content > before {
            self.stamp(now);
        }
        Ok(())
    }

    /// Events of one read came at the same time, as far as anybody can tell.
    fn stamp(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        let gap = self.last.replace(now).map(|last| now - last);
        self.gap = self.gap.max(gap);
    }

    fn sample(self, sent: Instant, ended: Instant) -> io::Result<Sample> {
        if !self.is_right() {
            return Err(io::Error::other(self.complaint()));
        }
        let ttft = self.first.map(|first| first - sent);
        Ok(Sample { latency: ended - sent, ttft, gap: self.gap, events: self.events.all })
    }

    fn is_right(&self) -> bool {
        let is_whole = match self.mode {
            Mode::Whole => memmem::find(&self.text, b"Hello from the mock").is_some(),
            Mode::Stream => {
                let Events { with_content, has_error, is_done, .. } = self.events;
                is_done && !has_error && with_content == TOKENS
            }
        };
        self.answer.status == 200 && is_whole
    }

    fn complaint(&self) -> String {
        let said = &self.text[..self.text.len().min(REFUSAL_BYTES_MAX)];
        let (status, tokens) = (self.answer.status, self.events.with_content);
        format!("status {status}, {tokens} tokens: {}", String::from_utf8_lossy(said))
    }
}
