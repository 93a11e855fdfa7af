//! Sessions that are fed from scripts: what goes in, and every effect as a line of text.
//! A sample's value is its probability of being speech, so that a script decides what the detector hears.

mod client_requests;
mod interruptions;
mod invariants;
mod long_prompts;
mod long_sessions;
mod open_turns;
mod scenarios;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use hob_core::chat::{Completion, FinishReason, Prompt, Timings, Usage};
use hob_core::realtime::{
    InputTranscription, RealtimeCommand, RealtimeEvent, RealtimeSettings, ResponseOptions,
};
use hob_core::{
    ChatEvent, ChatRequest, SpeechEvent, TranscriptEvent, TranscriptSummary, VOICE_FRAME_SAMPLES,
    VoiceDetector, WordTiming,
};

use super::{SessionEffect, SessionInput, SessionOptions, VoiceSession};

const FRAME: Duration = Duration::from_millis(32);

struct LoudIsSpeech;

impl VoiceDetector for LoudIsSpeech {
    fn probability(&mut self, frame: &[f32]) -> f32 {
        assert_eq!(frame.len(), VOICE_FRAME_SAMPLES);
        frame[0]
    }

    fn reset(&mut self) {}
}

struct Script {
    session: VoiceSession,
    now: Instant,
    /// Samples that each transcript stream was given.
    heard: BTreeMap<u64, usize>,
    log: Vec<String>,
}

impl Script {
    /// A session that shows transcripts, after the settings were changed.
    fn new(change: impl FnOnce(&mut SessionOptions)) -> Script {
        let settings = RealtimeSettings {
            transcription: Some(InputTranscription::default()),
            ..RealtimeSettings::default()
        };
        let mut options =
            SessionOptions { settings, client_cancels_echo: true, judges_turns: true };
        change(&mut options);
        let now = Instant::now();
        let session = VoiceSession::new(options, Box::new(LoudIsSpeech), now);
        let mut script = Script { session, now, heard: BTreeMap::new(), log: Vec::new() };
        script.check(&["session created"]);
        script
    }

    /// Compares all effects since the last check.
    fn check(&mut self, expected: &[&str]) {
        self.drain();
        assert_eq!(std::mem::take(&mut self.log), expected);
    }

    fn feed(&mut self, input: SessionInput) -> &mut Script {
        self.session.handle(input, self.now);
        let unheard = self.session.take_unheard();
        if !unheard.is_empty() {
            self.session.handle(SessionInput::Sound(unheard), self.now);
        }
        self.drain();
        self
    }

    fn frames(&mut self, level: f32, count: u32) -> &mut Script {
        for _ in 0..count {
            self.now += FRAME;
            self.feed(SessionInput::Sound(vec![level; VOICE_FRAME_SAMPLES]));
        }
        self
    }

    fn speak(&mut self, frames: u32) -> &mut Script {
        self.frames(0.8, frames)
    }

    fn silence(&mut self, frames: u32) -> &mut Script {
        self.frames(0.0, frames)
    }

    fn wait(&mut self, ms: u64) -> &mut Script {
        self.now += Duration::from_millis(ms);
        self.feed(SessionInput::Tick)
    }

    fn command(&mut self, command: RealtimeCommand) -> &mut Script {
        self.feed(SessionInput::Command { command, event_id: None })
    }

    /// The client asks for an answer.
    fn respond_with(&mut self, options: ResponseOptions) -> &mut Script {
        self.command(RealtimeCommand::CreateResponse(Box::new(options)))
    }

    /// The client says how much of an item was heard.
    fn truncate(&mut self, id: &str, audio_end_ms: u64) -> &mut Script {
        let (id, content_index) = (id.to_owned(), 0);
        self.command(RealtimeCommand::TruncateItem { id, content_index, audio_end_ms })
    }

    /// The latest effect.
    fn last(&self) -> &str {
        self.log.last().map(String::as_str).unwrap_or_default()
    }

    fn heard_text(&mut self, stream: u64, text: &str) -> &mut Script {
        self.transcript(stream, TranscriptEvent::Delta(text.to_owned()))
            .transcript(stream, TranscriptEvent::Done(TranscriptSummary::default()))
    }

    fn transcript(&mut self, stream: u64, event: TranscriptEvent) -> &mut Script {
        self.feed(SessionInput::Transcript { stream, event: Some(Ok(event)) })
    }

    fn write(&mut self, stream: u64, text: &str) -> &mut Script {
        self.chat(stream, ChatEvent::Text(text.to_owned()))
    }

    fn chat(&mut self, stream: u64, event: ChatEvent) -> &mut Script {
        self.feed(SessionInput::Chat { stream, event: Some(Ok(event)) })
    }

    fn finish(&mut self, stream: u64) -> &mut Script {
        self.chat(stream, done(FinishReason::Stop))
    }

    fn sound(&mut self, stream: u64, ms: usize) -> &mut Script {
        let event = Some(Ok(SpeechEvent::Audio(vec![0.5; 24 * ms])));
        self.feed(SessionInput::Speech { stream, event })
    }

    /// Places of words in the text, and when they end.
    fn words(&mut self, stream: u64, words: [(Range<usize>, f32); 2]) -> &mut Script {
        let timing = |(span, end_s)| {
            let (start_s, phonemes) = (0.0, Vec::new());
            WordTiming { span, start_s, end_s, phonemes }
        };
        let words = words.into_iter().map(timing).collect();
        let event = Some(Ok(SpeechEvent::Words(words)));
        self.feed(SessionInput::Speech { stream, event })
    }

    fn end_speech(&mut self, stream: u64) -> &mut Script {
        self.feed(SessionInput::Speech { stream, event: None })
    }

    /// One spoken question, up to the text of its answer.
    fn ask(&mut self) -> &mut Script {
        self.speak(20).silence(6).heard_text(1, " Hello").silence(10).forget()
    }

    /// The next check begins here.
    fn forget(&mut self) -> &mut Script {
        self.log.clear();
        self
    }

    fn drain(&mut self) {
        while let Some(effect) = self.session.next_effect() {
            if let SessionEffect::Hear { stream, samples } = &effect {
                *self.heard.entry(*stream).or_default() += samples.len();
            }
            self.log.extend(effect_line(effect));
        }
    }
}

fn done(finish: FinishReason) -> ChatEvent {
    let (usage, timings) = (Usage::default(), Timings::default());
    ChatEvent::Done(Completion { finish, usage, timings })
}

/// One line for each effect. Sound that goes in is counted instead.
fn effect_line(effect: SessionEffect) -> Option<String> {
    Some(match effect {
        SessionEffect::Hear { .. } => return None,
        SessionEffect::Send(event) => return shown_event(event),
        SessionEffect::StartTranscript(start) => format!("start transcript {}", start.stream),
        SessionEffect::EndSound { stream } => format!("end sound {stream}"),
        SessionEffect::JudgeTurn { turn, samples } => format!("judge {turn}: {}", samples.len()),
        SessionEffect::WarmPrompt(request) => format!("warm {}", dialogue(&request)),
        SessionEffect::WarmWords(request) => format!("warm words {}", dialogue(&request)),
        SessionEffect::StartChat(start) => {
            format!("start chat {} {}", start.stream, dialogue(&start.request))
        }
        SessionEffect::HoldChat { stream } => format!("hold {stream}"),
        SessionEffect::GoOnWithChat { stream } => format!("go on {stream}"),
        SessionEffect::StartSpeech(start) => format!("start speech {}", start.stream),
        SessionEffect::Say { stream, text } => format!("say {stream} '{text}'"),
        SessionEffect::EndText { stream } => format!("end text {stream}"),
        SessionEffect::Cancel { stream } => format!("cancel {stream}"),
        SessionEffect::Keep { stream } => format!("keep {stream}"),
        SessionEffect::Discard { stream } => format!("discard {stream}"),
        SessionEffect::TurnMeasured { stages, .. } => format!(
            "measured {} {} {} {} {}",
            stages.endpoint.as_millis(),
            stages.transcript.as_millis(),
            stages.first_text.as_millis(),
            stages.first_clause.as_millis(),
            stages.first_sound.as_millis()
        ),
        SessionEffect::Close { code, .. } => format!("close {code}"),
    })
}

fn dialogue(request: &ChatRequest) -> String {
    let Prompt::Chat(dialogue) = &request.prompt else {
        return "no dialogue".to_owned();
    };
    let lines = dialogue.messages.iter().map(|message| {
        let thought = message.reasoning.as_ref().map(|thought| format!(" <{thought}>"));
        format!("{}: {}{}", message.role.name(), message.text, thought.unwrap_or_default())
    });
    format!("[{}]", lines.collect::<Vec<_>>().join(" | "))
}

/// The parts of items and of responses follow fixed rules, which the invariants check.
fn shown_event(event: RealtimeEvent) -> Option<String> {
    Some(match event {
        RealtimeEvent::SessionCreated(_) => "session created".to_owned(),
        RealtimeEvent::SessionUpdated(_) => "session updated".to_owned(),
        RealtimeEvent::SpeechStarted { item_id, audio_start_ms } => {
            format!("speech started {item_id} {audio_start_ms}")
        }
        RealtimeEvent::SpeechStopped { item_id, audio_end_ms } => {
            format!("speech stopped {item_id} {audio_end_ms}")
        }
        RealtimeEvent::IdleTimeout { item_id, .. } => format!("idle {item_id}"),
        RealtimeEvent::InputCommitted { item_id, .. } => format!("committed {item_id}"),
        RealtimeEvent::InputCleared => "cleared".to_owned(),
        RealtimeEvent::ItemAdded { item, .. } => format!("added {}", item.id),
        RealtimeEvent::ItemDone { item, .. } => format!("done {}", item.id),
        RealtimeEvent::ItemRetrieved { item } => format!("retrieved '{}'", item.text()),
        RealtimeEvent::ItemTruncated { item_id, audio_end_ms, .. } => {
            format!("truncated {item_id} {audio_end_ms}")
        }
        RealtimeEvent::ItemDeleted { item_id } => format!("deleted {item_id}"),
        RealtimeEvent::TranscriptDelta { delta, .. } => format!("heard '{delta}'"),
        RealtimeEvent::InterimText { text, .. } => format!("perhaps '{text}'"),
        RealtimeEvent::TranscriptCompleted { transcript, .. } => {
            format!("transcript '{transcript}'")
        }
        RealtimeEvent::TranscriptFailed { item_id, .. } => format!("transcript failed {item_id}"),
        RealtimeEvent::ResponseCreated(response) => format!("created {}", response.id),
        RealtimeEvent::ResponseDone(response) => format!("{} {:?}", response.id, response.status),
        RealtimeEvent::TextDelta { delta, .. } => format!("text '{delta}'"),
        RealtimeEvent::SpokenTextDelta { delta, .. } => format!("spoken '{delta}'"),
        RealtimeEvent::AudioDelta { samples, .. } => format!("audio {}", samples.len()),
        RealtimeEvent::ArgumentsDone { name, arguments, .. } => format!("call {name} {arguments}"),
        RealtimeEvent::OutputItemDone { item, .. } => {
            format!("output {} {:?}", item.id, item.status)
        }
        RealtimeEvent::Failed(fault) => format!("error {}", fault.code.unwrap_or_default()),
        RealtimeEvent::OutputItemAdded { .. }
        | RealtimeEvent::PartAdded { .. }
        | RealtimeEvent::PartDone { .. }
        | RealtimeEvent::TextDone { .. }
        | RealtimeEvent::SpokenTextDone { .. }
        | RealtimeEvent::AudioDone { .. }
        | RealtimeEvent::ArgumentsDelta { .. } => return None,
    })
}
