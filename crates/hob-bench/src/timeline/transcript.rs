//! The recording of a transcript: when its first words and its end arrived, and what it says.
//! Whether it came in pieces is seen from the body: some servers send a whole one whatever the request asks for.

use std::time::Duration;

use bytes::BytesMut;
use hob_core::{Fault, TranscriptEvent};
use hob_wire::{Misread, PieceKind, Pieces, TranscriptReader, parse_transcript};

use super::{PIECE_BYTES_MAX, Protocol, RequestFault, timeline};
use crate::drive::{End, Exchange};
use crate::http_response::HttpResponse;

/// One transcript. Times are milliseconds since the last bytes of the sound were sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranscriptTimeline {
    pub ttfb_ms: f64,
    /// None without words.
    pub first_text_ms: Option<f64>,
    /// When the text was complete.
    pub final_text_ms: f64,
    pub text: String,
}

/// Parses the recording of a transcript in JSON or in events.
///
/// # Errors
/// The request failed, or its answer is not a transcript.
pub fn transcript(exchange: &Exchange) -> Result<TranscriptTimeline, RequestFault> {
    let (mut answer, mut unread) = (HttpResponse::expected(), BytesMut::new());
    let mut reading = Reading::default();
    let mut head = None;
    for (at, bytes) in exchange.recording.pieces() {
        unread.extend_from_slice(bytes);
        let at = at.saturating_sub(exchange.sent);
        let mut body = Vec::new();
        let taken = answer.take(&mut unread, |bytes| body.extend_from_slice(bytes));
        if answer.status != 0 {
            head = head.or(Some(at));
        }
        if answer.status == 200 {
            reading.take(at, &body)?;
        }
        if taken.is_err() {
            break;
        }
    }
    if exchange.end != End::Whole || answer.status != 200 {
        let fault = timeline(exchange, Protocol::OpenAi).fault;
        return Err(fault.unwrap_or(RequestFault::Garbage));
    }
    let mut timeline = reading.end()?;
    timeline.ttfb_ms = head.map_or(0.0, millis);
    Ok(timeline)
}

#[derive(Debug)]
struct Reading {
    /// A body that is not events.
    whole: Option<Vec<u8>>,
    pieces: Pieces,
    reader: TranscriptReader,
    has_begun: bool,
    has_event: bool,
    /// When the last bytes arrived.
    at: Duration,
    timeline: TranscriptTimeline,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            whole: None,
            pieces: Pieces::new(PieceKind::Event, PIECE_BYTES_MAX),
            reader: TranscriptReader::default(),
            has_begun: false,
            has_event: false,
            at: Duration::ZERO,
            timeline: TranscriptTimeline::default(),
        }
    }
}

impl Reading {
    fn take(&mut self, at: Duration, body: &[u8]) -> Result<(), RequestFault> {
        if body.is_empty() {
            return Ok(());
        }
        self.at = at;
        if !self.has_begun {
            self.has_begun = true;
            self.whole = body.trim_ascii_start().starts_with(b"{").then(Vec::new);
        }
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(body);
            return Ok(());
        }
        self.pieces.push(body).map_err(|_| RequestFault::Garbage)?;
        while let Some(piece) = self.pieces.next_piece() {
            self.event(&piece)?;
        }
        Ok(())
    }

    fn event(&mut self, piece: &str) -> Result<(), RequestFault> {
        self.has_event = true;
        let mut events = Vec::new();
        match self.reader.read(piece.trim(), &mut events) {
            Ok(()) => self.add(events),
            Err(Misread::Malformed) => return Err(RequestFault::Garbage),
            Err(Misread::Failed(fault)) => return Err(failed(&fault)),
        }
        Ok(())
    }

    fn add(&mut self, events: Vec<TranscriptEvent>) {
        let at_ms = millis(self.at);
        for event in events {
            match event {
                TranscriptEvent::Delta(text) => {
                    if !text.trim().is_empty() {
                        self.timeline.first_text_ms.get_or_insert(at_ms);
                    }
                    self.timeline.text.push_str(&text);
                }
                TranscriptEvent::Done(_) => self.timeline.final_text_ms = at_ms,
                _ => {}
            }
        }
    }

    fn end(mut self) -> Result<TranscriptTimeline, RequestFault> {
        let mut events = Vec::new();
        if let Some(whole) = self.whole.take() {
            let parsed = parse_transcript(&String::from_utf8_lossy(&whole));
            events = parsed.map_err(|fault| failed(&fault))?;
        } else {
            if let Some(piece) = self.pieces.rest() {
                self.event(&piece)?;
            }
            if !self.has_event {
                return Err(RequestFault::Garbage);
            }
            self.reader.end(&mut events).map_err(|fault| failed(&fault))?;
        }
        self.add(events);
        Ok(self.timeline)
    }
}

fn failed(fault: &Fault) -> RequestFault {
    match fault {
        Fault::Nonsense { .. } => RequestFault::Garbage,
        fault => RequestFault::Failed { message: fault.to_string() },
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Recording;

    /// A transcript whose parts arrive 100 ms apart, the first 150 ms after the request.
    fn read(parts: &[&str]) -> Result<TranscriptTimeline, RequestFault> {
        let ms = Duration::from_millis;
        let mut recording = Recording::default();
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        recording.push(ms(60), head.as_bytes());
        for (number, part) in (0..).zip(parts) {
            recording.push(ms(160 + 100 * number), part.as_bytes());
        }
        let (sched, sent, end) = (ms(0), ms(10), End::Whole);
        transcript(&Exchange { job: 0, sched, connect: None, sent, recording, end })
    }

    fn heard(
        first: Option<f64>,
        last: f64,
        text: &str,
    ) -> Result<TranscriptTimeline, RequestFault> {
        let text = text.to_owned();
        Ok(TranscriptTimeline { ttfb_ms: 50.0, first_text_ms: first, final_text_ms: last, text })
    }

    #[test]
    fn first_and_last_words_are_timed() {
        let delta = |text: &str| {
            format!("data: {{\"type\":\"transcript.text.delta\",\"delta\":\"{text}\"}}\n\n")
        };
        let done = "data: {\"type\":\"transcript.text.done\",\"text\":\"\"}\n\n";
        let failed = "data: {\"error\":{\"message\":\"full\"}}\n\n";
        let (one, two) = (delta("one"), delta(" two"));
        let rows = [
            (vec![&*one, &*two, done], heard(Some(150.0), 350.0, "one two")),
            (vec![": wait\n\n", &*one, done], heard(Some(250.0), 350.0, "one")),
            (vec!["{\"text\":", "\"one two\"}"], heard(Some(250.0), 250.0, "one two")),
            (vec!["{\"text\":\"\"}"], heard(None, 150.0, "")),
            (vec![done], heard(None, 150.0, "")),
            (vec!["data: {\"text\":\"one\"}\n\n"], heard(Some(150.0), 150.0, "one")),
            (vec!["<html>"], Err(RequestFault::Garbage)),
            (vec!["{\"words\":1}"], Err(RequestFault::Garbage)),
            (vec![], Err(RequestFault::Garbage)),
        ];
        for (parts, expected) in rows {
            assert_eq!(read(&parts), expected, "{parts:?}");
        }
        for parts in [vec![&*one], vec![&*one, failed]] {
            let fault = read(&parts);
            assert!(matches!(fault, Err(RequestFault::Failed { .. })), "{fault:?}");
        }
    }
}
