//! Speech ends an answer. After a noise, such as a cough, the answer goes on from where it was cut.
//! What the client has not played was not heard, and does not stay in the conversation.

use std::time::{Duration, Instant};

use hob_core::ChatRequest;
use hob_core::chat::Role;
use hob_core::realtime::{
    ItemBody, ItemContent, ItemStatus, RealtimeEvent, RealtimeItem, ResponseStatus, StoppedBy,
};

use super::VoiceSession;
use crate::interface::{ChatStart, SessionEffect};
use crate::limits::RESUME_WAIT_MAX;
use crate::prompt::chat_request;
use crate::response::{ChatState, ResponsePlan};

/// An answer that was interrupted, until it is known whether by speech.
#[derive(Debug)]
pub(super) struct Interrupted {
    item_id: String,
    /// The model had written all of it.
    is_whole: bool,
    plan: ResponsePlan,
    expires_at: Instant,
}

impl VoiceSession {
    /// Ends what the assistant says.
    pub(super) fn interrupt(&mut self, by: StoppedBy) {
        if by == StoppedBy::Speech
            && let Some(interrupted) = self.resumable_answer()
        {
            self.interrupted = Some(interrupted);
        }
        let item_id = self.playback.item_id().map(str::to_owned);
        let remaining = self.playback.remaining(self.now);
        let mut is_cut = !remaining.is_zero();
        if let Some(at) = self.active() {
            let answers_turns = self.answers_turns();
            let response = &mut self.responses[at];
            is_cut |= item_id.as_deref().is_some_and(|id| response.has_item(id));
            // The turn has no answer if what interrupts it turns out to be noise.
            if by == StoppedBy::Speech && answers_turns && response.is_empty() {
                self.due = Some(response.marks.take());
            }
            if by == StoppedBy::Client
                && response.chat == ChatState::Waiting
                && response.plan.input.is_none()
            {
                // The client wants no answer to the turns whose transcripts it waits for.
                self.due = None;
                self.transcripts.iter_mut().for_each(|transcript| transcript.answer = None);
            }
            response.stop(ResponseStatus::Cancelled(by));
            self.publish(at);
        }
        // The client may have said before what it played: then it plays the item no more.
        let plays_on = |id: &String| self.playback.item_id() == Some(id.as_str());
        let item_id = item_id.filter(|id| is_cut && plays_on(id));
        self.playback.stop(self.now);
        if let Some(item_id) = item_id {
            self.cut(item_id, remaining);
        }
    }

    /// The client did not say what was heard in time, or before the next cut, so the estimate stays.
    pub(super) fn report_truncation(&mut self) {
        let Some(truncation) = self.playback.take_truncation() else { return };
        let (item_id, content_index) = (truncation.item_id, 0);
        let audio_end_ms = u64::try_from(truncation.heard.as_millis()).unwrap_or(u64::MAX);
        self.outbox.send(RealtimeEvent::ItemTruncated { item_id, content_index, audio_end_ms });
    }

    /// Goes on with the answer that a noise has interrupted, in a response of its own.
    pub(super) fn resume_answer(&mut self) {
        let Some(interrupted) = self.interrupted.take() else { return };
        let Interrupted { item_id, is_whole, plan, expires_at } = interrupted;
        let (Some(spoken), Ok(item)) =
            (self.conversation.spoken(&item_id), self.conversation.get(&item_id))
        else {
            return;
        };
        let written = spoken.text.clone();
        let rest = written.strip_prefix(&item.text()).unwrap_or_default().to_owned();
        // A model that acts is not asked twice.
        let is_whole = is_whole || !self.answers_early;
        let has_more = !is_whole || rest.contains(char::is_alphanumeric);
        if expires_at < self.now || !has_more {
            return;
        }
        let model = plan.settings.model.clone();
        let request = (!is_whole).then(|| self.request_for_rest(&plan, &item_id, written));
        self.create_response(plan, None);
        let stream = request.map(|request| {
            let stream = self.outbox.new_stream();
            let start = ChatStart { stream, model, request, is_early: false };
            self.outbox.push(SessionEffect::StartChat(Box::new(start)));
            stream
        });
        if let Some(at) = self.active() {
            self.responses[at].say_rest(rest, stream, &mut self.outbox, self.now);
            self.publish(at);
        }
    }

    /// The answer that speech interrupts now, if it can go on later.
    fn resumable_answer(&self) -> Option<Interrupted> {
        let resumes = self.settings().turn_detection.is_some_and(|rules| rules.resumes_response);
        if !resumes || !self.answers_turns() || self.cut_at_end.is_some() {
            return None;
        }
        let (item_id, is_whole, plan) = match self.active() {
            Some(at) => {
                let response = &self.responses[at];
                let item = response.spoken_item()?;
                (item.id.clone(), response.chat == ChatState::Ended, response.plan.clone())
            }
            None if !self.playback.remaining(self.now).is_zero() => {
                (self.playback.item_id()?.to_owned(), true, self.plan())
            }
            None => return None,
        };
        Some(Interrupted { item_id, is_whole, plan, expires_at: self.now + RESUME_WAIT_MAX })
    }

    /// The conversation up to the answer, with all that the model has written of it.
    fn request_for_rest(&self, plan: &ResponsePlan, item_id: &str, written: String) -> ChatRequest {
        let content = vec![ItemContent::OutputAudio { transcript: written }];
        let body = ItemBody::Message { role: Role::Assistant, content };
        let (id, status) = (item_id.to_owned(), ItemStatus::Completed);
        let answer = RealtimeItem { id, status, body, reasoning: None };
        let mut items: Vec<&RealtimeItem> = match &plan.input {
            Some(items) => items.iter().collect(),
            None => {
                self.conversation.prompt_items().take_while(|item| item.id != item_id).collect()
            }
        };
        items.push(&answer);
        chat_request(&plan.settings, &items)
    }

    /// Cuts a spoken item to what the client has played of it.
    fn cut(&mut self, item_id: String, remaining: Duration) {
        let Some(spoken) = self.conversation.spoken(&item_id) else { return };
        let heard = spoken.length().saturating_sub(remaining);
        if self.conversation.truncate(&item_id, heard).is_ok() {
            self.report_truncation();
            self.playback.expect_truncation(item_id, heard, self.now);
        }
    }
}
