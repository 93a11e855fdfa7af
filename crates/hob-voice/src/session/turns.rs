//! The turns of a session: sound becomes turns, and turns become transcripts.
//! A pause may be the end. All that ends early there is dropped when the user speaks on.

use std::time::{Duration, Instant};

use hob_core::chat::Role;
use hob_core::realtime::{
    ItemBody, ItemContent, ItemStatus, RealtimeEvent, RealtimeFault, RealtimeItem, ResponseStatus,
    SessionKind, StoppedBy, TurnDetection, TurnDetector,
};
use hob_core::{ModelError, Sound, TranscriptEvent, VOICE_FRAME_SAMPLES};

use super::verdicts::Verdict;
use super::{VoiceSession, samples_in};
use crate::endpoint::{Endpoint, EndpointRules, Step};
use crate::faults::{failure, invalid};
use crate::interface::{SessionEffect, TranscriptStart};
use crate::limits::{MICROPHONE_WAIT, PREFIX_MAX, TRANSCRIPTS_MAX, TURN_SOUND_MAX};
use crate::listener::Hears;
use crate::marks::TurnMarks;
use crate::outbox::Outbox;
use crate::response::{ChatState, Response};
use crate::turn_transcript::TurnTranscript;

/// `semantic_vad` has no settings for these.
const SEMANTIC_THRESHOLD: f32 = 0.5;
const SEMANTIC_PREFIX: Duration = Duration::from_millis(300);

/// Sound that is not committed.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) transcript: TurnTranscript,
    /// Where in the session its sound begins.
    pub(super) start: u64,
    pub(super) sound: Vec<f32>,
    /// The client was sent `SpeechStarted`.
    pub(super) is_announced: bool,
    /// What the turn model says of the silence in hand.
    pub(super) verdict: Verdict,
    pub(super) last_sound: Instant,
    is_full: bool,
}

impl VoiceSession {
    /// Sound of the client waits to be read, so its microphone is not silent.
    pub fn expect_sound(&mut self, now: Instant) {
        if let Some(turn) = &mut self.turn {
            turn.last_sound = turn.last_sound.max(now);
        }
    }

    pub(super) fn take_sound(&mut self, samples: Vec<f32>) {
        match self.settings().turn_detection {
            None => self.record(samples),
            Some(detection) => {
                for frame in self.listener.frames(&samples) {
                    self.take_frame(frame, detection);
                }
            }
        }
    }

    pub(super) fn take_transcript(
        &mut self,
        stream: u64,
        event: Option<Result<TranscriptEvent, ModelError>>,
    ) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.transcript.stream == stream) {
            turn.transcript.take(event);
            self.follow_transcript();
        } else if let Some(at) = self.transcripts.iter().position(|other| other.stream == stream) {
            self.transcripts[at].take(event);
            self.show_transcripts();
        }
    }

    pub(super) fn microphone_deadline(&self) -> Option<Instant> {
        self.settings().turn_detection?;
        self.turn.as_ref().map(|turn| turn.last_sound + MICROPHONE_WAIT)
    }

    /// Commits what was said, as if silence had ended the turn.
    pub(super) fn end_turn(&mut self) {
        let marks = self.marks_now();
        let Some(turn) = self.turn.take() else { return };
        self.listener.reset();
        if !turn.is_announced {
            return self.discard_transcript(&turn.transcript);
        }
        self.stop_speech(&turn);
        let marks = turn.verdict.marks.unwrap_or(marks);
        let answer = self.answers_turns().then_some(marks);
        self.commit(turn, answer);
    }

    pub(super) fn commit_input(&mut self) -> Result<(), RealtimeFault> {
        let detects = self.settings().turn_detection.is_some();
        match self.turn.take() {
            Some(turn) if detects && turn.is_announced => {
                self.turn = Some(turn);
                self.end_turn();
            }
            Some(turn) if !detects => self.commit(turn, None),
            turn => {
                self.turn = turn;
                let message = "the input buffer has no sound to commit";
                return Err(invalid("input_audio_buffer_commit_empty", message, None));
            }
        }
        Ok(())
    }

    pub(super) fn clear_input(&mut self) {
        self.drop_turn();
        self.outbox.send(RealtimeEvent::InputCleared);
    }

    /// Drops the sound that is not committed.
    pub(super) fn drop_turn(&mut self) {
        self.drop_early_answer();
        self.listener.reset();
        self.listener.take_partial();
        if let Some(turn) = self.turn.take() {
            let may_be_noise = self.settings().turn_detection.is_some() && !turn.is_announced;
            if may_be_noise {
                self.discard_transcript(&turn.transcript);
            } else {
                self.cancel_transcript(&turn.transcript);
            }
            if turn.is_announced {
                self.stop_speech(&turn);
            }
        }
    }

    /// The settings have changed from or to `None`: the sound in hand goes on under the new rule.
    pub(super) fn change_detection(&mut self) {
        self.idle_at = None;
        self.listener.reset();
        let partial = self.listener.take_partial();
        if self.settings().turn_detection.is_none() {
            self.end_detection();
            if !partial.is_empty() {
                self.record(partial);
            }
        } else if let Some(turn) = self.turn.take() {
            self.discard_transcript(&turn.transcript);
            self.listener.position = turn.start;
            self.unheard = turn.sound;
        }
    }

    /// The client now ends the turn that the session has begun.
    fn end_detection(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        if std::mem::take(&mut turn.is_announced) {
            self.stop_speech(&turn);
        }
        let must_restart = turn.transcript.sound_ended;
        self.turn = Some(turn);
        if must_restart {
            self.restart_transcript();
        }
    }

    pub(super) fn answers_turns(&self) -> bool {
        let settings = self.settings();
        let creates = settings.turn_detection.is_some_and(|detection| detection.creates_response);
        settings.kind == SessionKind::Conversation && creates
    }

    /// Announces a committed user item.
    pub(super) fn commit_item(&mut self, item: RealtimeItem) {
        let (item_id, previous_item_id) = (item.id.clone(), self.conversation.last_id());
        self.outbox.send(RealtimeEvent::InputCommitted { item_id, previous_item_id });
        let previous_item_id = self.append_item(item.clone());
        self.outbox.send(RealtimeEvent::ItemDone { item, previous_item_id });
    }

    pub(super) fn drop_transcript(&mut self, item_id: &str) {
        if let Some(at) =
            self.transcripts.iter().position(|transcript| transcript.item_id == item_id)
        {
            let transcript = self.transcripts.remove(at);
            self.cancel_transcript(&transcript);
        }
    }

    /// The client does not want the transcript any more.
    pub(super) fn cancel_transcript(&mut self, transcript: &TurnTranscript) {
        if transcript.outcome().is_none() {
            self.outbox.push(SessionEffect::Cancel { stream: transcript.stream });
        }
    }

    /// The sound was noise, or another stream hears it again: no request was made for it.
    fn discard_transcript(&mut self, transcript: &TurnTranscript) {
        if transcript.outcome().is_none() {
            self.outbox.push(SessionEffect::Discard { stream: transcript.stream });
        }
    }

    /// Sound that the client will commit.
    fn record(&mut self, samples: Vec<f32>) {
        if self.turn.is_none() {
            self.begin_turn(self.listener.position, Vec::new());
            self.warm_prompt();
        }
        self.listener.pass(&samples);
        let Some(turn) = self.turn.as_mut() else { return };
        if turn.sound.len() + samples.len() <= samples_in(TURN_SOUND_MAX) {
            return self.add_sound(samples);
        }
        if !std::mem::replace(&mut turn.is_full, true) {
            let minutes = TURN_SOUND_MAX.as_secs() / 60;
            let message = format!(
                "the input buffer holds up to {minutes} minutes: commit or clear it; later sound is dropped"
            );
            let full = invalid("input_audio_buffer_full", message, Some("audio"));
            self.outbox.send(RealtimeEvent::Failed(full));
        }
    }

    fn take_frame(&mut self, frame: Vec<f32>, detection: TurnDetection) {
        let listens = self.settings().listens_while_speaking;
        let listens = listens.unwrap_or(self.options.client_cancels_echo);
        let is_echo = !listens && self.playback.echoes(self.now);
        let hears = if is_echo { Hears::Echo } else { Hears::User };
        let rules = rules(detection, !self.may_interrupt());
        let step = self.listener.hear(&frame, rules, hears);
        if self.turn.is_some() {
            self.add_sound(frame);
        } else {
            let kept = prefix(detection) + Endpoint::onset_samples();
            self.listener.remember(&frame, kept);
        }
        match step {
            Some(Step::Onset { is_sure }) => self.begin_speech(detection, is_sure),
            Some(Step::Confirmed) => self.announce(),
            Some(Step::Faded) => self.forget_speech(),
            Some(Step::Lull) => self.judge_lull(detection),
            Some(Step::LongPause) => self.judge_long_pause(detection),
            Some(Step::Pause) => self.pause(),
            Some(Step::Resume) => self.resume(),
            Some(Step::End) => self.end_turn(),
            None => self.check_turn(),
        }
    }

    fn check_turn(&mut self) {
        self.end_complete_turn();
        let limit = samples_in(TURN_SOUND_MAX);
        if self.turn.as_ref().is_some_and(|turn| turn.sound.len() >= limit) {
            self.end_turn();
        }
    }

    fn begin_speech(&mut self, detection: TurnDetection, is_sure: bool) {
        let sound = self.listener.take_recent(prefix(detection) + Endpoint::onset_samples());
        let start = self.listener.position.saturating_sub(sound.len() as u64);
        self.begin_turn(start, sound);
        if is_sure || !(self.may_interrupt() && detection.interrupts_response) {
            self.listener.endpoint.confirm();
            self.announce();
        }
    }

    /// Whether the assistant answers or is heard.
    fn may_interrupt(&self) -> bool {
        self.active().is_some() || self.playback.is_playing(self.now)
    }

    fn begin_turn(&mut self, start: u64, sound: Vec<f32>) {
        let stream = self.outbox.new_stream();
        let settings = self.settings();
        // Its client opened a transcription session for the text.
        let is_shown =
            settings.transcription.is_some() || settings.kind == SessionKind::Transcription;
        let transcript = TurnTranscript::new(stream, self.outbox.new_id("item"), is_shown);
        self.turn = Some(Turn {
            transcript,
            start,
            sound,
            is_announced: false,
            verdict: Verdict::default(),
            last_sound: self.now,
            is_full: false,
        });
        self.start_transcript();
    }

    /// Starts a stream with the turn's sound so far.
    fn start_transcript(&mut self) {
        let options = self.settings().transcription.clone().unwrap_or_default();
        let Some(turn) = &self.turn else { return };
        let stream = turn.transcript.stream;
        self.outbox.push(SessionEffect::StartTranscript(TranscriptStart { stream, options }));
        if !turn.sound.is_empty() {
            self.outbox.hear(stream, turn.sound.clone());
        }
    }

    /// What was heard was not speech.
    fn forget_speech(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.discard_transcript(&turn.transcript);
            self.listener.remember(&turn.sound, turn.sound.len());
        }
    }

    /// The client learns that the user speaks.
    fn announce(&mut self) {
        // One piece of sound can end a turn and begin the next: an answer that is held was to the one before.
        self.drop_early_answer();
        let Some(turn) = self.turn.as_mut() else { return };
        turn.is_announced = true;
        let (item_id, audio_start_ms) = (turn.transcript.item_id.clone(), ms(turn.start));
        self.outbox.send(RealtimeEvent::SpeechStarted { item_id, audio_start_ms });
        self.idle_at = None;
        let detection = self.settings().turn_detection;
        if detection.is_some_and(|detection| detection.interrupts_response) {
            self.interrupt(StoppedBy::Speech);
        }
        if self.answers_turns() {
            self.warm_prompt();
        }
    }

    fn add_sound(&mut self, samples: Vec<f32>) {
        let Some(turn) = self.turn.as_mut() else { return };
        turn.last_sound = self.now;
        turn.sound.extend_from_slice(&samples);
        if !turn.transcript.sound_ended && turn.transcript.outcome().is_none() {
            self.outbox.hear(turn.transcript.stream, samples);
        }
    }

    /// The user may have finished.
    fn pause(&mut self) {
        let Some(turn) = self.turn.as_mut() else { return };
        end_sound(&mut turn.transcript, &mut self.outbox);
        self.speculate();
    }

    /// The user had not finished.
    fn resume(&mut self) {
        self.drop_early_answer();
        if let Some(turn) = self.turn.as_mut() {
            turn.verdict = Verdict::default();
        }
        self.restart_transcript();
    }

    fn restart_transcript(&mut self) {
        if let Some(mut turn) = self.turn.take() {
            self.discard_transcript(&turn.transcript);
            turn.transcript.restart(self.outbox.new_stream());
            self.turn = Some(turn);
            self.start_transcript();
        }
    }

    /// The transcript of the open turn has changed.
    fn follow_transcript(&mut self) {
        let detects = self.settings().turn_detection.is_some();
        let reports_interim_text = self.settings().reports_interim_text;
        let Some(turn) = self.turn.as_mut() else { return };
        let is_new = detects && !turn.is_announced && turn.transcript.has_words();
        if is_new {
            self.listener.endpoint.confirm();
            self.announce();
        }
        self.warm_words();
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.is_announced)
            && !turn.transcript.sound_ended
        {
            show_delta(&mut turn.transcript, &mut self.outbox);
            if let Some(text) = turn.transcript.next_interim().filter(|_| reports_interim_text) {
                let item_id = turn.transcript.item_id.clone();
                self.outbox.send(RealtimeEvent::InterimText { item_id, text });
            }
        }
        self.speculate();
        self.end_complete_turn();
    }

    fn stop_speech(&mut self, turn: &Turn) {
        let item_id = turn.transcript.item_id.clone();
        let audio_end_ms = ms(turn.start + turn.sound.len() as u64);
        self.outbox.send(RealtimeEvent::SpeechStopped { item_id, audio_end_ms });
    }

    fn commit(&mut self, turn: Turn, answer: Option<TurnMarks>) {
        let mut transcript = turn.transcript;
        end_sound(&mut transcript, &mut self.outbox);
        transcript.sound_s = turn.sound.len() as f64 / f64::from(Sound::RATE_HZ);
        transcript.answer = answer;
        self.commit_item(user_item(&transcript.item_id, None));
        self.transcripts.push(transcript);
        if self.transcripts.len() > TRANSCRIPTS_MAX {
            self.outbox.push(SessionEffect::Cancel { stream: self.transcripts[0].stream });
            self.transcripts[0].fail(ModelError::Busy { retry_after: Duration::from_secs(1) });
        }
        self.show_transcripts();
    }

    /// Sends what is new of committed turns, and concludes those that are complete.
    fn show_transcripts(&mut self) {
        for transcript in &mut self.transcripts {
            show_delta(transcript, &mut self.outbox);
        }
        // What follows depends on the transcripts that are still to come.
        let has_ended = |transcript: &mut TurnTranscript| transcript.outcome().is_some();
        let ended: Vec<TurnTranscript> = self.transcripts.extract_if(.., has_ended).collect();
        for transcript in ended {
            match transcript.outcome().cloned() {
                Some(Err(error)) => self.fail_transcript(transcript, &error),
                Some(Ok(())) | None => self.complete_transcript(transcript),
            }
        }
    }

    fn complete_transcript(&mut self, transcript: TurnTranscript) {
        let text = transcript.text().to_owned();
        self.conversation.set_transcript(&transcript.item_id, &text);
        self.fill_inputs(&transcript.item_id, &text);
        if text.is_empty() {
            self.begin_idleness();
        } else {
            self.interrupted = None;
        }
        if let Some(mut marks) = transcript.answer.filter(|_| !text.is_empty()) {
            marks.transcript.get_or_insert(self.now);
            self.due = Some(Some(marks));
        }
        if transcript.is_shown {
            let (item_id, sound_s) = (transcript.item_id, transcript.sound_s);
            self.outbox.send(RealtimeEvent::TranscriptCompleted {
                item_id,
                transcript: text,
                sound_s,
            });
        }
    }

    fn fail_transcript(&mut self, transcript: TurnTranscript, error: &ModelError) {
        let (fault, unknown) = (failure(error), user_item(&transcript.item_id, None));
        self.interrupted = None;
        self.outbox.send(if transcript.is_shown {
            RealtimeEvent::TranscriptFailed { item_id: transcript.item_id, fault: fault.clone() }
        } else {
            RealtimeEvent::Failed(fault.clone())
        });
        let waits =
            |response: &Response| response.chat == ChatState::Waiting && response.reads(&unknown);
        while let Some(at) = self.responses.iter().position(waits) {
            self.responses[at].stop(ResponseStatus::Failed(fault.clone()));
            self.publish(at);
        }
    }
}

/// An item of the user's speech.
pub(super) fn user_item(id: &str, transcript: Option<String>) -> RealtimeItem {
    let content = vec![ItemContent::InputAudio { transcript }];
    let body = ItemBody::Message { role: Role::User, content };
    RealtimeItem { id: id.to_owned(), status: ItemStatus::Completed, body, reasoning: None }
}

pub(super) fn ms(samples: u64) -> u64 {
    samples * 1_000 / u64::from(Sound::RATE_HZ)
}

fn show_delta(transcript: &mut TurnTranscript, outbox: &mut Outbox) {
    if let Some(delta) = transcript.next_delta() {
        let item_id = transcript.item_id.clone();
        outbox.send(RealtimeEvent::TranscriptDelta { item_id, delta });
    }
}

fn end_sound(transcript: &mut TurnTranscript, outbox: &mut Outbox) {
    if !transcript.sound_ended && transcript.outcome().is_none() {
        outbox.push(SessionEffect::EndSound { stream: transcript.stream });
    }
    transcript.sound_ended = true;
}

fn rules(detection: TurnDetection, takes_short: bool) -> EndpointRules {
    let (threshold, silence) = match detection.detector {
        TurnDetector::Server { threshold, silence, .. } => (threshold, silence),
        TurnDetector::Semantic { eagerness } => (SEMANTIC_THRESHOLD, eagerness.silence_max()),
    };
    EndpointRules { threshold, silence, takes_short }
}

/// Samples that are kept before speech: whole frames. So the frames of a transcriber end where those of the session end,
/// and it hears a pause as soon as the session does.
fn prefix(detection: TurnDetection) -> usize {
    let prefix = match detection.detector {
        TurnDetector::Server { prefix_padding, .. } => prefix_padding,
        TurnDetector::Semantic { .. } => SEMANTIC_PREFIX,
    };
    samples_in(prefix.min(PREFIX_MAX)).next_multiple_of(VOICE_FRAME_SAMPLES)
}
