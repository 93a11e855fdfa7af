//! The settings of a session as JSON: the same types are read from a client and written back to it.
//! A change is merged into the settings in force as JSON (`merge.rs`), and the result is read as a whole.

use std::time::Duration;

use hob_core::Speed;
use hob_core::chat::{Effort, Thinking};
use hob_core::realtime::{
    Eagerness, InputTranscription, NoiseReduction, OutputModality, PromptTruncation,
    RealtimeSettings, SessionKind, SoundEncoding, TurnDetection, TurnDetector,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tools::{RealtimeChoice, RealtimeTool, TokenLimit, choice_of, offer, tools_of};
use crate::request_value::{Either, JsonKind, Name, count_within, number_within, token_limit};
use crate::speech::{VoiceField, voice_id};
use crate::word::Word;
use crate::{WireError, checked_language, is_default_realtime_model};

/// The bounds of the times of a turn detection, in milliseconds.
const PADDING_MS_MAX: u32 = 10_000;
const SILENCE_MS_MAX: u32 = 60_000;
const IDLE_MS_MIN: u32 = 100;
const IDLE_MS_MAX: u32 = 600_000;

/// The type of the event with the times of a turn. A client that names it in `include` gets such events.
pub(super) const TURN_STAGES: &str = "hob.turn_stages";
/// The type of the event with text that may still change. A client that names it in `include` gets such events.
const INTERIM_TEXT: &str = "hob.interim_text";

/// All settings of a session. A change of the client is merged into them: what it leaves out stays, and `null` clears.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub(crate) struct RealtimeSession {
    /// `realtime`: the server answers. `transcription`: the server transcribes and never answers.
    r#type: Option<Word<SessionKind>>,
    /// The chat model. Default: the server's default, also for `gpt-realtime`.
    model: Option<Name>,
    /// The system message.
    instructions: Option<String>,
    /// `["audio"]`: sound with its text. `["text"]`: text alone.
    output_modalities: Option<Vec<Word<OutputModality>>>,
    audio: Option<SessionAudio>,
    /// Functions that the model may call and the client runs, at most 128.
    tools: Option<Vec<RealtimeTool>>,
    /// `none`, `auto`, `required`, or a function.
    tool_choice: Option<Either<String, RealtimeChoice>>,
    /// `false` allows one call in an answer. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    /// Most tokens of one response, or `inf`.
    max_output_tokens: Option<TokenLimit>,
    /// When the conversation is too long for the model, prompts leave out: `auto`, the oldest items; `disabled`, nothing.
    truncation: Option<Either<String, RetentionField>>,
    /// How much the model thinks before it answers. Default: not at all, because the user waits.
    reasoning: Option<RealtimeReasoning>,
    /// What else the server reports: `hob.turn_stages` and `hob.interim_text`, additions of hob. Other values are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include: Option<Vec<String>>,
    /// `true`: the server writes the session to its disk. An addition of hob, which a client cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<bool>,
}

/// The sound of a session.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
struct SessionAudio {
    input: Option<InputAudioSettings>,
    output: Option<OutputAudioSettings>,
}

/// The sound that the client sends.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
struct InputAudioSettings {
    format: Option<FormatField>,
    /// hob keeps the setting and does not filter.
    noise_reduction: Option<NoiseField>,
    /// Sends the client what it said as text. A session transcribes speech also without it.
    transcription: Option<TranscriptionField>,
    /// `null`: the client says when a turn ends.
    turn_detection: Option<TurnField>,
    /// `false`: hob does not listen while it speaks. It is for a client whose microphone hears its loudspeaker. An
    /// addition of hob; default: `realtime.listen_while_speaking` of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listen_while_speaking: Option<bool>,
}

/// The sound that the server sends.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub(super) struct OutputAudioSettings {
    format: Option<FormatField>,
    /// A voice of the speech model, or one of OpenAI's names.
    voice: Option<VoiceField>,
    /// The speech model. An addition of hob; default: the server's default.
    #[serde(default)]
    model: Option<Name>,
    /// From 0.25 to 4; 1 is the voice's own speed.
    speed: Option<f64>,
}

pub(super) type FormatField = Either<String, AudioFormatField>;

/// How samples travel: PCM of 16 bits at 24 kHz, or G.711 at 8 kHz.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub(super) struct AudioFormatField {
    /// `audio/pcm`, `audio/pcmu` or `audio/pcma`.
    r#type: Word<SoundEncoding>,
    /// Samples a second: 24000 for `audio/pcm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u32>,
}

impl JsonKind for AudioFormatField {}

/// Where the microphone is.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(inline)]
struct NoiseField {
    /// A client may set the `strength` alone.
    r#type: Option<Word<NoiseReduction>>,
}

/// How the client's speech becomes text.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
struct TranscriptionField {
    /// The transcription model. Default: the server's default, also for OpenAI's names.
    model: Option<Name>,
    /// A code of ISO 639-1, such as `en`. Default: the model detects it.
    language: Option<Name>,
    /// Names and words that may come.
    prompt: Option<String>,
}

/// What ends a turn of the user.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
struct TurnField {
    /// `server_vad`: a silence of fixed length. `semantic_vad`: a model that hears whether the sentence is complete.
    r#type: Option<TurnType>,
    /// The end of a turn starts a response. Default: `true`.
    create_response: Option<bool>,
    /// Speech of the user ends the running response. Default: `true`.
    interrupt_response: Option<bool>,
    /// An answer that was interrupted by a noise, such as a cough, goes on from there. An addition of hob. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resume_response: Option<bool>,
    /// Speech is more likely than this: 0 to 1. Default: 0.5.
    #[serde(default, deserialize_with = "number_within::<_, 0, 1>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f32>,
    /// Sound that is kept before the first speech. Default: 300.
    #[serde(default, deserialize_with = "count_within::<_, 0, PADDING_MS_MAX>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix_padding_ms: Option<u32>,
    /// The silence that ends a turn. Default: 500.
    #[serde(default, deserialize_with = "count_within::<_, 0, SILENCE_MS_MAX>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    silence_duration_ms: Option<u32>,
    /// After this long without speech, the server speaks.
    #[serde(default, deserialize_with = "count_within::<_, IDLE_MS_MIN, IDLE_MS_MAX>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_timeout_ms: Option<u32>,
    /// How soon the server speaks when a sentence seems to be incomplete: `low` waits longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    eagerness: Option<Word<Eagerness>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum TurnType {
    #[default]
    ServerVad,
    SemanticVad,
}

/// Prompts leave out the oldest items of a conversation that is too long, until a part of the room is used.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(inline)]
struct RetentionField {
    #[serde(default)]
    r#type: RetentionType,
    /// The part of the room that stays in use: 0 to 1.
    retention_ratio: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_limits: Option<ConversationLimit>,
}

impl JsonKind for RetentionField {}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RetentionType {
    #[default]
    RetentionRatio,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(inline)]
struct ConversationLimit {
    /// Most tokens of the conversation in a prompt, without instructions and tools. Default: as many as the model takes.
    #[serde(default, deserialize_with = "token_limit")]
    post_instructions: Option<u32>,
}

/// How much a model thinks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[schemars(inline)]
pub(super) struct RealtimeReasoning {
    effort: Option<Word<Effort>>,
}

/// The settings as an object.
pub(super) fn session_of(settings: &RealtimeSettings) -> RealtimeSession {
    let input = InputAudioSettings {
        format: Some(format_of(settings.input_encoding)),
        noise_reduction: settings
            .noise_reduction
            .map(|noise| NoiseField { r#type: Some(Word(noise)) }),
        transcription: settings.transcription.as_ref().map(transcription_of),
        turn_detection: settings.turn_detection.as_ref().map(turn_of),
        listen_while_speaking: settings.listens_while_speaking,
    };
    let output = OutputAudioSettings {
        format: Some(format_of(settings.output_encoding)),
        voice: settings.voice.clone().map(|voice| Either::First(Name(voice))),
        model: settings.speech_model.clone().map(Name),
        speed: Some(f64::from(settings.speed.rate())),
    };
    RealtimeSession {
        r#type: Some(Word(settings.kind)),
        model: settings.model.clone().map(Name),
        instructions: Some(settings.instructions.clone()),
        output_modalities: Some(vec![Word(settings.output)]),
        audio: Some(SessionAudio { input: Some(input), output: Some(output) }),
        tools: Some(tools_of(&settings.tools)),
        tool_choice: Some(choice_of(&settings.tool_choice)),
        parallel_tool_calls: (!settings.parallel_tool_calls).then_some(false),
        max_output_tokens: Some(TokenLimit(settings.tokens_max)),
        truncation: Some(truncation_of(settings.truncation)),
        reasoning: Some(RealtimeReasoning { effort: settings.thinking.effort.map(Word) }),
        include: include_of(settings),
        recorded: settings.is_recorded.then_some(true),
    }
}

fn include_of(settings: &RealtimeSettings) -> Option<Vec<String>> {
    let stages = settings.reports_turn_stages.then_some(TURN_STAGES);
    let interim = settings.reports_interim_text.then_some(INTERIM_TEXT);
    let all: Vec<String> = stages.into_iter().chain(interim).map(str::to_owned).collect();
    (!all.is_empty()).then_some(all)
}

impl RealtimeSession {
    /// The settings that the object stands for. `before` has those that have no JSON.
    ///
    /// # Errors
    /// A value is not possible. The error names its field.
    pub(super) fn settings(self, before: &RealtimeSettings) -> Result<RealtimeSettings, WireError> {
        let SessionAudio { input, output } = self.audio.unwrap_or_default();
        let included = self.include.unwrap_or_default();
        let includes = |name: &str| included.iter().any(|one| one == name);
        let input = input.unwrap_or_default();
        let of_input = |error: WireError| error.within("audio.input");
        let output =
            output.unwrap_or_default().checked().map_err(|error| error.within("audio.output"))?;
        let (tools, tool_choice) = offer(self.tools.unwrap_or_default(), self.tool_choice)?;
        Ok(RealtimeSettings {
            kind: self.r#type.map(|Word(kind)| kind).unwrap_or_default(),
            model: chosen_model(self.model.map(|name| name.0), before.model.as_ref()),
            instructions: self.instructions.unwrap_or_default(),
            output: self.output_modalities.map_or(Ok(OutputModality::Audio), modality)?,
            input_encoding: encoding(input.format).map_err(of_input)?.unwrap_or_default(),
            noise_reduction: input
                .noise_reduction
                .map(|noise| noise.r#type.map(|Word(noise)| noise).unwrap_or_default()),
            transcription: input.transcription.map(transcription).transpose().map_err(of_input)?,
            turn_detection: input.turn_detection.map(turn_detection),
            listens_while_speaking: input.listen_while_speaking,
            is_recorded: before.is_recorded,
            output_encoding: output.encoding.unwrap_or_default(),
            speech_model: output.model,
            voice: output.voice,
            speed: output.speed.unwrap_or(Speed::NORMAL),
            tools,
            tool_choice,
            parallel_tool_calls: self.parallel_tool_calls.unwrap_or(true),
            tokens_max: self.max_output_tokens.and_then(|limit| limit.0),
            thinking: thinking(self.reasoning, before.thinking),
            truncation: self.truncation.map_or(Ok(PromptTruncation::Auto), truncation)?,
            reports_turn_stages: includes(TURN_STAGES),
            reports_interim_text: includes(INTERIM_TEXT),
        })
    }
}

/// A client that knows only OpenAI's models names one of them when it opens a session and with each change. It replaces no
/// name that was chosen.
pub(super) fn chosen_model(sent: Option<String>, before: Option<&String>) -> Option<String> {
    let is_default = |name: &String| is_default_realtime_model(name);
    let kept = before.filter(|name| !is_default(name) && sent.as_ref().is_some_and(is_default));
    kept.cloned().or(sent)
}

pub(super) struct CheckedOutput {
    pub(super) encoding: Option<SoundEncoding>,
    pub(super) model: Option<String>,
    pub(super) voice: Option<String>,
    pub(super) speed: Option<Speed>,
}

impl OutputAudioSettings {
    pub(super) fn checked(self) -> Result<CheckedOutput, WireError> {
        let speed = self.speed.map(|rate| {
            let invalid =
                |_| WireError::invalid("speed", format!("must be from 0.25 to 4, and is {rate}"));
            Speed::new(rate as f32).map_err(invalid)
        });
        Ok(CheckedOutput {
            speed: speed.transpose()?,
            encoding: encoding(self.format)?,
            model: self.model.map(|name| name.0),
            voice: self.voice.map(voice_id),
        })
    }
}

/// The word of older clients, or an object.
fn encoding(format: Option<FormatField>) -> Result<Option<SoundEncoding>, WireError> {
    let format = match format {
        None => return Ok(None),
        Some(Either::First(word)) => {
            let found = BETA_FORMATS.iter().find(|(name, _)| *name == word);
            let (_, encoding) = found.ok_or_else(|| {
                WireError::not_one_of("format", &word, &BETA_FORMATS.map(|(name, _)| name))
            })?;
            return Ok(Some(*encoding));
        }
        Some(Either::Second(format)) => format,
    };
    match (format.r#type, format.rate) {
        (Word(pcm @ SoundEncoding::Pcm16), Some(rate)) if rate != pcm.sample_rate_hz() => {
            let reason = format!("must be 24000 for audio/pcm, and is {rate}");
            Err(WireError::invalid("format.rate", reason))
        }
        (Word(encoding), _) => Ok(Some(encoding)),
    }
}

/// The names of formats before they were objects.
pub(super) const BETA_FORMATS: [(&str, SoundEncoding); 3] = [
    ("pcm16", SoundEncoding::Pcm16),
    ("g711_ulaw", SoundEncoding::Mulaw),
    ("g711_alaw", SoundEncoding::Alaw),
];

pub(super) fn format_of(encoding: SoundEncoding) -> FormatField {
    let rate = (encoding == SoundEncoding::Pcm16).then(|| encoding.sample_rate_hz());
    Either::Second(AudioFormatField { r#type: Word(encoding), rate })
}

/// One of both: the sound has its text with it.
pub(super) fn modality(sent: Vec<Word<OutputModality>>) -> Result<OutputModality, WireError> {
    match sent[..] {
        [Word(modality)] => Ok(modality),
        _ => {
            let reason = r#"must be ["audio"] or ["text"]; sound has its text with it"#;
            Err(WireError::invalid("output_modalities", reason))
        }
    }
}

pub(super) fn thinking(sent: Option<RealtimeReasoning>, before: Thinking) -> Thinking {
    let effort = sent.and_then(|reasoning| reasoning.effort);
    Thinking { effort: effort.map(|Word(effort)| effort), ..before }
}

fn truncation(sent: Either<String, RetentionField>) -> Result<PromptTruncation, WireError> {
    match sent {
        Either::First(word) => match word.as_str() {
            "auto" => Ok(PromptTruncation::Auto),
            "disabled" => Ok(PromptTruncation::Disabled),
            _ => Err(WireError::not_one_of("truncation", &word, &["auto", "disabled"])),
        },
        Either::Second(RetentionField { retention_ratio: ratio, token_limits, .. }) => {
            if !(0.0..=1.0).contains(&ratio) {
                let reason = format!("must be from 0 to 1, and is {ratio}");
                return Err(WireError::invalid("truncation.retention_ratio", reason));
            }
            let tokens_max = token_limits.and_then(|limits| limits.post_instructions);
            Ok(PromptTruncation::Retain { ratio, tokens_max })
        }
    }
}

fn truncation_of(set: PromptTruncation) -> Either<String, RetentionField> {
    match set {
        PromptTruncation::Auto => Either::First("auto".to_owned()),
        PromptTruncation::Disabled => Either::First("disabled".to_owned()),
        PromptTruncation::Retain { ratio, tokens_max } => Either::Second(RetentionField {
            r#type: RetentionType::RetentionRatio,
            retention_ratio: ratio,
            token_limits: tokens_max
                .map(|tokens| ConversationLimit { post_instructions: Some(tokens) }),
        }),
    }
}

fn transcription(sent: TranscriptionField) -> Result<InputTranscription, WireError> {
    let language =
        sent.language.map(|Name(code)| checked_language("transcription.language", &code));
    Ok(InputTranscription {
        model: sent.model.map(|name| name.0),
        language: language.transpose()?,
        prompt: sent.prompt,
    })
}

fn transcription_of(set: &InputTranscription) -> TranscriptionField {
    TranscriptionField {
        model: set.model.clone().map(Name),
        language: set.language.clone().map(Name),
        prompt: set.prompt.clone(),
    }
}

fn turn_detection(sent: TurnField) -> TurnDetection {
    let ms = |ms: u32| Duration::from_millis(ms.into());
    let detector = match sent.r#type.unwrap_or_default() {
        TurnType::ServerVad => TurnDetector::Server {
            threshold: sent.threshold.unwrap_or(0.5),
            prefix_padding: ms(sent.prefix_padding_ms.unwrap_or(300)),
            silence: ms(sent.silence_duration_ms.unwrap_or(500)),
            idle_timeout: sent.idle_timeout_ms.map(ms),
        },
        TurnType::SemanticVad => TurnDetector::Semantic {
            eagerness: sent.eagerness.map(|Word(eagerness)| eagerness).unwrap_or_default(),
        },
    };
    TurnDetection {
        detector,
        creates_response: sent.create_response.unwrap_or(true),
        interrupts_response: sent.interrupt_response.unwrap_or(true),
        resumes_response: sent.resume_response.unwrap_or(true),
    }
}

fn turn_of(set: &TurnDetection) -> TurnField {
    let ms = |time: Duration| u32::try_from(time.as_millis()).ok();
    let field = TurnField {
        create_response: Some(set.creates_response),
        interrupt_response: Some(set.interrupts_response),
        resume_response: (!set.resumes_response).then_some(false),
        ..TurnField::default()
    };
    match set.detector {
        TurnDetector::Server { threshold, prefix_padding, silence, idle_timeout } => TurnField {
            r#type: Some(TurnType::ServerVad),
            threshold: Some(threshold),
            prefix_padding_ms: ms(prefix_padding),
            silence_duration_ms: ms(silence),
            idle_timeout_ms: idle_timeout.and_then(ms),
            ..field
        },
        TurnDetector::Semantic { eagerness } => TurnField {
            r#type: Some(TurnType::SemanticVad),
            eagerness: Some(Word(eagerness)),
            ..field
        },
    }
}
