//! What an answer must look like: `response_format`, and two that hob adds, `regex` and `grammar`.
//! One at most: an answer cannot follow two rules, and choosing for the client would be a guess.

use hob_core::JsonText;
use hob_core::chat::OutputFormat;
use serde_json::Value;

use crate::WireError;
use crate::fields::{Fields, wrong_type};

/// The format, and whether its schema is to be enforced whole.
pub(crate) fn output(fields: &mut Fields) -> Result<(OutputFormat, bool), WireError> {
    let (format, strict) = response_format(fields)?;
    let formats = [
        ("response_format", format),
        ("regex", present(fields.text("regex")?).map(OutputFormat::Regex)),
        ("grammar", present(fields.text("grammar")?).map(OutputFormat::Lark)),
    ];
    let mut wanted = formats.into_iter().filter_map(|(field, format)| Some((field, format?)));
    let Some((first, format)) = wanted.next() else { return Ok((OutputFormat::Text, false)) };
    match wanted.next() {
        None => Ok((format, strict)),
        Some((field, _)) => Err(WireError::Invalid {
            field,
            reason: format!("cannot be combined with '{first}': an answer follows one of them"),
        }),
    }
}

fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// None: text without a rule, which may have one by another field.
fn response_format(fields: &mut Fields) -> Result<(Option<OutputFormat>, bool), WireError> {
    let Some(mut format) = fields.object("response_format")? else { return Ok((None, false)) };
    match format.choice("type", &["text", "json_object", "json_schema"])? {
        None => Err(WireError::Invalid {
            field: "response_format",
            reason: "must have a 'type'".to_owned(),
        }),
        Some("json_object") => Ok((Some(schema_or_object(&mut format)?), false)),
        Some("json_schema") => match format.object("json_schema")? {
            Some(mut named) => {
                let strict = named.flag("strict")?.unwrap_or(false);
                Ok((Some(schema_or_object(&mut named)?), strict))
            }
            None => Err(WireError::Invalid {
                field: "response_format",
                reason: "is of type 'json_schema' and has none".to_owned(),
            }),
        },
        Some(_) => Ok((None, false)),
    }
}

/// OpenAI lets the schema be left out, and llama.cpp lets `json_object` have one.
fn schema_or_object(format: &mut Fields) -> Result<OutputFormat, WireError> {
    match format.take("schema") {
        None => Ok(OutputFormat::JsonObject),
        Some(schema @ (Value::Object(_) | Value::Bool(_))) => {
            Ok(OutputFormat::JsonSchema(JsonText::parsed(schema.to_string())))
        }
        Some(other) => Err(wrong_type("response_format", "a JSON schema", &other)),
    }
}
