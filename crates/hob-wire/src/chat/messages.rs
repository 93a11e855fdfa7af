//! Messages as OpenAI's clients write them: six roles, contents in three forms, calls and answers.
//! What a model thought in earlier turns is dropped: it is no part of the next one.

use hob_core::JsonText;
use hob_core::chat::{Image, Message, Role, ToolCall};
use serde_json::{Map, Value};

use crate::WireError;
use crate::fields::{Fields, wrong_type};

pub(crate) const MESSAGES_MAX: usize = 10_000;

/// Calls in one message.
pub(crate) const CALLS_MAX: usize = 128;

const CONTENT: &str = "a string, null or a list of parts";

const ROLES: [(&str, Role); 6] = [
    ("system", Role::System),
    ("developer", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
    ("function", Role::Tool),
];

pub(super) fn messages(fields: &mut Fields) -> Result<Vec<Message>, WireError> {
    const FIELD: &str = "messages";
    let values = fields.list(FIELD)?.ok_or(WireError::Missing { field: FIELD })?;
    let reason = match values.len() {
        0 => "is empty".to_owned(),
        count if count > MESSAGES_MAX => {
            format!("has {count} messages and the limit is {MESSAGES_MAX}")
        }
        _ => {
            let mut reader = Reader::default();
            let read = |(index, value)| {
                let message = Fields::of(FIELD, value).and_then(|fields| reader.message(fields));
                message.map_err(|error| error.within(FIELD, index))
            };
            return values.into_iter().enumerate().map(read).collect();
        }
    };
    Err(WireError::Invalid { field: FIELD, reason })
}

/// Remembers what calls were named, for those who answer one without saying which.
#[derive(Default)]
struct Reader {
    calls: usize,
    last_call: Option<String>,
}

impl Reader {
    fn message(&mut self, mut fields: Fields) -> Result<Message, WireError> {
        let role = role(&mut fields)?;
        let name = fields.name("name")?;
        let tool_calls = match role {
            Role::Assistant => self.calls(&mut fields)?,
            Role::System | Role::User | Role::Tool => Vec::new(),
        };
        let tool_call_id = match role {
            Role::Tool => fields.name("tool_call_id")?.or_else(|| self.last_call.clone()),
            Role::System | Role::User | Role::Assistant => None,
        };
        let Content { text, images } = content(&mut fields, role)?;
        Ok(Message { role, text, name, tool_calls, tool_call_id, images })
    }

    fn calls(&mut self, fields: &mut Fields) -> Result<Vec<ToolCall>, WireError> {
        const FIELD: &str = "tool_calls";
        let values = fields.list(FIELD)?.unwrap_or_default();
        if values.len() > CALLS_MAX {
            let reason = format!("has {} calls and the limit is {CALLS_MAX}", values.len());
            return Err(WireError::Invalid { field: FIELD, reason });
        }
        let read = |(index, value)| {
            let call = Fields::of(FIELD, value).and_then(|fields| self.tool_call(fields));
            call.map_err(|error| error.within(FIELD, index))
        };
        let mut calls: Vec<ToolCall> =
            values.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        if let Some(function) = fields.object("function_call")? {
            calls.push(self.call(None, function)?);
        }
        Ok(calls)
    }

    fn tool_call(&mut self, mut fields: Fields) -> Result<ToolCall, WireError> {
        fields.choice("type", &["function"])?;
        let id = fields.name("id")?;
        let function = fields.object("function")?;
        self.call(id, function.ok_or(WireError::Missing { field: "function" })?)
    }

    fn call(&mut self, id: Option<String>, mut function: Fields) -> Result<ToolCall, WireError> {
        let name = function.name("name")?.filter(|name| !name.is_empty());
        let name = name.ok_or(WireError::Missing { field: "name" })?;
        // Nine letters and digits, which is what the strictest templates take.
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call{:05}", self.calls));
        self.calls += 1;
        self.last_call = Some(id.clone());
        Ok(ToolCall { id, name, arguments: arguments(&mut function)? })
    }
}

fn role(fields: &mut Fields) -> Result<Role, WireError> {
    let accepted = ROLES.map(|(name, _)| name);
    let name = fields.choice("role", &accepted)?.ok_or(WireError::Missing { field: "role" })?;
    let known = ROLES.iter().find(|(known, _)| *known == name);
    Ok(known.map_or(Role::User, |(_, role)| *role))
}

/// An object inside a string, as OpenAI writes it, or an object, as others do.
pub(crate) fn arguments(function: &mut Fields) -> Result<JsonText, WireError> {
    const FIELD: &str = "arguments";
    let value = match function.take(FIELD) {
        None => Value::Object(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::Null),
        Some(object @ Value::Object(_)) => object,
        Some(other) => return Err(wrong_type(FIELD, "a string that holds a JSON object", &other)),
    };
    if !value.is_object() {
        let reason = "must hold a JSON object, and holds something else".to_owned();
        return Err(WireError::Invalid { field: FIELD, reason });
    }
    Ok(JsonText::parsed(value.to_string()))
}

/// Null where there is nothing to say: beside calls, or from a tool that returns nothing.
fn content(fields: &mut Fields, role: Role) -> Result<Content, WireError> {
    let mut content = Content::default();
    match fields.take("content") {
        None if matches!(role, Role::Assistant | Role::Tool) => {}
        None => return Err(WireError::Missing { field: "content" }),
        Some(Value::String(text)) => content.text = text,
        Some(Value::Array(parts)) => {
            for value in parts {
                content.part(value)?;
            }
        }
        Some(other) => return Err(wrong_type("content", CONTENT, &other)),
    }
    Ok(content)
}

#[derive(Default)]
struct Content {
    text: String,
    images: Vec<Image>,
}

impl Content {
    /// Texts are lines of one text.
    fn part(&mut self, value: Value) -> Result<(), WireError> {
        let mut part = Fields::of("content", value)?;
        let kind = part.name("type")?.ok_or(WireError::Missing { field: "type" })?;
        if kind == "image_url" {
            let image = image(self.text.len(), &mut part)?;
            self.images.push(image);
            return Ok(());
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &text_of(&kind, &mut part)?;
        Ok(())
    }
}

/// `{"url", "detail"}`, or the address alone, as older clients write it.
fn image(at: usize, part: &mut Fields) -> Result<Image, WireError> {
    const FIELD: &str = "image_url";
    let (url, detail) = match part.take(FIELD) {
        Some(Value::String(url)) => (Some(url), None),
        Some(Value::Object(image)) => {
            let mut image = Fields::of(FIELD, Value::Object(image))?;
            (image.text("url")?, image.name("detail")?)
        }
        Some(other) => return Err(wrong_type(FIELD, "an object with a url", &other)),
        None => (None, None),
    };
    let url = url.ok_or(WireError::Missing { field: "url" })?;
    if !["data:", "https://", "http://"].iter().any(|scheme| url.starts_with(scheme)) {
        let reason = "must be an address that begins with data:, https: or http:".to_owned();
        return Err(WireError::Invalid { field: FIELD, reason });
    }
    Ok(Image { at, url, detail })
}

fn text_of(kind: &str, part: &mut Fields) -> Result<String, WireError> {
    let field = match kind {
        "text" => "text",
        "refusal" => "refusal",
        "input_audio" | "video_url" | "file" => {
            let reason =
                format!("has a part of type '{kind}', and models here take text and pictures");
            return Err(WireError::Invalid { field: "content", reason });
        }
        _ => {
            let reason =
                "has a part of a type that is none of 'text', 'image_url' and 'refusal'".to_owned();
            return Err(WireError::Invalid { field: "content", reason });
        }
    };
    part.text(field)?.ok_or(WireError::Missing { field })
}
