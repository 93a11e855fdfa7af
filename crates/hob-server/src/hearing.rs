//! A transcript on its way: events from the model, under the server's clocks, and an account of them.
//! Nothing is asked of the model ahead of whoever reads it.

use std::time::Duration;

use futures::StreamExt;
use hob_core::{
    Busy, ModelError, ModelState, TranscriptEvent, TranscriptRequest, TranscriptStream,
    TranscriptTarget,
};
use hob_wire::TranscriptAnswer;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::account::Account;
use crate::failure::ApiError;
use crate::router::App;
use crate::transcript_account::TranscriptAccount;

/// Of a text: more than a day of talking.
const TEXT_BYTES_MAX: usize = 32 << 20;

/// A transcript on its way. Dropping it stops the work.
pub(crate) struct Hearing {
    events: TranscriptStream,
    account: TranscriptAccount,
    /// Whether the model was in memory when the request came.
    pub(crate) is_warm: &'static str,
    /// Since when the next event is waited for; kept here, so that giving up a wait and taking it up
    /// again does not begin it anew.
    waiting_since: Option<Instant>,
    time_max: Duration,
    cut_off: CancellationToken,
    is_over: bool,
    bytes: usize,
}

impl Hearing {
    pub(crate) async fn begin(
        app: &App,
        target: &TranscriptTarget,
        request: &TranscriptRequest,
        mut account: Account,
    ) -> Result<Hearing, ApiError> {
        let is_warm = target.model.state() == ModelState::Ready;
        let events = ask(app, target, request, &mut account).await;
        let events = events.inspect_err(|refusal| account.failed(refusal))?;
        Ok(Hearing {
            events,
            account: TranscriptAccount::new(account),
            is_warm: if is_warm { "true" } else { "false" },
            waiting_since: None,
            time_max: app.limits.token_time_max,
            cut_off: app.cut_off.clone(),
            is_over: false,
            bytes: 0,
        })
    }

    pub(crate) fn first(&self) -> Duration {
        self.account.answer.first().unwrap_or_default()
    }

    /// Everything to the end.
    pub(crate) async fn collect(&mut self) -> Result<TranscriptAnswer, ApiError> {
        let mut answer = TranscriptAnswer::default();
        while let Some(event) = self.next().await? {
            answer.add(event);
        }
        Ok(answer)
    }

    /// The next event that says something in a stream, where times are not told.
    pub(crate) async fn next_text(&mut self) -> Result<Option<TranscriptEvent>, ApiError> {
        loop {
            match self.next().await? {
                Some(TranscriptEvent::Segment(_) | TranscriptEvent::Word(_)) => {}
                Some(TranscriptEvent::Delta(text)) if text.is_empty() => {}
                other => return Ok(other),
            }
        }
    }

    /// May be dropped and called again while it waits; `None` after the last event.
    async fn next(&mut self) -> Result<Option<TranscriptEvent>, ApiError> {
        if self.is_over {
            return Ok(None);
        }
        let next = self.next_made().await;
        match &next {
            Ok(event) => self.heard(event),
            Err(refusal) => {
                self.is_over = true;
                self.account.answer.failed(refusal);
            }
        }
        next.map(Some)
    }

    fn heard(&mut self, event: &TranscriptEvent) {
        self.account.answer.begun();
        if let TranscriptEvent::Done(done) = event {
            self.is_over = true;
            self.account.done(done);
        }
    }

    async fn next_made(&mut self) -> Result<TranscriptEvent, ApiError> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let time_max = self.time_max;
        let next = timeout_at(since + time_max, self.events.next());
        let next = self.cut_off.run_until_cancelled(next).await;
        self.waiting_since = None;
        self.account.answer.waited(since.elapsed());
        let next = next.ok_or(ApiError::Stopping)?.map_err(|_| ApiError::NoToken { time_max })?;
        let event = next.unwrap_or_else(|| Err(broken_off()))?;
        self.bytes += bytes_of(&event);
        if self.bytes > TEXT_BYTES_MAX {
            return Err(ApiError::AnswerTooLarge { bytes_max: TEXT_BYTES_MAX });
        }
        Ok(event)
    }
}

/// Takes a place, and lets the model begin.
async fn ask(
    app: &App,
    target: &TranscriptTarget,
    request: &TranscriptRequest,
    account: &mut Account,
) -> Result<TranscriptStream, ApiError> {
    let busy = |Busy { retry_after }| ModelError::Busy { retry_after };
    account.admitted(target.admission.admit(request.sound.about_s()).map_err(busy)?);
    let time_max = app.limits.token_time_max;
    let asked = timeout(time_max, target.model.transcribe(request.clone()));
    let asked = app.cut_off.run_until_cancelled(asked).await.ok_or(ApiError::Stopping)?;
    Ok(asked.map_err(|_| ApiError::NoToken { time_max })??)
}

/// A model whose transcript ends without its last event has lost the rest of it.
fn broken_off() -> ModelError {
    let detail = "the transcript ended before it was complete".to_owned();
    ModelError::EngineFailed { engine: "transcription", detail }
}

/// What an event takes while it is kept, roughly.
fn bytes_of(event: &TranscriptEvent) -> usize {
    match event {
        TranscriptEvent::Delta(text) => text.len(),
        TranscriptEvent::Segment(segment) => segment.text.len() + segment.tokens.len() * 4 + 64,
        TranscriptEvent::Word(word) => word.word.len() + 16,
        TranscriptEvent::Done(_) => 0,
    }
}
