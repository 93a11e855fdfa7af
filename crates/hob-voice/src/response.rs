//! One response: events of the chat model and of the voice become output items, text and sound.
//! Every item and part that it opens is closed before its one `ResponseDone`.

use std::time::Instant;

use hob_core::chat::{Completion, FinishReason, Role, Timings, Usage};
use hob_core::realtime::{
    ContentRef, ItemBody, ItemContent, ItemStatus, OutputModality, OutputPart, RealtimeEvent,
    RealtimeFault, RealtimeItem, RealtimeResponse, RealtimeSettings, ResponseStatus, ResponseUsage,
};
use hob_core::{ChatEvent, ModelError, SpeechEvent};

use crate::faults::{broke_off, failure, server_error};
use crate::interface::{SessionEffect, SpeechStart};
use crate::marks::TurnMarks;
use crate::outbox::Outbox;
use crate::spoken::SpokenText;
use crate::voice::Voice;

/// What a response is made with. The settings are those of the session with the response's own changes.
#[derive(Clone, Debug)]
pub(crate) struct ResponsePlan {
    pub(crate) settings: RealtimeSettings,
    /// Replaces the conversation.
    pub(crate) input: Option<Vec<RealtimeItem>>,
    pub(crate) is_out_of_band: bool,
    pub(crate) metadata: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) id: String,
    pub(crate) plan: ResponsePlan,
    pub(crate) chat: ChatState,
    pub(crate) marks: Option<TurnMarks>,
    /// Set when the response has ended.
    pub(crate) status: ResponseStatus,
    pub(crate) effects: Vec<SessionEffect>,
    /// A speech stream that was given the first clause before the response began, until the message has it.
    pub(crate) early_voice: Option<u64>,
    output: Vec<RealtimeItem>,
    /// The output index of the message, and its text.
    message: Option<usize>,
    /// What the model has thought since the last item, if tools are offered.
    reasoning: Option<String>,
    text: String,
    voice: Option<Voice>,
    /// The chat stream that waits for the first sound.
    held: Option<u64>,
    /// The model's numbers of its calls, and their output indexes.
    calls: Vec<(u32, usize)>,
    completion: Option<Completion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChatState {
    /// The transcript of a turn is not known yet.
    Waiting,
    Running(u64),
    Ended,
}

impl Response {
    pub(crate) fn new(id: String, plan: ResponsePlan, marks: Option<TurnMarks>) -> Response {
        let mut response = Response {
            id,
            plan,
            chat: ChatState::Waiting,
            marks,
            status: ResponseStatus::InProgress,
            effects: Vec::new(),
            early_voice: None,
            output: Vec::new(),
            message: None,
            reasoning: None,
            text: String::new(),
            voice: None,
            held: None,
            calls: Vec::new(),
            completion: None,
        };
        let created = RealtimeEvent::ResponseCreated(response.snapshot());
        response.send(created);
        response
    }

    pub(crate) fn is_done(&self) -> bool {
        self.status != ResponseStatus::InProgress
    }

    /// Whether the client has nothing of the answer yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    /// What the prompt and the answer have together. `None`: the answer is not complete.
    pub(crate) fn tokens(&self) -> Option<u32> {
        let usage = self.completion?.usage;
        Some(usage.total_tokens().saturating_sub(usage.reasoning_tokens))
    }

    pub(crate) fn has_stream(&self, stream: u64) -> bool {
        self.chat == ChatState::Running(stream)
            || self.voice.as_ref().is_some_and(|voice| voice.stream == stream)
    }

    /// Whether it reads this item. Without an input of its own, it reads the whole conversation.
    pub(crate) fn reads(&self, item: &RealtimeItem) -> bool {
        self.plan.input.as_ref().is_none_or(|input| input.contains(item))
    }

    pub(crate) fn has_item(&self, id: &str) -> bool {
        self.output.iter().any(|item| item.id == id)
    }

    /// What the voice has said of the message.
    pub(crate) fn spoken(&self, item_id: &str) -> Option<&SpokenText> {
        let message = self.message.and_then(|at| self.output.get(at))?;
        self.voice.as_ref().filter(|_| message.id == item_id).map(|voice| &voice.spoken)
    }

    /// The message, if it is spoken and the whole answer.
    pub(crate) fn spoken_item(&self) -> Option<&RealtimeItem> {
        match &self.output[..] {
            [only] if self.voice.is_some() => Some(only),
            _ => None,
        }
    }

    /// Says the rest of an answer that was interrupted. `stream`: the model's, if it has not written all of the answer.
    pub(crate) fn say_rest(
        &mut self,
        rest: String,
        stream: Option<u64>,
        outbox: &mut Outbox,
        now: Instant,
    ) {
        self.chat = stream.map_or(ChatState::Ended, ChatState::Running);
        self.take_chat(Some(Ok(ChatEvent::Text(rest))), outbox, now);
        if stream.is_none() {
            let (usage, timings) = (Usage::default(), Timings::default());
            let done = ChatEvent::Done(Completion { finish: FinishReason::Stop, usage, timings });
            self.take_chat(Some(Ok(done)), outbox, now);
        }
    }

    /// `None`: the stream ended.
    pub(crate) fn take_chat(
        &mut self,
        event: Option<Result<ChatEvent, ModelError>>,
        outbox: &mut Outbox,
        now: Instant,
    ) {
        match event {
            Some(Ok(ChatEvent::Text(piece))) => self.write(&piece, outbox, now),
            Some(Ok(ChatEvent::ToolCall { index, id, name })) => {
                self.open_call(index, id, name, outbox);
            }
            Some(Ok(ChatEvent::ToolArguments { index, piece })) => self.add_arguments(index, piece),
            // Some servers refuse the result of a call without the thinking before it.
            Some(Ok(ChatEvent::Reasoning(piece))) if !self.plan.settings.tools.is_empty() => {
                self.reasoning.get_or_insert_default().push_str(&piece);
            }
            Some(Ok(
                ChatEvent::Reasoning(_)
                | ChatEvent::Logprobs(_)
                | ChatEvent::Status { .. }
                | ChatEvent::Extra(_)
                | ChatEvent::TurnEnd { .. },
            )) => {}
            Some(Ok(ChatEvent::Done(completion))) => self.end_text(completion, now),
            Some(Err(error)) => self.fail_chat(failure(&error)),
            None => self.fail_chat(broke_off("answer")),
        }
    }

    pub(crate) fn take_rate(&mut self, sample_rate_hz: u32) {
        if let Some(voice) = &mut self.voice {
            voice.spoken.sample_rate_hz = sample_rate_hz.max(1);
        }
    }

    /// `None`: the stream ended.
    pub(crate) fn take_speech(
        &mut self,
        event: Option<Result<SpeechEvent, ModelError>>,
        now: Instant,
    ) {
        let Some(voice) = &mut self.voice else { return };
        match event {
            Some(Ok(SpeechEvent::Words(words))) => voice.take_words(words, &mut self.effects),
            Some(Ok(SpeechEvent::Audio(samples))) => {
                voice.take_samples(&samples, now, &mut self.effects);
                self.go_on_with_chat();
            }
            // Markup alone is nothing to say.
            None | Some(Err(ModelError::EmptyText)) if voice.text_ended => self.end_speech(now),
            Some(Err(error)) => self.fail_speech(failure(&error)),
            None => self.fail_speech(broke_off("speech")),
        }
        self.measure();
    }

    /// Drops what is running, and ends the response.
    pub(crate) fn stop(&mut self, status: ResponseStatus) {
        if self.is_done() {
            return;
        }
        if let ChatState::Running(stream) = self.chat {
            self.effects.push(SessionEffect::Cancel { stream });
        }
        self.chat = ChatState::Ended;
        if let Some(voice) = self.voice.as_ref().filter(|voice| !voice.has_ended) {
            self.effects.push(SessionEffect::Cancel { stream: voice.stream });
        }
        self.close_message(ItemStatus::Incomplete);
        for (_, at) in std::mem::take(&mut self.calls) {
            self.close_item(at, ItemStatus::Incomplete);
        }
        self.status = status;
        let done = RealtimeEvent::ResponseDone(self.snapshot());
        self.send(done);
    }

    fn fail_chat(&mut self, fault: RealtimeFault) {
        self.chat = ChatState::Ended;
        self.stop(ResponseStatus::Failed(fault));
    }

    fn fail_speech(&mut self, fault: RealtimeFault) {
        if let Some(voice) = &mut self.voice {
            voice.has_ended = true;
        }
        self.stop(ResponseStatus::Failed(fault));
    }

    fn write(&mut self, piece: &str, outbox: &mut Outbox, now: Instant) {
        let piece = if self.text.is_empty() { piece.trim_start() } else { piece };
        if piece.is_empty() {
            return;
        }
        if let Some(marks) = &mut self.marks {
            marks.first_text.get_or_insert(now);
        }
        if self.message.is_none() {
            self.open_message(outbox);
        }
        self.text.push_str(piece);
        match &mut self.voice {
            Some(voice) => {
                voice.write(piece, &mut self.effects);
                self.mark_clause(now);
                self.hold_chat();
            }
            None => {
                let (at, delta) = (self.message_ref(), piece.to_owned());
                self.send(RealtimeEvent::TextDelta { at, delta });
            }
        }
    }

    /// Lets the model wait once the voice has something to say.
    fn hold_chat(&mut self) {
        let is_due = self.voice.as_ref().is_some_and(Voice::is_about_to_begin);
        if let ChatState::Running(stream) = self.chat
            && is_due
            && self.held.is_none()
        {
            self.held = Some(stream);
            self.effects.push(SessionEffect::HoldChat { stream });
        }
    }

    fn go_on_with_chat(&mut self) {
        if let Some(stream) = self.held.take() {
            self.effects.push(SessionEffect::GoOnWithChat { stream });
        }
    }

    fn mark_clause(&mut self, now: Instant) {
        let has_text = self.voice.as_ref().is_some_and(|voice| !voice.spoken.text.is_empty());
        if let Some(marks) = self.marks.as_mut().filter(|_| has_text) {
            marks.first_clause.get_or_insert(now);
        }
    }

    /// Reports the times of the turn when its answer becomes audible.
    fn measure(&mut self) {
        if let Some(audible_at) = self.voice.as_ref().and_then(|voice| voice.audible_at)
            && let Some(marks) = self.marks.take()
        {
            let stages = marks.stages(audible_at);
            let (response_id, model) = (self.id.clone(), self.plan.settings.model.clone());
            let measured = SessionEffect::TurnMeasured { response_id, model, stages, audible_at };
            self.effects.push(measured);
        }
    }

    fn open_message(&mut self, outbox: &mut Outbox) {
        let body = ItemBody::Message { role: Role::Assistant, content: Vec::new() };
        let at = self.open_item(body, outbox);
        self.message = Some(at);
        let part = match self.plan.settings.output {
            OutputModality::Text => OutputPart::Text(String::new()),
            OutputModality::Audio => OutputPart::Audio { transcript: String::new() },
        };
        let at = self.message_ref();
        self.send(RealtimeEvent::PartAdded { at: at.clone(), part });
        if self.plan.settings.output == OutputModality::Audio {
            match self.early_voice.take() {
                Some(stream) => self.voice = Some(Voice::with_first_clause(stream, at)),
                None => self.start_voice(at, outbox.new_stream()),
            }
        }
    }

    fn start_voice(&mut self, at: ContentRef, stream: u64) {
        let start = SpeechStart::new(stream, &self.plan.settings);
        self.effects.push(SessionEffect::StartSpeech(start));
        self.voice = Some(Voice::new(stream, at));
    }

    fn open_call(&mut self, index: u32, id: String, name: String, outbox: &mut Outbox) {
        let call_id = if id.is_empty() { outbox.new_id("call") } else { id };
        let at = self.open_item(ItemBody::Call { call_id, name, arguments: String::new() }, outbox);
        self.calls.push((index, at));
    }

    fn add_arguments(&mut self, index: u32, delta: String) {
        let Some((_, at)) = self.calls.iter().find(|(call, _)| *call == index) else { return };
        let at = *at;
        if let ItemBody::Call { call_id, arguments, .. } = &mut self.output[at].body {
            arguments.push_str(&delta);
            let call_id = call_id.clone();
            let at = self.content_ref(at);
            self.send(RealtimeEvent::ArgumentsDelta { at, call_id, delta });
        }
    }

    fn end_text(&mut self, completion: Completion, now: Instant) {
        self.chat = ChatState::Ended;
        self.completion = Some(completion);
        for (_, at) in std::mem::take(&mut self.calls) {
            self.close_call(at);
        }
        match &mut self.voice {
            Some(voice) => {
                voice.end_text(&mut self.effects);
                self.mark_clause(now);
            }
            None => self.close_message(self.item_status()),
        }
        self.settle();
    }

    fn end_speech(&mut self, now: Instant) {
        if let Some(voice) = &mut self.voice {
            voice.end_sound(now, &mut self.effects);
        }
        self.close_message(self.item_status());
        self.settle();
    }

    /// Ends the response when nothing is open any more.
    fn settle(&mut self) {
        let is_speaking = self.voice.as_ref().is_some_and(|voice| !voice.has_ended);
        if self.is_done() || self.chat != ChatState::Ended || is_speaking {
            return;
        }
        let finish = self.completion.map(|completion| completion.finish);
        self.status = match finish {
            Some(FinishReason::Length) => ResponseStatus::Incomplete,
            Some(FinishReason::ContentFilter) => ResponseStatus::Withheld,
            // The person would hear nothing, and not know why.
            _ if self.is_empty() => {
                let message = "the model gave an empty answer";
                ResponseStatus::Failed(server_error("empty_answer", message))
            }
            _ => ResponseStatus::Completed,
        };
        let done = RealtimeEvent::ResponseDone(self.snapshot());
        self.send(done);
    }

    fn item_status(&self) -> ItemStatus {
        let finish = self.completion.map(|completion| completion.finish);
        match finish {
            Some(FinishReason::Length | FinishReason::ContentFilter) => ItemStatus::Incomplete,
            _ => ItemStatus::Completed,
        }
    }

    fn open_item(&mut self, body: ItemBody, outbox: &mut Outbox) -> usize {
        let (id, status) = (outbox.new_id("item"), ItemStatus::InProgress);
        let item = RealtimeItem { id, status, body, reasoning: self.reasoning.take() };
        self.output.push(item.clone());
        let output_index = self.output.len() - 1;
        let response_id = self.id.clone();
        self.send(RealtimeEvent::OutputItemAdded { response_id, output_index, item });
        output_index
    }

    fn close_call(&mut self, at: usize) {
        if let ItemBody::Call { call_id, name, arguments } = self.output[at].body.clone() {
            let content = self.content_ref(at);
            self.send(RealtimeEvent::ArgumentsDone { at: content, call_id, name, arguments });
            self.close_item(at, ItemStatus::Completed);
        }
    }

    fn close_message(&mut self, status: ItemStatus) {
        let open = self.message.filter(|at| self.output[*at].status == ItemStatus::InProgress);
        let Some(index) = open else { return };
        let at = self.message_ref();
        let (content, part) = match &self.voice {
            Some(voice) => {
                let transcript = voice.shown_text().to_owned();
                self.send(RealtimeEvent::AudioDone { at: at.clone() });
                let text = transcript.clone();
                self.send(RealtimeEvent::SpokenTextDone { at: at.clone(), transcript: text });
                let part = OutputPart::Audio { transcript: transcript.clone() };
                (ItemContent::OutputAudio { transcript }, part)
            }
            None => {
                let text = self.text.clone();
                self.send(RealtimeEvent::TextDone { at: at.clone(), text: text.clone() });
                (ItemContent::OutputText(text.clone()), OutputPart::Text(text))
            }
        };
        self.send(RealtimeEvent::PartDone { at, part });
        self.output[index].body =
            ItemBody::Message { role: Role::Assistant, content: vec![content] };
        self.close_item(index, status);
    }

    fn close_item(&mut self, at: usize, status: ItemStatus) {
        self.output[at].status = status;
        let (response_id, item) = (self.id.clone(), self.output[at].clone());
        self.send(RealtimeEvent::OutputItemDone { response_id, output_index: at, item });
    }

    fn message_ref(&self) -> ContentRef {
        self.content_ref(self.message.unwrap_or_default())
    }

    fn content_ref(&self, output_index: usize) -> ContentRef {
        let item_id = self.output[output_index].id.clone();
        ContentRef { response_id: self.id.clone(), item_id, output_index, content_index: 0 }
    }

    fn send(&mut self, event: RealtimeEvent) {
        self.effects.push(SessionEffect::Send(event));
    }

    fn snapshot(&self) -> RealtimeResponse {
        let settings = &self.plan.settings;
        RealtimeResponse {
            id: self.id.clone(),
            status: self.status.clone(),
            output: self.output.clone(),
            modality: settings.output,
            encoding: settings.output_encoding,
            voice: settings.voice.clone(),
            tokens_max: settings.tokens_max,
            is_out_of_band: self.plan.is_out_of_band,
            metadata: self.plan.metadata.clone(),
            usage: self.is_done().then(|| self.completion.map(usage).unwrap_or_default()),
        }
    }
}

fn usage(completion: Completion) -> ResponseUsage {
    let usage = completion.usage;
    ResponseUsage {
        input_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        output_tokens: usage.completion_tokens,
    }
}
