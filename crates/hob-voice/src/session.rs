//! A session: takes inputs in order, and queues what its driver must do.
//! `turns.rs` turns sound into transcripts, `verdicts.rs` says when a turn is over, `answers.rs` turns transcripts into
//! responses, `early_voice.rs` speaks before a turn is over, `interruptions.rs` ends responses, `truncation.rs` keeps
//! prompts short enough, `commands.rs` does what the client asks.

mod answers;
mod commands;
mod early_voice;
mod interruptions;
mod truncation;
mod turns;
mod verdicts;

use std::time::{Duration, Instant};

use hob_core::realtime::{RealtimeEvent, RealtimeSettings};
use hob_core::{Sound, VoiceDetector};

use crate::conversation::Conversation;
use crate::faults::invalid;
use crate::interface::{SessionEffect, SessionInput, SessionOptions};
use crate::limits::SESSION_MAX;
use crate::listener::Listener;
use crate::marks::TurnMarks;
use crate::outbox::Outbox;
use crate::playback::Playback;
use crate::response::Response;
use crate::turn_transcript::TurnTranscript;
use answers::EarlyAnswer;
use early_voice::VoiceInput;
use interruptions::Interrupted;
use turns::Turn;

/// One session. After each input its effects are taken with [`VoiceSession::next_effect`].
#[derive(Debug)]
pub struct VoiceSession {
    options: SessionOptions,
    outbox: Outbox,
    conversation: Conversation,
    listener: Listener,
    /// The turn that the person has not finished.
    turn: Option<Turn>,
    /// Sound for [`VoiceSession::take_unheard`].
    unheard: Vec<f32>,
    /// Transcripts of committed turns that are not complete.
    transcripts: Vec<TurnTranscript>,
    /// At most one of them belongs to the conversation.
    responses: Vec<Response>,
    early_answer: Option<EarlyAnswer>,
    answers_early: bool,
    judges_words: bool,
    /// The context of the chat model. `u32::MAX` if it is not known.
    context_tokens: u32,
    /// `Some` if a finished turn waits for its response; inside are the times of the turn, if it was spoken.
    due: Option<Option<TurnMarks>>,
    /// The answer that was interrupted last. It goes on if the interruption was a noise.
    interrupted: Option<Interrupted>,
    /// A spoken item whose response runs, and how many milliseconds of it the client has played. It is cut when the
    /// response has ended.
    cut_at_end: Option<(String, u64)>,
    playback: Playback,
    idle_at: Option<Instant>,
    now: Instant,
    closes_at: Instant,
    is_closed: bool,
}

impl VoiceSession {
    /// Begins with [`RealtimeEvent::SessionCreated`].
    pub fn new(
        options: SessionOptions,
        detector: Box<dyn VoiceDetector>,
        now: Instant,
    ) -> VoiceSession {
        let mut outbox = Outbox::default();
        outbox.send(RealtimeEvent::SessionCreated(Box::new(options.settings.clone())));
        let mut session = VoiceSession {
            options,
            outbox,
            conversation: Conversation::default(),
            listener: Listener::new(detector),
            turn: None,
            unheard: Vec::new(),
            transcripts: Vec::new(),
            responses: Vec::new(),
            early_answer: None,
            answers_early: true,
            judges_words: false,
            context_tokens: u32::MAX,
            due: None,
            interrupted: None,
            cut_at_end: None,
            playback: Playback::default(),
            idle_at: None,
            now,
            closes_at: now + SESSION_MAX,
            is_closed: false,
        };
        session.warm_instructions();
        session
    }

    /// The settings in force.
    pub fn settings(&self) -> &RealtimeSettings {
        &self.options.settings
    }

    /// Whether the chat model may be asked before a turn is over. A model that acts, such as a team, must not be asked
    /// early: what it has done for half a sentence cannot be dropped.
    pub fn set_answers_early(&mut self, answers_early: bool) {
        self.answers_early = answers_early;
    }

    /// Whether the chat model says whether the words of a turn are complete ([`hob_core::ChatEvent::TurnEnd`]). With
    /// `semantic_vad`, a turn that sounds complete then waits for that, or for the first words of its answer.
    pub fn set_judges_words(&mut self, judges_words: bool) {
        self.judges_words = judges_words;
    }

    /// `now` never goes back.
    pub fn handle(&mut self, input: SessionInput, now: Instant) {
        if self.is_closed {
            return;
        }
        self.now = now;
        match input {
            SessionInput::Command { command, event_id } => self.take_command(command, event_id),
            SessionInput::Sound(samples) => self.take_sound(samples),
            SessionInput::Transcript { stream, event } => self.take_transcript(stream, event),
            SessionInput::Chat { stream, event } => self.take_chat(stream, event),
            SessionInput::SpeechBegan { stream, sample_rate_hz } => {
                self.take_voice(stream, VoiceInput::Rate(sample_rate_hz));
            }
            SessionInput::Speech { stream, event } => {
                self.take_voice(stream, VoiceInput::Event(event));
            }
            SessionInput::TurnJudged { turn, probability } => self.take_verdict(turn, probability),
            SessionInput::Tick => {}
        }
        self.act_on_deadlines();
        if !self.is_closed {
            self.answer();
        }
    }

    /// Sound that the detector must hear because a command has turned it on: up to 10 minutes, 16 kHz. The driver gives it
    /// back as [`SessionInput::Sound`] before the client's next event, in pieces, so that other sessions do not wait for it.
    pub fn take_unheard(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.unheard)
    }

    /// The next thing to do. `None`: wait for the next input.
    pub fn next_effect(&mut self) -> Option<SessionEffect> {
        self.outbox.take()
    }

    /// When to send [`SessionInput::Tick`].
    pub fn deadline(&self) -> Option<Instant> {
        let times = [
            Some(self.closes_at),
            self.playback.truncates_at(),
            self.idle_at,
            self.microphone_deadline(),
        ];
        times.into_iter().flatten().min().filter(|_| !self.is_closed)
    }

    fn act_on_deadlines(&mut self) {
        let now = self.now;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(Some(self.closes_at)) {
            return self.close();
        }
        if is_due(self.microphone_deadline()) {
            self.end_turn();
        }
        if is_due(self.idle_at) {
            self.end_idle_wait();
        }
        if is_due(self.playback.truncates_at()) {
            self.report_truncation();
        }
    }

    fn close(&mut self) {
        let message = format!("a session lasts up to {} h", SESSION_MAX.as_secs() / 3_600);
        let expired = invalid("session_expired", message.clone(), None);
        self.outbox.send(RealtimeEvent::Failed(expired));
        self.drop_streams();
        self.outbox.push(SessionEffect::Close { code: 1001, reason: message });
        self.is_closed = true;
    }
}

/// Number of samples in this time, at the rate of a session's sound.
fn samples_in(time: Duration) -> usize {
    (time.as_secs_f64() * f64::from(Sound::RATE_HZ)) as usize
}

#[cfg(test)]
mod tests;
