//! `POST /v1/audio/speech`: from a body to a request whose fields have their types.
//! Unknown fields are tolerated and named; a field of the wrong type is an error that names it.

use hob_core::Speed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WireError;
use crate::fields::Fields;
use crate::request_value::{Either, JsonKind, Name, number_within, out_of_range};

/// OpenAI's default.
const DEFAULT_FORMAT: &str = "mp3";

/// Names in the header for ignored fields: so many, each so long.
const IGNORED_NAMES_MAX: usize = 32;
/// Enough for a schema's keyword of a tool whose name has 64, the most that OpenAI allows.
const IGNORED_CHARS_MAX: usize = 96;

/// A parsed request. Its names are not yet checked against a model.
#[derive(Clone, PartialEq)]
pub struct WireSpeech {
    /// `None`: the default speech model.
    pub model: Option<String>,
    pub input: String,
    /// As sent: a local name or one of OpenAI's. `None`: the model's first.
    pub voice: Option<String>,
    /// One of the accepted formats.
    pub format: &'static str,
    pub speed: Speed,
    pub delivery: SpeechDelivery,
    /// The times of words are sent with the sound.
    pub is_timed: bool,
    /// The times of words have those of their phonemes.
    pub has_phonemes: bool,
    pub instructions: Option<String>,
    /// A code that must agree with the voice: [`crate::language_agrees`].
    pub language: Option<String>,
    /// Each sample is multiplied by this.
    pub volume: f32,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

hob_core::debug_fields!(WireSpeech: model, voice, format, delivery, input.len());

/// How the sound travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeechDelivery {
    /// Bytes of the file as they come to be.
    Stream,
    /// Server-sent events with these bytes.
    Events,
    /// Lines of JSON with these bytes.
    Lines,
    /// The finished file, with its length and exact headers.
    Whole,
    /// The finished file in a JSON object.
    Object,
}

impl SpeechDelivery {
    /// Whether nothing is sent before the sound is complete.
    pub fn is_whole(self) -> bool {
        match self {
            SpeechDelivery::Stream | SpeechDelivery::Events | SpeechDelivery::Lines => false,
            SpeechDelivery::Whole | SpeechDelivery::Object => true,
        }
    }
}

/// The fields of `POST /v1/audio/speech`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SpeechFields {
    /// The text to speak, of at most `text_chars_max` characters (100,000). A text without a word ("…", an emoji)
    /// becomes a quarter of a second of silence. `[pause:1.5s]` is a pause, and `[word](/wˈɜɹd/)` is
    /// spoken with these phonemes. Words of `[speech.lexicon]` in `hob.toml` are said as that table says.
    input: String,
    /// A speech model of `/v1/models`, an alias, `UPSTREAM/MODEL`, one of OpenAI's speech models, or another name of
    /// Kokoro (`kokoro_v1`, `hexgrad/Kokoro-82M`). Default: the default speech model.
    model: Option<Name>,
    /// A voice of `/v1/audio/voices`, kept ones too, one of OpenAI's names, `{"id": …}`, or a blend of up to 8 voices
    /// of one language: `af_heart(2)+af_bella(1)`. Default: the model's first voice.
    voice: Option<VoiceField>,
    /// The audio format: `mp3`, `opus`, `aac`, `flac`, `wav` or `pcm`, see [formats.md](formats.md). Default: `mp3`.
    response_format: Option<Name>,
    /// From 0.25 to 4, default 1. Above 1.5, hob's own model shortens its sound at the same pitch.
    #[schemars(range(min = 0.25, max = 4.0))]
    speed: Option<f64>,
    /// `sse` sends server-sent events, with the times of words. Default: `audio`.
    stream_format: Option<StreamFormat>,
    /// `true` adds `phonemes` to each word of `timestamps`. Default: `false`.
    return_phonemes: Option<bool>,
    /// `false` sends the whole file with its length, of at most 600 s of sound. The same request has the same bytes on
    /// one machine. Default: `true`.
    stream: Option<bool>,
    /// How to speak. Models that take no instructions ignore it.
    instructions: Option<String>,
    /// A language code that must agree with the voice.
    language: Option<Name>,
    /// Another name of `language`.
    lang_code: Option<Name>,
    /// From 0 to 4, default 1. Samples that become too loud are clipped.
    #[serde(default, deserialize_with = "number_within::<_, 0, 4>")]
    #[schemars(range(min = 0, max = 4))]
    volume_multiplier: Option<f32>,
}

/// What `POST /dev/captioned_speech` takes besides.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CaptionFields {
    /// `false` leaves `timestamps` empty. Default: `true`.
    return_timestamps: Option<bool>,
}

/// A voice by its id, as a text or as an object.
pub(crate) type VoiceField = Either<Name, VoiceId>;

/// A voice as an object.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(inline)]
pub(crate) struct VoiceId {
    id: Name,
}

impl JsonKind for VoiceId {}

pub(crate) fn voice_id(sent: VoiceField) -> String {
    match sent {
        Either::First(Name(id)) | Either::Second(VoiceId { id: Name(id) }) => id,
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum StreamFormat {
    Audio,
    Sse,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_speech(body: &[u8], formats: &[&'static str]) -> Result<WireSpeech, WireError> {
    speech(Fields::parse(body)?, formats)
}

/// Parses a request to `POST /dev/captioned_speech`.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_captioned_speech(
    body: &[u8],
    formats: &[&'static str],
) -> Result<WireSpeech, WireError> {
    let mut fields = Fields::parse(body)?;
    let CaptionFields { return_timestamps } = fields.read()?;
    let mut speech = speech(fields, formats)?;
    speech.delivery = match speech.delivery {
        SpeechDelivery::Stream | SpeechDelivery::Lines => SpeechDelivery::Lines,
        SpeechDelivery::Whole | SpeechDelivery::Object => SpeechDelivery::Object,
        SpeechDelivery::Events => {
            return Err(WireError::invalid("stream_format", "must be 'audio' on this path"));
        }
    };
    speech.is_timed = return_timestamps.unwrap_or(true);
    Ok(speech)
}

fn speech(mut fields: Fields<'_>, formats: &[&'static str]) -> Result<WireSpeech, WireError> {
    let sent: SpeechFields = fields.read()?;
    let delivery = delivery(&sent)?;
    Ok(WireSpeech {
        model: sent.model.map(|name| name.0),
        input: sent.input,
        voice: sent.voice.map(voice_id),
        format: format(sent.response_format, formats)?,
        speed: speed(sent.speed)?,
        delivery,
        is_timed: delivery == SpeechDelivery::Events,
        has_phonemes: sent.return_phonemes.unwrap_or(false),
        instructions: sent.instructions.filter(|text| !text.trim().is_empty()),
        // Both names are in use; a client that sends both means the first.
        language: sent.language.or(sent.lang_code).map(|name| name.0),
        volume: sent.volume_multiplier.unwrap_or(1.0),
        ignored: fields.into_unknown(),
    })
}

/// The value of `x-hob-ignored`: names come from the client, so only plain characters survive.
pub fn ignored_header(ignored: &[String]) -> String {
    let names = ignored.iter().take(IGNORED_NAMES_MAX).map(|name| plain(name));
    names.collect::<Vec<_>>().join(",")
}

fn plain(name: &str) -> String {
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "_-.$".contains(c) { c } else { '?' };
    name.chars().take(IGNORED_CHARS_MAX).map(harmless).collect()
}

fn format(name: Option<Name>, formats: &[&'static str]) -> Result<&'static str, WireError> {
    let Some(Name(name)) = name else { return Ok(DEFAULT_FORMAT) };
    let known = formats.iter().find(|format| **format == name);
    known.copied().ok_or_else(|| WireError::not_one_of("response_format", &name, formats))
}

fn speed(rate: Option<f64>) -> Result<Speed, WireError> {
    let Some(rate) = rate else { return Ok(Speed::NORMAL) };
    let speed = Speed::new(rate as f32);
    speed.map_err(|_| WireError::within(out_of_range("0.25", 4, rate), "speed"))
}

fn delivery(sent: &SpeechFields) -> Result<SpeechDelivery, WireError> {
    let events = sent.stream_format == Some(StreamFormat::Sse);
    match (events, sent.stream.unwrap_or(true)) {
        (false, true) => Ok(SpeechDelivery::Stream),
        (false, false) => Ok(SpeechDelivery::Whole),
        (true, true) => Ok(SpeechDelivery::Events),
        (true, false) => {
            Err(WireError::invalid("stream", "cannot be false when 'stream_format' is 'sse'"))
        }
    }
}
