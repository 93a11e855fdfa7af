//! The JSON of Open WebUI's Pipelines: how an administrator manages teams, and what happens before and after a chat.
//! Errors there carry `detail` besides OpenAI's object, because that is what Open WebUI shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::json as text_of;
use crate::fields::Fields;
use crate::{ErrorBody, WireError};

/// The task of a chat that is not a job of Open WebUI's own.
const CHAT_TASK: &str = "chat";

/// A setting of a team that clients may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valve {
    pub name: String,
    pub description: String,
    pub kind: ValveKind,
    /// The value in force; `None`: no limit.
    pub value: Option<String>,
    /// The value of the team file.
    pub default: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValveKind {
    /// A whole number from 1.
    Number,
    /// A number above 0.
    Amount,
    Text,
    Choice(&'static [&'static str]),
}

/// A new value of a valve; `None`: the value of the team file.
pub type ValveChange = (String, Option<String>);

/// The answer of `GET /v1/pipelines`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct PipelineList<'a> {
    data: Vec<ListedPipeline<'a>>,
}

/// A team in the list of pipelines.
#[derive(JsonSchema, Serialize)]
struct ListedPipeline<'a> {
    id: &'a str,
    name: &'a str,
    /// Always `pipe`.
    r#type: &'static str,
    /// Always `true`.
    valves: bool,
}

/// The answer of `POST /v1/pipelines/reload`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct PipelineMessage<'a> {
    message: &'a str,
}

/// The answer of a request that adds or deletes a team.
#[derive(JsonSchema, Serialize)]
pub(crate) struct PipelineChanged<'a> {
    /// Always `true`.
    status: bool,
    detail: &'a str,
    /// The team.
    id: &'a str,
}

/// The fields of `POST /v1/pipelines/add`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PipelineAddressFields {
    /// The address of a team file (TOML).
    url: String,
}

/// The fields of `DELETE /v1/pipelines/delete`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PipelineNameFields {
    /// The team.
    id: String,
}

/// The fields of the filters.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FilterFields {
    /// The body of the chat.
    body: Map<String, Value>,
}

/// Names of valves with their new values: texts or numbers, or null for the team file's value.
#[derive(JsonSchema)]
pub(crate) struct ValveFields(BTreeMap<String, Value>);

/// An error of the Pipelines routes.
#[derive(JsonSchema, Serialize)]
pub(crate) struct PipelineError<'a> {
    error: &'a ErrorBody,
    /// The message of `error`, which Open WebUI shows.
    detail: &'a str,
}

/// `GET /v1/pipelines`.
pub fn pipelines(ids: &[String]) -> String {
    let listed = ids.iter().map(|id| ListedPipeline { id, name: id, r#type: "pipe", valves: true });
    text_of(&PipelineList { data: listed.collect() })
}

/// `POST /v1/pipelines/reload`.
pub fn pipeline_message(message: &str) -> String {
    text_of(&PipelineMessage { message })
}

/// A team was added or deleted.
pub fn pipeline_changed(id: &str, detail: &str) -> String {
    text_of(&PipelineChanged { status: true, detail, id })
}

pub fn pipeline_error(error: &ErrorBody) -> String {
    text_of(&PipelineError { error, detail: &error.message })
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_pipeline_address(body: &[u8]) -> Result<String, WireError> {
    let PipelineAddressFields { url } = Fields::parse(body)?.read()?;
    Ok(url)
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_pipeline_name(body: &[u8]) -> Result<String, WireError> {
    let PipelineNameFields { id } = Fields::parse(body)?.read()?;
    Ok(id)
}

/// `GET /v1/{id}/valves`.
pub fn valves(valves: &[Valve]) -> String {
    let values =
        valves.iter().map(|valve| (valve.name.clone(), valve.json_value(valve.value.as_deref())));
    text_of(&values.collect::<Map<_, _>>())
}

/// `GET /v1/{id}/valves/spec`: a JSON schema.
pub fn valves_spec(valves: &[Valve]) -> String {
    let properties = valves.iter().map(|valve| (valve.name.clone(), valve.schema()));
    let properties: Map<_, _> = properties.collect();
    text_of(&json!({
        "title": "Valves", "type": "object", "properties": properties, "required": [],
        "additionalProperties": false,
    }))
}

/// The changes of `POST /v1/{id}/valves/update`. The form of Open WebUI sends numbers as texts, and an empty text for a
/// field that is left empty.
///
/// # Errors
/// [`WireError`]: a value is neither a text, nor a number, nor null.
pub fn parse_valves(body: &[u8]) -> Result<Vec<ValveChange>, WireError> {
    let change = |(name, value): (String, Value)| match value {
        Value::Null => Ok((name, None)),
        Value::Number(number) => Ok((name, Some(number.to_string()))),
        Value::String(text) => {
            Ok((name, Some(text.trim().to_owned()).filter(|text| !text.is_empty())))
        }
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(WireError::invalid(&name, "must be a text, a number or null"))
        }
    };
    let ValveFields(values) = ValveFields(Fields::parse(body)?.into_members().collect());
    values.into_iter().map(change).collect()
}

/// The body of a chat, marked with the task for which Open WebUI makes the request. The mark comes back with the chat.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn inlet(body: &[u8]) -> Result<String, WireError> {
    let FilterFields { mut body } = Fields::parse(body)?.read()?;
    let said = |name: &str| {
        let text = body.get("metadata")?.get(name)?.as_str()?;
        Some(text.to_owned()).filter(|text| !text.is_empty())
    };
    let (task, chat) = (said("task").unwrap_or_else(|| CHAT_TASK.to_owned()), said("chat_id"));
    body.insert("x_hob_task".to_owned(), task.into());
    if let Some(chat) = chat {
        body.insert("x_hob_chat".to_owned(), chat.into());
    }
    Ok(text_of(&body))
}

/// The body of a chat that has ended, as it is.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn outlet(body: &[u8]) -> Result<String, WireError> {
    let FilterFields { body } = Fields::parse(body)?.read()?;
    Ok(text_of(&body))
}

/// Whether the mark of [`inlet`] is that of a chat.
pub(crate) fn is_chat_task(task: &str) -> bool {
    task == CHAT_TASK
}

impl Valve {
    fn json_value(&self, value: Option<&str>) -> Value {
        match (value, &self.kind) {
            (None, _) => Value::Null,
            (Some(text), ValveKind::Number) => text.parse::<u64>().map_or(Value::Null, Value::from),
            (Some(text), ValveKind::Amount) => text.parse::<f64>().map_or(Value::Null, Value::from),
            (Some(text), ValveKind::Text | ValveKind::Choice(_)) => text.into(),
        }
    }

    fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            ValveKind::Number => json!({ "type": "integer", "minimum": 1 }),
            ValveKind::Amount => json!({ "type": "number", "exclusiveMinimum": 0 }),
            ValveKind::Text => json!({ "type": "string" }),
            ValveKind::Choice(words) => json!({ "type": "string", "enum": words }),
        };
        schema["title"] = self.name.as_str().into();
        schema["description"] = self.description.as_str().into();
        schema["default"] = self.json_value(self.default.as_deref());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn a_chat_gets_its_task_and_keeps_everything_else() {
        for (metadata, task, chat) in [
            (r#"{"chat_id":"c1","task":null}"#, "chat", json!("c1")),
            (r#"{"chat_id":"c1","task":"title_generation"}"#, "title_generation", json!("c1")),
            (r#"{"task":5}"#, "chat", Value::Null),
            ("null", "chat", Value::Null),
        ] {
            let body = format!(r#"{{"model":"t","n":1.5,"stop":null,"metadata":{metadata}}}"#);
            let marked = inlet(format!(r#"{{"user":{{"id":"u"}},"body":{body}}}"#).as_bytes());
            let mut marked = parsed(&marked.expect("a body"));
            assert_eq!((&marked["x_hob_task"], &marked["x_hob_chat"]), (&json!(task), &chat));
            let members = marked.as_object_mut().expect("an object");
            members.retain(|name, _| !name.starts_with("x_hob_"));
            assert_eq!(marked, parsed(&body));
            let ended = outlet(format!(r#"{{"body":{body}}}"#).as_bytes()).expect("a body");
            assert_eq!(parsed(&ended), parsed(&body));
        }
        for body in ["{}", r#"{"body":[]}"#] {
            assert_eq!(inlet(body.as_bytes()).expect_err(body).field(), Some("body"));
        }
    }

    #[test]
    fn valves_are_written_as_values_and_as_a_schema_and_read_as_a_form_sends_them() {
        let valve = |name: &str, kind, value: Option<&str>| Valve {
            name: name.to_owned(),
            description: "What it does.".to_owned(),
            kind,
            value: value.map(str::to_owned),
            default: None,
        };
        let all = [
            valve("turns", ValveKind::Number, Some("5")),
            valve("tokens", ValveKind::Number, None),
            valve("cost", ValveKind::Amount, Some("0.25")),
            valve("approval", ValveKind::Choice(&["never", "always"]), Some("never")),
        ];
        let values = json!({ "turns": 5, "tokens": null, "cost": 0.25, "approval": "never" });
        assert_eq!(parsed(&valves(&all)), values);
        let spec = parsed(&valves_spec(&all));
        assert_eq!(spec["properties"]["turns"]["type"], "integer");
        assert_eq!(spec["properties"]["approval"]["enum"], json!(["never", "always"]));
        let changes = parse_valves(br#"{"a":" 7 ","b":7,"c":"","d":null}"#).expect("changes");
        let expected = [("a", Some("7")), ("b", Some("7")), ("c", None), ("d", None)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(changes, expected);
        assert_eq!(parse_valves(br#"{"a":[]}"#).expect_err("a list").field(), Some("a"));
    }

    #[test]
    fn an_error_says_the_same_twice() {
        let error = ErrorBody::from(&WireError::missing("url"));
        let said = parsed(&pipeline_error(&error));
        assert_eq!(
            (&said["detail"], &said["error"]["message"]),
            (&json!("'url' is missing"), &json!("'url' is missing"))
        );
    }
}
