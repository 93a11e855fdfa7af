//! The kinds of work that models do: everything in which chat, speech and transcription differ for the
//! registry, admission, the alias route and the server. Those four are written once, generic over [`Task`].

use std::fmt::{self, Debug};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, TryFutureExt};

use crate::{
    ChatEvent, ChatModel, ChatRequest, ModelError, ModelState, SpeechEvent, SpeechModel,
    SpeechRequest, Trace, TranscriptEvent, TranscriptModel, TranscriptRequest, enum_table,
};

enum_table! {
    /// What a model does. The names are those in the API, in metrics and in the request log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind: name {
        Chat = "chat",
        Speech = "speech",
        Transcription = "transcription",
    }
}

/// Bytes of an event apart from its content, at least. Without them, events without content would not count.
const EVENT_BYTES: usize = 32;

/// The unit in which a kind of work is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkUnit {
    Tokens,
    /// Seconds of sound, made or heard.
    SoundSeconds,
}

/// An amount of work. Each unit is a type of its own, so that tokens and seconds cannot be mixed up.
pub trait Work: Copy + Debug + Send + Sync + 'static {
    const UNIT: WorkUnit;

    /// The work of about ten usual answers. Estimates start with so much finished work, so that one
    /// short answer changes them little.
    const TEN_ANSWERS: f64;

    fn amount(self) -> f64;
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tokens(pub f64);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoundSeconds(pub f64);

impl Work for Tokens {
    const UNIT: WorkUnit = WorkUnit::Tokens;
    const TEN_ANSWERS: f64 = 2560.0;

    fn amount(self) -> f64 {
        self.0
    }
}

impl Work for SoundSeconds {
    const UNIT: WorkUnit = WorkUnit::SoundSeconds;
    const TEN_ANSWERS: f64 = 100.0;

    fn amount(self) -> f64 {
        self.0
    }
}

/// One kind of work, with the types that belong to it.
pub trait Task: Sized + 'static {
    const KIND: Kind;

    /// Whether `start` resolves only when the request's turn has come. Waiting in the queue then does not count as
    /// silence.
    const STARTS_IN_TURN: bool = false;

    /// Whether an answer has a last event. One without it was cut off.
    const HAS_LAST: bool = true;

    type Model: ?Sized + Send + Sync + 'static;
    type Request: Debug + Send + 'static;
    type Event: Send + 'static;
    /// What an answer reports before its first event.
    type Head: Copy + Send + Sync + 'static;
    type Work: Work;

    /// What the model would do with a request now.
    fn state(model: &Self::Model) -> ModelState;

    /// Tokens that prompt and answer may have together, for models that count in tokens.
    fn context_tokens(_model: &Self::Model) -> Option<u32> {
        None
    }

    /// Starts an answer.
    ///
    /// # Errors
    /// The model refuses the request, or fails before the answer begins.
    fn start(
        model: &Self::Model,
        request: Self::Request,
    ) -> BoxFuture<'_, Result<Started<Self>, ModelError>>;

    fn trace_mut(request: &mut Self::Request) -> &mut Trace;

    /// The amount of work in one event.
    fn work_of(head: Self::Head, event: &Self::Event) -> Self::Work;

    fn is_last(event: &Self::Event) -> bool;

    /// Bytes that an event takes while it is collected or held back.
    fn bytes(event: &Self::Event) -> usize;
}

/// An answer that has begun. Dropping it stops the work behind it.
pub struct Started<T: Task> {
    pub head: T::Head,
    pub events: BoxStream<'static, Result<T::Event, ModelError>>,
}

impl<T: Task> Debug for Started<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").field("kind", &T::KIND).finish_non_exhaustive()
    }
}

/// Conversations and texts in, text and tool calls out.
#[derive(Clone, Copy, Debug)]
pub enum Chat {}

/// Text in, sound out.
#[derive(Clone, Copy, Debug)]
pub enum Speech {}

/// Sound in, text out.
#[derive(Clone, Copy, Debug)]
pub enum Transcription {}

impl Task for Chat {
    const KIND: Kind = Kind::Chat;

    type Model = dyn ChatModel;
    type Request = ChatRequest;
    type Event = ChatEvent;
    type Head = ();
    type Work = Tokens;

    fn state(model: &dyn ChatModel) -> ModelState {
        model.state()
    }

    fn context_tokens(model: &dyn ChatModel) -> Option<u32> {
        Some(model.card().context_tokens)
    }

    fn start(
        model: &dyn ChatModel,
        request: ChatRequest,
    ) -> BoxFuture<'_, Result<Started<Chat>, ModelError>> {
        model.chat(request).map_ok(|events| Started { head: (), events }).boxed()
    }

    fn trace_mut(request: &mut ChatRequest) -> &mut Trace {
        &mut request.trace
    }

    /// An event has about one token. If the request wants log probabilities, those count instead of the text.
    fn work_of((): (), event: &ChatEvent) -> Tokens {
        let is_counted = !matches!(
            event,
            ChatEvent::Done(_)
                | ChatEvent::Logprobs(_)
                | ChatEvent::Status { .. }
                | ChatEvent::Extra(_)
                | ChatEvent::TurnEnd { .. }
        );
        Tokens(f64::from(u8::from(is_counted)))
    }

    fn is_last(event: &ChatEvent) -> bool {
        matches!(event, ChatEvent::Done(_))
    }

    fn bytes(event: &ChatEvent) -> usize {
        EVENT_BYTES
            + match event {
                ChatEvent::Reasoning(text)
                | ChatEvent::Text(text)
                | ChatEvent::Status { text, .. } => text.len(),
                ChatEvent::ToolCall { id, name, .. } => id.len() + name.len(),
                ChatEvent::ToolArguments { piece, .. } => piece.len(),
                ChatEvent::Extra(fields) => fields.bytes(),
                ChatEvent::Logprobs(tokens) => {
                    let alternatives = tokens.iter().flat_map(|token| &token.top);
                    let texts = tokens.iter().map(|token| &token.token);
                    let texts = texts.chain(alternatives.map(|(text, _)| text));
                    texts.map(|text| EVENT_BYTES + text.0.len()).sum()
                }
                ChatEvent::Done(_) | ChatEvent::TurnEnd { .. } => 0,
            }
    }
}

impl Task for Speech {
    const KIND: Kind = Kind::Speech;
    const STARTS_IN_TURN: bool = true;
    const HAS_LAST: bool = false;

    type Model = dyn SpeechModel;
    type Request = SpeechRequest;
    type Event = SpeechEvent;
    /// The sample rate in Hz.
    type Head = u32;
    type Work = SoundSeconds;

    fn state(model: &dyn SpeechModel) -> ModelState {
        model.state()
    }

    fn start(
        model: &dyn SpeechModel,
        request: SpeechRequest,
    ) -> BoxFuture<'_, Result<Started<Speech>, ModelError>> {
        let started = |stream: crate::SpeechStream| {
            let (head, events) = stream.into_parts();
            Started { head, events }
        };
        model.speak(request).map_ok(started).boxed()
    }

    fn trace_mut(request: &mut SpeechRequest) -> &mut Trace {
        &mut request.trace
    }

    fn work_of(sample_rate_hz: u32, event: &SpeechEvent) -> SoundSeconds {
        match event {
            SpeechEvent::Audio(samples) => {
                SoundSeconds(samples.len() as f64 / f64::from(sample_rate_hz))
            }
            SpeechEvent::Words(_) => SoundSeconds(0.0),
        }
    }

    fn is_last(_event: &SpeechEvent) -> bool {
        false
    }

    fn bytes(event: &SpeechEvent) -> usize {
        EVENT_BYTES
            + match event {
                SpeechEvent::Audio(samples) => size_of_val(&samples[..]),
                SpeechEvent::Words(words) => {
                    let phonemes = words.iter().map(|word| size_of_val(&word.phonemes[..]));
                    size_of_val(&words[..]) + phonemes.sum::<usize>()
                }
            }
    }
}

impl Task for Transcription {
    const KIND: Kind = Kind::Transcription;
    const STARTS_IN_TURN: bool = true;

    type Model = dyn TranscriptModel;
    type Request = TranscriptRequest;
    type Event = TranscriptEvent;
    type Head = ();
    type Work = SoundSeconds;

    fn state(model: &dyn TranscriptModel) -> ModelState {
        model.state()
    }

    fn start(
        model: &dyn TranscriptModel,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<Started<Transcription>, ModelError>> {
        model.transcribe(request).map_ok(|events| Started { head: (), events }).boxed()
    }

    fn trace_mut(request: &mut TranscriptRequest) -> &mut Trace {
        &mut request.trace
    }

    fn work_of((): (), event: &TranscriptEvent) -> SoundSeconds {
        match event {
            TranscriptEvent::Done(done) => SoundSeconds(done.duration_s.max(0.0)),
            TranscriptEvent::Delta(_)
            | TranscriptEvent::Interim(_)
            | TranscriptEvent::Segment(_)
            | TranscriptEvent::Word(_) => SoundSeconds(0.0),
        }
    }

    fn is_last(event: &TranscriptEvent) -> bool {
        matches!(event, TranscriptEvent::Done(_))
    }

    fn bytes(event: &TranscriptEvent) -> usize {
        EVENT_BYTES
            + match event {
                TranscriptEvent::Delta(text) | TranscriptEvent::Interim(text) => text.len(),
                TranscriptEvent::Segment(segment) => {
                    segment.text.len() + segment.tokens.len() * 4 + 64
                }
                TranscriptEvent::Word(word) => word.word.len() + 16,
                TranscriptEvent::Done(_) => 0,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PhonemeTiming, WordTiming};

    #[test]
    fn an_event_without_content_counts_too() {
        let none = String::new;
        let call = ChatEvent::ToolCall { index: 0, id: none(), name: none() };
        let arguments = ChatEvent::ToolArguments { index: 0, piece: none() };
        let (text, thought) = (ChatEvent::Text(none()), ChatEvent::Reasoning(none()));
        for event in [text, thought, call, arguments, ChatEvent::Logprobs(Vec::new())] {
            assert!(Chat::bytes(&event) >= EVENT_BYTES, "{event:?}");
        }
        for event in [SpeechEvent::Audio(Vec::new()), SpeechEvent::Words(Vec::new())] {
            assert!(Speech::bytes(&event) >= EVENT_BYTES, "{event:?}");
        }
        let phoneme = PhonemeTiming { phoneme: none(), start_s: 0.0, end_s: 0.0 };
        let word = |phonemes| WordTiming { span: 0..1, start_s: 0.0, end_s: 0.0, phonemes };
        let bytes = |phonemes| Speech::bytes(&SpeechEvent::Words(vec![word(phonemes)]));
        assert!(bytes(vec![phoneme]) > bytes(Vec::new()), "phonemes take memory too");
        for event in [TranscriptEvent::Delta(none()), TranscriptEvent::Interim(none())] {
            assert!(Transcription::bytes(&event) >= EVENT_BYTES, "{event:?}");
        }
    }
}
