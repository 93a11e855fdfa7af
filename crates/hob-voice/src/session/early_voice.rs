//! The voice of an answer to a turn that may not be over: it says the first clause as soon as it is written.
//! Its sound is held back until the turn ends. It is dropped if the person speaks on.

use hob_core::{ModelError, SpeechEvent};

use super::VoiceSession;
use crate::clause::{ClauseCutter, SpokenPiece};
use crate::interface::{SessionEffect, SpeechStart};

#[derive(Debug)]
pub(super) struct EarlyVoice {
    pub(super) stream: u64,
    /// What the stream has reported.
    held: Vec<VoiceInput>,
}

/// Cuts the first clause of an early answer, as the voice of its response will cut it.
#[derive(Debug, Default)]
pub(super) struct EarlyClause {
    cutter: ClauseCutter,
    has_begun: bool,
}

impl EarlyClause {
    /// The first clause, with the piece that completes it.
    pub(super) fn push(&mut self, piece: &str) -> Option<String> {
        let piece = if self.has_begun { piece } else { piece.trim_start() };
        self.has_begun |= !piece.is_empty();
        self.cutter.push(piece).into_iter().find_map(|cut| match cut {
            SpokenPiece::FirstClause(text) => Some(text),
            SpokenPiece::More(_) => None,
        })
    }
}

/// What a speech stream reports.
#[derive(Debug)]
pub(super) enum VoiceInput {
    /// It began, and has this rate in Hz.
    Rate(u32),
    /// `None`: the stream ended.
    Event(Option<Result<SpeechEvent, ModelError>>),
}

impl VoiceSession {
    pub(super) fn take_voice(&mut self, stream: u64, input: VoiceInput) {
        let is_early = |voice: &EarlyVoice| voice.stream == stream;
        let early = self.early_answer.as_mut();
        let early = early.filter(|held| held.voice.as_ref().is_some_and(is_early));
        let Some(held) = early else {
            return self.with_stream(stream, |response, _, now| match input {
                VoiceInput::Rate(sample_rate_hz) => response.take_rate(sample_rate_hz),
                VoiceInput::Event(event) => response.take_speech(event, now),
            });
        };
        if let VoiceInput::Event(None | Some(Err(_))) = &input {
            // The response tries once more, and reports a failure.
            held.voice = None;
            held.is_ready = true;
            self.outbox.push(SessionEffect::GoOnWithChat { stream: held.stream });
        } else if let Some(voice) = &mut held.voice {
            held.is_ready |= matches!(&input, VoiceInput::Event(Some(Ok(SpeechEvent::Audio(_)))));
            voice.held.push(input);
        }
        self.end_complete_turn();
    }

    /// Makes sound of the first clause of the early answer. The chat model waits meanwhile.
    pub(super) fn speak_early(&mut self, text: String) {
        let stream = self.outbox.new_stream();
        let start = SpeechStart { is_early: true, ..SpeechStart::new(stream, self.settings()) };
        self.outbox.push(SessionEffect::StartSpeech(start));
        self.outbox.push(SessionEffect::Say { stream, text });
        self.outbox.push(SessionEffect::Say { stream, text: String::new() });
        if let Some(held) = &mut self.early_answer {
            self.outbox.push(SessionEffect::HoldChat { stream: held.stream });
            held.voice = Some(EarlyVoice { stream, held: Vec::new() });
        }
    }

    /// The response has begun: it gets what its voice has said.
    pub(super) fn release_early_voice(&mut self, voice: Option<EarlyVoice>) {
        let Some(EarlyVoice { stream, held }) = voice else { return };
        for input in held {
            self.take_voice(stream, input);
        }
    }

    pub(super) fn discard_early_voice(&mut self, voice: Option<EarlyVoice>) {
        if let Some(voice) = voice {
            self.outbox.push(SessionEffect::Discard { stream: voice.stream });
        }
    }
}
