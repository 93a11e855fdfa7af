//! What an answer must look like: `response_format`, and two that hob adds, `regex` and `grammar`.
//! At most one of them: an answer cannot follow two rules, and a choice for the client would be a guess.

use hob_core::JsonText;
use hob_core::chat::OutputFormat;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::WireError;
use crate::request_value::Either;

/// Fields that hold an answer to a form.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OutputFields {
    /// `text`, a JSON object, or JSON that follows a schema.
    response_format: Option<ResponseFormat>,
    /// A regular expression of at most 2,048 bytes that the answer matches.
    regex: Option<String>,
    /// A grammar in llguidance's Lark, at most 32 KiB, that the answer follows.
    grammar: Option<String>,
}

/// The form of an answer.
#[derive(Deserialize, JsonSchema)]
struct ResponseFormat {
    r#type: Option<FormatType>,
    /// The schema, for the type `json_schema`.
    json_schema: Option<NamedSchema>,
    /// llama.cpp's place for a schema, for the type `json_object`.
    schema: Option<Schema>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum FormatType {
    Text,
    JsonObject,
    JsonSchema,
}

/// A JSON Schema and how exactly an answer follows it.
#[derive(Deserialize, JsonSchema)]
struct NamedSchema {
    /// Without a schema, the answer is any JSON object.
    schema: Option<Schema>,
    /// `true` refuses a schema with keywords that hob cannot enforce.
    strict: Option<bool>,
}

type Schema = Either<bool, Map<String, Value>>;

/// The form of an answer in the Responses API, which has no object around the schema.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FlatFormat {
    r#type: Option<FormatType>,
    /// The schema, for the type `json_schema`.
    schema: Option<Schema>,
    /// `true` refuses a schema with keywords that hob cannot enforce.
    strict: Option<bool>,
}

pub(crate) fn flat_format(sent: FlatFormat) -> Result<(OutputFormat, bool), WireError> {
    let FlatFormat { r#type, schema, strict } = sent;
    match r#type.ok_or_else(|| WireError::missing("type"))? {
        FormatType::Text => Ok((OutputFormat::Text, false)),
        FormatType::JsonObject => Ok((OutputFormat::JsonObject, false)),
        FormatType::JsonSchema => Ok((schema_or_object(schema), strict.unwrap_or(false))),
    }
}

/// The format, and whether its schema is to be enforced whole.
pub(crate) fn output(sent: OutputFields) -> Result<(OutputFormat, bool), WireError> {
    let (format, strict) = response_format(sent.response_format)?;
    let formats = [
        ("response_format", format),
        ("regex", present(sent.regex).map(OutputFormat::Regex)),
        ("grammar", present(sent.grammar).map(OutputFormat::Lark)),
    ];
    let mut wanted = formats.into_iter().filter_map(|(field, format)| Some((field, format?)));
    let Some((first, format)) = wanted.next() else { return Ok((OutputFormat::Text, false)) };
    match wanted.next() {
        None => Ok((format, strict)),
        Some((field, _)) => {
            let reason =
                format!("cannot be combined with '{first}': an answer follows one of them");
            Err(WireError::invalid(field, reason))
        }
    }
}

fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// None: text without a rule, which may have one by another field.
fn response_format(
    sent: Option<ResponseFormat>,
) -> Result<(Option<OutputFormat>, bool), WireError> {
    const FIELD: &str = "response_format";
    let Some(sent) = sent else { return Ok((None, false)) };
    match (sent.r#type, sent.json_schema) {
        (None, _) => Err(WireError::invalid(FIELD, "must have a 'type'")),
        (Some(FormatType::Text), _) => Ok((None, false)),
        (Some(FormatType::JsonObject), _) => Ok((Some(schema_or_object(sent.schema)), false)),
        (Some(FormatType::JsonSchema), Some(NamedSchema { schema, strict })) => {
            Ok((Some(schema_or_object(schema)), strict.unwrap_or(false)))
        }
        (Some(FormatType::JsonSchema), None) => {
            Err(WireError::invalid(FIELD, "is of type 'json_schema' and has none"))
        }
    }
}

/// OpenAI lets the schema be left out, and llama.cpp lets `json_object` have one.
fn schema_or_object(schema: Option<Schema>) -> OutputFormat {
    let schema = match schema {
        None => return OutputFormat::JsonObject,
        Some(Either::First(any)) => Value::Bool(any),
        Some(Either::Second(schema)) => Value::Object(schema),
    };
    OutputFormat::JsonSchema(JsonText::parsed(schema.to_string()))
}
