//! Renders a conversation with the model's own chat template, as the text that the model was trained on.
//! Callers pass the date. This module neither tokenises nor reads answers.

mod attempts;
mod continued;
mod environment;
mod python;
#[cfg(test)]
mod tests;
mod tools;
mod variables;

use std::io;
use std::sync::Arc;

use hob_core::chat::{Conversation, Effort, JsonText, Thinking};
use minijinja::{Environment, Error, ErrorKind};
use serde_json::{Map, Value};

use super::dialect::{DescribedBy, ModelDialect};
use crate::memory::{limited, limited_on_thread};

/// Maximum length of a template. The longest known ones have under 30 KiB.
const SOURCE_BYTES_MAX: usize = 1 << 20;

/// Maximum instructions of the template's virtual machine for one rendering: enough for about ten thousand messages, and
/// about a tenth of a second.
const STEPS_MAX: u64 = 2_000_000;

const RENDERED_BYTES_MAX: usize = 16 << 20;

/// Maximum memory while a template is loaded. A template that doubles a text needs 40 steps to fill any machine.
const LOADING_BYTES_MAX: usize = 1 << 30;

/// Maximum memory of one rendering for a request.
const RENDERING_BYTES_MAX: usize = 512 << 20;

/// Names the task in the message about too much memory.
const TASK: &str = "the model's chat template";

/// Name of the only template in its environment.
const NAME: &str = "chat";

/// Special tokens as text. Empty if the vocabulary lacks them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    pub bos: String,
    pub eos: String,
}

/// A prompt to be tokenised. Special tokens in it count as tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// Whether the prompt opens the thinking block, so that the answer begins with thinking.
    pub starts_in_thinking: bool,
    /// Whether the text begins with the BOS token, so that none is added.
    pub has_bos: bool,
    /// Whether the prompt ends within the answer, so that the model continues that text.
    pub is_within_answer: bool,
}

// Leaves out the text, which belongs to the user.
hob_core::debug_fields!(Rendered: text.len(), starts_in_thinking, has_bos, is_within_answer);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("the model's chat template has {bytes} bytes, and the limit is {bytes_max}")]
    SourceTooLong { bytes: usize, bytes_max: usize },
    #[error("the model's chat template has an error in line {line}: {reason}")]
    Syntax { line: usize, reason: String },
    /// The template rejects the conversation on purpose. Users can change the conversation.
    #[error("the model's chat template rejects this conversation: {reason}")]
    Refused { reason: String },
    #[error("the model's chat template fails in line {line}: {kind}")]
    Failed { line: usize, kind: String },
    #[error("the model's chat template takes more than {steps_max} steps for this conversation")]
    TooManySteps { steps_max: u64 },
    #[error("the rendered conversation has more than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
    #[error("the model's chat template needs more than {mib} MiB of memory for this conversation")]
    TooMuchMemory { mib: usize },
    #[error("{what} must be a JSON object")]
    NotAnObject { what: &'static str },
}

/// A compiled template.
pub struct ChatTemplate {
    environment: Arc<Environment<'static>>,
    source: String,
    tokens: SpecialTokens,
    dialect: ModelDialect,
    content: ContentForm,
}

/// Form of the text in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentForm {
    Text,
    /// `[{"type": "text", "text": …}]`. Some templates read no other form.
    Parts,
}

impl ChatTemplate {
    pub fn compile(source: &str, tokens: SpecialTokens) -> Result<ChatTemplate, TemplateError> {
        if source.len() > SOURCE_BYTES_MAX {
            let (bytes, bytes_max) = (source.len(), SOURCE_BYTES_MAX);
            return Err(TemplateError::SourceTooLong { bytes, bytes_max });
        }
        let compile = || environment::compile(source);
        let environment =
            limited(TASK, LOADING_BYTES_MAX, compile).map_err(|error| syntax_error(&error))?;
        let mut template = ChatTemplate {
            environment: Arc::new(environment),
            source: source.to_owned(),
            tokens,
            dialect: ModelDialect::of(source),
            content: ContentForm::Text,
        };
        template.content = template.probe_content();
        Ok(template)
    }

    /// Marks of thinking and tool calls of this model.
    pub fn dialect(&self) -> &ModelDialect {
        &self.dialect
    }

    /// Renders the prompt. `now` is for templates that contain the date.
    /// If the template rejects the conversation, it is rendered again in other forms: the system message within the user's,
    /// neighbours of one role joined, ids and arguments in another format.
    /// If the last message is the assistant's, the prompt ends with it and the model continues it.
    pub fn render(
        &self,
        conversation: &Conversation,
        thinking: &Thinking,
        now: jiff::civil::DateTime,
    ) -> Result<Rendered, TemplateError> {
        let mut variables = variables::of(conversation, thinking, &self.dialect)?;
        variables.insert("bos_token".to_owned(), self.tokens.bos.clone().into());
        variables.insert("eos_token".to_owned(), self.tokens.eos.clone().into());
        variables.insert("date_string".to_owned(), now.strftime("%d %b %Y").to_string().into());
        let continued = continued::text(conversation);
        let mut messages = variables::messages(conversation);
        messages.truncate(messages.len() - usize::from(continued.is_some()));
        if self.dialect.described_by == DescribedBy::SystemMessage {
            messages = tools::written_out(messages, &variables::tools(conversation)?);
        }
        let mut rendered = self.first_that_renders(&messages, &variables, now);
        // Some templates know only a few words for the effort, and reject the others.
        if matches!(rendered, Err(TemplateError::Refused { .. }))
            && variables.remove("reasoning_effort").is_some()
        {
            rendered = self.first_that_renders(&messages, &variables, now).or(rendered);
        }
        let text = rendered?;
        Ok(self.finished(text, thinking, continued))
    }

    fn first_that_renders(
        &self,
        messages: &[Value],
        variables: &Map<String, Value>,
        now: jiff::civil::DateTime,
    ) -> Result<String, TemplateError> {
        let mut refusal = None;
        for messages in attempts::all(messages) {
            let messages = match self.content {
                ContentForm::Text => messages,
                ContentForm::Parts => attempts::in_parts(messages),
            };
            let mut variables = variables.clone();
            variables.insert("messages".to_owned(), messages.into());
            match self.run(variables, now) {
                Ok(text) => return Ok(text),
                Err(error @ (TemplateError::Refused { .. } | TemplateError::Failed { .. })) => {
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refusal.unwrap_or(TemplateError::NotAnObject { what: "a message" }))
    }

    /// Renders on a thread of its own, which is left behind if it needs too much memory.
    fn run(
        &self,
        variables: Map<String, Value>,
        now: jiff::civil::DateTime,
    ) -> Result<String, TemplateError> {
        let environment = Arc::clone(&self.environment);
        let render = move || output_of(&environment, variables, now);
        match limited_on_thread(TASK, RENDERING_BYTES_MAX, render) {
            Ok(Some(text)) => text.map_err(|error| self.render_error(&error)),
            Ok(None) => Err(TemplateError::TooMuchMemory { mib: RENDERING_BYTES_MAX >> 20 }),
            // There is no thread for it.
            Err(error) => Err(TemplateError::Failed { line: 0, kind: error.to_string() }),
        }
    }

    /// Finds the form of text that the template reads. Some templates silently ignore text that is not in parts. A
    /// template that needs too much memory here ends the worker, so that its model does not load.
    fn probe_content(&self) -> ContentForm {
        const NEEDLE: &str = "needle";
        let probe = |messages: Vec<Value>| {
            let mut variables = Map::new();
            variables.insert("messages".to_owned(), messages.into());
            variables.insert("add_generation_prompt".to_owned(), true.into());
            variables.insert("tools".to_owned(), Value::Null);
            let now = jiff::civil::DateTime::default();
            let render = || output_of(&self.environment, variables, now);
            limited(TASK, LOADING_BYTES_MAX, render).is_ok_and(|text| text.contains(NEEDLE))
        };
        let messages = vec![serde_json::json!({"role": "user", "content": NEEDLE})];
        if !probe(messages.clone()) && probe(attempts::in_parts(messages)) {
            ContentForm::Parts
        } else {
            ContentForm::Text
        }
    }

    fn finished(&self, mut text: String, thinking: &Thinking, continued: Option<&str>) -> Rendered {
        let continued = continued.filter(|continued| !continued.is_empty());
        let mut starts_in_thinking = false;
        if let Some(marks) = self.dialect.thinking
            && text.trim_end().ends_with(marks.open)
        {
            starts_in_thinking = thinking.effort != Some(Effort::None) && continued.is_none();
            if !starts_in_thinking {
                text.truncate(text.trim_end().len());
                text.push_str(marks.empty_rest);
            }
        }
        if let Some(continued) = continued {
            text.push_str(continued::opening(&self.dialect, &text));
            text.push_str(continued);
        }
        let has_bos = !self.tokens.bos.is_empty() && text.starts_with(&self.tokens.bos);
        Rendered { text, starts_in_thinking, has_bos, is_within_answer: continued.is_some() }
    }

    fn render_error(&self, error: &Error) -> TemplateError {
        if let Some(reason) = environment::refusal(error) {
            return TemplateError::Refused { reason: self.without_user_text(reason) };
        }
        match error.kind() {
            ErrorKind::OutOfFuel => TemplateError::TooManySteps { steps_max: STEPS_MAX },
            ErrorKind::WriteFailure => TemplateError::TooLong { bytes_max: RENDERED_BYTES_MAX },
            // The detail may contain a user's text. The kind does not.
            kind => TemplateError::Failed {
                line: error.line().unwrap_or_default(),
                kind: kind.to_string(),
            },
        }
    }

    /// Returns the reason only if the template contains it literally. Otherwise it may contain a user's text.
    fn without_user_text(&self, reason: &str) -> String {
        if self.source.contains(reason) {
            reason.to_owned()
        } else {
            "its reason quotes the conversation and is not repeated here".to_owned()
        }
    }
}

hob_core::debug_fields!(ChatTemplate: source.len(), tokens, dialect);

fn syntax_error(error: &Error) -> TemplateError {
    let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TemplateError::Syntax { line: error.line().unwrap_or_default(), reason }
}

/// What the template writes.
///
/// # Errors
/// [`ErrorKind::WriteFailure`] for a text that is too long.
fn output_of(
    environment: &Environment<'static>,
    variables: Map<String, Value>,
    now: jiff::civil::DateTime,
) -> Result<String, Error> {
    let mut written = LimitedText(Vec::new());
    let context = environment::context(variables, now);
    environment.get_template(NAME)?.render_captured_to(context, &mut written)?;
    Ok(String::from_utf8_lossy(&written.0).into_owned())
}

/// The text of a template, up to the limit.
struct LimitedText(Vec<u8>);

impl io::Write for LimitedText {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.0.len() + more.len() > RENDERED_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The members of a JSON object.
fn object(text: &JsonText, what: &'static str) -> Result<Map<String, Value>, TemplateError> {
    serde_json::from_str(text.as_str()).map_err(|_| TemplateError::NotAnObject { what })
}
