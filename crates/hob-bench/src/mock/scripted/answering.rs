//! One request answered: every part is written when it is due, and when it was is remembered.
//! Due times are absolute, so that a late write does not delay those after it.

use std::io::{self, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use super::cues::{Cue, Part, Wish, cues, ended_at_once};
use super::place::Place;
use super::render::Protocol;
use super::request::Request;
use super::script::{AudioComes, Script};
use super::sound::{self, Format};
use super::truth::{Truth, Written};
use crate::socket::Socket;

/// Between the two halves of a character that is cut.
const CUT_PAUSE: Duration = Duration::from_millis(1);
/// A token takes so much longer once memory has spilled.
const SPILLED_TIMES: f64 = 4.0;
const LAST_CHUNK: &str = "0\r\n\r\n";

/// An answer on its way.
#[derive(Debug)]
pub(super) struct Answering<'a> {
    pub(super) script: &'a Script,
    pub(super) socket: &'a mut Socket,
    /// When the request was read to its end.
    pub(super) received: Instant,
    /// When a place was had; parts are due after this.
    pub(super) begun: Instant,
    pub(super) truth: Truth,
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    Close,
    /// The whole server ends, for want of memory.
    Die,
}

impl Answering<'_> {
    /// # Errors
    /// The client has left.
    pub(super) fn chat(
        &mut self,
        request: &Request,
        protocol: Protocol,
        place: &Place<'_>,
    ) -> io::Result<After> {
        let mut words = request.words();
        let tokens = request.tokens_max().unwrap_or(self.script.tokens);
        if self.script.limits.truncates {
            words.truncate(self.script.context_tokens.saturating_sub(tokens) as usize);
        }
        let cached = self.script.cache.then(|| place.cached(&words));
        let prompt_tokens = u32::try_from(words.len()).unwrap_or(u32::MAX);
        (self.truth.prompt_tokens, self.truth.cached_tokens) = (prompt_tokens, cached);
        if prompt_tokens.saturating_add(tokens) > self.script.context_tokens {
            let context = self.script.context_tokens;
            let said =
                format!("{prompt_tokens} tokens and {tokens} more do not fit into {context}");
            return self.refuse(400, &said);
        }
        let wish = Wish {
            tokens,
            prompt_tokens,
            cached_tokens: cached,
            thinks: !request.turns_off(self.script.switch),
            beside: place.beside,
            is_first: place.is_first,
        };
        let dies_at = self.script.limits.dies_at(prompt_tokens, tokens);
        let is_spilled = self.script.context_tokens > self.script.limits.spill_max;
        let script = Script {
            drop_at: dies_at.or(self.script.drop_at),
            itl_ms: self.script.itl_ms * if is_spilled { SPILLED_TIMES } else { 1.0 },
            ..self.script.clone()
        };
        let mut cues = cues(&script, wish);
        if matches!(protocol, Protocol::OllamaChat | Protocol::OllamaGenerate) {
            cues = ended_at_once(cues);
        }
        let after = if request.streams() {
            self.stream(protocol, &cues)?
        } else {
            self.whole(protocol, &cues)?
        };
        Ok(if dies_at.is_some() { After::Die } else { after })
    }

    fn stream(&mut self, protocol: Protocol, cues: &[Cue]) -> io::Result<After> {
        let mut bytes = chunked_head(protocol.content_type());
        let (mut due, mut chunks, mut tokens) = (Duration::ZERO, 0, 0);
        for cue in cues {
            if cue.part == Part::Drop {
                self.wait(cue.at);
                return self.cut();
            }
            push_chunk(&mut bytes, protocol.part(cue.part).as_bytes());
            due = cue.at;
            if let Part::Tokens { count, .. } = cue.part {
                (chunks, tokens) = (chunks + 1, tokens + count);
                if chunks % self.script.coalesce == 0 {
                    self.write(due, &bytes, tokens)?;
                    bytes.clear();
                    tokens = 0;
                }
            }
        }
        push_chunk(&mut bytes, protocol.end().as_bytes());
        bytes.extend_from_slice(LAST_CHUNK.as_bytes());
        self.write(due, &bytes, tokens)?;
        Ok(After::Keep)
    }

    fn whole(&mut self, protocol: Protocol, cues: &[Cue]) -> io::Result<After> {
        let parts: Vec<Part> = cues.iter().map(|cue| cue.part).collect();
        if parts.contains(&Part::Drop) {
            return self.cut();
        }
        let tokens = parts.iter().map(|part| match part {
            Part::Tokens { count, .. } => *count,
            _ => 0,
        });
        let due = cues.last().map_or(Duration::ZERO, |cue| cue.at);
        let bytes = whole("200 OK", &protocol.whole(&parts));
        self.write(due, &bytes, tokens.sum())?;
        Ok(After::Keep)
    }

    /// # Errors
    /// The client has left.
    pub(super) fn speech(&mut self, request: &Request, place: &Place<'_>) -> io::Result<After> {
        let named = match request.text("response_format") {
            "" => "mp3",
            name => name,
        };
        let Some(format) = Format::named(named) else {
            return self.refuse(400, "there are pcm, wav and mp3");
        };
        let text = request.text("input");
        let whole = Script { audio: AudioComes::HoldAll, ..self.script.clone() };
        let script = if request.wants_whole() { &whole } else { self.script };
        let pieces = sound::pieces(script, text, place.is_first);
        let mut bytes = chunked_head(format.content_type());
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

    /// What a server says that does not answer.
    pub(super) fn refuse(&mut self, status: u16, said: &str) -> io::Result<After> {
        let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
        let body = format!(r#"{{"error":{{"message":"{said}","type":"{kind}","code":{status}}}}}"#);
        let bytes = whole(&format!("{status} Refused\r\nretry-after: 1"), &body);
        self.write(Duration::ZERO, &bytes, 0)?;
        Ok(After::Keep)
    }

    /// The head of an answer, and then the end of the connection.
    pub(super) fn crash(&mut self) -> io::Result<After> {
        self.write(Duration::ZERO, &chunked_head("text/event-stream"), 0)?;
        self.cut()
    }

    /// An answer that is whole and says nothing that can be read.
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

    /// When it is due, and remembers when that was.
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
        let due_us = micros(due + (self.begun - self.received));
        self.truth.writes.push(Written { at_us, due_us, tokens, bytes: bytes.len() });
        Ok(())
    }

    fn wait(&self, due: Duration) {
        let left = (self.begun + due).saturating_duration_since(Instant::now());
        if !left.is_zero() {
            thread::sleep(left);
        }
    }

    fn cut_inside<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        let follows = bytes.iter().position(|byte| byte & 0b1100_0000 == 0b1000_0000);
        follows.filter(|_| self.script.split_utf8).map(|at| bytes.split_at(at))
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn chunked_head(content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n")
        .into_bytes()
}

fn push_chunk(bytes: &mut Vec<u8>, chunk: &[u8]) {
    // A chunk of no bytes would be the end.
    if chunk.is_empty() {
        return;
    }
    bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
    bytes.extend_from_slice(chunk);
    bytes.extend_from_slice(b"\r\n");
}

/// An answer in one piece.
pub(super) fn whole(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}
