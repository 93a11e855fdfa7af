//! One answer on the server's side: frames come in as events, and what was read is given back as
//! credit. Dropping it cancels.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::Stream;
use hob_core::ModelError;
use hob_core::chat::ChatEvent;

use super::client::{ENGINE, Said, said};
use super::protocol::ChatReport;
use crate::supervisor::cut_error;
use crate::supervisor::session::Ticket;

pub(super) struct Answer {
    /// None once the answer is over.
    ticket: Option<Ticket>,
    /// How long the model took to be there.
    loading: Duration,
}

impl Answer {
    pub(super) fn new(ticket: Ticket, loading: Duration) -> Answer {
        Answer { ticket: Some(ticket), loading }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ChatEvent, ModelError>>> {
        let Some(ticket) = &mut self.ticket else { return Poll::Ready(None) };
        ticket.poll_frame(cx).map(|frame| {
            let frame = frame.map_err(|cut| cut_error(ENGINE, cut));
            match frame.and_then(|frame| said(&frame)) {
                Ok(Said::Chat(ChatReport::Event { event, .. })) => {
                    ticket.credit(1);
                    Some(Ok(event))
                }
                Ok(Said::Done) => None,
                Ok(Said::Chat(_)) => {
                    let detail = "its answer holds something that is no event".to_owned();
                    Some(Err(ModelError::EngineFailed { engine: ENGINE, detail }))
                }
                Err(error) => Some(Err(error)),
            }
        })
    }
}

impl Stream for Answer {
    type Item = Result<ChatEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let loading = self.loading;
        self.poll_event(cx).map(|event| {
            if !matches!(event, Some(Ok(_))) {
                self.ticket = None;
            }
            event.map(|event| event.map(|event| with_loading(event, loading)))
        })
    }
}

/// The worker knows nothing of the time before it was there.
fn with_loading(mut event: ChatEvent, loading: Duration) -> ChatEvent {
    if let ChatEvent::Done(completion) = &mut event {
        completion.timings.load_ms = loading.as_secs_f64() * 1e3;
    }
    event
}
