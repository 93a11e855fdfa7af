//! Whether a turn is over: the turn model hears it, and the words that were said can object.
//! Words only keep a turn open, and only for a bounded time. Without words the turn model decides alone.

use std::time::Duration;

use hob_core::realtime::{TurnDetection, TurnDetector};

use super::{VoiceSession, samples_in};
use crate::interface::SessionEffect;
use crate::limits::{JUDGED_SOUND_MAX, TEXT_SILENCE_MAX};
use crate::marks::TurnMarks;

/// A sentence is complete when the turn model is surer than this: at first, and when it is asked again about a sentence
/// that it took for incomplete.
const COMPLETE: f32 = 0.5;
const SURELY_COMPLETE: f32 = 0.9;
/// A sentence that is complete is in doubt if the turn model is less sure than this.
const DOUBTFUL_BELOW: f32 = 0.8;
/// The words of a turn are open, or in doubt, if the natural logarithm of what the chat model says is below these. With
/// SmolLM2-135M, 100 of 159 beginnings of sentences were below the first, and 5 of 148 complete ones.
const WORDS_OPEN_BELOW: f32 = -4.0;
const WORDS_DOUBTFUL_BELOW: f32 = -2.5;
/// The least silence after a complete sentence. With 200 ms, one question in seven was cut at a short pause.
const COMPLETE_SILENCE: Duration = Duration::from_millis(256);

/// What the turn model says of a silence.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// The last question to the turn model, how sure its answer must be, and whether it was.
    question: Option<u64>,
    complete_above: f32,
    seems_complete: bool,
    is_doubtful: bool,
    /// The times of the turn if it had ended with the verdict, and not with its text.
    pub(super) marks: Option<TurnMarks>,
}

/// Why a turn goes on although its sentence sounds complete.
#[derive(Clone, Copy, Debug)]
enum Objection {
    /// The text is not there, and the answer needs it anyway.
    TextIsDue,
    /// The chat model has not said whether the words are complete, nor anything else, and the answer needs its first words
    /// anyway.
    JudgementIsDue,
    /// More words must follow. This counts until the silence is so long.
    OpenSentence { silence_max: Duration },
    /// More words may follow, and the answer is not ready. This counts until the silence is so long.
    Doubt { silence_max: Duration },
}

impl VoiceSession {
    /// A silence has begun that may become a pause.
    pub(super) fn judge_lull(&mut self, detection: TurnDetection) {
        self.judge(detection, COMPLETE);
    }

    /// A long silence makes an end more likely. A sentence that sounded complete is not judged again.
    pub(super) fn judge_long_pause(&mut self, detection: TurnDetection) {
        if self.turn.as_ref().is_some_and(|turn| turn.verdict.seems_complete) {
            self.end_complete_turn();
        } else {
            self.judge(detection, SURELY_COMPLETE);
        }
    }

    pub(super) fn take_verdict(&mut self, question: u64, probability: f32) {
        let is_meant = |verdict: &Verdict| verdict.question == Some(question);
        let Some(open) = self.turn.as_mut().filter(|open| is_meant(&open.verdict)) else {
            return;
        };
        open.verdict.seems_complete = probability > open.verdict.complete_above;
        open.verdict.is_doubtful = probability < DOUBTFUL_BELOW;
        self.end_complete_turn();
    }

    /// Ends the turn if its sentence sounds complete and its words do not object.
    pub(super) fn end_complete_turn(&mut self) {
        let silence = self.listener.endpoint.silence();
        let (objection, marks) = (self.objection(), self.marks_now());
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.verdict.seems_complete) else {
            return;
        };
        if silence < COMPLETE_SILENCE {
            return;
        }
        match objection {
            // The answer waits for the same text, so this time belongs to the transcript.
            Some(Objection::TextIsDue) if silence < TEXT_SILENCE_MAX => {
                turn.verdict.marks.get_or_insert(marks);
            }
            // The answer waits for the same model, so this time belongs to its first text.
            Some(Objection::JudgementIsDue) if silence < TEXT_SILENCE_MAX => {
                let marks = turn.verdict.marks.get_or_insert(marks);
                marks.transcript.get_or_insert(self.now);
            }
            Some(Objection::OpenSentence { silence_max } | Objection::Doubt { silence_max })
                if silence < silence_max =>
            {
                turn.verdict.marks = None;
            }
            _ => self.end_turn(),
        }
    }

    /// The times of a turn that ends now. Its silence ends with the last sound: a microphone may send none any more.
    pub(super) fn marks_now(&self) -> TurnMarks {
        let silence = self.listener.endpoint.silence();
        let last_sound = self.turn.as_ref().map_or(self.now, |turn| turn.last_sound);
        let speech_end = last_sound.checked_sub(silence).unwrap_or(last_sound);
        TurnMarks::new(speech_end, self.now)
    }

    fn objection(&self) -> Option<Objection> {
        let detector = self.settings().turn_detection?.detector;
        let TurnDetector::Semantic { eagerness } = detector else { return None };
        let turn = self.turn.as_ref()?;
        let (transcript, language) = (&turn.transcript, self.spoken_language());
        // Without an answer on its way, a wait would only cost time.
        let early_answer = self.early_answer.as_ref();
        let awaits_answer = early_answer.is_some_and(|held| !held.is_ready);
        let awaits_words = self.judges_words && early_answer.is_some_and(|held| held.is_silent());
        let words_complete = early_answer.and_then(|held| held.words_complete);
        let words_below = |limit: f32| words_complete.is_some_and(|words| words.ln() < limit);
        match transcript.outcome() {
            // A transcriber that has said nothing may never do so.
            None if self.answers_turns() && transcript.has_words() => Some(Objection::TextIsDue),
            Some(Ok(()))
                if transcript.is_open_sentence(language) || words_below(WORDS_OPEN_BELOW) =>
            {
                Some(Objection::OpenSentence { silence_max: eagerness.open_silence_max() })
            }
            Some(Ok(()))
                if awaits_answer
                    && (turn.verdict.is_doubtful
                        || transcript.may_go_on(language)
                        || words_below(WORDS_DOUBTFUL_BELOW)) =>
            {
                Some(Objection::Doubt { silence_max: eagerness.open_silence_max() / 2 })
            }
            Some(Ok(())) if awaits_words => Some(Objection::JudgementIsDue),
            _ => None,
        }
    }

    /// The language that the client has named.
    fn spoken_language(&self) -> Option<&str> {
        self.settings().transcription.as_ref()?.language.as_deref()
    }

    /// Asks the turn model whether the sentence is complete.
    fn judge(&mut self, detection: TurnDetection, complete_above: f32) {
        let Some(turn) = self.turn.as_mut() else {
            return;
        };
        if let TurnDetector::Semantic { .. } = detection.detector {
            let question = self.outbox.new_stream();
            turn.verdict =
                Verdict { question: Some(question), complete_above, ..Verdict::default() };
            let from = turn.sound.len().saturating_sub(samples_in(JUDGED_SOUND_MAX));
            let samples = turn.sound[from..].to_vec();
            self.outbox.push(SessionEffect::JudgeTurn { turn: question, samples });
        }
    }
}
