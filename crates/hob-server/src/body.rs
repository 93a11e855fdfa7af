//! The body of a streamed chat answer: events of a reply, in somebody's dialect, one piece each.
//! Every stream says how it ended: with the dialect's end, or with its word for a failure.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::future::BoxFuture;
use futures::{FutureExt, stream};
use hob_core::{ChatEvent, ChatTarget, ModelState};
use tokio::time::timeout;

use crate::converse::Reply;
use crate::failure::ApiError;

/// How events are written for one kind of client. An empty piece is not sent.
pub(crate) trait Dialect: Send + 'static {
    fn event(&mut self, choice: u32, event: ChatEvent) -> String;

    /// After the last event of an answer that is complete.
    fn end(&mut self) -> String;

    /// After the last event of one that is not.
    fn failed(&mut self, refusal: &ApiError) -> String;

    /// What says nothing, for when there is nothing to say; `None` where there is no such thing.
    fn keep_alive(&self) -> Option<&'static str> {
        None
    }
}

/// Bytes of events that leave in one piece.
const PIECE_BYTES_MAX: usize = 8 << 10;

struct Writing<D> {
    answer: Answer,
    dialect: D,
    keep_alive_every: Duration,
}

/// An answer, or the wait for its first event.
pub(crate) enum Answer {
    Begun(Box<Reply>),
    /// It takes so long that the status went out before. Whoever asked for it hears how far the target's
    /// loading is.
    Awaited(BoxFuture<'static, Result<Reply, ApiError>>, Option<Arc<ChatTarget>>),
}

/// Between two words on how far a model's loading is.
const LOADING_EVERY: Duration = Duration::from_secs(1);

impl Answer {
    async fn next(&mut self) -> Result<Option<(u32, ChatEvent)>, ApiError> {
        if let Answer::Awaited(opening, _) = self {
            *self = Answer::Begun(Box::new(opening.await?));
        }
        match self {
            Answer::Begun(reply) => reply.next().await,
            Answer::Awaited(..) => Ok(None),
        }
    }

    /// How far the loading is, if somebody wants to know and it goes on.
    fn loading(&self) -> Option<ChatEvent> {
        let Answer::Awaited(_, Some(target)) = self else { return None };
        let said = match target.model.state() {
            ModelState::Loading { ready_in } => {
                format!(
                    "{} is being loaded, about {} s left.\n",
                    target.name,
                    ready_in.as_secs().max(1)
                )
            }
            ModelState::Cold => format!("{} waits to be loaded.\n", target.name),
            ModelState::Ready | ModelState::Down { .. } => return None,
        };
        Some(ChatEvent::Reasoning(said))
    }
}

/// The pieces as they come to be, each asked of the model when the last has left.
pub(crate) fn stream_body(
    answer: Answer,
    dialect: impl Dialect,
    keep_alive_every: Duration,
) -> Body {
    let writing = Writing { answer, dialect, keep_alive_every };
    Body::from_stream(stream::unfold(Some(writing), async |writing| {
        let mut writing = writing?;
        let (piece, more) = writing.piece().await;
        Some((Ok::<_, Infallible>(piece), more.then_some(writing)))
    }))
}

impl<D: Dialect> Writing<D> {
    fn silence_max(&self) -> Duration {
        match &self.answer {
            Answer::Awaited(_, Some(_)) => LOADING_EVERY,
            Answer::Awaited(_, None) | Answer::Begun(_) => self.keep_alive_every,
        }
    }

    /// The next piece, and whether more may follow.
    async fn piece(&mut self) -> (String, bool) {
        loop {
            let next = match self.dialect.keep_alive() {
                None => self.answer.next().await,
                Some(comment) => match timeout(self.silence_max(), self.answer.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        let loading = self.answer.loading();
                        let said = loading.map(|loading| self.dialect.event(0, loading));
                        return (said.unwrap_or_else(|| comment.to_owned()), true);
                    }
                },
            };
            let piece = match next {
                Ok(Some((choice, event))) => self.dialect.event(choice, event),
                Ok(None) => return (self.dialect.end(), false),
                Err(refusal) => return (self.dialect.failed(&refusal), false),
            };
            if !piece.is_empty() {
                return self.with_what_is_there(piece);
            }
        }
    }

    /// Events that have come already leave together: a write for each costs more than everything else.
    fn with_what_is_there(&mut self, mut piece: String) -> (String, bool) {
        while piece.len() < PIECE_BYTES_MAX {
            match self.answer.next().now_or_never() {
                None => break,
                Some(Ok(Some((choice, event)))) => piece += &self.dialect.event(choice, event),
                Some(Ok(None)) => return (piece + &self.dialect.end(), false),
                Some(Err(refusal)) => return (piece + &self.dialect.failed(&refusal), false),
            }
        }
        (piece, true)
    }
}
