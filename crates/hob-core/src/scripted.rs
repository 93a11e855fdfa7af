//! Models that say what they are told to: for tests of everything above the engines.
//! Real implementations of the traits, with no clock and no threads: a test can await all they do.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use crate::chat::{ChatEvent, ChatModel, ChatRequest, ChatStream};
use crate::transcript::{TranscriptEvent, TranscriptModel, TranscriptRequest, TranscriptStream};
use crate::{
    Gender, Language, ModelError, ModelState, SpeechEvent, SpeechModel, SpeechRequest,
    SpeechStream, Voice,
};

/// What one call does: refuse, or yield these items in order.
pub type Script<Event> = Result<Vec<Result<Event, ModelError>>, ModelError>;

/// Answers each call with the next script; a call beyond the last is refused as an engine failure.
#[derive(Debug)]
struct Scripts<Event>(Mutex<VecDeque<Script<Event>>>);

impl<Event> Scripts<Event> {
    fn new(scripts: impl IntoIterator<Item = Script<Event>>) -> Scripts<Event> {
        Scripts(Mutex::new(scripts.into_iter().collect()))
    }

    fn next(&self) -> Script<Event> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or_else(|| {
            Err(ModelError::EngineFailed {
                engine: "scripted",
                detail: "the script has ended".to_owned(),
            })
        })
    }
}

/// A speech model that plays scripts and speaks at 24 kHz.
#[derive(Debug)]
pub struct ScriptedSpeech {
    voices: Vec<Voice>,
    scripts: Scripts<SpeechEvent>,
}

impl ScriptedSpeech {
    pub fn new(scripts: impl IntoIterator<Item = Script<SpeechEvent>>) -> ScriptedSpeech {
        let voice = Voice {
            id: "af_heart".to_owned(),
            name: "Heart".to_owned(),
            language: Language::AmericanEnglish,
            gender: Gender::Female,
        };
        ScriptedSpeech { voices: vec![voice], scripts: Scripts::new(scripts) }
    }
}

impl SpeechModel for ScriptedSpeech {
    fn voices(&self) -> &[Voice] {
        &self.voices
    }

    fn state(&self) -> ModelState {
        ModelState::Ready
    }

    fn speak(&self, _request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        let script = self.scripts.next();
        async move { script.map(|events| SpeechStream::new(24_000, stream::iter(events))) }.boxed()
    }
}

/// A chat model that plays scripts.
#[derive(Debug)]
pub struct ScriptedChat(Scripts<ChatEvent>);

impl ScriptedChat {
    pub fn new(scripts: impl IntoIterator<Item = Script<ChatEvent>>) -> ScriptedChat {
        ScriptedChat(Scripts::new(scripts))
    }
}

impl ChatModel for ScriptedChat {
    fn chat(&self, _request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        let script = self.0.next();
        async move { script.map(|events| stream::iter(events).boxed()) }.boxed()
    }
}

/// A transcription model that plays scripts.
#[derive(Debug)]
pub struct ScriptedTranscript(Scripts<TranscriptEvent>);

impl ScriptedTranscript {
    pub fn new(scripts: impl IntoIterator<Item = Script<TranscriptEvent>>) -> ScriptedTranscript {
        ScriptedTranscript(Scripts::new(scripts))
    }
}

impl TranscriptModel for ScriptedTranscript {
    fn transcribe(
        &self,
        _request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        let script = self.0.next();
        async move { script.map(|events| stream::iter(events).boxed()) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::chat::FinishReason;
    use crate::{SpeechText, Speed};

    fn speech_request() -> SpeechRequest {
        SpeechRequest {
            text: SpeechText::Whole("hello".to_owned()),
            voice: "af_heart".to_owned(),
            speed: Speed::NORMAL,
            instructions: None,
        }
    }

    #[test]
    fn speech_plays_its_scripts_in_order_and_then_fails_aloud() {
        let lost = ModelError::WorkerLost { engine: "speech", detail: "killed".to_owned() };
        let sound = SpeechEvent::Audio(vec![0.5]);
        let model = ScriptedSpeech::new([
            Ok(vec![Ok(sound.clone()), Err(lost.clone())]),
            Err(ModelError::EmptyText),
        ]);
        let stream = block_on(model.speak(speech_request())).expect("the first script");
        assert_eq!(block_on(stream.collect::<Vec<_>>()), [Ok(sound), Err(lost)]);
        let refused = block_on(model.speak(speech_request())).expect_err("the second script");
        assert_eq!(refused, ModelError::EmptyText);
        assert!(block_on(model.speak(speech_request())).is_err(), "no third script");
    }

    #[test]
    fn chat_and_transcripts_play_theirs() {
        let chat = ScriptedChat::new([Ok(vec![Ok(ChatEvent::Done(FinishReason::Stop))])]);
        let request = ChatRequest { messages: Vec::new(), tokens_max: None };
        let events = block_on(chat.chat(request)).expect("a script");
        assert_eq!(block_on(events.collect::<Vec<_>>()), [Ok(ChatEvent::Done(FinishReason::Stop))]);

        let said = TranscriptEvent::Segment { text: "hi".to_owned(), start_s: 0.0, end_s: 0.4 };
        let ears = ScriptedTranscript::new([Ok(vec![Ok(said.clone())])]);
        let request = TranscriptRequest { samples: Vec::new(), language: None };
        let events = block_on(ears.transcribe(request)).expect("a script");
        assert_eq!(block_on(events.collect::<Vec<_>>()), [Ok(said)]);
    }
}
