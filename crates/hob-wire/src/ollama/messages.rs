//! Messages as Ollama writes them. A call's arguments are an object there, and calls have
//! no ids of their own: hob numbers them, so that templates which want ids have some.

use std::collections::VecDeque;

use hob_core::chat::{Message, Role, ToolCall};
use serde_json::Value;

use super::images::images;
use crate::WireError;
use crate::chat::{CALLS_MAX, MESSAGES_MAX, arguments};
use crate::fields::Fields;

const ROLES: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];

/// Calls that may still be answered; older ones are given up, so that each answer is found quickly.
const OPEN_MAX: usize = 1024;

/// None: the field is missing, or empty.
pub(super) fn messages(fields: &mut Fields) -> Result<Option<Vec<Message>>, WireError> {
    let values = list(fields, "messages", MESSAGES_MAX)?;
    let mut calls = Calls::default();
    let messages = read_each("messages", values, |fields| message(fields, &mut calls))?;
    Ok((!messages.is_empty()).then_some(messages))
}

fn list(
    fields: &mut Fields,
    field: &'static str,
    count_max: usize,
) -> Result<Vec<Value>, WireError> {
    let values = fields.list(field)?.unwrap_or_default();
    if values.len() > count_max {
        let reason = format!("has {} elements and the limit is {count_max}", values.len());
        return Err(WireError::Invalid { field, reason });
    }
    Ok(values)
}

fn read_each<T>(
    field: &'static str,
    values: Vec<Value>,
    mut read: impl FnMut(Fields) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let read = |(index, value)| {
        let element = Fields::of(field, value).and_then(&mut read);
        element.map_err(|error| error.within(field, index))
    };
    values.into_iter().enumerate().map(read).collect()
}

fn message(mut fields: Fields, calls: &mut Calls) -> Result<Message, WireError> {
    let role = role(&mut fields)?;
    let mut message = Message::new(role, fields.text("content")?.unwrap_or_default());
    message.images = images(&mut fields, message.text.len())?;
    match role {
        Role::Assistant => message.tool_calls = calls.read(&mut fields)?,
        Role::Tool => {
            message.name = fields.name("tool_name")?;
            let id = fields.name("tool_call_id")?;
            message.tool_call_id = calls.answered(id, message.name.as_deref());
        }
        Role::System | Role::User => {}
    }
    // What was thought in earlier turns is no part of the next one, and the rest says nothing to
    // a model.
    Ok(message)
}

fn role(fields: &mut Fields) -> Result<Role, WireError> {
    let accepted = ROLES.map(Role::name);
    let name = fields.choice("role", &accepted)?.ok_or(WireError::Missing { field: "role" })?;
    Ok(ROLES.into_iter().find(|role| role.name() == name).unwrap_or(Role::User))
}

/// The calls of a conversation so far.
#[derive(Default)]
struct Calls {
    count: usize,
    /// Id and function, in the order of the calls; at most [`OPEN_MAX`].
    unanswered: VecDeque<(String, String)>,
}

impl Calls {
    fn read(&mut self, fields: &mut Fields) -> Result<Vec<ToolCall>, WireError> {
        let values = list(fields, "tool_calls", CALLS_MAX)?;
        read_each("tool_calls", values, |fields| self.call(fields))
    }

    fn call(&mut self, mut fields: Fields) -> Result<ToolCall, WireError> {
        let function = fields.object("function")?;
        let mut function = function.ok_or(WireError::Missing { field: "function" })?;
        let name = function.name("name")?.ok_or(WireError::Missing { field: "name" })?;
        let id = fields.name("id")?.filter(|id| !id.is_empty()).unwrap_or_else(|| self.next_id());
        self.count += 1;
        self.unanswered.push_back((id.clone(), name.clone()));
        if self.unanswered.len() > OPEN_MAX {
            self.unanswered.pop_front();
        }
        Ok(ToolCall { id, name, arguments: arguments(&mut function)? })
    }

    /// Nine letters and digits, which is what the strictest templates take.
    fn next_id(&self) -> String {
        format!("call{:05}", self.count)
    }

    /// Which call an answer belongs to: the one it names, the oldest open one of that function,
    /// or the oldest.
    fn answered(&mut self, id: Option<String>, function: Option<&str>) -> Option<String> {
        let open = &mut self.unanswered;
        let place = match (&id, function) {
            (Some(id), _) => open.iter().position(|(open, _)| open == id),
            (None, Some(function)) => open.iter().position(|(_, open)| open == function),
            (None, None) => Some(0),
        };
        let found = place.and_then(|place| open.remove(place));
        id.or(found.map(|(id, _)| id))
    }
}
