//! One spoken answer on the server's side: text goes out as it comes, frames come in as events.
//! All of it happens while the stream is polled; dropping it cancels.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream};
use futures::{FutureExt, StreamExt};
use hob_core::{ModelError, SpeechEvent};
use tokio::sync::mpsc;

use super::protocol::{SpeechOrder, SpeechReport, TEXT_BYTES_MAX};
use crate::frame::Frame;
use crate::supervisor::cut_error;
use crate::supervisor::session::Ticket;
use crate::worker::protocol::{Failure, Report};

pub(super) struct Answer {
    engine: &'static str,
    /// None once the answer is over.
    ticket: Option<Ticket>,
    /// Sends the text; none when all of it is sent.
    sending: Option<BoxFuture<'static, Result<(), ModelError>>>,
    /// What came while nothing but the start was waited for.
    early: Option<Heard>,
}

/// What a frame means to whoever listens.
enum Heard {
    /// The worker has begun with it.
    Started,
    Event(SpeechEvent),
    Done,
}

impl Answer {
    pub(super) fn new(
        engine: &'static str,
        ticket: Ticket,
        text: BoxStream<'static, String>,
        chars_max: usize,
    ) -> Answer {
        let sending = send_text(ticket.outgoing(), ticket.stream, text, chars_max);
        Answer { engine, ticket: Some(ticket), sending: Some(sending.boxed()), early: None }
    }

    /// Sends the text, and resolves when the worker begins with it: others may be in line before it.
    pub(super) async fn started(&mut self) -> Result<(), ModelError> {
        poll_fn(|cx| {
            self.poll_sending(cx)?;
            self.poll_heard(cx).map_ok(|heard| self.early = Some(heard))
        })
        .await
    }

    fn poll_sending(&mut self, cx: &mut Context<'_>) -> Result<(), ModelError> {
        if let Some(sending) = &mut self.sending
            && let Poll::Ready(sent) = sending.poll_unpin(cx)
        {
            self.sending = None;
            return sent;
        }
        Ok(())
    }

    fn poll_heard(&mut self, cx: &mut Context<'_>) -> Poll<Result<Heard, ModelError>> {
        if let Some(early) = self.early.take() {
            return Poll::Ready(Ok(early));
        }
        let Some(ticket) = &mut self.ticket else {
            return Poll::Ready(Ok(Heard::Done));
        };
        let engine = self.engine;
        ticket.poll_frame(cx).map(|frame| {
            let heard = heard(engine, &frame.map_err(|cut| cut_error(engine, cut))?)?;
            if let Heard::Event(SpeechEvent::Audio(samples)) = &heard {
                ticket.credit(samples.len() as u32);
            }
            Ok(heard)
        })
    }

    fn end(&mut self) {
        self.ticket = None;
        self.sending = None;
    }
}

impl Stream for Answer {
    type Item = Result<SpeechEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(error) = self.poll_sending(cx) {
            self.end();
            return Poll::Ready(Some(Err(error)));
        }
        loop {
            return Poll::Ready(match ready!(self.poll_heard(cx)) {
                Ok(Heard::Started) => continue,
                Ok(Heard::Event(event)) => Some(Ok(event)),
                Ok(Heard::Done) => {
                    self.end();
                    None
                }
                Err(error) => {
                    self.end();
                    Some(Err(error))
                }
            });
        }
    }
}

/// Sends `text` in pieces, and its end. A worker that is gone is not this one's to report.
async fn send_text(
    outgoing: mpsc::Sender<Frame>,
    stream: u32,
    mut text: BoxStream<'static, String>,
    chars_max: usize,
) -> Result<(), ModelError> {
    let mut chars = 0;
    while let Some(arrived) = text.next().await {
        chars += arrived.chars().count();
        if chars > chars_max {
            return Err(ModelError::TextTooLong { chars, chars_max });
        }
        let pause = arrived.is_empty().then_some("");
        for piece in pieces(&arrived).chain(pause) {
            let order = SpeechOrder::Text { stream, piece: piece.to_owned() };
            if outgoing.send(order.to_frame()).await.is_err() {
                return Ok(());
            }
        }
    }
    // See above.
    let _ = outgoing.send(SpeechOrder::EndText { stream }.to_frame()).await;
    Ok(())
}

/// `text` cut between characters into pieces that fit a frame.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

fn heard(engine: &'static str, frame: &Frame) -> Result<Heard, ModelError> {
    let unreadable = |detail: String| ModelError::EngineFailed { engine, detail };
    match Report::from_frame(frame).map_err(|error| unreadable(error.to_string()))? {
        Some(Report::Done { .. }) => Ok(Heard::Done),
        Some(Report::Failed { failure: Failure::Empty, .. }) => Err(ModelError::EmptyText),
        Some(Report::Failed { failure: Failure::Engine(detail), .. }) => {
            Err(ModelError::EngineFailed { engine, detail })
        }
        Some(other) => Err(unreadable(format!("its stream said {other:?}"))),
        None => match SpeechReport::from_frame(frame) {
            Ok(SpeechReport::Started { .. }) => Ok(Heard::Started),
            Ok(SpeechReport::Audio { samples, .. }) => {
                Ok(Heard::Event(SpeechEvent::Audio(samples)))
            }
            Ok(SpeechReport::Words { words, .. }) => Ok(Heard::Event(SpeechEvent::Words(words))),
            Err(error) => Err(unreadable(error.to_string())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_lose_none() {
        for text in [String::new(), "é".repeat(TEXT_BYTES_MAX), "x".repeat(TEXT_BYTES_MAX)] {
            assert!(pieces(&text).all(|piece| piece.len() <= TEXT_BYTES_MAX));
            assert_eq!(pieces(&text).collect::<String>(), text);
        }
    }

    #[test]
    fn frames_that_make_no_sense_in_a_stream_are_failures() {
        let check = |frame: &Frame, expect: &str| {
            let Err(ModelError::EngineFailed { detail, .. }) = heard("speech", frame) else {
                panic!("{frame:?} must fail");
            };
            assert_eq!(detail, expect);
        };
        check(&Frame::new(0, 1, Vec::new()), "no frame has kind 0");
        check(&Frame::new(255, 1, Vec::new()), "no frame has kind 255");
        check(&Report::Hello { version: 1 }.to_frame(), "its stream said Hello { version: 1 }");
    }
}
