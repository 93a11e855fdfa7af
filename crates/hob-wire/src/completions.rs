//! `POST /v1/completions`: texts to be continued as they stand, without a template.
//! Older than chat, and still what base models, editors and evaluation suites speak.

mod answer;

use hob_core::ChatRequest;
use hob_core::chat::{Prompt, Thinking};
use serde_json::Value;

use crate::WireError;
use crate::chat::{ChatDelivery, choices, count, delivery, output, sampling, stop};
use crate::fields::{Fields, TokenLists, wrong_type};
use crate::keep_alive::keep_alive;

pub use answer::{CompletionAnswer, CompletionChunks};

const PROMPT: &str = "prompt";

/// Texts in one request, and answers to all of them together.
const PROMPTS_MAX: usize = 16;
const ANSWERS_MAX: usize = 16;

/// OpenAI's, where nothing is said: a base model need not come to an end.
const TOKENS_DEFAULT: u32 = 16;

const LOGPROBS_MAX: i64 = 20;

const WANTED: &str = "a string, a list of strings, a list of token ids or a list of such lists";

/// What was asked for; nothing of it is checked against a model yet.
#[derive(Clone, Debug, PartialEq)]
pub struct WireCompletion {
    /// `None`: the default chat model.
    pub model: Option<String>,
    /// One for each prompt, in order.
    pub requests: Vec<ChatRequest>,
    /// Answers wanted to each prompt.
    pub choices: u32,
    pub delivery: ChatDelivery,
    pub echo: Echo,
    /// Parameters without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
    /// Parameters that hob does not know, and whose effect is up to who answers.
    pub unknown: Vec<String>,
}

/// Whether an answer begins with its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    Prompt,
    Nothing,
}

impl WireCompletion {
    /// What each answer begins with, in the order of the prompts. The text of token ids comes from the
    /// model, whose vocabulary they are of.
    pub fn prefixes(&self) -> Vec<String> {
        let prefix = |request: &ChatRequest| match (&request.prompt, self.echo) {
            (Prompt::Text(text), Echo::Prompt) => text.clone(),
            (Prompt::Infill { prefix, .. }, Echo::Prompt) => prefix.clone(),
            _ => String::new(),
        };
        self.requests.iter().map(prefix).collect()
    }
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_completion(body: &[u8]) -> Result<WireCompletion, WireError> {
    let (mut fields, tokens) = Fields::parse_with_tokens(body, PROMPT, PROMPTS_MAX)?;
    let mut ignored = Vec::new();
    let prompts = prompts(&mut fields, tokens)?;
    let (output, strict) = output(&mut fields)?;
    let settings = ChatRequest {
        sampling: sampling(&mut fields, &mut ignored)?,
        tokens_max: tokens_max(&mut fields)?,
        stop: stop(&mut fields)?,
        output,
        strict,
        thinking: Thinking::default(),
        logprobs: count(&mut fields, "logprobs", 0..=LOGPROBS_MAX)?.map(|top| top as u8),
        keep_alive: keep_alive(&mut fields)?,
        ..ChatRequest::default()
    };
    let choices = choices(&mut fields)?;
    check_answers(prompts.len(), choices)?;
    count(&mut fields, "best_of", 0..=1)?;
    let wanted = fields.flag("echo")?.unwrap_or(false);
    let echo = if wanted { Echo::Prompt } else { Echo::Nothing };
    let delivery = delivery(&mut fields, &mut ignored)?;
    let model = fields.name("model")?;
    let settings = ChatRequest { reading: delivery.reading(), extra: fields.rest(), ..settings };
    let unknown = fields.into_unknown();
    let request = |prompt| {
        let echo = echo == Echo::Prompt && !matches!(prompt, Prompt::Infill { .. });
        ChatRequest { prompt, echo, ..settings.clone() }
    };
    let requests = prompts.into_iter().map(request).collect();
    Ok(WireCompletion { model, requests, choices, delivery, echo, ignored, unknown })
}

/// Below zero is without a limit, as it is for chat.
fn tokens_max(fields: &mut Fields) -> Result<Option<u32>, WireError> {
    let Some(tokens) = fields.whole_number("max_tokens")? else { return Ok(Some(TOKENS_DEFAULT)) };
    Ok((tokens >= 0).then(|| u32::try_from(tokens).unwrap_or(u32::MAX)))
}

fn check_answers(prompts: usize, choices: u32) -> Result<(), WireError> {
    let answers = prompts * choices as usize;
    if answers <= ANSWERS_MAX {
        return Ok(());
    }
    let reason = format!(
        "of {choices} for {prompts} prompts makes {answers} answers, and the limit is {ANSWERS_MAX}"
    );
    Err(WireError::Invalid { field: "n", reason })
}

fn prompts(fields: &mut Fields, tokens: Option<TokenLists>) -> Result<Vec<Prompt>, WireError> {
    let prompts = texts_or_tokens(fields, PROMPT, tokens, PROMPTS_MAX)?;
    let suffix = fields.text("suffix")?.filter(|suffix| !suffix.is_empty());
    let prompt = |prompt| match (prompt, suffix.clone()) {
        (TextOrTokens::Text(prefix), Some(suffix)) => Ok(Prompt::Infill { prefix, suffix }),
        (TextOrTokens::Text(text), None) => Ok(Prompt::Text(text)),
        (TextOrTokens::Tokens(tokens), None) => Ok(Prompt::Tokens(tokens)),
        (TextOrTokens::Tokens(_), Some(_)) => Err(WireError::Invalid {
            field: "suffix",
            reason: "needs a prompt that is text, and this one is token ids".to_owned(),
        }),
    };
    prompts.into_iter().map(prompt).collect()
}

/// A text, or ids of the model's own vocabulary.
pub(crate) enum TextOrTokens {
    Text(String),
    Tokens(Vec<u32>),
}

/// Four forms, of which the first and the third are one element. `tokens` were parsed with the body.
pub(crate) fn texts_or_tokens(
    fields: &mut Fields,
    field: &'static str,
    tokens: Option<TokenLists>,
    count_max: usize,
) -> Result<Vec<TextOrTokens>, WireError> {
    if let Some(lists) = tokens {
        return Ok(lists.into_iter().map(TextOrTokens::Tokens).collect());
    }
    let values = match fields.take(field).ok_or(WireError::Missing { field })? {
        Value::String(text) => return Ok(vec![TextOrTokens::Text(text)]),
        Value::Array(values) => values,
        other => return Err(wrong_type(field, WANTED, &other)),
    };
    if values.first().is_some_and(Value::is_number) {
        return Ok(vec![TextOrTokens::Tokens(token_ids(field, values)?)]);
    }
    let reason = match values.len() {
        0 => "is empty".to_owned(),
        count if count > count_max => format!("has {count} elements and the limit is {count_max}"),
        _ => {
            let read =
                |(index, value)| element(field, value).map_err(|error| error.within(field, index));
            return values.into_iter().enumerate().map(read).collect();
        }
    };
    Err(WireError::Invalid { field, reason })
}

fn element(field: &'static str, value: Value) -> Result<TextOrTokens, WireError> {
    match value {
        Value::String(text) => Ok(TextOrTokens::Text(text)),
        Value::Array(values) => Ok(TextOrTokens::Tokens(token_ids(field, values)?)),
        other => Err(wrong_type(field, "a string or a list of token ids", &other)),
    }
}

fn token_ids(field: &'static str, values: Vec<Value>) -> Result<Vec<u32>, WireError> {
    let token = |value: Value| {
        let token = value.as_u64().and_then(|token| u32::try_from(token).ok());
        token.ok_or_else(|| WireError::Invalid {
            field,
            reason: "holds something that is no token id".to_owned(),
        })
    };
    values.into_iter().map(token).collect()
}
