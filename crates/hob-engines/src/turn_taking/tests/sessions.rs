//! Runs clips through whole sessions of `hob-voice`, with Silero VAD, Smart Turn, Whisper, and SmolLM2 as the judge of words.
//! Time is the place in the clip: each answer of a model arrives a fixed number of frames after its question.

use std::time::{Duration, Instant};

use hob_core::realtime::{Eagerness, RealtimeEvent, RealtimeSettings, TurnDetection, TurnDetector};
use hob_core::{ChatEvent, TranscriptEvent, TranscriptSummary};
use hob_voice::{SessionEffect, SessionInput, SessionOptions, VoiceSession};

use super::SMART_TURN;
use super::speaker::Recording;
use crate::chat::CardUse;
use crate::chat::worker::tests::words_complete;
use crate::test_home::stored;
use crate::transcription::vad::{FRAME_SAMPLES, SileroVad};
use crate::transcription::whisper::{Whisper, WhisperOptions};

const FRAME: Duration = Duration::from_millis(32);
const JUDGED_AFTER_FRAMES: usize = 2;
/// Frames from the end of the sound, after 192 ms of silence, to its transcript: 96 ms. On two cores the turn ended after
/// 256 ms of silence, and the transcript arrived 24 ms later (docs/reference/performance.md).
const TRANSCRIBED_AFTER_FRAMES: usize = 3;
/// Frames from the transcript to the judgement of its words: 32 ms. The first text of an answer comes after its judgement, and
/// took 34 ms on two cores (docs/reference/performance.md).
const WORDS_JUDGED_AFTER_FRAMES: usize = 1;
/// Live sound after which a transcriber reports its first words: 0.8 s.
const UNDERSTOOD_SAMPLES: usize = 12_800;

/// The models that all sessions share.
#[derive(Debug)]
pub(super) struct Sessions {
    detector: SileroVad,
    whisper: Whisper,
}

/// The transcript of one session, and the answers that are on their way.
#[derive(Debug)]
struct Answers<'a> {
    whisper: &'a mut Whisper,
    stream: u64,
    heard: Vec<f32>,
    is_understood: bool,
    coming: Vec<(usize, SessionInput)>,
}

impl Sessions {
    pub(super) fn new(detector: SileroVad) -> Sessions {
        let whisper =
            Whisper::load(&stored("whisper-base").join("model.bin"), 1, &CardUse::Allowed);
        Sessions { detector, whisper: whisper.expect("the stored model loads") }
    }

    /// The time in seconds at which a session ends the first turn. `None` if it does not end it.
    pub(super) fn turn_end(&mut self, recording: &Recording) -> Option<f32> {
        let begun = Instant::now();
        let mut session = VoiceSession::new(options(), Box::new(self.detector.clone()), begun);
        session.set_judges_words(true);
        let whisper = &mut self.whisper;
        let (heard, coming) = (Vec::new(), Vec::new());
        let mut answers = Answers { whisper, stream: 0, heard, is_understood: false, coming };
        let mut now = begun;
        for (number, frame) in recording.samples.as_chunks::<FRAME_SAMPLES>().0.iter().enumerate() {
            now += FRAME;
            let arrived = answers.arrived(number);
            let sound = SessionInput::Sound(frame.to_vec());
            for input in std::iter::once(sound).chain(arrived) {
                session.handle(input, now);
                while let Some(effect) = session.next_effect() {
                    if let SessionEffect::Send(RealtimeEvent::SpeechStopped { .. }) = effect {
                        return Some(now.duration_since(begun).as_secs_f32());
                    }
                    answers.ask(effect, number);
                }
            }
        }
        None
    }
}

impl Answers<'_> {
    /// The answers that arrive with this frame.
    fn arrived(&mut self, frame: usize) -> Vec<SessionInput> {
        let coming = std::mem::take(&mut self.coming);
        let (arrived, later): (Vec<_>, Vec<_>) =
            coming.into_iter().partition(|(at, _)| *at <= frame);
        self.coming = later;
        arrived.into_iter().map(|(_, input)| input).collect()
    }

    fn ask(&mut self, effect: SessionEffect, frame: usize) {
        match effect {
            SessionEffect::StartTranscript(start) => {
                (self.stream, self.is_understood) = (start.stream, false);
                self.heard.clear();
            }
            SessionEffect::Hear { samples, .. } => {
                self.heard.extend(samples);
                let is_enough = self.heard.len() >= UNDERSTOOD_SAMPLES;
                if is_enough && !std::mem::replace(&mut self.is_understood, true) {
                    self.report(frame, TranscriptEvent::Interim("some words".to_owned()));
                }
            }
            SessionEffect::EndSound { .. } => self.transcribe(frame),
            SessionEffect::JudgeTurn { turn, samples } => {
                let probability = SMART_TURN.probability(&samples).expect("judged");
                let input = SessionInput::TurnJudged { turn, probability };
                self.coming.push((frame + JUDGED_AFTER_FRAMES, input));
            }
            SessionEffect::StartChat(start) => {
                let probability = words_complete(&start.request).expect("a message with words");
                println!("    words complete: {:.1}", probability.ln());
                let event = Some(Ok(ChatEvent::TurnEnd { probability }));
                let input = SessionInput::Chat { stream: start.stream, event };
                self.coming.push((frame + WORDS_JUDGED_AFTER_FRAMES, input));
            }
            // The other effects get no answer: these tests end with the turn.
            _ => {}
        }
    }

    fn transcribe(&mut self, frame: usize) {
        let text = self.whisper.transcribe(&self.heard, &WhisperOptions::default(), &|| false);
        let text = text.expect("transcribed");
        let words: String = text.segments.iter().map(|segment| segment.text.as_str()).collect();
        println!("    heard, {}:{words}", text.language);
        let language = Some(text.language);
        self.report(frame, TranscriptEvent::Delta(words));
        let summary = TranscriptSummary { language, ..TranscriptSummary::default() };
        self.report(frame, TranscriptEvent::Done(summary));
    }

    fn report(&mut self, frame: usize, event: TranscriptEvent) {
        let input = SessionInput::Transcript { stream: self.stream, event: Some(Ok(event)) };
        self.coming.push((frame + TRANSCRIBED_AFTER_FRAMES, input));
    }
}

fn options() -> SessionOptions {
    let detector = TurnDetector::Semantic { eagerness: Eagerness::Auto };
    let turn_detection = Some(TurnDetection { detector, ..TurnDetection::default() });
    let settings = RealtimeSettings { turn_detection, ..RealtimeSettings::default() };
    SessionOptions { settings, client_cancels_echo: true, judges_turns: true }
}
