//! The responses of a session: when one begins, and what it leaves in the conversation.
//! An answer may be written before the turn is over. It is held back until then, or dropped.

use std::time::{Duration, Instant};

use hob_core::realtime::{
    OutputModality, RealtimeEvent, RealtimeItem, ResponseStatus, SessionKind, StoppedBy,
    TurnDetector,
};
use hob_core::{Chat, ChatEvent, ChatRequest, ModelError, Task};

use super::VoiceSession;
use super::early_voice::{EarlyClause, EarlyVoice};
use super::turns::{ms, user_item};
use crate::interface::{ChatStart, SessionEffect};
use crate::limits::HELD_BYTES_MAX;
use crate::marks::TurnMarks;
use crate::outbox::Outbox;
use crate::prompt::{chat_request, fixed_bytes};
use crate::response::{ChatState, Response, ResponsePlan};
use crate::turn_transcript::TurnTranscript;

/// An answer to a turn that may not be over.
#[derive(Debug, Default)]
pub(super) struct EarlyAnswer {
    pub(super) stream: u64,
    /// How likely the words of the turn are complete, if the chat model has said so.
    pub(super) words_complete: Option<f32>,
    events: Vec<ChatEvent>,
    bytes: usize,
    clause: EarlyClause,
    pub(super) voice: Option<EarlyVoice>,
    /// The client could get something of the answer now, so longer silence would delay it.
    pub(super) is_ready: bool,
}

impl EarlyAnswer {
    /// Whether the chat model has sent nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.words_complete.is_none() && self.events.is_empty()
    }
}

impl VoiceSession {
    pub(super) fn take_chat(&mut self, stream: u64, event: Option<Result<ChatEvent, ModelError>>) {
        if self.early_answer.as_ref().is_some_and(|held| held.stream == stream) {
            self.hold_back(event);
            self.end_complete_turn();
        } else if !self.asks_again(stream, event.as_ref()) {
            self.with_stream(stream, |response, outbox, now| {
                response.take_chat(event, outbox, now);
            });
        }
    }

    /// Changes the response that a stream belongs to. A stream of none was dropped before.
    pub(super) fn with_stream(
        &mut self,
        stream: u64,
        change: impl FnOnce(&mut Response, &mut Outbox, Instant),
    ) {
        if let Some(at) = self.responses.iter().position(|response| response.has_stream(stream)) {
            change(&mut self.responses[at], &mut self.outbox, self.now);
            self.publish(at);
        }
    }

    /// The response of the conversation.
    pub(super) fn active(&self) -> Option<usize> {
        self.responses.iter().position(|response| !response.plan.is_out_of_band)
    }

    /// Starts what can start: responses whose transcripts are known, and the answer to a turn.
    pub(super) fn answer(&mut self) {
        let is_speaking = self.turn.as_ref().is_some_and(|turn| turn.is_announced);
        let is_free = self.transcripts.is_empty() && self.active().is_none() && !is_speaking;
        if is_free {
            match self.due.take() {
                Some(marks) => self.create_response(self.plan(), marks),
                None => self.resume_answer(),
            }
        }
        for at in (0..self.responses.len()).rev() {
            let response = &self.responses[at];
            if response.chat == ChatState::Waiting && !self.awaits_text(response) {
                self.start_chat(at);
            }
        }
    }

    /// Whether a response reads a turn whose text is not known.
    fn awaits_text(&self, response: &Response) -> bool {
        self.transcripts.iter().any(|turn| response.reads(&user_item(&turn.item_id, None)))
    }

    /// Gives the text of a turn to the responses that read the turn by its id.
    pub(super) fn fill_inputs(&mut self, item_id: &str, text: &str) {
        let unknown = user_item(item_id, None);
        let inputs = self.responses.iter_mut().filter_map(|response| response.plan.input.as_mut());
        for item in inputs.flatten().filter(|item| **item == unknown) {
            *item = user_item(item_id, Some(text.to_owned()));
        }
    }

    pub(super) fn plan(&self) -> ResponsePlan {
        let settings = self.settings().clone();
        ResponsePlan { settings, input: None, is_out_of_band: false, metadata: Vec::new() }
    }

    pub(super) fn create_response(&mut self, plan: ResponsePlan, marks: Option<TurnMarks>) {
        if !plan.is_out_of_band {
            self.idle_at = None;
            self.interrupted = None;
        }
        self.responses.push(Response::new(self.outbox.new_id("resp"), plan, marks));
        self.publish(self.responses.len() - 1);
    }

    /// Computes instructions and tools before the user speaks. They can be long.
    pub(super) fn warm_instructions(&mut self) {
        let settings = self.settings();
        let has_any = !settings.instructions.is_empty() || !settings.tools.is_empty();
        if has_any && self.active().is_none() {
            self.warm_prompt();
        }
    }

    /// Computes the prompt while the user speaks.
    pub(super) fn warm_prompt(&mut self) {
        if self.settings().kind == SessionKind::Conversation {
            let items: Vec<&RealtimeItem> = self.conversation.prompt_items().collect();
            let request = chat_request(self.settings(), &items);
            self.outbox.push(SessionEffect::WarmPrompt(Box::new(request)));
        }
    }

    /// Computes the words that were understood so far, if the user speaks on. In a pause, the transcriber needs the cores.
    pub(super) fn warm_words(&mut self) {
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.is_announced) else { return };
        let goes_on = !turn.transcript.sound_ended && self.listener.endpoint.silence().is_zero();
        let is_free = self.active().is_none() && self.transcripts.is_empty();
        if goes_on
            && is_free
            && self.answers_turns()
            && let Some(text) = turn.transcript.words_so_far()
        {
            let request = self.request_for(&turn.transcript, text);
            self.outbox.push(SessionEffect::WarmWords(Box::new(request)));
        }
    }

    /// The request for an answer to the open turn, if this is its text.
    fn request_for(&self, transcript: &TurnTranscript, text: String) -> ChatRequest {
        let item = user_item(&transcript.item_id, Some(text));
        let items: Vec<&RealtimeItem> = self.conversation.prompt_items().chain([&item]).collect();
        chat_request(self.settings(), &items)
    }

    /// Answers a turn that is probably over.
    pub(super) fn speculate(&mut self) {
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.is_announced) else { return };
        let is_due = turn.transcript.sound_ended && turn.transcript.is_answerable();
        let is_free = self.active().is_none() && self.transcripts.is_empty();
        let may_start = self.answers_early && self.answers_turns() && self.early_answer.is_none();
        if !is_due || !is_free || !may_start {
            return;
        }
        let detector = self.settings().turn_detection.map(|detection| detection.detector);
        let judges_turn = matches!(detector, Some(TurnDetector::Semantic { .. }));
        let request = self.request_for(&turn.transcript, turn.transcript.text().to_owned());
        let request = ChatRequest { judges_turn, ..request };
        let (stream, model) = (self.outbox.new_stream(), self.settings().model.clone());
        let start = ChatStart { stream, model, request, is_early: true };
        self.outbox.push(SessionEffect::StartChat(Box::new(start)));
        self.early_answer = Some(EarlyAnswer { stream, ..EarlyAnswer::default() });
    }

    /// The answer was to something that has changed.
    pub(super) fn drop_early_answer(&mut self) {
        if let Some(held) = self.early_answer.take() {
            self.outbox.push(SessionEffect::Discard { stream: held.stream });
            self.discard_early_voice(held.voice);
        }
    }

    /// Silence has lasted for the idle timeout: the session speaks.
    pub(super) fn end_idle_wait(&mut self) {
        self.idle_at = None;
        let Some(timeout) = self.idle_timeout() else { return };
        let item_id = self.outbox.new_id("item");
        let audio_end_ms = ms(self.listener.position);
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let audio_start_ms = audio_end_ms.saturating_sub(timeout_ms);
        let event =
            RealtimeEvent::IdleTimeout { item_id: item_id.clone(), audio_start_ms, audio_end_ms };
        self.outbox.send(event);
        self.commit_item(user_item(&item_id, Some(String::new())));
        self.due = Some(None);
    }

    /// Sends what a response has produced, and keeps the conversation in step with it.
    pub(super) fn publish(&mut self, at: usize) {
        for effect in std::mem::take(&mut self.responses[at].effects) {
            self.publish_effect(at, effect);
        }
        if self.responses[at].is_done() {
            let response = self.responses.remove(at);
            let is_its_item = |(id, _): &mut (String, u64)| response.has_item(id);
            if let Some((id, audio_end_ms)) = self.cut_at_end.take_if(is_its_item)
                && let Err(fault) = self.truncate_item(id, 0, audio_end_ms)
            {
                self.outbox.send(RealtimeEvent::Failed(fault));
            }
            self.make_room(&response);
            self.await_user(&response);
        }
    }

    /// Appends an item and announces it. Returns the item before it.
    pub(super) fn append_item(&mut self, item: RealtimeItem) -> Option<String> {
        if let Some(item_id) = self.conversation.append(item.clone()) {
            self.playback.forget(&item_id);
            self.outbox.send(RealtimeEvent::ItemDeleted { item_id });
        }
        let previous_item_id = self.conversation.id_before(&item.id);
        let previous = previous_item_id.clone();
        self.outbox.send(RealtimeEvent::ItemAdded { item, previous_item_id });
        previous
    }

    /// Drops all streams when the session ends.
    pub(super) fn drop_streams(&mut self) {
        self.drop_turn();
        for transcript in std::mem::take(&mut self.transcripts) {
            self.cancel_transcript(&transcript);
        }
        while let Some(mut response) = self.responses.pop() {
            response.stop(ResponseStatus::Cancelled(StoppedBy::Client));
            for effect in response.effects {
                self.outbox.push(effect);
            }
        }
    }

    fn hold_back(&mut self, event: Option<Result<ChatEvent, ModelError>>) {
        let is_written = self.settings().output == OutputModality::Text;
        let Some(held) = self.early_answer.as_mut() else { return };
        match event {
            Some(Ok(ChatEvent::TurnEnd { probability })) => held.words_complete = Some(probability),
            Some(Ok(event)) => {
                held.is_ready |= match &event {
                    ChatEvent::Text(_) => is_written,
                    ChatEvent::ToolCall { .. } => true,
                    // What is too short for a clause is said when the turn has ended.
                    ChatEvent::Done(_) => held.voice.is_none(),
                    _ => false,
                };
                let clause = match &event {
                    ChatEvent::Text(piece) if !is_written => held.clause.push(piece),
                    _ => None,
                };
                held.bytes += Chat::bytes(&event);
                held.events.push(event);
                if held.bytes > HELD_BYTES_MAX {
                    self.drop_early_answer();
                } else if let Some(clause) = clause {
                    self.speak_early(clause);
                }
            }
            None if matches!(held.events.last(), Some(ChatEvent::Done(_))) => {}
            // The turn's end tries once more, and reports a failure.
            failed @ (Some(Err(_)) | None) => {
                let voice = self.early_answer.take().and_then(|held| held.voice);
                self.discard_early_voice(voice);
                if let Some(Err(error)) = failed
                    && self.shorten(&error, fixed_bytes(self.settings()))
                {
                    self.speculate();
                }
            }
        }
    }

    fn start_chat(&mut self, at: usize) {
        let response = &mut self.responses[at];
        if !response.plan.is_out_of_band && response.plan.input.is_none() {
            // The client may have asked for it. It answers the turn that waits for a response, too.
            response.marks = response.marks.or(self.due.take().flatten());
        }
        if !response.plan.is_out_of_band
            && let Some(held) = self.early_answer.take()
        {
            response.chat = ChatState::Running(held.stream);
            response.early_voice = held.voice.as_ref().map(|voice| voice.stream);
            for stream in std::iter::once(held.stream).chain(response.early_voice) {
                self.outbox.push(SessionEffect::Keep { stream });
            }
            for event in held.events {
                response.take_chat(Some(Ok(event)), &mut self.outbox, self.now);
            }
            self.publish(at);
            return self.release_early_voice(held.voice);
        }
        let settings = &response.plan.settings;
        let items: Vec<&RealtimeItem> = match &response.plan.input {
            Some(items) => items.iter().collect(),
            None => self.conversation.prompt_items().collect(),
        };
        let (stream, request) = (self.outbox.new_stream(), chat_request(settings, &items));
        let model = settings.model.clone();
        response.chat = ChatState::Running(stream);
        let start = ChatStart { stream, model, request, is_early: false };
        self.outbox.push(SessionEffect::StartChat(Box::new(start)));
    }

    fn publish_effect(&mut self, at: usize, effect: SessionEffect) {
        let SessionEffect::Send(event) = effect else {
            return self.outbox.push(effect);
        };
        self.outbox.send(event.clone());
        let is_out_of_band = self.responses[at].plan.is_out_of_band;
        match event {
            RealtimeEvent::AudioDelta { at: part, samples, sample_rate_hz } => {
                let item_id = (!is_out_of_band).then_some(part.item_id.as_str());
                let length = samples.len() as f64 / f64::from(sample_rate_hz);
                self.playback.add(item_id, Duration::from_secs_f64(length), self.now);
            }
            RealtimeEvent::OutputItemAdded { item, .. } if !is_out_of_band => {
                self.append_item(item);
            }
            RealtimeEvent::OutputItemDone { item, .. } if !is_out_of_band => {
                let spoken = self.responses[at].spoken(&item.id).cloned();
                self.conversation.replace(item.clone(), spoken);
                let previous_item_id = self.conversation.id_before(&item.id);
                self.outbox.send(RealtimeEvent::ItemDone { item, previous_item_id });
            }
            _ => {}
        }
    }

    /// The idle time begins when the client has played the answer. A failed one is not repeated by itself.
    fn await_user(&mut self, response: &Response) {
        let has_failed = matches!(response.status, ResponseStatus::Failed(_));
        if !has_failed && !response.plan.is_out_of_band {
            self.begin_idleness();
        }
    }

    /// Starts the idle time if neither side speaks and no answer is due.
    pub(super) fn begin_idleness(&mut self) {
        let is_free = self.turn.is_none() && self.transcripts.is_empty() && self.due.is_none();
        if is_free && self.active().is_none() {
            let end = self.playback.end(self.now);
            self.idle_at = self.idle_timeout().map(|timeout| end + timeout);
        }
    }

    fn idle_timeout(&self) -> Option<Duration> {
        match (self.settings().kind, self.settings().turn_detection?.detector) {
            (SessionKind::Conversation, TurnDetector::Server { idle_timeout, .. }) => idle_timeout,
            (SessionKind::Transcription, _) | (_, TurnDetector::Semantic { .. }) => None,
        }
    }
}
