//! Answers one request: writes each part when it is due, and records when that was.
//! Due times are absolute, so a late write does not delay the writes after it.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::{TranscriptSummary, locked};
use hob_wire::{transcript_delta, transcript_done};
use serde_json::json;

use super::Shared;
use super::faults::{FaultyAnswer, MockFault, Step};
use super::protocol::Protocol;
use super::request::MockRequest;
use super::schedule::{AnswerShape, Part, ScheduledPart, schedule, with_counts_last};
use super::script::{AudioDelivery, Script};
use super::slots::MockSlot;
use super::sound;
use super::truth::{MockWrite, Truth};
use crate::socket::{Socket, is_pause};
use crate::timeline::SoundFormat;

/// Pause between two writes of which the first one ends within a character.
const CUT_PAUSE: Duration = Duration::from_millis(1);
/// A token takes this many times longer with a context that does not fit into memory.
const SPILLED_TIMES: f64 = 4.0;
const LAST_CHUNK: &str = "0\r\n\r\n";

/// One request while it is answered.
#[derive(Debug)]
pub(super) struct MockExchange<'a> {
    pub(super) shared: &'a Shared,
    pub(super) script: &'a Script,
    pub(super) socket: &'a mut Socket,
    /// When the request was read to its end.
    pub(super) received: Instant,
    /// When the request got a slot; parts are due after this.
    pub(super) started: Instant,
    pub(super) truth: Truth,
}

/// What happens to the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    Close,
    /// The whole server ends, because its memory is full.
    Die,
}

/// A stream's writes, prepared so that nothing is formatted between two due times.
#[derive(Debug, Default)]
struct PreparedStream {
    writes: Vec<PreparedWrite>,
    /// When the connection ends in the middle of the answer.
    cut_at: Option<Duration>,
}

#[derive(Debug)]
struct PreparedWrite {
    due: Duration,
    bytes: Vec<u8>,
    tokens: u32,
}

/// The stream that was prepared last. A load of equal requests then costs the server almost nothing.
#[derive(Debug, Default)]
pub(super) struct LastStream(Mutex<Option<(StreamKey, Arc<PreparedStream>)>>);

#[derive(Debug, PartialEq)]
struct StreamKey {
    script: Script,
    protocol: Protocol,
    shape: AnswerShape,
}

impl LastStream {
    fn prepare(
        &self,
        script: &Script,
        protocol: Protocol,
        shape: AnswerShape,
    ) -> Arc<PreparedStream> {
        let key = StreamKey { script: script.clone(), protocol, shape };
        let mut last = locked(&self.0);
        if let Some((_, stream)) = last.as_ref().filter(|(known, _)| *known == key) {
            return Arc::clone(stream);
        }
        let stream = PreparedStream::new(script, protocol, &parts(script, protocol, shape));
        let stream = Arc::new(stream);
        *last = Some((key, Arc::clone(&stream)));
        stream
    }
}

impl PreparedStream {
    fn new(script: &Script, protocol: Protocol, parts: &[ScheduledPart]) -> PreparedStream {
        let mut stream = PreparedStream::default();
        let mut bytes = chunked_head(protocol.content_type());
        let (mut due, mut chunks, mut tokens) = (Duration::ZERO, 0, 0);
        for ScheduledPart { at, part } in parts {
            if *part == Part::Drop {
                stream.cut_at = Some(*at);
                return stream;
            }
            push_chunk(&mut bytes, protocol.part(*part).as_bytes());
            due = *at;
            if let Part::Tokens { count, .. } = part {
                (chunks, tokens) = (chunks + 1, tokens + count);
                if chunks % script.coalesce == 0 {
                    let bytes = std::mem::take(&mut bytes);
                    stream.writes.push(PreparedWrite { due, bytes, tokens });
                    tokens = 0;
                }
            }
        }
        push_chunk(&mut bytes, protocol.end().as_bytes());
        bytes.extend_from_slice(LAST_CHUNK.as_bytes());
        stream.writes.push(PreparedWrite { due, bytes, tokens });
        stream
    }
}

fn parts(script: &Script, protocol: Protocol, shape: AnswerShape) -> Vec<ScheduledPart> {
    let parts = schedule(script, shape);
    match protocol {
        Protocol::OllamaChat | Protocol::OllamaGenerate => with_counts_last(parts),
        Protocol::Chat | Protocol::Completions => parts,
    }
}

impl MockExchange<'_> {
    /// # Errors
    /// The client has left.
    pub(super) fn chat(
        &mut self,
        request: &MockRequest,
        protocol: Protocol,
        slot: &MockSlot<'_>,
    ) -> io::Result<After> {
        let mut words = request.words();
        let tokens = request.tokens_max().unwrap_or(self.script.tokens);
        if self.script.truncates {
            words.truncate(self.script.context_tokens.saturating_sub(tokens) as usize);
        }
        let cached = self.script.cache.then(|| slot.cached(&words));
        let prompt_tokens = u32::try_from(words.len()).unwrap_or(u32::MAX);
        (self.truth.prompt_tokens, self.truth.cached_tokens) = (prompt_tokens, cached);
        if prompt_tokens.saturating_add(tokens) > self.script.context_tokens {
            let context = self.script.context_tokens;
            let message =
                format!("{prompt_tokens} tokens and {tokens} more do not fit into {context}");
            return self.reject(400, &message);
        }
        let shape = AnswerShape {
            tokens,
            prompt_tokens,
            cached_tokens: cached,
            thinks: !request.turns_thinking_off(self.script.switch),
            others: slot.others,
            is_first: slot.is_first,
        };
        let out_of_memory_at = self.script.out_of_memory_at(prompt_tokens, tokens);
        let is_spilled = self.script.context_tokens > self.script.spill_max;
        let script = Script {
            drop_at: out_of_memory_at.or(self.script.drop_at),
            itl_ms: self.script.itl_ms * if is_spilled { SPILLED_TIMES } else { 1.0 },
            ..self.script.clone()
        };
        let after = if request.streams() {
            let stream = self.shared.last_stream.prepare(&script, protocol, shape);
            self.stream(&stream)?
        } else {
            self.whole(protocol, &parts(&script, protocol, shape))?
        };
        Ok(if out_of_memory_at.is_some() { After::Die } else { after })
    }

    fn stream(&mut self, stream: &PreparedStream) -> io::Result<After> {
        for write in &stream.writes {
            self.write(write.due, &write.bytes, write.tokens)?;
        }
        match stream.cut_at {
            Some(at) => {
                self.wait(at);
                self.cut()
            }
            None => Ok(After::Keep),
        }
    }

    fn whole(&mut self, protocol: Protocol, scheduled: &[ScheduledPart]) -> io::Result<After> {
        let parts: Vec<Part> = scheduled.iter().map(|part| part.part).collect();
        if parts.contains(&Part::Drop) {
            return self.cut();
        }
        let tokens = parts.iter().map(|part| match part {
            Part::Tokens { count, .. } => *count,
            _ => 0,
        });
        let due = scheduled.last().map_or(Duration::ZERO, |part| part.at);
        let bytes = whole_answer("200 OK", &protocol.whole(&parts));
        self.write(due, &bytes, tokens.sum())?;
        Ok(After::Keep)
    }

    /// # Errors
    /// The client has left.
    pub(super) fn speech(
        &mut self,
        request: &MockRequest,
        slot: &MockSlot<'_>,
    ) -> io::Result<After> {
        let name = match request.text("response_format") {
            "" => "mp3",
            name => name,
        };
        let Some(format) = SoundFormat::by_name(name) else {
            return self.reject(400, "response_format must be pcm, wav or mp3");
        };
        let text = request.text("input");
        let whole = Script { audio: AudioDelivery::HoldAll, ..self.script.clone() };
        let script = if request.wants_whole() { &whole } else { self.script };
        let pieces = sound::pieces(script, text, slot.is_first);
        let mut bytes = chunked_head(sound::content_type(format));
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.iter().enumerate() {
            push_chunk(&mut bytes, &sound::bytes(format, piece, self.script));
            if number == last {
                bytes.extend_from_slice(LAST_CHUNK.as_bytes());
            }
            self.write(piece.at, &bytes, 0)?;
            bytes.clear();
        }
        Ok(After::Keep)
    }

    /// The script's words: the first after `ttft_ms`, each further one `itl_ms` later.
    ///
    /// # Errors
    /// The client has left.
    pub(super) fn transcript(
        &mut self,
        request: &MockRequest,
        slot: &MockSlot<'_>,
    ) -> io::Result<After> {
        let script = self.script;
        let text = script.heard.replace('_', " ");
        let cold_ms = if slot.is_first { script.cold_ms } else { 0.0 };
        let due = |word: usize| {
            let ms = script.ttft_ms + cold_ms + script.itl_ms * word as f64;
            Duration::from_secs_f64(ms / 1e3)
        };
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        let last = due(words.len().saturating_sub(1));
        if !request.streams() {
            let body = json!({ "text": text }).to_string();
            self.write(last, &whole_answer("200 OK", &body), 1)?;
            return Ok(After::Keep);
        }
        let mut bytes = chunked_head("text/event-stream");
        for (at, word) in words.iter().enumerate() {
            push_chunk(&mut bytes, transcript_delta(word).as_bytes());
            self.write(due(at), &std::mem::take(&mut bytes), 1)?;
        }
        push_chunk(&mut bytes, transcript_done(&text, &TranscriptSummary::default()).as_bytes());
        bytes.extend_from_slice(LAST_CHUNK.as_bytes());
        self.write(last, &bytes, 0)?;
        Ok(After::Keep)
    }

    /// Answers a chat request as the fault does.
    ///
    /// # Errors
    /// The client has left.
    pub(super) fn fault(&mut self, fault: MockFault, request: &MockRequest) -> io::Result<After> {
        let played = match fault.answer(&request.body, request.streams()) {
            FaultyAnswer::Silence => return self.hang(),
            FaultyAnswer::Whole { status, header, body } => {
                // The fault's header follows the status line, whose reason phrase no client reads.
                let status = format!("{status} Mock\r\n{}", header.trim_end());
                self.write(Duration::ZERO, &whole_answer(status.trim_end(), &body), 0)
                    .map(|()| After::Keep)
            }
            FaultyAnswer::Stream(steps) => self.play(&steps),
        };
        if played.is_err() {
            self.shared.counts.add_gone();
        }
        played
    }

    fn play(&mut self, steps: &[Step]) -> io::Result<After> {
        self.socket.write_all(&chunked_head("text/event-stream"))?;
        for step in steps {
            match step {
                Step::Send(bytes) => self.send_chunk(&chunk(bytes))?,
                Step::Pause(time) => thread::sleep(*time),
                Step::Cut => return self.cut(),
                Step::Repeat(bytes) => {
                    let chunk = chunk(bytes);
                    while !self.shared.is_over() {
                        self.send_chunk(&chunk)?;
                    }
                }
                Step::Hang => return self.hang(),
            }
        }
        self.socket.write_all(LAST_CHUNK.as_bytes())?;
        Ok(After::Keep)
    }

    fn send_chunk(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.socket.write_all(chunk)?;
        self.shared.counts.add_bytes(chunk.len());
        Ok(())
    }

    /// Writes nothing more until the client leaves or the server ends.
    pub(super) fn hang(&mut self) -> io::Result<After> {
        let mut byte = [0; 1];
        while !self.shared.is_over() {
            match self.socket.read(&mut byte) {
                Err(error) if is_pause(&error) => {}
                _ => {
                    self.shared.counts.add_gone();
                    break;
                }
            }
        }
        Ok(After::Close)
    }

    /// Answers with an error status.
    pub(super) fn reject(&mut self, status: u16, message: &str) -> io::Result<After> {
        let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
        let error = json!({ "message": message, "type": kind, "code": status });
        let body = json!({ "error": error }).to_string();
        let bytes = whole_answer(&format!("{status} Refused\r\nretry-after: 1"), &body);
        self.write(Duration::ZERO, &bytes, 0)?;
        Ok(After::Keep)
    }

    /// Writes the head of an answer, then ends the connection.
    pub(super) fn crash(&mut self) -> io::Result<After> {
        self.write(Duration::ZERO, &chunked_head("text/event-stream"), 0)?;
        self.cut()
    }

    /// Writes a complete stream whose events cannot be parsed.
    pub(super) fn garbage(&mut self) -> io::Result<After> {
        let mut bytes = chunked_head("text/event-stream");
        push_chunk(
            &mut bytes,
            b"data: {\"choices\":[{\"delta\":{\"cont\n\ndata: \xFF\xFE<html>\n\n",
        );
        bytes.extend_from_slice(LAST_CHUNK.as_bytes());
        self.write(Duration::ZERO, &bytes, 0)?;
        Ok(After::Keep)
    }

    fn cut(&mut self) -> io::Result<After> {
        self.socket.stream().shutdown(Shutdown::Both)?;
        Ok(After::Close)
    }

    /// Writes at the due time, and records when that was.
    fn write(&mut self, due: Duration, bytes: &[u8], tokens: u32) -> io::Result<()> {
        self.wait(due);
        let at_us = micros(self.received.elapsed());
        match self.cut_inside(bytes) {
            Some((before, after)) => {
                self.socket.write_all(before)?;
                thread::sleep(CUT_PAUSE);
                self.socket.write_all(after)?;
            }
            None => self.socket.write_all(bytes)?,
        }
        let due_us = micros(due + (self.started - self.received));
        self.truth.writes.push(MockWrite { at_us, due_us, tokens, bytes: bytes.len() });
        Ok(())
    }

    fn wait(&self, due: Duration) {
        let left = (self.started + due).saturating_duration_since(Instant::now());
        if !left.is_zero() {
            thread::sleep(left);
        }
    }

    fn cut_inside<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        let continuation = bytes.iter().position(|byte| byte & 0b1100_0000 == 0b1000_0000);
        continuation.filter(|_| self.script.split_utf8).map(|at| bytes.split_at(at))
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn chunked_head(content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n")
        .into_bytes()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn push_chunk(answer: &mut Vec<u8>, bytes: &[u8]) {
    // An empty chunk would end the body.
    if !bytes.is_empty() {
        answer.extend_from_slice(&chunk(bytes));
    }
}

/// An answer in one piece.
pub(super) fn whole_answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let kind =
        if status.contains("content-type:") { "" } else { "content-type: application/json\r\n" };
    format!("HTTP/1.1 {status}\r\n{kind}content-length: {length}\r\n\r\n{body}").into_bytes()
}
