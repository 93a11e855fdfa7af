//! How an answer is to be made, in Ollama's words: `options` and `format`.
//! Nothing here reloads a model: what asks for one loaded otherwise is named as having no effect.

use hob_core::JsonText;
use hob_core::chat::{OutputFormat, Sampling};
use serde_json::Value;

use crate::WireError;
use crate::chat;
use crate::fields::{Fields, wrong_type};

/// What `options` says.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) sampling: Sampling,
    pub(super) tokens_max: Option<u32>,
    pub(super) stop: Vec<String>,
    /// `num_ctx`: tokens that the context is to hold at least.
    pub(super) context_tokens: Option<u32>,
}

pub(super) fn options(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Options, WireError> {
    let Some(mut options) = fields.object("options")? else { return Ok(Options::default()) };
    let mut without_effect = Vec::new();
    let read = Options {
        sampling: sampling(&mut options, &mut without_effect)?,
        // -1 is without end, -2 until the context is full; both come to the same here.
        // Zero is without a limit in Ollama.
        tokens_max: chat::tokens_max(&mut options, "num_predict")?.filter(|tokens| *tokens > 0),
        stop: chat::stop(&mut options)?,
        context_tokens: chat::tokens_max(&mut options, "num_ctx")?,
    };
    without_effect.extend(options.into_unknown());
    ignored.extend(without_effect.iter().map(|name| format!("options.{name}")));
    Ok(read)
}

/// Ollama's clients write a negative seed for any.
fn sampling(options: &mut Fields, ignored: &mut Vec<String>) -> Result<Sampling, WireError> {
    let sampling = chat::sampling(options, ignored)?;
    let seed = sampling.seed.filter(|seed| seed.cast_signed() >= 0);
    Ok(Sampling { seed, ..sampling })
}

/// `"json"`, or a schema.
pub(super) fn format(fields: &mut Fields) -> Result<OutputFormat, WireError> {
    match fields.take("format") {
        None => Ok(OutputFormat::Text),
        Some(Value::String(word)) if word.is_empty() => Ok(OutputFormat::Text),
        Some(Value::String(word)) if word == "json" => Ok(OutputFormat::JsonObject),
        Some(schema @ Value::Object(_)) => {
            Ok(OutputFormat::JsonSchema(JsonText::parsed(schema.to_string())))
        }
        Some(Value::String(_)) => Err(WireError::Invalid {
            field: "format",
            reason: "must be 'json' or a JSON schema, and is another word".to_owned(),
        }),
        Some(other) => Err(wrong_type("format", "'json' or a JSON schema", &other)),
    }
}
