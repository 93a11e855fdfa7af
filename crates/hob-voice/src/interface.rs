//! The interface of a session: what its driver reports, and what it asks its driver to do.
//! Streams are numbered, so that events of a cancelled stream are recognised and dropped.

use std::time::{Duration, Instant};

use hob_core::realtime::{InputTranscription, RealtimeCommand, RealtimeEvent, RealtimeSettings};
use hob_core::{ChatEvent, ChatRequest, ModelError, SpeechEvent, Speed, TranscriptEvent};

/// What the driver reports to a session.
#[derive(Debug)]
pub enum SessionInput {
    /// An event of the client, with the client's own id for it.
    Command {
        command: RealtimeCommand,
        event_id: Option<String>,
    },
    /// More sound of the user, 16 kHz.
    Sound(Vec<f32>),
    /// An event of a stream that the session started. `None`: it ended.
    Transcript {
        stream: u64,
        event: Option<Result<TranscriptEvent, ModelError>>,
    },
    Chat {
        stream: u64,
        event: Option<Result<ChatEvent, ModelError>>,
    },
    /// The speech stream began, and has this rate.
    SpeechBegan {
        stream: u64,
        sample_rate_hz: u32,
    },
    Speech {
        stream: u64,
        event: Option<Result<SpeechEvent, ModelError>>,
    },
    /// The turn model heard the sound of [`SessionEffect::JudgeTurn`]: how likely the sentence is complete.
    TurnJudged {
        turn: u64,
        probability: f32,
    },
    /// [`VoiceSession::deadline`] has passed.
    Tick,
}

/// What the driver must do, in order.
#[derive(Debug)]
pub enum SessionEffect {
    Send(RealtimeEvent),
    StartTranscript(TranscriptStart),
    /// More sound for a running transcript, 16 kHz.
    Hear {
        stream: u64,
        samples: Vec<f32>,
    },
    /// No more sound will come.
    EndSound {
        stream: u64,
    },
    /// Asks the turn model about the last 8 s of a turn, 16 kHz.
    JudgeTurn {
        turn: u64,
        samples: Vec<f32>,
    },
    /// Computes the beginning of a prompt that will come, so that its answer begins sooner. Without an answer.
    WarmPrompt(Box<ChatRequest>),
    /// The same with words of a turn that goes on. They may change: then a part of the prompt is computed in vain.
    WarmWords(Box<ChatRequest>),
    StartChat(Box<ChatStart>),
    /// Reads no more of an answer until [`SessionEffect::GoOnWithChat`]: its first clause is about to be heard, and the
    /// voice needs the cores.
    HoldChat {
        stream: u64,
    },
    GoOnWithChat {
        stream: u64,
    },
    StartSpeech(SpeechStart),
    /// More text for a running speech stream. An empty piece lets the model speak what it has.
    Say {
        stream: u64,
        text: String,
    },
    /// No more text will come.
    EndText {
        stream: u64,
    },
    /// Drops a stream of any kind, and its work.
    Cancel {
        stream: u64,
    },
    /// The session gives an early answer: from now on its stream, or the stream of its voice, counts as a request.
    Keep {
        stream: u64,
    },
    /// Drops a stream whose result the session does not use, and its work. The stream counts as no request: it is an
    /// early answer, its voice, or a transcript of noise or of sound that another transcript hears again.
    Discard {
        stream: u64,
    },
    /// The answer to a turn becomes audible: the turn's times, for the request log.
    TurnMeasured {
        response_id: String,
        /// The chat model that answered. `None`: the server's default.
        model: Option<String>,
        stages: TurnStages,
        /// When the client can play the first audible sample.
        audible_at: Instant,
    },
    /// Closes the socket with this code.
    Close {
        code: u16,
        reason: String,
    },
}

/// A transcript to start. Its sound follows as [`SessionEffect::Hear`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptStart {
    pub stream: u64,
    pub options: InputTranscription,
}

/// An answer to start.
#[derive(Debug)]
pub struct ChatStart {
    pub stream: u64,
    /// `None`: the server's default.
    pub model: Option<String>,
    pub request: ChatRequest,
    /// The turn may not be over: the stream counts as a request from [`SessionEffect::Keep`] on.
    pub is_early: bool,
}

/// A speech stream to start. Its text follows as [`SessionEffect::Say`].
#[derive(Clone, Debug, PartialEq)]
pub struct SpeechStart {
    pub stream: u64,
    pub model: Option<String>,
    pub voice: Option<String>,
    pub speed: Speed,
    /// The turn may not be over: the stream counts as a request from [`SessionEffect::Keep`] on.
    pub is_early: bool,
}

impl SpeechStart {
    pub(crate) fn new(stream: u64, settings: &RealtimeSettings) -> SpeechStart {
        let (model, voice) = (settings.speech_model.clone(), settings.voice.clone());
        SpeechStart { stream, model, voice, speed: settings.speed, is_early: false }
    }
}

/// The parts of the time from the end of the user's speech to the first audible sample of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnStages {
    /// From the beginning of the silence, as the voice detector hears it, to the end of the turn.
    pub endpoint: Duration,
    /// To the final transcript.
    pub transcript: Duration,
    /// To the first text of the answer.
    pub first_text: Duration,
    /// To the first clause.
    pub first_clause: Duration,
    /// To the first audible sample.
    pub first_sound: Duration,
}

/// What a session needs to know besides its settings.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub settings: RealtimeSettings,
    /// The client removes its own sound from the microphone. Without that, hob does not listen while it speaks. The
    /// client's own setting wins.
    pub client_cancels_echo: bool,
    /// The driver has a turn model for [`SessionEffect::JudgeTurn`]. Without one, `semantic_vad` is an error.
    pub judges_turns: bool,
}
