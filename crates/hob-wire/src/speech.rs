//! `POST /v1/audio/speech`: from a body to a request whose fields have their types.
//! Fields that nobody knows are tolerated and named; fields of the wrong type are refused by name.

use std::fmt;

use hob_core::Speed;

use crate::WireError;
use crate::fields::Fields;

/// OpenAI's default.
const DEFAULT_FORMAT: &str = "mp3";

/// How much louder a client may ask for.
const VOLUME: std::ops::RangeInclusive<f64> = 0.0..=4.0;

/// Names in the header for ignored fields: so many, each so long.
const IGNORED_NAMES_MAX: usize = 32;
const IGNORED_CHARS_MAX: usize = 64;

/// What was asked for; nothing of it is checked against a model yet.
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
    pub delivery: Delivery,
    pub instructions: Option<String>,
    /// A code that must agree with the voice: [`crate::language_agrees`].
    pub language: Option<String>,
    /// Each sample is multiplied by this.
    pub volume: f32,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

impl fmt::Debug for WireSpeech {
    /// Says how much text, never which: texts do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireSpeech")
            .field("model", &self.model)
            .field("voice", &self.voice)
            .field("format", &self.format)
            .field("delivery", &self.delivery)
            .field("input_bytes", &self.input.len())
            .finish_non_exhaustive()
    }
}

/// How the sound travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Bytes of the file as they come to be.
    Stream,
    /// The same bytes as server-sent events.
    Events,
    /// The finished file, with its length and exact headers.
    Whole,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_speech(body: &[u8], formats: &[&'static str]) -> Result<WireSpeech, WireError> {
    let mut fields = Fields::parse(body)?;
    let input = fields.text("input")?.ok_or(WireError::Missing { field: "input" })?;
    Ok(WireSpeech {
        model: fields.name("model")?,
        input,
        voice: fields.name_or_id("voice")?,
        format: fields.choice("response_format", formats)?.unwrap_or(DEFAULT_FORMAT),
        speed: speed(&mut fields)?,
        delivery: delivery(&mut fields)?,
        instructions: fields.text("instructions")?.filter(|text| !text.trim().is_empty()),
        language: language(&mut fields)?,
        volume: volume(&mut fields)?,
        ignored: fields.into_unknown(),
    })
}

/// The value of `x-hob-ignored`: names come from the client, so only plain characters survive.
pub fn ignored_header(ignored: &[String]) -> String {
    let names = ignored.iter().take(IGNORED_NAMES_MAX).map(|name| plain(name));
    names.collect::<Vec<_>>().join(",")
}

fn plain(name: &str) -> String {
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '?' };
    name.chars().take(IGNORED_CHARS_MAX).map(harmless).collect()
}

fn speed(fields: &mut Fields) -> Result<Speed, WireError> {
    let Some(rate) = fields.number("speed")? else { return Ok(Speed::NORMAL) };
    Speed::new(rate as f32).map_err(|_| out_of_range("speed", "0.25 to 4", rate))
}

fn volume(fields: &mut Fields) -> Result<f32, WireError> {
    let volume = fields.number("volume_multiplier")?.unwrap_or(1.0);
    if !VOLUME.contains(&volume) {
        return Err(out_of_range("volume_multiplier", "0 to 4", volume));
    }
    Ok(volume as f32)
}

fn out_of_range(field: &'static str, range: &str, got: f64) -> WireError {
    WireError::Invalid { field, reason: format!("must be from {range}, and is {got}") }
}

/// Both names are in use; a client that sends both means the first.
fn language(fields: &mut Fields) -> Result<Option<String>, WireError> {
    let language = fields.name("language")?;
    let lang_code = fields.name("lang_code")?;
    Ok(language.or(lang_code))
}

fn delivery(fields: &mut Fields) -> Result<Delivery, WireError> {
    let events = fields.choice("stream_format", &["audio", "sse"])? == Some("sse");
    match (events, fields.flag("stream")?.unwrap_or(true)) {
        (false, true) => Ok(Delivery::Stream),
        (false, false) => Ok(Delivery::Whole),
        (true, true) => Ok(Delivery::Events),
        (true, false) => Err(WireError::Invalid {
            field: "stream",
            reason: "cannot be false when 'stream_format' is 'sse'".to_owned(),
        }),
    }
}
