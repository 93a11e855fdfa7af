//! One spoken answer on the server's side: sends the text as it arrives, and receives sound and words.
//! All work happens while the answer is polled. Dropping it cancels.

use futures::future::{BoxFuture, Fuse};
use futures::stream::{self, BoxStream, Stream};
use futures::{FutureExt, StreamExt};
use hob_core::{ModelError, SpeechEvent};

use super::protocol::{Begin, SpeechOrder, SpeechReport, TEXT_BYTES_MAX};
use crate::supervisor::session::{OpenStream, OrderSender, StreamReport};

pub(super) struct Exchange {
    stream: OpenStream,
    /// Sends the text.
    sending: Fuse<BoxFuture<'static, Result<(), ModelError>>>,
}

impl Exchange {
    pub(super) fn begin(
        stream: OpenStream,
        begin: Begin,
        text: BoxStream<'static, String>,
        chars_max: usize,
    ) -> Exchange {
        let sending = send_text(stream.orders(), begin, text, chars_max).boxed().fuse();
        Exchange { stream, sending }
    }

    /// Sends the text, and returns when the worker begins with it. Other texts may be computed first.
    pub(super) async fn started(&mut self) -> Result<(), ModelError> {
        match self.report().await? {
            StreamReport::Model(SpeechReport::Started) => Ok(()),
            other => Err(self.stream.unexpected(&other)),
        }
    }

    pub(super) fn events(self) -> impl Stream<Item = Result<SpeechEvent, ModelError>> {
        stream::try_unfold(self, async |mut exchange| {
            let event = exchange.next_event().await;
            event.map(|event| event.map(|event| (event, exchange)))
        })
    }

    async fn next_event(&mut self) -> Result<Option<SpeechEvent>, ModelError> {
        loop {
            return match self.report().await? {
                StreamReport::Model(SpeechReport::Started) => continue,
                StreamReport::Model(SpeechReport::Audio(samples)) => {
                    self.stream.credit(samples.len() as u32);
                    Ok(Some(SpeechEvent::Audio(samples)))
                }
                StreamReport::Model(SpeechReport::Words(words)) => {
                    Ok(Some(SpeechEvent::Words(words)))
                }
                StreamReport::Done => Ok(None),
                other => Err(self.stream.unexpected(&other)),
            };
        }
    }

    /// The next report, while the text is sent.
    async fn report(&mut self) -> Result<StreamReport<SpeechReport>, ModelError> {
        loop {
            tokio::select! {
                // A text that is refused while it arrives ends the answer before more sound.
                biased;
                sent = &mut self.sending => sent?,
                report = self.stream.report() => return report,
            }
        }
    }
}

/// Sends the order to begin, `text` in pieces, and its end.
async fn send_text(
    orders: OrderSender,
    begin: Begin,
    mut text: BoxStream<'static, String>,
    chars_max: usize,
) -> Result<(), ModelError> {
    orders.send(&SpeechOrder::Begin(begin)).await?;
    let mut chars = 0;
    while let Some(arrived) = text.next().await {
        chars += arrived.chars().count();
        if chars > chars_max {
            return Err(ModelError::TextTooLong { chars, chars_max });
        }
        let pause = arrived.is_empty().then_some("");
        for piece in pieces(&arrived).chain(pause) {
            orders.send(&SpeechOrder::Text(piece.to_owned())).await?;
        }
    }
    orders.send(&SpeechOrder::EndText).await
}

/// `text` in pieces of at most [`TEXT_BYTES_MAX`], cut between characters.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_stay_complete() {
        for text in [String::new(), "é".repeat(TEXT_BYTES_MAX), "x".repeat(TEXT_BYTES_MAX)] {
            assert!(pieces(&text).all(|piece| piece.len() <= TEXT_BYTES_MAX));
            assert_eq!(pieces(&text).collect::<String>(), text);
        }
    }
}
