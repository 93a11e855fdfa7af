//! The settings of a session. A session starts with the defaults, and the client changes them.
//! They are always complete: a client's change names a few of them, and `hob-wire` merges it into the settings in force.

use std::time::Duration;

use crate::chat::{Effort, Thinking, Tool, ToolChoice};
use crate::{Speed, enum_table};

/// All settings that are in force.
#[derive(Clone, Debug, PartialEq)]
pub struct RealtimeSettings {
    pub kind: SessionKind,
    /// The chat model or alias. `None`: the server's default.
    pub model: Option<String>,
    /// The system message.
    pub instructions: String,
    pub output: OutputModality,
    pub input_encoding: SoundEncoding,
    pub noise_reduction: Option<NoiseReduction>,
    /// Whether and how the client gets the text of its speech. `None`: in a conversation, only the chat model gets the text;
    /// in a transcription session, the client gets it anyway.
    pub transcription: Option<InputTranscription>,
    /// `None`: the client says when a turn ends.
    pub turn_detection: Option<TurnDetection>,
    pub output_encoding: SoundEncoding,
    /// The speech model or alias. `None`: the server's default.
    pub speech_model: Option<String>,
    /// `None`: the server's default.
    pub voice: Option<String>,
    pub speed: Speed,
    pub tools: Vec<Tool>,
    pub tool_choice: ToolChoice,
    /// Allows more than one call in one answer.
    pub parallel_tool_calls: bool,
    /// Tokens of one response. `None`: no limit of the client's.
    pub tokens_max: Option<u32>,
    pub thinking: Thinking,
    pub truncation: PromptTruncation,
    /// Whether the server listens while it speaks, so that speech can interrupt it. `None`: the server's own setting.
    pub listens_while_speaking: Option<bool>,
    /// Whether the server writes the session to its disk. The client cannot change it.
    pub is_recorded: bool,
    /// Whether the server sends the client the times of each turn.
    pub reports_turn_stages: bool,
    /// Whether the server sends the client text of its speech that may still change.
    pub reports_interim_text: bool,
}

/// The settings of a client that changes nothing: spoken answers without thinking, and turns that end after half a second of
/// silence.
impl Default for RealtimeSettings {
    fn default() -> RealtimeSettings {
        RealtimeSettings {
            kind: SessionKind::default(),
            model: None,
            instructions: String::new(),
            output: OutputModality::default(),
            input_encoding: SoundEncoding::default(),
            noise_reduction: None,
            transcription: None,
            turn_detection: Some(TurnDetection::default()),
            output_encoding: SoundEncoding::default(),
            speech_model: None,
            voice: None,
            speed: Speed::NORMAL,
            tools: Vec::new(),
            tool_choice: ToolChoice::default(),
            parallel_tool_calls: true,
            tokens_max: None,
            // A person who waits for a voice hears nothing of what a model thinks.
            thinking: Thinking { effort: Some(Effort::None), tokens_max: None },
            truncation: PromptTruncation::default(),
            listens_while_speaking: None,
            is_recorded: false,
            reports_turn_stages: false,
            reports_interim_text: false,
        }
    }
}

/// OpenAI's values. Only `resumes_response` is hob's own setting.
impl Default for TurnDetection {
    fn default() -> TurnDetection {
        TurnDetection {
            detector: TurnDetector::Server {
                threshold: 0.5,
                prefix_padding: Duration::from_millis(300),
                silence: Duration::from_millis(500),
                idle_timeout: None,
            },
            creates_response: true,
            interrupts_response: true,
            resumes_response: true,
        }
    }
}

enum_table! {
    /// What the session is for. The names here and in the next tables are OpenAI's.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum SessionKind: name {
        /// The server answers.
        #[default]
        Conversation = "realtime",
        /// The server transcribes, and never answers.
        Transcription = "transcription",
    }
}

enum_table! {
    /// The form of a response.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OutputModality: name {
        Text = "text",
        /// Sound with its text.
        #[default]
        Audio = "audio",
    }
}

/// What prompts leave out of a conversation that is too long for the chat model. The conversation keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PromptTruncation {
    /// The oldest items. The session chooses how many.
    #[default]
    Auto,
    /// Nothing: the response fails.
    Disabled,
    /// The oldest items, until the others take this part of the room: 0 to 1.
    Retain {
        ratio: f64,
        /// Tokens of the conversation without instructions and tools. `None`: as many as the model takes.
        tokens_max: Option<u32>,
    },
}

enum_table! {
    /// How samples travel.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum SoundEncoding: name {
        /// 16-bit little-endian samples, mono, 24 kHz.
        #[default]
        Pcm16 = "audio/pcm",
        /// G.711 µ-law, 8 kHz.
        Mulaw = "audio/pcmu",
        /// G.711 A-law, 8 kHz.
        Alaw = "audio/pcma",
    }
}

impl SoundEncoding {
    pub fn sample_rate_hz(self) -> u32 {
        match self {
            SoundEncoding::Pcm16 => 24_000,
            SoundEncoding::Mulaw | SoundEncoding::Alaw => 8_000,
        }
    }

    pub fn bytes_per_sample(self) -> usize {
        match self {
            SoundEncoding::Pcm16 => 2,
            SoundEncoding::Mulaw | SoundEncoding::Alaw => 1,
        }
    }
}

enum_table! {
    /// Where the microphone is. hob keeps the setting and does not filter.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum NoiseReduction: name {
        #[default]
        NearField = "near_field",
        FarField = "far_field",
    }
}

/// How the client's speech becomes text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputTranscription {
    /// `None`: the server's default.
    pub model: Option<String>,
    /// ISO 639-1. `None`: the model detects it.
    pub language: Option<String>,
    /// Names and words that may come.
    pub prompt: Option<String>,
}

/// How the server finds the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnDetection {
    pub detector: TurnDetector,
    /// The end of a turn starts a response.
    pub creates_response: bool,
    /// Speech of the user ends the running response.
    pub interrupts_response: bool,
    /// An answer that a noise interrupted goes on.
    pub resumes_response: bool,
}

/// What ends a turn: OpenAI's `server_vad` or `semantic_vad`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TurnDetector {
    /// A silence of fixed length.
    Server {
        /// Sound counts as speech if the voice detector's probability is at least this: 0 to 1.
        threshold: f32,
        /// Sound that is kept before the first speech.
        prefix_padding: Duration,
        silence: Duration,
        /// After this long without speech, the server speaks. Counted from the end of the last response's sound.
        idle_timeout: Option<Duration>,
    },
    /// A model that hears whether the sentence is complete.
    Semantic { eagerness: Eagerness },
}

enum_table! {
    /// How soon the server speaks when a sentence seems to be incomplete.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Eagerness: name {
        Low = "low",
        Medium = "medium",
        High = "high",
        #[default]
        Auto = "auto",
    }
}

impl Eagerness {
    /// The longest silence within a sentence that seems to be incomplete.
    pub fn silence_max(self) -> Duration {
        match self {
            Eagerness::Low => Duration::from_secs(8),
            Eagerness::Medium | Eagerness::Auto => Duration::from_secs(4),
            Eagerness::High => Duration::from_secs(2),
        }
    }

    /// The longest silence after a sentence that sounds complete and has words after which more must follow, such as
    /// "If it rains tomorrow": half of [`Eagerness::silence_max`]. hob's own choice: a complete sentence that is taken
    /// for an open one waits this long, and a person who looks for a word seldom needs longer.
    pub fn open_silence_max(self) -> Duration {
        self.silence_max() / 2
    }
}
