//! One spoken question in a session of its own, for starts of a server.
//! Measures two waits: for the session, and from the end of the question to the first sound of the answer.

use std::time::{Duration, Instant};

use super::conversation::Conversation;
use super::microphone::Question;
use super::{TurnEnd, VoiceFault, VoiceWorkload};
use crate::runs::BenchError;
use crate::target::Target;
use crate::transcription::{ClipSource, SENTENCES, SpokenClips};
use crate::wav::Wav;
use crate::workbench::Asker;

/// A question that is asked again and again, each time in a new session.
#[derive(Debug)]
pub(crate) struct RepeatedQuestion {
    /// None if the clip is silent.
    question: Option<Question>,
    turn_end: TurnEnd,
    voice: Option<String>,
}

/// How long the person waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstAnswer {
    /// Until the session was ready.
    pub(crate) ready: Duration,
    /// From the last sound of the question to the first audible sample of the answer.
    pub(crate) answer: Duration,
}

impl RepeatedQuestion {
    /// The first question of a workload.
    ///
    /// # Errors
    /// The server cannot speak it.
    pub(crate) fn first_of(
        workload: &VoiceWorkload,
        target: &Target,
    ) -> Result<RepeatedQuestion, BenchError> {
        let mut source = workload.questions.clone();
        if let ClipSource::Spoken(SpokenClips { sentences, .. }) = &mut source {
            sentences.truncate(1);
            if sentences.is_empty() {
                sentences.push(SENTENCES[0].to_owned());
            }
        }
        let set = source.clips(target)?;
        let wav = set.clips.first().and_then(|clip| Wav::read(&clip.wav));
        let question = wav.and_then(|wav| Question::new(&wav.samples, wav.rate_hz));
        let (turn_end, voice) = (workload.turn_end, workload.voice.clone());
        Ok(RepeatedQuestion { question, turn_end, voice })
    }

    /// Opens a session and asks.
    ///
    /// # Errors
    /// The server refuses the session, or does not answer with sound.
    pub(crate) fn ask(&self, asker: &Asker<'_>) -> Result<FirstAnswer, VoiceFault> {
        let question = self.question.as_ref().ok_or(VoiceFault::SilentQuestion)?;
        let began = Instant::now();
        let voice = self.voice.as_deref();
        let opened = Conversation::open(&asker.target, self.turn_end, voice, asker.stop);
        let mut conversation = opened?;
        let ready = conversation.ready_at.saturating_duration_since(began);
        let marks = conversation.ask(question)?;
        conversation.close();
        let answer = marks.audible.saturating_duration_since(marks.said.end);
        Ok(FirstAnswer { ready, answer })
    }
}
