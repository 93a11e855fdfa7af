//! The body of a streamed chat answer: events become pieces in the client's format.
//! Every stream ends with the format's end mark, or with its error.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use futures::future::BoxFuture;
use futures::stream;
use hob_core::{Chat, ChatEvent, ModelState, RegisteredModel, whole_seconds};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep};

use crate::api_error::{ApiError, FieldNames};
use crate::generic_answer::Answer;

/// Writes events for one kind of client. Empty pieces are not sent.
pub(crate) trait ChatFormat: Send + 'static {
    fn event(&mut self, choice: u32, event: ChatEvent) -> String;

    /// How far the model's loading is, before the first event.
    fn loading(&mut self, said: String) -> String {
        self.event(0, ChatEvent::Reasoning(said))
    }

    /// Text after the last event of a complete answer.
    fn end(&mut self) -> String;

    /// Text after the last event of a failed answer.
    fn failed(&mut self, error: &ApiError) -> String;

    /// What the route calls the fields that errors name.
    fn names(&self) -> FieldNames;

    /// A piece without content to send during silence; `None` if the format has none.
    fn keep_alive(&self) -> Option<&'static str> {
        None
    }
}

/// Maximum bytes of events that are sent in one piece.
const PIECE_BYTES_MAX: usize = 8 << 10;

struct ChatBody<F> {
    answer: PendingAnswer,
    format: F,
    keep_alive_every: Duration,
    /// Ends when nothing was sent for too long. One timer for the whole answer: setting it to a later time costs much
    /// less than a new timer for each wait.
    silence: Pin<Box<Sleep>>,
}

/// An answer, or the wait for its first event.
pub(crate) enum PendingAnswer {
    Begun(Box<Answer<Chat>>),
    /// The status was sent before the first event, because it took too long. With a model, the client gets loading progress.
    Awaited(BoxFuture<'static, Result<Answer<Chat>, ApiError>>, Option<Arc<RegisteredModel<Chat>>>),
}

/// Interval of progress reports while a model loads.
const LOADING_EVERY: Duration = Duration::from_secs(1);

impl PendingAnswer {
    async fn next(&mut self) -> Result<Option<(u32, ChatEvent)>, ApiError> {
        if let PendingAnswer::Awaited(opening, _) = self {
            *self = PendingAnswer::Begun(Box::new(opening.await?));
        }
        match self {
            PendingAnswer::Begun(answer) => answer.next().await,
            PendingAnswer::Awaited(..) => Ok(None),
        }
    }

    /// The next event, if it is there already.
    fn next_now(&mut self) -> Option<Result<Option<(u32, ChatEvent)>, ApiError>> {
        match self {
            PendingAnswer::Begun(answer) => answer.next_now(),
            PendingAnswer::Awaited(..) => None,
        }
    }

    /// The loading progress, if the client wants it and the model is still loading.
    fn loading(&self) -> Option<String> {
        let PendingAnswer::Awaited(_, Some(target)) = self else { return None };
        match target.state() {
            ModelState::Loading { ready_in } => Some(format!(
                "{} is being loaded, about {} s left.\n",
                target.name,
                whole_seconds(ready_in)
            )),
            ModelState::Cold => Some(format!("{} waits to be loaded.\n", target.name)),
            ModelState::Ready | ModelState::Down { .. } => None,
        }
    }
}

/// The pieces. Each is requested from the model when the last one was sent.
pub(crate) fn stream_body(
    answer: PendingAnswer,
    format: impl ChatFormat,
    keep_alive_every: Duration,
) -> Body {
    let silence = Box::pin(sleep(keep_alive_every));
    let body = ChatBody { answer, format, keep_alive_every, silence };
    Body::from_stream(stream::unfold(Some(body), async |body| {
        let mut body = body?;
        let (piece, more) = body.piece().await;
        Some((Ok::<_, Infallible>(piece), more.then_some(body)))
    }))
}

impl<F: ChatFormat> ChatBody<F> {
    fn silence_max(&self) -> Duration {
        match &self.answer {
            PendingAnswer::Awaited(_, Some(_)) => LOADING_EVERY,
            PendingAnswer::Awaited(_, None) | PendingAnswer::Begun(_) => self.keep_alive_every,
        }
    }

    /// The next event; `None` after too long a silence. `is_timed`: the time of this silence runs already, because an
    /// event came that the client does not get.
    async fn next_unless_silent(
        &mut self,
        is_timed: &mut bool,
    ) -> Option<Result<Option<(u32, ChatEvent)>, ApiError>> {
        let (silence_max, silence) = (self.silence_max(), &mut self.silence);
        let mut next = pin!(self.answer.next());
        poll_fn(|cx| {
            if let Poll::Ready(next) = next.as_mut().poll(cx) {
                return Poll::Ready(Some(next));
            }
            if !std::mem::replace(is_timed, true) {
                silence.as_mut().reset(Instant::now() + silence_max);
            }
            // A model that is always busy uses up the task's budget, and a timer within the budget would never fire.
            pin!(unconstrained(silence.as_mut())).poll(cx).map(|()| None)
        })
        .await
    }

    /// The next piece, and whether more may follow.
    async fn piece(&mut self) -> (String, bool) {
        let mut is_timed = false;
        loop {
            let next = match self.format.keep_alive() {
                None => self.answer.next().await,
                Some(comment) => match self.next_unless_silent(&mut is_timed).await {
                    Some(next) => next,
                    None => {
                        let loading = self.answer.loading();
                        let said = loading.map(|loading| self.format.loading(loading));
                        return (said.unwrap_or_else(|| comment.to_owned()), true);
                    }
                },
            };
            let piece = match next {
                Ok(Some((choice, event))) => self.format.event(choice, event),
                Ok(None) => return (self.format.end(), false),
                Err(error) => return (self.failed(error), false),
            };
            if !piece.is_empty() {
                return self.with_what_is_there(piece);
            }
        }
    }

    /// Sends events that are already available together: one write for each would cost more than everything else.
    fn with_what_is_there(&mut self, mut piece: String) -> (String, bool) {
        while piece.len() < PIECE_BYTES_MAX {
            match self.answer.next_now() {
                None => break,
                Some(Ok(Some((choice, event)))) => piece += &self.format.event(choice, event),
                Some(Ok(None)) => return (piece + &self.format.end(), false),
                Some(Err(error)) => return (piece + &self.failed(error), false),
            }
        }
        (piece, true)
    }

    fn failed(&mut self, error: ApiError) -> String {
        let error = error.about(self.format.names());
        self.format.failed(&error)
    }
}
