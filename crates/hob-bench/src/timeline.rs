//! Parses a recording: arrival times of the header and of each chunk, kinds of chunks, and the server's counts.
//! It runs after all answers. A chunk's time is that of the read with its last byte.

mod figures;
mod sound;
mod transcript;

use std::time::Duration;

use bytes::BytesMut;
use hob_wire::{
    Observed, ObservedCounts, ObservedPart, ObservedText, PieceKind, Pieces, TextKind,
    observe_ollama, observe_openai,
};

use crate::drive::{End, Exchange};
use crate::http_response::HttpResponse;
pub use figures::{Flag, RequestFigures, Stalls, TokenCounts, figures, stalls};
pub use sound::{ArrivalPoint, PCM_RATE_HZ, SoundFault, SoundFormat, SoundTimeline, sound};
pub use transcript::{TranscriptTimeline, transcript};

/// Maximum size of an event; no benchmarked server sends more.
const PIECE_BYTES_MAX: usize = 16 << 20;
/// Maximum size of an error body.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The API of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    OpenAi,
    Ollama,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    Thought,
    Content,
    Call,
    /// A thinking tag that the server left in the text, or white space around it. It has tokens, but is not part of the answer.
    Mark,
}

impl ChunkKind {
    pub fn is_answer(self) -> bool {
        matches!(self, ChunkKind::Content | ChunkKind::Call)
    }
}

/// An event with tokens. Events with only a role, counts, a comment or an end marker are not chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Time since the request was sent.
    pub at: Duration,
    pub kind: ChunkKind,
    pub bytes: usize,
    /// Whether the chunk arrived in the same read as the chunk before, so the time between them is unknown.
    pub is_coalesced: bool,
}

/// Why a request has no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    #[error("the server cannot be reached: {cause}")]
    Unreachable { cause: String },
    #[error("the server answered {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("the server closed the connection in the middle of its answer, after {chunks} chunks")]
    CutOff { chunks: usize },
    #[error("the server sent nothing until the timeout, after {chunks} chunks")]
    Silent { chunks: usize },
    #[error("the answer did not end in time, after {chunks} chunks")]
    TooSlow { chunks: usize },
    #[error("the answer did not end after {bytes} bytes in {chunks} chunks")]
    TooLong { chunks: usize, bytes: usize },
    #[error("the bytes are not an answer of this protocol")]
    Garbage,
    #[error("the server failed in the middle of its answer: {message}")]
    Failed { message: String },
    #[error("the answer has no tokens")]
    Empty,
    #[error("the measurement was stopped")]
    Stopped,
}

/// One decoded answer. Times count from when the request was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Arrival of the response's header.
    pub head: Option<Duration>,
    pub status: u16,
    pub chunks: Vec<Chunk>,
    pub counts: ObservedCounts,
    pub finish: Option<String>,
    pub fault: Option<RequestFault>,
    /// Delay between the due time and the sending of the request.
    pub dispatch: Duration,
    /// Time to open the connection; None for a reused connection.
    pub connect: Option<Duration>,
}

/// Parses the recording of a chat answer or a completion.
pub fn timeline(exchange: &Exchange, protocol: Protocol) -> Timeline {
    let mut reading = Reading::new(protocol);
    let (status, head) = replay(exchange, |at, body| reading.push(at, body));
    reading.finish_last_piece();
    let mut timeline = Timeline {
        head,
        status,
        dispatch: exchange.sent.saturating_sub(exchange.sched),
        connect: exchange.connect,
        ..Timeline::default()
    };
    timeline.fault = fault(exchange, &timeline, &reading);
    let Reading { chunks, counts, finish, .. } = reading;
    Timeline { chunks, counts, finish, ..timeline }
}

/// Passes on the body of a recorded response, each read with its time since the request was sent, as far as the bytes are
/// HTTP. Returns the status and the time of the header.
fn replay(exchange: &Exchange, mut read: impl FnMut(Duration, &[u8])) -> (u16, Option<Duration>) {
    let (mut answer, mut unread, mut head) = (HttpResponse::expected(), BytesMut::new(), None);
    for (at, bytes) in exchange.recording.pieces() {
        unread.extend_from_slice(bytes);
        let at = at.saturating_sub(exchange.sent);
        let mut body = Vec::new();
        let taken = answer.push(&mut unread, |bytes| body.extend_from_slice(bytes));
        head = head.or((answer.status != 0).then_some(at));
        read(at, &body);
        if taken.is_err() {
            break;
        }
    }
    (answer.status, head)
}

/// # Errors
/// The response has no whole sound or transcript.
fn check_whole(exchange: &Exchange, status: u16) -> Result<(), RequestFault> {
    if exchange.end == End::Whole && status == 200 {
        return Ok(());
    }
    Err(timeline(exchange, Protocol::OpenAi).fault.unwrap_or(RequestFault::Garbage))
}

/// The first fault that applies. An earlier fault hides the later ones.
fn fault(exchange: &Exchange, timeline: &Timeline, reading: &Reading) -> Option<RequestFault> {
    let chunks = reading.chunks.len();
    match &exchange.end {
        End::Unreachable { cause } => {
            return Some(RequestFault::Unreachable { cause: cause.clone() });
        }
        End::Stopped => return Some(RequestFault::Stopped),
        End::Unreadable => return Some(RequestFault::Garbage),
        End::Silent => return Some(RequestFault::Silent { chunks }),
        End::TooSlow => return Some(RequestFault::TooSlow { chunks }),
        End::TooLong => {
            let bytes = exchange.recording.bytes.len();
            return Some(RequestFault::TooLong { chunks, bytes });
        }
        End::CutOff if timeline.status / 100 <= 2 => return Some(RequestFault::CutOff { chunks }),
        End::Whole | End::CutOff => {}
    }
    if timeline.status != 200 {
        return Some(RequestFault::Refused { status: timeline.status, message: reading.message() });
    }
    if let Some(message) = &reading.failed {
        return Some(RequestFault::Failed { message: message.clone() });
    }
    match (reading.has_garbage, chunks) {
        (true, _) => Some(RequestFault::Garbage),
        (false, 0) if !reading.is_answer => Some(RequestFault::Garbage),
        (false, 0) => Some(RequestFault::Empty),
        (false, _) if !reading.has_end => Some(RequestFault::CutOff { chunks }),
        (false, _) => None,
    }
}

/// The state of decoding one body.
#[derive(Debug)]
struct Reading {
    protocol: Protocol,
    pieces: Pieces,
    /// The beginning of the body, for error messages and for answers in one piece.
    beginning: Vec<u8>,
    chunks: Vec<Chunk>,
    counts: ObservedCounts,
    finish: Option<String>,
    /// Finds thinking tags in the text, for servers without a reasoning parser.
    text: ObservedText,
    /// The text began with a thinking tag, so white space before the tag is not part of the answer.
    has_mark: bool,
    failed: Option<String>,
    has_garbage: bool,
    /// At least one part could be parsed.
    is_answer: bool,
    /// The stream had its end marker.
    has_end: bool,
    at: Duration,
}

impl Reading {
    fn new(protocol: Protocol) -> Reading {
        let kind = match protocol {
            Protocol::OpenAi => PieceKind::Event,
            Protocol::Ollama => PieceKind::Line,
        };
        Reading {
            protocol,
            pieces: Pieces::new(kind, PIECE_BYTES_MAX),
            beginning: Vec::new(),
            chunks: Vec::new(),
            counts: ObservedCounts::default(),
            finish: None,
            text: ObservedText::default(),
            has_mark: false,
            failed: None,
            has_garbage: false,
            is_answer: false,
            has_end: false,
            at: Duration::ZERO,
        }
    }

    fn push(&mut self, at: Duration, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        self.at = at;
        let room = MESSAGE_BYTES_MAX.saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&body[..body.len().min(room)]);
        if self.pieces.push(body).is_err() {
            self.has_garbage = true;
            return;
        }
        let mut first_of_read = true;
        while let Some(piece) = self.pieces.next_piece() {
            let before = self.chunks.len();
            self.piece(&piece, first_of_read);
            first_of_read &= self.chunks.len() == before;
        }
    }

    /// Parses a last piece without its end, or an answer that was not streamed.
    fn finish_last_piece(&mut self) {
        if let Some(piece) = self.pieces.rest() {
            self.piece(&piece, true);
        }
        let is_whole = !self.is_answer && self.beginning.trim_ascii_start().starts_with(b"{");
        if is_whole && self.protocol == Protocol::OpenAi {
            let text = String::from_utf8_lossy(&self.beginning).into_owned();
            self.piece(&text, true);
        }
        // White space without any text after it belongs to the answer.
        self.settle();
    }

    fn piece(&mut self, piece: &str, is_first_of_read: bool) {
        let observed = match self.protocol {
            Protocol::OpenAi => observe_openai(piece),
            Protocol::Ollama => observe_ollama(piece),
        };
        match observed {
            Observed::Done => (self.has_end, self.is_answer) = (true, true),
            Observed::Malformed => self.has_garbage = true,
            Observed::Failed { message } => self.failed = Some(message),
            Observed::Said(part) => self.add_part(part, is_first_of_read),
        }
    }

    fn add_part(&mut self, part: ObservedPart, is_first_of_read: bool) {
        self.is_answer = true;
        self.counts = part.counts.or(self.counts);
        self.has_end |= part.is_last || part.finish.is_some();
        self.finish = part.finish.or(self.finish.take());
        let (thought, content, marks) = self.text(&part.text, part.content);
        let kinds = [
            (ChunkKind::Mark, marks),
            (ChunkKind::Thought, part.thought + thought),
            (ChunkKind::Content, content),
            (ChunkKind::Call, part.calls),
        ];
        let mut is_coalesced = !is_first_of_read;
        for (kind, bytes) in kinds.into_iter().filter(|(_, bytes)| *bytes > 0) {
            self.chunks.push(Chunk { at: self.at, kind, bytes, is_coalesced });
            is_coalesced = true;
        }
    }

    /// Returns the bytes of thinking, of the answer and of marks. The part of `content` outside `text` belongs to the answer.
    fn text(&mut self, text: &str, content: usize) -> (usize, usize, usize) {
        if text.is_empty() {
            return (0, content, 0);
        }
        let outside = content - text.len();
        match self.text.take(text) {
            TextKind::Said { thought, answer } => {
                self.has_mark |= thought > 0;
                if answer > 0 {
                    self.settle();
                }
                (thought, answer + outside, 0)
            }
            TextKind::Mark => {
                self.has_mark = true;
                (0, outside, text.len())
            }
            TextKind::Undecided => (0, outside, text.len()),
        }
    }

    /// Without a tag, everything that could have been a mark belongs to the answer.
    fn settle(&mut self) {
        if !self.has_mark {
            let marks = self.chunks.iter_mut().filter(|chunk| chunk.kind == ChunkKind::Mark);
            marks.for_each(|chunk| chunk.kind = ChunkKind::Content);
        }
    }

    /// The message of an error response.
    fn message(&self) -> String {
        let text = String::from_utf8_lossy(&self.beginning);
        match observe_openai(&text) {
            Observed::Failed { message } => message,
            _ => text.trim().chars().take(200).collect(),
        }
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
