//! `/api/chat` and `/api/generate`: from a body to what a model can take, or to a wish about its
//! place in memory. Both stream unless they are told not to.

use std::fmt;
use std::time::Duration;

use hob_core::chat::{Conversation, Message, Prompt, Role, Thinking};
use hob_core::{ChatRequest, KeepAlive};

use super::context;
use super::images::{images, refuse};
use super::messages::messages;
use super::options::{format, options};
use crate::WireError;
use crate::chat::{logprobs_wanted, switch, tools};
use crate::fields::Fields;
use crate::keep_alive::keep_alive;

/// What was asked for; nothing of it is checked against a model yet.
#[derive(Clone, PartialEq)]
pub struct OllamaRequest {
    /// `None`: the default chat model.
    pub model: Option<String>,
    pub wish: OllamaWish,
    pub delivery: OllamaDelivery,
    /// `num_ctx`: tokens that the context is to hold at least.
    pub context_tokens: Option<u32>,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

impl fmt::Debug for OllamaRequest {
    /// Says what kind of wish, never its text: texts do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wish = match &self.wish {
            OllamaWish::Answer(_) => "answer",
            OllamaWish::Load(_) => "load",
            OllamaWish::Unload => "unload",
        };
        f.debug_struct("OllamaRequest")
            .field("model", &self.model)
            .field("wish", &wish)
            .field("delivery", &self.delivery)
            .finish_non_exhaustive()
    }
}

/// A request without a prompt is about memory only.
#[derive(Clone, PartialEq)]
pub enum OllamaWish {
    Answer(Box<ChatRequest>),
    Load(Option<KeepAlive>),
    Unload,
}

impl fmt::Debug for OllamaWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OllamaWish::Answer(_) => f.write_str("Answer(…)"),
            OllamaWish::Load(wish) => f.debug_tuple("Load").field(wish).finish(),
            OllamaWish::Unload => f.write_str("Unload"),
        }
    }
}

/// How the answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OllamaDelivery {
    /// A line of JSON for each piece.
    Lines,
    /// One JSON object.
    Whole,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_chat(body: &[u8]) -> Result<OllamaRequest, WireError> {
    let mut fields = Fields::parse(body)?;
    let mut ignored = Vec::new();
    let offer = tools(&mut fields, &mut ignored)?;
    let prompt = messages(&mut fields)?.map(|messages| {
        Prompt::Chat(Conversation {
            messages,
            tools: offer.tools,
            tool_choice: offer.choice,
            parallel_tool_calls: offer.parallel,
            template_arguments: None,
        })
    });
    finish(fields, prompt, ignored)
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_generate(body: &[u8]) -> Result<OllamaRequest, WireError> {
    let mut fields = Fields::parse(body)?;
    refuse_template(&mut fields)?;
    let mut ignored = Vec::new();
    let prompt = generate_prompt(&mut fields, &mut ignored)?;
    finish(fields, prompt, ignored)
}

fn refuse_template(fields: &mut Fields) -> Result<(), WireError> {
    match fields.text("template")? {
        Some(template) if !template.is_empty() => Err(WireError::Invalid {
            field: "template",
            reason: "cannot be replaced: hob renders the model's own; set 'raw' to write all of \
                     the prompt yourself"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

fn generate_prompt(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Option<Prompt>, WireError> {
    let present = |text: &String| !text.is_empty();
    let prompt = fields.text("prompt")?.filter(present);
    let suffix = fields.text("suffix")?.filter(present);
    let system = fields.text("system")?.filter(present);
    let is_raw = fields.flag("raw")?.unwrap_or(false);
    let before = context::read(fields)?;
    let images = images(fields, prompt.as_deref().map_or(0, str::len))?;
    if is_raw || suffix.is_some() {
        refuse(&images)?;
        ignored.extend(system.is_some().then(|| "system".to_owned()));
        ignored.extend((!before.is_empty()).then(|| "context".to_owned()));
    }
    Ok(match (prompt, suffix) {
        (None, None) if images.is_empty() => None,
        (prefix, Some(suffix)) => {
            Some(Prompt::Infill { prefix: prefix.unwrap_or_default(), suffix })
        }
        (Some(text), None) if is_raw => Some(Prompt::Text(text)),
        (text, None) => {
            let user = Message { images, ..Message::new(Role::User, text.unwrap_or_default()) };
            let messages = after(before, system).into_iter().chain([user]).collect();
            Some(Prompt::Chat(Conversation { messages, ..Conversation::default() }))
        }
    })
}

/// The turns before this one, under the system message that was named last.
fn after(mut before: Vec<Message>, system: Option<String>) -> Vec<Message> {
    if let Some(text) = system {
        before.retain(|message| message.role != Role::System);
        before.insert(0, Message::new(Role::System, text));
    }
    before
}

/// What both routes say in the same words.
fn finish(
    mut fields: Fields,
    prompt: Option<Prompt>,
    mut ignored: Vec<String>,
) -> Result<OllamaRequest, WireError> {
    let model = super::model(&mut fields)?;
    let delivery = delivery(&mut fields)?;
    let keep_alive = keep_alive(&mut fields)?;
    let options = options(&mut fields, &mut ignored)?;
    let (output, effort) = (format(&mut fields)?, switch(&mut fields, "think")?);
    shortened(&mut fields, &mut ignored)?;
    let logprobs = logprobs_wanted(&mut fields, &mut ignored)?;
    let context_tokens = options.context_tokens;
    let wish = match (prompt, keep_alive) {
        (Some(prompt), keep_alive) => OllamaWish::Answer(Box::new(ChatRequest {
            prompt,
            sampling: options.sampling,
            tokens_max: options.tokens_max,
            stop: options.stop,
            output,
            thinking: Thinking { effort, tokens_max: None },
            logprobs,
            keep_alive,
            ..ChatRequest::default()
        })),
        (None, Some(KeepAlive::For(Duration::ZERO))) => OllamaWish::Unload,
        (None, keep_alive) => OllamaWish::Load(keep_alive),
    };
    ignored.extend(fields.into_unknown());
    Ok(OllamaRequest { model, wish, delivery, context_tokens, ignored })
}

pub(super) fn delivery(fields: &mut Fields) -> Result<OllamaDelivery, WireError> {
    let streams = fields.flag("stream")?.unwrap_or(true);
    Ok(if streams { OllamaDelivery::Lines } else { OllamaDelivery::Whole })
}

/// hob never shortens a prompt and never forgets its beginning. Who asks for that is told so.
pub(super) fn shortened(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<(), WireError> {
    for field in ["truncate", "shift"] {
        if fields.flag(field)? == Some(true) {
            ignored.push(field.to_owned());
        }
    }
    Ok(())
}
