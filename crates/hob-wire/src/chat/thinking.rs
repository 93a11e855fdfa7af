//! How much a model is to think. Clients have at least eight ways to say so; here they become one.
//! The first that is given wins: a parameter before a template's switch, and that before the text.

use hob_core::JsonText;
use hob_core::chat::{Effort, Message, Role, Thinking};
use serde_json::Value;

use crate::WireError;
use crate::fields::{Fields, wrong_type};

/// The one setting, and what is left of the template's variables.
pub(super) fn thinking(
    fields: &mut Fields,
    messages: &[Message],
    ignored: &mut Vec<String>,
) -> Result<(Thinking, Option<JsonText>), WireError> {
    let mut said = Said::default();
    said.effort(level(fields, "reasoning_effort")?);
    reasoning(fields, &mut said, ignored)?;
    said.effort(switch(fields, "think")?);
    anthropic(fields, &mut said)?;
    said.budget(fields.whole_number("thinking_budget_tokens")?);
    let variables = template(fields, &mut said)?;
    said.effort(spoken(messages));
    Ok((said.0, variables))
}

#[derive(Default)]
struct Said(Thinking);

impl Said {
    fn effort(&mut self, effort: Option<Effort>) {
        self.0.effort = self.0.effort.or(effort);
    }

    /// Below zero is without a limit.
    fn budget(&mut self, tokens: Option<i64>) {
        let tokens = tokens.filter(|tokens| *tokens >= 0);
        let tokens = tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        self.0.tokens_max = self.0.tokens_max.or(tokens);
    }
}

/// "Think" without a word about how much is the middle.
fn switched(on: bool) -> Effort {
    if on { Effort::Medium } else { Effort::None }
}

fn level(fields: &mut Fields, field: &'static str) -> Result<Option<Effort>, WireError> {
    let name = fields.choice(field, &Effort::ALL.map(Effort::name))?;
    Ok(name.and_then(effort))
}

fn effort(name: &str) -> Option<Effort> {
    Effort::ALL.into_iter().find(|effort| effort.name() == name)
}

/// True, false, or a level.
pub(crate) fn switch(
    fields: &mut Fields,
    field: &'static str,
) -> Result<Option<Effort>, WireError> {
    match fields.take(field) {
        None => Ok(None),
        Some(Value::Bool(on)) => Ok(Some(switched(on))),
        Some(Value::String(name)) => match effort(&name) {
            Some(effort) => Ok(Some(effort)),
            None => Err(WireError::NotOneOf {
                field,
                got: name.chars().take(32).collect(),
                accepted: Effort::ALL.map(Effort::name).to_vec(),
            }),
        },
        Some(other) => Err(wrong_type(field, "true, false or a level", &other)),
    }
}

/// `{"effort", "enabled", "max_tokens"}`: OpenAI's Responses and OpenRouter.
fn reasoning(
    fields: &mut Fields,
    said: &mut Said,
    ignored: &mut Vec<String>,
) -> Result<(), WireError> {
    let Some(mut reasoning) = fields.object("reasoning")? else { return Ok(()) };
    said.effort(level(&mut reasoning, "effort")?);
    said.effort(reasoning.flag("enabled")?.map(switched));
    said.budget(reasoning.whole_number("max_tokens")?);
    ignored.extend(reasoning.into_unknown().iter().map(|name| format!("reasoning.{name}")));
    Ok(())
}

/// `{"type", "budget_tokens"}`.
fn anthropic(fields: &mut Fields, said: &mut Said) -> Result<(), WireError> {
    let mut thinking = match fields.take("thinking") {
        None => return Ok(()),
        Some(Value::Bool(on)) => {
            said.effort(Some(switched(on)));
            return Ok(());
        }
        Some(value) => Fields::of("thinking", value)?,
    };
    let kind = thinking.choice("type", &["enabled", "disabled", "adaptive"])?;
    said.effort(kind.map(|kind| switched(kind != "disabled")));
    said.budget(thinking.whole_number("budget_tokens")?);
    Ok(())
}

/// Switches of templates are taken out of the variables, so that there is one setting and not two
/// that disagree; the rest is the template's own affair.
fn template(fields: &mut Fields, said: &mut Said) -> Result<Option<JsonText>, WireError> {
    const FIELD: &str = "chat_template_kwargs";
    let mut variables = match fields.take(FIELD) {
        None => return Ok(None),
        Some(Value::Object(variables)) => variables,
        Some(other) => return Err(wrong_type(FIELD, "an object", &other)),
    };
    for name in ["enable_thinking", "thinking"] {
        if let Some(Value::Bool(on)) = variables.get(name) {
            said.effort(Some(switched(*on)));
            variables.shift_remove(name);
        }
    }
    if let Some(known) = variables.get("reasoning_effort").and_then(Value::as_str).and_then(effort)
    {
        said.effort(Some(known));
        variables.shift_remove("reasoning_effort");
    }
    let variables = (!variables.is_empty()).then(|| Value::Object(variables));
    Ok(variables.map(|variables| JsonText::parsed(variables.to_string())))
}

/// Qwen's words at the end of what the user said last. They stay in the text: its template and its
/// weights know them too.
fn spoken(messages: &[Message]) -> Option<Effort> {
    let last = messages.iter().rev().find(|message| message.role == Role::User)?;
    match last.text.split_whitespace().next_back()? {
        "/no_think" => Some(Effort::None),
        "/think" => Some(Effort::Medium),
        _ => None,
    }
}
