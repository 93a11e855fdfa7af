//! The recording of a transcript: when its first words and its end arrived, and what it says.
//! Whether it came in pieces is seen from the body: some servers send a whole one whatever the request asks for.

use std::time::Duration;

use hob_core::{Fault, TranscriptEvent};
use hob_wire::{PieceError, PieceKind, Pieces, TranscriptReader, parse_transcript};

use super::{PIECE_BYTES_MAX, RequestFault, check_whole, millis, replay};
use crate::drive::Exchange;

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
    let (mut pieces, mut body) = (Pieces::new(PieceKind::Event, PIECE_BYTES_MAX), Vec::new());
    // Events of a stream, each with the time when it was whole.
    let mut events: Vec<(Duration, String)> = Vec::new();
    let (mut last, mut is_too_long) = (Duration::ZERO, false);
    let (status, head) = replay(exchange, |at, bytes| {
        last = at;
        body.extend_from_slice(bytes);
        is_too_long = is_too_long || pieces.push(bytes).is_err();
        events.extend(std::iter::from_fn(|| pieces.next_piece()).map(|piece| (at, piece)));
    });
    events.extend(pieces.rest().map(|piece| (last, piece)));
    check_whole(exchange, status)?;
    let said = if events.is_empty() {
        let parsed = parse_transcript(&String::from_utf8_lossy(&body));
        let parsed = parsed.map_err(|fault| failed(&fault))?;
        parsed.into_iter().map(|event| (last, event)).collect()
    } else {
        streamed(&events)?
    };
    Ok(TranscriptTimeline { ttfb_ms: head.map_or(0.0, millis), ..timed(said) })
}

fn streamed(
    events: &[(Duration, String)],
) -> Result<Vec<(Duration, TranscriptEvent)>, RequestFault> {
    let (mut reader, mut said) = (TranscriptReader::default(), Vec::new());
    let mut at = Duration::ZERO;
    for (when, event) in events {
        let mut parsed = Vec::new();
        reader.read(event.trim(), &mut parsed).map_err(|misread| match misread {
            PieceError::Malformed => RequestFault::Garbage,
            PieceError::Failed(fault) => failed(&fault),
        })?;
        at = *when;
        said.extend(parsed.into_iter().map(|event| (at, event)));
    }
    let mut rest = Vec::new();
    reader.end(&mut rest).map_err(|fault| failed(&fault))?;
    said.extend(rest.into_iter().map(|event| (at, event)));
    Ok(said)
}

fn timed(said: Vec<(Duration, TranscriptEvent)>) -> TranscriptTimeline {
    let mut timeline = TranscriptTimeline::default();
    for (at, event) in said {
        match event {
            TranscriptEvent::Delta(text) => {
                if !text.trim().is_empty() {
                    timeline.first_text_ms.get_or_insert(millis(at));
                }
                timeline.text.push_str(&text);
            }
            TranscriptEvent::Done(_) => timeline.final_text_ms = millis(at),
            _ => {}
        }
    }
    timeline
}

fn failed(fault: &Fault) -> RequestFault {
    match fault {
        Fault::InvalidAnswer { .. } => RequestFault::Garbage,
        fault => RequestFault::Failed { message: fault.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{End, Recording};

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
