//! The settings of an answer under Ollama's names: `options` and `format`.
//! No option reloads a model. hob lists an option that would need a reload as having no effect.

use hob_core::JsonText;
use hob_core::chat::{OutputFormat, Sampling};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::WireError;
use crate::chat::SamplingFields;
use crate::fields::Fields;
use crate::request_value::{Either, tokens};

/// What `options` says.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) sampling: Sampling,
    pub(super) tokens_max: Option<u32>,
    pub(super) stop: Vec<String>,
    /// `num_ctx`: the context length that the client requests.
    pub(super) context_tokens: Option<u32>,
}

/// The fields of `options` that chat names otherwise.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OptionFields {
    /// Output tokens. 0 and below: no limit.
    #[serde(default, deserialize_with = "tokens")]
    num_predict: Option<u32>,
    /// Tokens of context. The model keeps its own, and `x-hob-ignored` names any other length.
    #[serde(default, deserialize_with = "tokens")]
    num_ctx: Option<u32>,
}

pub(super) fn options(
    sent: Option<Map<String, Value>>,
    ignored: &mut Vec<String>,
) -> Result<Options, WireError> {
    let Some(sent) = sent else { return Ok(Options::default()) };
    let mut without_effect = Vec::new();
    let read = || {
        let mut fields = Fields::of(sent);
        let mut chosen: SamplingFields = fields.read()?;
        let sizes: OptionFields = fields.read()?;
        let sampling = chosen.sampling(&mut without_effect)?;
        let seed = sampling.seed.filter(|_| !chosen.has_negative_seed());
        let options = Options {
            sampling: Sampling { seed, ..sampling },
            // -1 means no limit, and -2 means until the context is full. hob treats both as no limit.
            // Zero is without a limit in Ollama.
            tokens_max: sizes.num_predict.filter(|tokens| *tokens > 0),
            stop: chosen.stop()?,
            context_tokens: sizes.num_ctx,
        };
        without_effect.extend(fields.into_unknown());
        Ok(options)
    };
    let options = read().map_err(|error: WireError| error.within("options"))?;
    ignored.extend(without_effect.iter().map(|name| format!("options.{name}")));
    Ok(options)
}

/// `"json"`, or a schema.
pub(super) fn format(sent: Option<FormatField>) -> Result<OutputFormat, WireError> {
    match sent {
        None => Ok(OutputFormat::Text),
        Some(Either::First(word)) => match word.as_str() {
            "" => Ok(OutputFormat::Text),
            "json" => Ok(OutputFormat::JsonObject),
            _ => {
                let reason = "must be 'json' or a JSON schema, and is another word";
                Err(WireError::invalid("format", reason))
            }
        },
        Some(Either::Second(schema)) => {
            let schema = JsonText::parsed(Value::Object(schema).to_string());
            Ok(OutputFormat::JsonSchema(schema))
        }
    }
}

/// The schema of `options`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes the two types that read `options`")]
pub(crate) struct OllamaOptions {
    #[schemars(flatten)]
    sampling: SamplingFields,
    #[schemars(flatten)]
    sizes: OptionFields,
}

pub(super) type FormatField = Either<String, Map<String, Value>>;
