//! Reads the body of a server's chat answer as events, no faster than the client takes them.
//! An early end is a fault; a few malformed lines are skipped.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::{StreamExt, stream};
use hob_core::{ChatEvent, ChatStream, Fault, ModelError, Trace};
use hob_wire::{PieceError, PieceKind, Pieces, UpstreamReader, UsageSource};
use tokio::task::yield_now;

use crate::client::media_type;
use crate::http::HttpResponse;
use crate::upstream_model::UpstreamModel;

/// Maximum bytes of an answer that is not streamed.
const WHOLE_BYTES_MAX: usize = 32 << 20;
/// Maximum bytes of one event.
const PIECE_BYTES_MAX: usize = 4 << 20;
/// After so many bytes without an event, other tasks run and timers are polled.
const TURN_BYTES_MAX: usize = 128 << 10;
/// Malformed lines that are skipped.
const MALFORMED_MAX: u32 = 3;

/// All that is needed to read an answer.
pub(crate) struct Expected {
    pub(crate) served: Arc<UpstreamModel>,
    pub(crate) reader: Box<dyn UpstreamReader>,
    pub(crate) pieces: PieceKind,
    pub(crate) trace: Trace,
    /// Estimated tokens of the prompt, in case the server does not report them.
    pub(crate) prompt_tokens: u32,
}

struct Answer {
    asked: Expected,
    body: Body,
    said: VecDeque<ChatEvent>,
    /// Events of the current piece. The buffer is reused for all pieces.
    heard: Vec<ChatEvent>,
    malformed: u32,
    /// Bytes read since the last event.
    turn_bytes: usize,
    is_over: bool,
}

enum Body {
    Pieces(HttpResponse, Pieces),
    /// From a server that does not stream.
    Whole(HttpResponse),
    Ended,
}

/// # Errors
/// [`Fault::InvalidAnswer`]: the answer is a web page.
pub(crate) fn events(asked: Expected, response: HttpResponse) -> Result<ChatStream, Fault> {
    let body = match media_type(&response)? {
        "application/json" if asked.pieces == PieceKind::Event => Body::Whole(response),
        _ => Body::Pieces(response, Pieces::new(asked.pieces, PIECE_BYTES_MAX)),
    };
    let (said, heard, malformed, turn_bytes) = (VecDeque::new(), Vec::new(), 0, 0);
    let answer = Answer { asked, body, said, heard, malformed, turn_bytes, is_over: false };
    Ok(stream::unfold(Box::new(answer), async |mut answer| {
        let event = answer.next().await?;
        Some((event, answer))
    })
    .boxed())
}

impl Answer {
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        loop {
            if let Some(event) = self.said.pop_front() {
                self.turn_bytes = 0;
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            if self.turn_bytes > TURN_BYTES_MAX {
                self.turn_bytes = 0;
                yield_now().await;
            }
            if let Err(fault) = self.read().await {
                self.is_over = true;
                return Some(Err(self.asked.served.failed(fault)));
            }
        }
    }

    /// The next piece, or the next bytes.
    async fn read(&mut self) -> Result<(), Fault> {
        match &mut self.body {
            Body::Pieces(response, pieces) => {
                if let Some(piece) = pieces.next_piece() {
                    let taken = self.take(&piece);
                    if let Body::Pieces(_, pieces) = &mut self.body {
                        pieces.reuse(piece);
                    }
                    return taken;
                }
                match response.chunk().await {
                    Ok(Some(bytes)) => {
                        self.turn_bytes += bytes.len();
                        let endless = |error: hob_wire::PieceTooLong| Fault::InvalidAnswer {
                            detail: error.to_string(),
                        };
                        pieces.push(&bytes).map_err(endless)
                    }
                    Ok(None) => {
                        let rest = pieces.rest();
                        self.ended(rest)
                    }
                    Err(error) => Err(self.asked.served.upstream.broken(&error)),
                }
            }
            Body::Whole(response) => {
                let whole = self.asked.served.upstream.whole(response, WHOLE_BYTES_MAX).await?;
                self.ended(Some(whole))
            }
            Body::Ended => self.ended(None),
        }
    }

    fn ended(&mut self, rest: Option<String>) -> Result<(), Fault> {
        self.body = Body::Ended;
        if let Some(rest) = rest {
            self.take(&rest)?;
        }
        if !self.is_over {
            self.heard.clear();
            self.asked.reader.end(&mut self.heard)?;
            self.pass_on();
            self.is_over = true;
        }
        Ok(())
    }

    fn take(&mut self, piece: &str) -> Result<(), Fault> {
        // A piece that failed may have left something.
        self.heard.clear();
        match self.asked.reader.read(piece, &mut self.heard) {
            Ok(()) => self.pass_on(),
            Err(PieceError::Failed(fault)) => return Err(fault),
            Err(PieceError::Malformed) => {
                self.malformed += 1;
                let upstream = self.asked.served.upstream.name();
                if self.malformed == 1 {
                    tracing::warn!(upstream, "skipped a malformed line of an answer");
                    self.asked.trace.note(|data| data.repaired.push("line"));
                }
                if self.malformed > MALFORMED_MAX {
                    let detail = format!("{} lines are not JSON of an answer", self.malformed);
                    return Err(Fault::InvalidAnswer { detail });
                }
            }
        }
        Ok(())
    }

    fn pass_on(&mut self) {
        let mut heard = std::mem::take(&mut self.heard);
        for mut event in heard.drain(..) {
            if let ChatEvent::Done(completion) = &mut event {
                self.is_over = true;
                let repaired = self.asked.reader.repairs();
                let counted_here = repaired.usage == UsageSource::Counted;
                if counted_here && completion.usage.prompt_tokens == 0 {
                    completion.usage.prompt_tokens = self.asked.prompt_tokens;
                }
                self.asked.trace.note(|data| {
                    data.counted_here = counted_here;
                    data.repaired.extend(repaired.repairs);
                });
                self.finish_body();
            }
            self.said.push_back(event);
        }
        self.heard = heard;
    }

    /// The connection can be used again. The end of the body may come after the end of the answer.
    fn finish_body(&mut self) {
        if let Body::Pieces(response, _) = std::mem::replace(&mut self.body, Body::Ended) {
            response.leave();
        }
    }
}
