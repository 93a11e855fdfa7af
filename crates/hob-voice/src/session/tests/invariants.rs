//! What holds in every session, for any inputs in any order.
//! A random driver feeds commands, sound, events of running streams, failures and time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hob_core::chat::FinishReason;
use hob_core::realtime::{RealtimeCommand, RealtimeEvent, ResponseOptions, TurnDetection};
use hob_core::{ChatEvent, ModelError, SpeechEvent, TranscriptEvent, TranscriptSummary};
use proptest::prelude::*;

use super::{Script, done};
use crate::limits::SESSION_MAX;
use crate::session::{SessionEffect, SessionInput};

#[derive(Clone, Copy, Debug)]
enum Act {
    Speak(u32),
    Silence(u32),
    Wait(u64),
    Command(u8),
    Hear(u8),
    Write(u8),
    Sound(u8),
    Judge(bool),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (1..20u32).prop_map(Act::Speak),
        (1..20u32).prop_map(Act::Silence),
        (0..3_000u64).prop_map(Act::Wait),
        (0..10u8).prop_map(Act::Command),
        (0..5u8).prop_map(Act::Hear),
        (0..7u8).prop_map(Act::Write),
        (0..4u8).prop_map(Act::Sound),
        any::<bool>().prop_map(Act::Judge),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Transcript,
    Chat,
    Speech,
}

/// What the client and the driver have seen.
#[derive(Default)]
struct Seen {
    streams: BTreeMap<u64, Kind>,
    started: BTreeSet<u64>,
    /// Early answers, and their voices, that the session has neither kept nor discarded.
    early: BTreeMap<u64, Kind>,
    open: BTreeMap<String, bool>,
    items: BTreeSet<String>,
    is_speaking: bool,
    is_closed: bool,
    question: u64,
}

impl Seen {
    fn latest(&self, kind: Kind) -> Option<u64> {
        self.streams.iter().rev().find(|(_, other)| **other == kind).map(|(stream, _)| *stream)
    }

    fn start(&mut self, stream: u64, kind: Kind) {
        assert!(self.started.insert(stream), "stream {stream} is started twice");
        self.streams.insert(stream, kind);
    }

    fn take(&mut self, effect: SessionEffect) {
        assert!(!self.is_closed, "after Close: {effect:?}");
        match effect {
            SessionEffect::StartTranscript(start) => self.start(start.stream, Kind::Transcript),
            SessionEffect::StartChat(start) => {
                self.start(start.stream, Kind::Chat);
                self.early.extend(start.is_early.then_some((start.stream, Kind::Chat)));
            }
            SessionEffect::StartSpeech(start) => {
                self.start(start.stream, Kind::Speech);
                self.early.extend(start.is_early.then_some((start.stream, Kind::Speech)));
            }
            SessionEffect::Hear { stream, .. } | SessionEffect::EndSound { stream } => {
                assert_eq!(self.streams.get(&stream), Some(&Kind::Transcript));
            }
            SessionEffect::Say { stream, .. } | SessionEffect::EndText { stream } => {
                assert_eq!(self.streams.get(&stream), Some(&Kind::Speech));
            }
            SessionEffect::HoldChat { stream } | SessionEffect::GoOnWithChat { stream } => {
                assert!(self.started.contains(&stream));
            }
            SessionEffect::Cancel { stream } => {
                assert!(self.started.contains(&stream) && !self.early.contains_key(&stream));
                self.streams.remove(&stream);
            }
            SessionEffect::Keep { stream } => assert!(self.early.remove(&stream).is_some()),
            SessionEffect::Discard { stream } => {
                let (running, early) = (self.streams.remove(&stream), self.early.remove(&stream));
                match early {
                    // The model may have written all of it.
                    Some(Kind::Chat) => {}
                    Some(early) => assert_eq!(running, Some(early)),
                    None => assert_eq!(running, Some(Kind::Transcript)),
                }
            }
            SessionEffect::JudgeTurn { turn, .. } => self.question = turn,
            SessionEffect::Close { .. } => self.is_closed = true,
            SessionEffect::Send(event) => self.take_event(event),
            SessionEffect::WarmPrompt(_)
            | SessionEffect::WarmWords(_)
            | SessionEffect::TurnMeasured { .. } => {}
        }
    }

    fn take_event(&mut self, event: RealtimeEvent) {
        match event {
            RealtimeEvent::ResponseCreated(response) => {
                self.open.insert(response.id, response.is_out_of_band);
                assert!(self.open.values().filter(|is_outside| !**is_outside).count() <= 1);
            }
            RealtimeEvent::ResponseDone(response) => {
                assert!(self.open.remove(&response.id).is_some(), "{} ends twice", response.id);
            }
            RealtimeEvent::SpeechStarted { .. } => {
                assert!(!std::mem::replace(&mut self.is_speaking, true));
            }
            RealtimeEvent::SpeechStopped { .. } => {
                assert!(std::mem::replace(&mut self.is_speaking, false));
            }
            RealtimeEvent::ItemAdded { item, .. } => {
                assert!(self.items.insert(item.id.clone()), "{} is added twice", item.id);
            }
            RealtimeEvent::OutputItemAdded { response_id, .. }
            | RealtimeEvent::OutputItemDone { response_id, .. } => self.is_open(&response_id),
            RealtimeEvent::PartAdded { at, .. }
            | RealtimeEvent::PartDone { at, .. }
            | RealtimeEvent::TextDelta { at, .. }
            | RealtimeEvent::TextDone { at, .. }
            | RealtimeEvent::SpokenTextDelta { at, .. }
            | RealtimeEvent::SpokenTextDone { at, .. }
            | RealtimeEvent::AudioDelta { at, .. }
            | RealtimeEvent::AudioDone { at }
            | RealtimeEvent::ArgumentsDelta { at, .. }
            | RealtimeEvent::ArgumentsDone { at, .. } => self.is_open(&at.response_id),
            _ => {}
        }
    }

    fn is_open(&self, response_id: &str) {
        assert!(self.open.contains_key(response_id), "an event of {response_id}, which has ended");
    }
}

fn failure() -> ModelError {
    ModelError::EngineFailed { engine: "scripted", detail: "it broke".to_owned() }
}

/// A step of a stream, and whether it is the last one.
fn step<E>(number: u8, events: Vec<E>, last: Option<E>) -> (Option<Result<E, ModelError>>, bool) {
    match (usize::from(number), last) {
        (0, Some(last)) => (Some(Ok(last)), true),
        (0, None) => (None, true),
        (1, _) => (Some(Err(failure())), true),
        (number, _) => (events.into_iter().nth(number - 2).map(Ok), false),
    }
}

fn command(number: u8, script: &Script) -> RealtimeCommand {
    let outside = ResponseOptions { is_out_of_band: true, ..ResponseOptions::default() };
    let mut settings = Box::new(script.session.settings().clone());
    match number {
        0 => RealtimeCommand::CommitInput,
        1 => RealtimeCommand::ClearInput,
        2 | 3 => RealtimeCommand::CreateResponse(Box::default()),
        4 => RealtimeCommand::CreateResponse(Box::new(outside)),
        5 => RealtimeCommand::CancelResponse { id: None },
        6 => RealtimeCommand::ClearOutput,
        7 => RealtimeCommand::DeleteItem { id: "item_1".to_owned() },
        8 => RealtimeCommand::TruncateItem {
            id: "item_3".to_owned(),
            content_index: 0,
            audio_end_ms: 100,
        },
        _ => {
            settings.turn_detection = match settings.turn_detection {
                Some(_) => None,
                None => Some(TurnDetection::default()),
            };
            RealtimeCommand::Update(settings)
        }
    }
}

/// The input for an act, if its stream exists.
fn input(act: Act, seen: &mut Seen) -> Option<SessionInput> {
    let (input, stream, is_last) = match act {
        Act::Hear(number) => {
            let stream = seen.latest(Kind::Transcript)?;
            let said = ["", " Hello", " [noise]"].map(|text| TranscriptEvent::Delta(text.into()));
            let done = TranscriptEvent::Done(TranscriptSummary::default());
            let (event, is_last) = step(number, said.into(), Some(done));
            (SessionInput::Transcript { stream, event }, stream, is_last)
        }
        Act::Write(number) => {
            let stream = seen.latest(Kind::Chat)?;
            let (id, name) = ("call".to_owned(), "light".to_owned());
            let events = vec![
                ChatEvent::Text("Good morning, Ann.".to_owned()),
                ChatEvent::Reasoning("hm".to_owned()),
                ChatEvent::ToolCall { index: 0, id, name },
                ChatEvent::ToolArguments { index: 0, piece: "{}".to_owned() },
                ChatEvent::TurnEnd { probability: 0.01 },
            ];
            let (event, is_last) = step(number, events, Some(done(FinishReason::Stop)));
            (SessionInput::Chat { stream, event }, stream, is_last)
        }
        Act::Sound(number) => {
            let stream = seen.latest(Kind::Speech)?;
            let events = [50, 24_000].map(|samples| SpeechEvent::Audio(vec![0.5; samples]));
            let (event, is_last) = step(number, events.into(), None);
            (SessionInput::Speech { stream, event }, stream, is_last)
        }
        Act::Judge(is_complete) => {
            let probability = if is_complete { 0.9 } else { 0.1 };
            return Some(SessionInput::TurnJudged { turn: seen.question, probability });
        }
        Act::Speak(_) | Act::Silence(_) | Act::Wait(_) | Act::Command(_) => return None,
    };
    if is_last {
        seen.streams.remove(&stream);
    }
    Some(input)
}

proptest! {
    #[test]
    fn every_session_keeps_the_rules(acts in prop::collection::vec(act(), 1..80)) {
        let mut script = Script::new(|_| {});
        let mut seen = Seen::default();
        for act in acts {
            let inputs = match act {
                Act::Speak(frames) => vec![SessionInput::Sound(vec![0.9; frames as usize * 512])],
                Act::Silence(frames) => vec![SessionInput::Sound(vec![0.0; frames as usize * 512])],
                Act::Wait(ms) => {
                    script.now += Duration::from_millis(ms);
                    vec![SessionInput::Tick]
                }
                Act::Command(number) => {
                    let command = command(number, &script);
                    vec![SessionInput::Command { command, event_id: None }]
                }
                other => input(other, &mut seen).into_iter().collect(),
            };
            for input in inputs {
                script.session.handle(input, script.now);
                let unheard = script.session.take_unheard();
                if !unheard.is_empty() {
                    script.session.handle(SessionInput::Sound(unheard), script.now);
                }
                while let Some(effect) = script.session.next_effect() {
                    seen.take(effect);
                }
            }
        }
        script.session.handle(SessionInput::Tick, script.now + SESSION_MAX);
        while let Some(effect) = script.session.next_effect() {
            seen.take(effect);
        }
        prop_assert!(seen.is_closed && !seen.is_speaking);
        prop_assert!(seen.open.is_empty(), "open: {:?}", seen.open);
        prop_assert!(seen.streams.is_empty(), "running: {:?}", seen.streams);
    }
}
