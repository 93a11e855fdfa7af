//! What a model may call, and whether it must: `tools`, and `functions` as they were before tools.
//! Schemas pass through as text, their keys in the order in which they came.

use hob_core::JsonText;
use hob_core::chat::{Tool, ToolChoice};
use serde_json::Value;

use super::CallShape;
use crate::WireError;
use crate::fields::{Fields, wrong_type};

const TOOLS_MAX: usize = 128;

const CHOICE: &str = "'none', 'auto', 'required' or an object that names a function";

/// What a request offers to a model.
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    pub(crate) choice: ToolChoice,
    /// More than one call in one answer.
    pub(crate) parallel: bool,
    pub(crate) shape: CallShape,
}

pub(crate) fn tools(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<Offer, WireError> {
    let parallel = fields.flag("parallel_tool_calls")?;
    let offer = match list(fields, "tools", tool)? {
        Some(tools) => {
            ignore(fields, ["functions", "function_call"], ignored);
            Offer {
                tools,
                choice: ToolChoice::Auto,
                parallel: parallel.unwrap_or(true),
                shape: CallShape::ToolCalls,
            }
            .choose(fields, "tool_choice")?
        }
        None => legacy(fields)?,
    };
    offer.checked()
}

/// Functions answer one call at a time.
fn legacy(fields: &mut Fields) -> Result<Offer, WireError> {
    let functions = list(fields, "functions", function)?;
    let (shape, choice) = match functions.is_some() {
        true => (CallShape::FunctionCall, "function_call"),
        false => (CallShape::ToolCalls, "tool_choice"),
    };
    let tools = functions.unwrap_or_default();
    Offer { tools, choice: ToolChoice::Auto, parallel: false, shape }.choose(fields, choice)
}

fn ignore(fields: &mut Fields, names: [&'static str; 2], ignored: &mut Vec<String>) {
    let sent = names.into_iter().filter(|name| fields.take(name).is_some());
    ignored.extend(sent.map(str::to_owned));
}

/// An empty list is no list.
fn list(
    fields: &mut Fields,
    field: &'static str,
    read: fn(Fields) -> Result<Tool, WireError>,
) -> Result<Option<Vec<Tool>>, WireError> {
    let values = fields.list(field)?.unwrap_or_default();
    if values.len() > TOOLS_MAX {
        let reason = format!("has {} tools and the limit is {TOOLS_MAX}", values.len());
        return Err(WireError::Invalid { field, reason });
    }
    let read = |(index, value)| {
        let tool = Fields::of(field, value).and_then(read);
        tool.map_err(|error| error.within(field, index))
    };
    let tools: Vec<Tool> = values.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok((!tools.is_empty()).then_some(tools))
}

fn tool(mut fields: Fields) -> Result<Tool, WireError> {
    fields.choice("type", &["function"])?;
    function(fields.object("function")?.ok_or(WireError::Missing { field: "function" })?)
}

fn function(mut fields: Fields) -> Result<Tool, WireError> {
    let name = fields.name("name")?.filter(|name| !name.is_empty());
    let parameters = match fields.take("parameters") {
        None => None,
        Some(schema @ Value::Object(_)) => Some(JsonText::parsed(schema.to_string())),
        Some(other) => return Err(wrong_type("parameters", "a JSON schema", &other)),
    };
    Ok(Tool {
        name: name.ok_or(WireError::Missing { field: "name" })?,
        description: fields.text("description")?,
        parameters,
        strict: fields.flag("strict")?.unwrap_or(false),
    })
}

impl Offer {
    fn choose(mut self, fields: &mut Fields, field: &'static str) -> Result<Offer, WireError> {
        match fields.take(field) {
            None => {}
            Some(Value::String(word)) => self.choice = word_choice(field, &word)?,
            Some(Value::Object(choice)) => {
                let choice = Fields::of(field, Value::Object(choice))?;
                self.choose_object(field, choice)?;
            }
            Some(other) => return Err(wrong_type(field, CHOICE, &other)),
        }
        Ok(self)
    }

    fn choose_object(&mut self, field: &'static str, mut choice: Fields) -> Result<(), WireError> {
        let kind = choice.choice("type", &["function", "allowed_tools"])?;
        if kind == Some("allowed_tools") {
            return match choice.object("allowed_tools")? {
                Some(allowed) => self.allow_only(field, allowed),
                None => Err(WireError::Missing { field: "allowed_tools" }),
            };
        }
        self.choice = ToolChoice::Named(function_name(field, choice)?);
        Ok(())
    }

    /// Only some of the tools, of which one may or must be called.
    fn allow_only(&mut self, field: &'static str, mut allowed: Fields) -> Result<(), WireError> {
        let mode = allowed.choice("mode", &["auto", "required"])?;
        let names = allowed.list("tools")?.unwrap_or_default();
        let name = |value| function_name(field, Fields::of(field, value)?);
        let names: Vec<String> = names.into_iter().map(name).collect::<Result<_, _>>()?;
        for name in &names {
            self.check_offered(field, name)?;
        }
        self.tools.retain(|tool| names.contains(&tool.name));
        self.choice =
            if mode == Some("required") { ToolChoice::Required } else { ToolChoice::Auto };
        Ok(())
    }

    fn checked(self) -> Result<Offer, WireError> {
        let field = match self.shape {
            CallShape::ToolCalls => "tool_choice",
            CallShape::FunctionCall => "function_call",
        };
        match &self.choice {
            ToolChoice::Required if self.tools.is_empty() => Err(WireError::Invalid {
                field,
                reason: "wants a call, and there is no tool to call".to_owned(),
            }),
            ToolChoice::Named(name) => self.check_offered(field, name).map(|()| self),
            ToolChoice::Required | ToolChoice::Auto | ToolChoice::None => Ok(self),
        }
    }

    fn check_offered(&self, field: &'static str, name: &str) -> Result<(), WireError> {
        if self.tools.iter().any(|tool| tool.name == name) {
            return Ok(());
        }
        let reason = format!("names '{name}', which is not among the tools");
        Err(WireError::Invalid { field, reason })
    }
}

fn word_choice(field: &'static str, word: &str) -> Result<ToolChoice, WireError> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        _ => Err(WireError::Invalid {
            field,
            reason: format!("must be {CHOICE}, and is another word"),
        }),
    }
}

/// `{"function":{"name":…}}`, or without the outer object as `function_call` has it.
fn function_name(field: &'static str, mut choice: Fields) -> Result<String, WireError> {
    let name = match choice.object("function")? {
        Some(mut function) => function.name("name")?,
        None => choice.name("name")?,
    };
    name.ok_or_else(|| WireError::Invalid {
        field,
        reason: format!("must be {CHOICE}, and names none"),
    })
}
