//! Tools and token limits of a realtime session, whose JSON differs from a chat request's.
//! A tool has no object around its function, and a limit may be the word `inf`.

use hob_core::chat::{Tool, ToolChoice};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::WireError;
use crate::chat::{Choice, ChoiceObject, FunctionField, flat_tools};
use crate::request_value::{Either, JsonKind, Name};

/// A function that the model may call and the client runs.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct RealtimeTool {
    #[serde(default)]
    r#type: RealtimeToolType,
    name: Name,
    description: Option<String>,
    /// A JSON Schema of the arguments.
    parameters: Option<Map<String, Value>>,
    /// `true` refuses a schema with keywords that hob cannot enforce.
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// The only kind of tool: hob calls no server of the client.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RealtimeToolType {
    #[default]
    Function,
}

/// A choice of one function.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(inline)]
pub(crate) struct RealtimeChoice {
    #[serde(default)]
    r#type: RealtimeToolType,
    name: Name,
}

impl JsonKind for RealtimeChoice {}

/// A number of tokens, or `inf` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenLimit(pub(super) Option<u32>);

impl<'de> Deserialize<'de> for TokenLimit {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<TokenLimit, D::Error> {
        let whole = |number: &f64| *number >= 1.0 && number.fract() == 0.0;
        match Either::<f64, String>::deserialize(value)? {
            Either::First(number) if whole(&number) => Ok(TokenLimit(Some(number as u32))),
            Either::Second(word) if word == "inf" => Ok(TokenLimit(None)),
            Either::First(number) => Err(D::Error::custom(format_args!(
                "must be a whole number from 1 or 'inf', and is {number}"
            ))),
            Either::Second(_) => {
                Err(D::Error::custom("must be a whole number from 1 or 'inf', and is another word"))
            }
        }
    }
}

impl Serialize for TokenLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(tokens) => serializer.serialize_u32(tokens),
            None => serializer.serialize_str("inf"),
        }
    }
}

impl JsonSchema for TokenLimit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TokenLimit".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "enum": ["inf"] },
        ] })
    }
}

/// # Errors
/// There are too many tools, or the choice names none of them.
pub(super) fn offer(
    sent: Vec<RealtimeTool>,
    choice: Option<Either<String, RealtimeChoice>>,
) -> Result<(Vec<Tool>, ToolChoice), WireError> {
    let function = |tool: RealtimeTool| {
        let RealtimeTool { name, description, parameters, strict, .. } = tool;
        FunctionField { name, description, parameters, strict }
    };
    let choice = choice.map(|choice| match choice {
        Either::First(word) => Choice::First(word),
        Either::Second(RealtimeChoice { name, .. }) => Choice::Second(ChoiceObject::named(name)),
    });
    flat_tools(sent.into_iter().map(function).collect(), choice)
}

pub(super) fn tools_of(tools: &[Tool]) -> Vec<RealtimeTool> {
    let tool = |tool: &Tool| RealtimeTool {
        r#type: RealtimeToolType::Function,
        name: Name(tool.name.clone()),
        description: tool.description.clone(),
        // The text was made of an object.
        parameters: tool
            .parameters
            .as_ref()
            .and_then(|text| serde_json::from_str(text.as_str()).ok()),
        strict: tool.strict.then_some(true),
    };
    tools.iter().map(tool).collect()
}

pub(super) fn choice_of(choice: &ToolChoice) -> Either<String, RealtimeChoice> {
    let word = match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::None => "none",
        ToolChoice::Required => "required",
        ToolChoice::Named(name) => {
            let (r#type, name) = (RealtimeToolType::Function, Name(name.clone()));
            return Either::Second(RealtimeChoice { r#type, name });
        }
    };
    Either::First(word.to_owned())
}
