//! Drives one session: reads the socket, runs the effects of its state machine, and writes its events.
//! One task owns all of it, so the end of the task ends every stage.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{Message, WebSocket};
use futures::StreamExt;
use futures::stream::SplitStream;
use hob_core::realtime::{
    RealtimeEvent, RealtimeFault, RealtimeResponse, RealtimeSettings, ResponseStatus, SoundEncoding,
};
use hob_core::{Chat, Sound, TurnModel};
use hob_speech::decode::DecodeError;
use hob_speech::live::{LiveSoundReader, LiveSoundWriter};
use hob_voice::{SessionEffect, SessionInput, SessionOptions, VoiceSession};
use hob_wire::{ClientInput, RealtimeDialect, RealtimeWriter, parse_client_event};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{sleep_until, timeout};

use super::outgoing::{ClientStalled, Outbound, Outgoing, outgoing};
use super::pings::Pings;
use super::recording::{SentBy, SessionRecording};
use super::stages::Stages;
use super::turn_log::{MeasuredTurn, TurnLog};
use super::warm_up::{WarmTurnTaking, warm_up};
use super::{EVENT_BYTES_MAX, chat_name};
use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::reloadable_state::ReloadableState;
use crate::request_body::RequestGuards;
use crate::session_slots::SessionSlot;

/// How long a client may take to answer the last message.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);
/// Received sound that is handled at a time: 1 s of 16 bits at 24 kHz.
const SOUND_PIECE_BYTES: usize = 48_000;
/// Sound that is handled at a time when it is heard again: 1 s.
const UNHEARD_PIECE_SAMPLES: usize = Sound::RATE_HZ as usize;
/// Sound in one event that is sent: a tenth of a second.
const SOUND_PIECES_PER_SECOND: usize = 10;

/// Codes of RFC 6455.
const GOING_AWAY: u16 = 1001;
const POLICY_VIOLATION: u16 = 1008;
const TOO_BIG: u16 = 1009;
const INTERNAL_ERROR: u16 = 1011;

/// What a session starts with.
pub(super) struct Opening {
    pub(super) context: RequestContext,
    /// The session is one of the key's concurrent answers.
    pub(super) guards: RequestGuards,
    pub(super) state: ReloadableState,
    pub(super) settings: RealtimeSettings,
    pub(super) dialect: RealtimeDialect,
    pub(super) id: String,
}

/// Why a session ends.
enum Ending {
    /// The client closed, or is gone.
    Client,
    Stalled,
    /// The server closes.
    Closed(u16, String),
}

impl From<ClientStalled> for Ending {
    fn from(_: ClientStalled) -> Ending {
        Ending::Stalled
    }
}

/// Runs a session to its end. The slot is free when the client has answered the last message, or has not answered it in time.
pub(super) async fn converse(socket: WebSocket, opening: Opening, slot: SessionSlot) {
    let (sink, mut source) = socket.split();
    let (outbound, writer) = outgoing();
    let id = opening.context.id;
    let turns = TurnLog { context: opening.context.clone(), state: opening.state.clone() };
    tracing::info!(id, session = opening.id.as_str(), "a realtime session began");
    let driving = async {
        let ending = drive(&mut source, &outbound, opening, &slot).await;
        let (code, reason) = match ending {
            Ending::Client => (1000, String::new()),
            Ending::Stalled => (POLICY_VIOLATION, "the client reads nothing".to_owned()),
            Ending::Closed(code, reason) => (code, reason),
        };
        // A client that is gone gets no last message.
        let _gone = outbound.send(Outgoing::Close { code, reason }).await;
        drop(outbound);
        code
    };
    let ((), code) = tokio::join!(writer.run(sink, &turns), driving);
    let farewell = async { while let Some(Ok(_)) = source.next().await {} };
    let _silent = timeout(FAREWELL_TIME_MAX, farewell).await;
    tracing::info!(id, code, "a realtime session ended");
}

async fn drive(
    source: &mut SplitStream<WebSocket>,
    outbound: &Outbound,
    opening: Opening,
    slot: &SessionSlot,
) -> Ending {
    let Opening { context, mut guards, state, mut settings, dialect, id } = opening;
    guards.begin();
    let recording = recorded(&context, &id).await;
    settings.is_recorded = recording.is_some();
    let mut writer = RealtimeWriter::new(id, dialect);
    let warm = tokio::select! {
        warm = outbound.ping_until(warm_up(&context, &settings)) => warm,
        () = slot.stop.cancelled() => return stopping(),
    };
    let WarmTurnTaking { detector, turn_model } = match warm {
        Ok(Ok(warm)) => warm,
        Ok(Err(error)) => return not_loaded(&error, outbound, &mut writer).await,
        Err(ClientStalled) => return Ending::Client,
    };
    let options = SessionOptions {
        settings,
        client_cancels_echo: context.options().listens_while_speaking,
        judges_turns: turn_model.is_some(),
    };
    let mut driver = Driver {
        session: VoiceSession::new(options, detector, Instant::now()),
        stages: Stages::default(),
        sounds: Sounds::default(),
        reader: None,
        context,
        state,
        writer,
        outbound,
        turn_model,
        recording,
        pings: Pings::new(),
    };
    let Err(ending) = driver.run(source, slot).await;
    ending
}

/// The recording of the session, if sessions are recorded and there is room.
async fn recorded(context: &RequestContext, id: &str) -> Option<SessionRecording> {
    let (folder, name) = (context.options().recordings.clone()?, id.to_owned());
    spawn_blocking(move || SessionRecording::begin(&folder, &name)).await.ok()?
}

fn stopping() -> Ending {
    Ending::Closed(GOING_AWAY, "this hob is stopping".to_owned())
}

async fn not_loaded(error: &ApiError, outbound: &Outbound, writer: &mut RealtimeWriter) -> Ending {
    let code = Some("model_load_error".to_owned());
    let fault = RealtimeFault { code, ..RealtimeFault::from(error.body()) };
    if let Some(event) = writer.event(RealtimeEvent::Failed(fault))
        && outbound.send(Outgoing::Event(event)).await.is_err()
    {
        return Ending::Stalled;
    }
    Ending::Closed(INTERNAL_ERROR, "a model of the session did not load".to_owned())
}

struct Driver<'a> {
    session: VoiceSession,
    stages: Stages,
    sounds: Sounds,
    reader: Option<LiveSoundReader>,
    context: RequestContext,
    state: ReloadableState,
    writer: RealtimeWriter,
    outbound: &'a Outbound,
    turn_model: Option<Arc<dyn TurnModel>>,
    recording: Option<SessionRecording>,
    pings: Pings,
}

impl Driver<'_> {
    async fn run(
        &mut self,
        source: &mut SplitStream<WebSocket>,
        slot: &SessionSlot,
    ) -> Result<Infallible, Ending> {
        loop {
            self.do_effects().await?;
            self.catch_up(slot).await?;
            let (tick, is_behind) = (self.tick(), self.outbound.is_behind());
            self.stages.set_client_behind(is_behind);
            let has_stages = !self.stages.is_empty();
            tokio::select! {
                message = source.next() => match message {
                    Some(Ok(message)) => {
                        self.pings.answered();
                        self.receive(message, slot).await?;
                    }
                    Some(Err(error)) => return Err(unreceived(&error)),
                    None => return Err(Ending::Client),
                },
                Some(input) = self.stages.next(), if has_stages => self.handle(input),
                () = tick => self.handle(SessionInput::Tick),
                // The next round lets answers and voices go on.
                () = self.outbound.caught_up(), if is_behind => {}
                () = self.pings.due() => self.ping().await?,
                () = self.outbound.closed() => return Err(Ending::Stalled),
                () = slot.stop.cancelled() => return Err(stopping()),
            }
        }
    }

    async fn ping(&mut self) -> Result<(), Ending> {
        if self.pings.client_is_gone() {
            let reason = "the client answers no ping".to_owned();
            return Err(Ending::Closed(POLICY_VIOLATION, reason));
        }
        self.outbound.send(Outgoing::Ping).await?;
        Ok(())
    }

    fn handle(&mut self, input: SessionInput) {
        self.session.handle(input, Instant::now());
    }

    /// Ends when the session has to look at the time.
    fn tick(&self) -> impl Future<Output = ()> + use<> {
        let deadline = self.session.deadline().map(tokio::time::Instant::from_std);
        async move {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Reads no more sound until models have taken enough of what waits. The client's microphone is not silent meanwhile.
    async fn catch_up(&mut self, slot: &SessionSlot) -> Result<(), Ending> {
        while !self.stages.keeps_up() {
            self.stages.set_client_behind(self.outbound.is_behind());
            self.session.expect_sound(Instant::now());
            let (taken, tick) = (self.stages.sound_taken(), self.tick());
            let input = tokio::select! {
                Some(input) = self.stages.next() => Some(input),
                () = taken => None,
                () = tick => Some(SessionInput::Tick),
                () = self.pings.due() => {
                    self.outbound.send(Outgoing::Ping).await?;
                    None
                }
                () = self.outbound.closed() => return Err(Ending::Stalled),
                () = slot.stop.cancelled() => return Err(stopping()),
            };
            self.session.expect_sound(Instant::now());
            if let Some(input) = input {
                self.handle(input);
                self.do_effects().await?;
            }
        }
        Ok(())
    }

    async fn receive(&mut self, message: Message, slot: &SessionSlot) -> Result<(), Ending> {
        let input = match &message {
            Message::Text(text) => parse_client_event(text.as_bytes(), self.session.settings()),
            Message::Binary(_) => Err(RealtimeFault {
                kind: "invalid_request_error".to_owned(),
                code: Some("invalid_message".to_owned()),
                message: "a message must be text with one event as JSON, and is binary".to_owned(),
                ..RealtimeFault::default()
            }),
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(Ending::Client),
        };
        match input {
            Ok(ClientInput::Sound(bytes)) => self.hear(&bytes, slot).await?,
            Ok(ClientInput::Command { command, event_id }) => {
                if let (Some(recording), Message::Text(text)) = (&mut self.recording, &message) {
                    recording.event(SentBy::Client, text.as_str());
                }
                self.handle(SessionInput::Command { command, event_id });
                self.check_model();
                for piece in self.session.take_unheard().chunks(UNHEARD_PIECE_SAMPLES) {
                    self.take_sound(piece.to_vec(), slot).await?;
                }
            }
            Err(fault) => self.send(RealtimeEvent::Failed(fault)).await?,
        }
        Ok(())
    }

    /// Takes sound in pieces: one event can have minutes of it, and other requests must not wait for all of them.
    async fn hear(&mut self, bytes: &[u8], slot: &SessionSlot) -> Result<(), Ending> {
        for piece in bytes.chunks(SOUND_PIECE_BYTES) {
            let samples = self.read_sound(piece).map_err(|error| unreadable(&error))?;
            if let Some(recording) = &mut self.recording {
                recording.record_user(&samples);
            }
            self.take_sound(samples, slot).await?;
        }
        Ok(())
    }

    async fn take_sound(&mut self, samples: Vec<f32>, slot: &SessionSlot) -> Result<(), Ending> {
        self.handle(SessionInput::Sound(samples));
        self.do_effects().await?;
        self.catch_up(slot).await?;
        yield_now().await;
        Ok(())
    }

    /// Tells the session what the chat model can do. A command may have chosen another one, and after a reload the name may be
    /// that of a team, which is not asked early and counts the tokens of all its models.
    fn check_model(&mut self) {
        let name = self.session.settings().model.clone();
        let context = self.context.for_next_request(self.state.config()).ok();
        let find = |context: &RequestContext| {
            let model = context.resolve::<Chat>(chat_name(context, name)).ok()?.model;
            Some((context.own_model(&model), model))
        };
        let (own, registered) = context.as_ref().and_then(find).unzip();
        let model = registered.as_ref().map(|registered| &registered.model);
        let is_team = model.is_some_and(|model| model.is_team());
        let context_tokens = model.map_or(0, |model| model.card().context_tokens);
        let is_judge = own.flatten().is_some_and(|own| !own.model.card().is_recurrent);
        self.session.set_answers_early(!is_team);
        self.session.set_judges_words(is_judge);
        self.session.set_context_tokens(if is_team { 0 } else { context_tokens });
    }

    /// The first sound, and sound in another encoding, begin with a reader of their own.
    fn read_sound(&mut self, bytes: &[u8]) -> Result<Vec<f32>, DecodeError> {
        let encoding = self.session.settings().input_encoding;
        let kept = self.reader.take().filter(|reader| reader.encoding() == encoding);
        let mut reader = kept.map_or_else(|| LiveSoundReader::new(encoding), Ok)?;
        let samples = reader.read(bytes);
        self.reader = Some(reader);
        samples
    }

    async fn do_effects(&mut self) -> Result<(), Ending> {
        while let Some(effect) = self.session.next_effect() {
            let failure = match effect {
                SessionEffect::Send(event) => {
                    self.send(event).await?;
                    None
                }
                SessionEffect::Hear { stream, samples } => self.stages.hear(stream, samples),
                SessionEffect::Say { stream, text } => self.stages.say(stream, text),
                SessionEffect::Close { code, reason } => return Err(Ending::Closed(code, reason)),
                SessionEffect::TurnMeasured { response_id, model, stages, audible_at } => {
                    let is_reported = self.session.settings().reports_turn_stages;
                    let turn = MeasuredTurn { response_id, model, stages, audible_at, is_reported };
                    self.outbound.send(Outgoing::Measured(turn)).await?;
                    None
                }
                other => {
                    self.start_or_end(other);
                    None
                }
            };
            if let Some(failure) = failure {
                self.handle(failure);
            }
        }
        Ok(())
    }

    fn start_or_end(&mut self, effect: SessionEffect) {
        let context = || self.context.for_next_request(self.state.config());
        match effect {
            SessionEffect::StartTranscript(start) => {
                self.stages.transcribe(context(), start);
                self.check_model();
            }
            SessionEffect::StartChat(start) => self.stages.chat(context(), *start),
            SessionEffect::HoldChat { stream } => self.stages.read_chat(stream, false),
            SessionEffect::GoOnWithChat { stream } => self.stages.read_chat(stream, true),
            SessionEffect::StartSpeech(start) => self.stages.speak(context(), start),
            SessionEffect::WarmWords(_) if !self.stages.can_warm_words() => {}
            SessionEffect::WarmPrompt(request) | SessionEffect::WarmWords(request) => {
                if let Ok(context) = context() {
                    let model = self.session.settings().model.clone();
                    self.stages.warm(&context, model, *request);
                }
            }
            SessionEffect::JudgeTurn { turn, samples } => {
                if let Some(model) = &self.turn_model {
                    self.stages.judge(Arc::clone(model), turn, samples);
                }
            }
            SessionEffect::EndSound { stream } => self.stages.end_sound(stream),
            SessionEffect::EndText { stream } => self.stages.end_text(stream),
            SessionEffect::Cancel { stream } => {
                self.stages.cancel(stream);
            }
            SessionEffect::Keep { stream } => self.stages.keep(stream),
            SessionEffect::Discard { stream } => self.stages.discard(stream),
            SessionEffect::Send(_)
            | SessionEffect::Hear { .. }
            | SessionEffect::Say { .. }
            | SessionEffect::Close { .. }
            | SessionEffect::TurnMeasured { .. } => {}
        }
    }

    async fn send(&mut self, event: RealtimeEvent) -> Result<(), Ending> {
        match &event {
            RealtimeEvent::ResponseCreated(response) => self.sounds.begin(response),
            RealtimeEvent::AudioDelta { at, samples, sample_rate_hz } => {
                if let Some(recording) = &mut self.recording {
                    recording.record_assistant(samples, *sample_rate_hz);
                }
                let bytes = self.sounds.write(&at.response_id, samples, *sample_rate_hz);
                let bytes = bytes.map_err(|error| unreadable(&error))?;
                return self.send_sound(at, &bytes).await;
            }
            RealtimeEvent::AudioDone { at } => {
                let bytes = self.sounds.finish(&at.response_id);
                let bytes = bytes.map_err(|error| unreadable(&error))?;
                self.send_sound(at, &bytes).await?;
            }
            RealtimeEvent::ResponseDone(response) => {
                self.sounds.end(&response.id);
                if matches!(response.status, ResponseStatus::Cancelled(_)) {
                    self.outbound.cancel(&response.id);
                }
            }
            _ => {}
        }
        if let Some(event) = self.writer.event(event) {
            if let Some(recording) = &mut self.recording {
                recording.event(SentBy::Server, &event);
            }
            self.outbound.send(Outgoing::Event(event)).await?;
        }
        Ok(())
    }

    async fn send_sound(
        &mut self,
        at: &hob_core::realtime::ContentRef,
        bytes: &[u8],
    ) -> Result<(), Ending> {
        let encoding = self.sounds.encoding(&at.response_id);
        let bytes_max = encoding.sample_rate_hz() as usize * encoding.bytes_per_sample()
            / SOUND_PIECES_PER_SECOND;
        for piece in bytes.chunks(bytes_max) {
            let event = self.writer.sound(at.clone(), piece);
            let response_id = at.response_id.clone();
            self.outbound.send(Outgoing::Sound { response_id, event }).await?;
        }
        Ok(())
    }
}

/// A client whose message is too long gets a last message with the reason. The library has no type for this error.
fn unreceived(error: &axum::Error) -> Ending {
    if error.to_string().contains("too long") {
        let mib = EVENT_BYTES_MAX >> 20;
        return Ending::Closed(TOO_BIG, format!("an event may have up to {mib} MiB"));
    }
    Ending::Client
}

/// Sample rates of models and of clients are known, so this is a mistake of hob.
fn unreadable(error: &DecodeError) -> Ending {
    tracing::error!(%error, "sound of a realtime session could not be converted");
    Ending::Closed(INTERNAL_ERROR, "the sound could not be converted".to_owned())
}

/// The sound of running responses, each in its own encoding.
#[derive(Default)]
struct Sounds(HashMap<String, ResponseSound>);

struct ResponseSound {
    encoding: SoundEncoding,
    /// Begins with the first sound, whose rate is the model's.
    writer: Option<LiveSoundWriter>,
}

impl Sounds {
    fn begin(&mut self, response: &RealtimeResponse) {
        let sound = ResponseSound { encoding: response.encoding, writer: None };
        self.0.insert(response.id.clone(), sound);
    }

    fn encoding(&self, response_id: &str) -> SoundEncoding {
        self.0.get(response_id).map(|sound| sound.encoding).unwrap_or_default()
    }

    fn write(
        &mut self,
        response_id: &str,
        samples: &[f32],
        rate_hz: u32,
    ) -> Result<Vec<u8>, DecodeError> {
        let Some(sound) = self.0.get_mut(response_id) else { return Ok(Vec::new()) };
        let writer = match &mut sound.writer {
            Some(writer) => writer,
            none => none.insert(LiveSoundWriter::new(sound.encoding, rate_hz)?),
        };
        writer.write(samples)
    }

    fn finish(&mut self, response_id: &str) -> Result<Vec<u8>, DecodeError> {
        let writer = self.0.get_mut(response_id).and_then(|sound| sound.writer.take());
        writer.map_or(Ok(Vec::new()), LiveSoundWriter::finish)
    }

    fn end(&mut self, response_id: &str) {
        self.0.remove(response_id);
    }
}
