//! Turns a speech request into one for a model: voice, language, format, expected length.
//! Everything that can be rejected without the model is rejected here, before admission.

use hob_core::{
    InstructionSupport, ModelError, RegisteredModel, Speech, SpeechPace, SpeechRequest, SpeechText,
    Speed, Trace, VoiceBlend,
};
use hob_speech::encode::AudioFormat;
use hob_wire::{SpeechDelivery, WireError, WireSpeech, language_agrees, own_voice};

use crate::api_error::ApiError;
use crate::captions::Captions;

/// An answer that is not streamed is held in memory completely: ten minutes are 58 MB of samples.
pub(crate) const WHOLE_SOUND_S_MAX: u64 = 600;

/// The request for the model, and the form of its answer.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) request: SpeechRequest,
    pub(crate) answer: AnswerShape,
    pub(crate) captions: Captions,
    /// Expected seconds of sound.
    pub(crate) sound_s: f64,
}

#[derive(Debug)]
pub(crate) struct AnswerShape {
    pub(crate) voice: String,
    pub(crate) format: AudioFormat,
    pub(crate) delivery: SpeechDelivery,
    pub(crate) volume: f32,
    pub(crate) ignored: Vec<String>,
    pub(crate) input_chars: u64,
}

/// The formats a request may name.
pub(crate) fn format_names() -> [&'static str; 6] {
    AudioFormat::ALL.map(AudioFormat::name)
}

pub(crate) fn plan(
    text_chars_max: usize,
    model: &RegisteredModel<Speech>,
    wire: WireSpeech,
) -> Result<Plan, ApiError> {
    let chars = check_text(&wire.input, text_chars_max)?;
    let voice = voice(model, wire.voice)?;
    check_language(model, &voice, wire.language.as_deref())?;
    let sound_s = wire.speed.expected_sound_s(chars);
    if wire.delivery.is_whole() {
        check_whole(sound_s)?;
    }
    let mut ignored = wire.ignored;
    let support = model.model.instruction_support();
    let instructions = instructions(support, wire.instructions, &mut ignored)?;
    let captions = match wire.is_timed {
        true => Captions::of(wire.input.clone(), wire.has_phonemes),
        false => Captions::default(),
    };
    let request = SpeechRequest {
        text: SpeechText::Whole(wire.input),
        voice: voice.clone(),
        speed: wire.speed,
        instructions,
        pace: pace(wire.delivery),
        trace: Trace::default(),
    };
    let answer = AnswerShape {
        voice,
        format: format(wire.format)?,
        delivery: wire.delivery,
        volume: wire.volume,
        ignored,
        input_chars: chars as u64,
    };
    Ok(Plan { request, answer, captions, sound_s })
}

/// The request for a text that is still being written.
pub(crate) fn arriving_request(
    model: &RegisteredModel<Speech>,
    text: SpeechText,
    asked: Option<String>,
    language: Option<&str>,
) -> Result<SpeechRequest, ApiError> {
    let voice = voice(model, asked)?;
    check_language(model, &voice, language)?;
    let instructions = instructions(model.model.instruction_support(), None, &mut Vec::new())?;
    let (pace, trace) = (SpeechPace::Live, Trace::default());
    Ok(SpeechRequest { text, voice, speed: Speed::NORMAL, instructions, pace, trace })
}

fn pace(delivery: SpeechDelivery) -> SpeechPace {
    if delivery.is_whole() { SpeechPace::Steady } else { SpeechPace::Live }
}

fn check_text(text: &str, chars_max: usize) -> Result<usize, ModelError> {
    if text.trim().is_empty() {
        return Err(ModelError::EmptyText);
    }
    let chars = text.chars().count();
    if chars > chars_max { Err(ModelError::TextTooLong { chars, chars_max }) } else { Ok(chars) }
}

/// The model's own names come first. One of OpenAI's names means a similar voice, if the model has one, in a blend too.
/// Any other name goes to the model, whose error lists the nearest names.
pub(crate) fn voice(
    model: &RegisteredModel<Speech>,
    asked: Option<String>,
) -> Result<String, WireError> {
    let voices = model.model.voices();
    match asked {
        Some(name) => Ok(own_voice(voices, &name)),
        None => match voices.first() {
            Some(first) => Ok(first.id.clone()),
            None => Err(WireError::missing("voice")),
        },
    }
}

fn check_language(
    model: &RegisteredModel<Speech>,
    voice: &str,
    asked: Option<&str>,
) -> Result<(), WireError> {
    let voices = model.model.voices();
    let find = |id: &str| voices.iter().find(|known| known.id == id);
    // A blend speaks the language of its first voice.
    let first = || match VoiceBlend::parse(voice) {
        Some(Ok(blend)) => find(&blend.parts()[0].0),
        Some(Err(_)) | None => None,
    };
    let (Some(voice), Some(asked)) = (find(voice).or_else(first), asked) else { return Ok(()) };
    if language_agrees(asked, voice.language) {
        return Ok(());
    }
    let (id, language) = (&voice.id, voice.language);
    let reason = format!("does not fit voice '{id}', which speaks {language} ({})", language.tag());
    Err(WireError::invalid("language", reason))
}

fn check_whole(sound_s: f64) -> Result<(), ApiError> {
    let sound_s = sound_s as u64;
    if sound_s <= WHOLE_SOUND_S_MAX {
        return Ok(());
    }
    Err(ApiError::WholeTooLong { sound_s, sound_s_max: WHOLE_SOUND_S_MAX })
}

fn instructions(
    support: InstructionSupport,
    given: Option<String>,
    ignored: &mut Vec<String>,
) -> Result<Option<String>, ModelError> {
    match (support, given) {
        (InstructionSupport::Required, None) => {
            Err(ModelError::MissingField { field: "instructions" })
        }
        (InstructionSupport::Ignored, Some(_)) => {
            ignored.push("instructions".to_owned());
            Ok(None)
        }
        (_, given) => Ok(given),
    }
}

fn format(name: &str) -> Result<AudioFormat, WireError> {
    AudioFormat::parse(name).map_err(|unknown| WireError::NotOneOf {
        field: "response_format".to_owned(),
        got: unknown.given,
        accepted: format_names().to_vec(),
    })
}
