//! `POST /v1/completions`: texts to be continued as they stand, without a template.
//! Older than chat, and still what base models, editors and evaluation suites speak.

mod text_completion;

use hob_core::ChatRequest;
use hob_core::chat::{Prompt, Thinking};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::WireError;
use crate::chat::{AnswerFields, ChatDelivery, SamplingFields, output};
use crate::fields::{Fields, TokenLists};
use crate::request_value::{Either, count_within, each, kind_of};

pub(crate) use text_completion::TextCompletion;
pub use text_completion::{CompletionAnswer, CompletionChunks};

const PROMPT: &str = "prompt";

/// Texts in one request, and answers to all of them together.
const PROMPTS_MAX: usize = 16;
const ANSWERS_MAX: usize = 16;

/// OpenAI's, where nothing is said: a base model need not come to an end.
const TOKENS_DEFAULT: u32 = 16;

/// The fields of `POST /v1/completions` that chat does not have.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CompletionFields {
    /// The text to continue, or token ids of the model's vocabulary; one of them, or a list of up to 16.
    #[schemars(with = "TextsSchema", required)]
    prompt: Option<TextsField>,
    /// Text after the answer. The model fills in between, if it was trained for that.
    suffix: Option<String>,
    /// Output tokens, default 16. 0: no answer, only the prompt with `echo`. Below zero: no limit.
    max_tokens: Option<i64>,
    /// Log probabilities of each token with this many alternatives, 0 to 20.
    #[serde(default, deserialize_with = "count_within::<_, 0, 20>")]
    #[schemars(range(min = 0, max = 20))]
    logprobs: Option<u32>,
    /// `true` puts the prompt before the answer. Default: `false`.
    echo: Option<bool>,
    /// At most 1: hob does not rank answers.
    #[serde(default, deserialize_with = "count_within::<_, 0, 1>")]
    #[schemars(range(min = 0, max = 1))]
    #[expect(dead_code, reason = "only its range is checked")]
    best_of: Option<u32>,
}

/// A parsed request. Its names are not yet checked against a model.
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
    let sent: CompletionFields = fields.read()?;
    let prompts = prompts(sent.prompt, tokens, sent.suffix)?;
    let (output, strict) = output(fields.read()?)?;
    let mut sampling: SamplingFields = fields.read()?;
    let answer: AnswerFields = fields.read()?;
    let settings = ChatRequest {
        sampling: sampling.sampling(&mut ignored)?,
        tokens_max: tokens_max(sent.max_tokens),
        stop: sampling.stop()?,
        output,
        strict,
        thinking: Thinking::default(),
        logprobs: sent.logprobs.map(|top| top as u8),
        keep_alive: answer.keep_alive,
        ..ChatRequest::default()
    };
    let choices = answer.choices();
    check_answers(prompts.len(), choices)?;
    let echo = if sent.echo == Some(true) { Echo::Prompt } else { Echo::Nothing };
    let delivery = answer.delivery(&mut ignored)?;
    let model = answer.into_model();
    let settings = ChatRequest { reading: delivery.reading(), extra: fields.rest(), ..settings };
    let unknown = fields.into_unknown();
    let request = |prompt| {
        let echo = echo == Echo::Prompt && !matches!(prompt, Prompt::Infill { .. });
        ChatRequest { prompt, echo, ..settings.clone() }
    };
    let requests = prompts.into_iter().map(request).collect();
    Ok(WireCompletion { model, requests, choices, delivery, echo, ignored, unknown })
}

/// Below zero means no limit, as for chat.
fn tokens_max(sent: Option<i64>) -> Option<u32> {
    let tokens = sent.unwrap_or(i64::from(TOKENS_DEFAULT));
    (tokens >= 0).then(|| u32::try_from(tokens).unwrap_or(u32::MAX))
}

fn check_answers(prompts: usize, choices: u32) -> Result<(), WireError> {
    let answers = prompts * choices as usize;
    if answers <= ANSWERS_MAX {
        return Ok(());
    }
    let reason = format!(
        "of {choices} for {prompts} prompts makes {answers} answers, and the limit is {ANSWERS_MAX}"
    );
    Err(WireError::invalid("n", reason))
}

fn prompts(
    sent: Option<TextsField>,
    tokens: Option<TokenLists>,
    suffix: Option<String>,
) -> Result<Vec<Prompt>, WireError> {
    let prompts = texts_or_tokens(PROMPT, sent, tokens, PROMPTS_MAX)?;
    let suffix = suffix.filter(|suffix| !suffix.is_empty());
    let prompt = |prompt| match (prompt, suffix.clone()) {
        (TextOrTokens::Text(prefix), Some(suffix)) => Ok(Prompt::Infill { prefix, suffix }),
        (TextOrTokens::Text(text), None) => Ok(Prompt::Text(text)),
        (TextOrTokens::Tokens(tokens), None) => Ok(Prompt::Tokens(tokens)),
        (TextOrTokens::Tokens(_), Some(_)) => {
            let reason = "needs a prompt that is text, and this one is token ids";
            Err(WireError::invalid("suffix", reason))
        }
    };
    prompts.into_iter().map(prompt).collect()
}

/// A text, or ids of the model's own vocabulary.
pub(crate) enum TextOrTokens {
    Text(String),
    Tokens(Vec<u32>),
}

/// A string, a list of strings, a list of token ids, or a list of such lists. Lists of token ids that are
/// valid are parsed with the body and never reach this type.
pub(crate) type TextsField = Either<String, Vec<Value>>;

/// The schema of [`TextsField`].
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "describes the four forms, which are read by hand")]
pub(crate) enum TextsSchema {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    TokenLists(Vec<Vec<u32>>),
}

/// `tokens` were parsed with the body.
pub(crate) fn texts_or_tokens(
    field: &str,
    sent: Option<TextsField>,
    tokens: Option<TokenLists>,
    count_max: usize,
) -> Result<Vec<TextOrTokens>, WireError> {
    if let Some(lists) = tokens {
        return Ok(lists.into_iter().map(TextOrTokens::Tokens).collect());
    }
    let values = match sent {
        None => return Err(WireError::missing(field)),
        Some(Either::First(text)) => return Ok(vec![TextOrTokens::Text(text)]),
        Some(Either::Second(values)) => values,
    };
    match values.first() {
        None => Err(WireError::invalid(field, "is empty")),
        Some(Value::Number(_)) => {
            let tokens = token_ids(&values).map_err(|error| error.within(field))?;
            Ok(vec![TextOrTokens::Tokens(tokens)])
        }
        Some(_) => each(field, values, ("elements", count_max), element),
    }
}

fn element(value: Value) -> Result<TextOrTokens, WireError> {
    match value {
        Value::String(text) => Ok(TextOrTokens::Text(text)),
        Value::Array(values) => Ok(TextOrTokens::Tokens(token_ids(&values)?)),
        other => Err(WireError::WrongType {
            field: String::new(),
            wanted: "a string or a list of token ids".to_owned(),
            got: kind_of(&other),
        }),
    }
}

fn token_ids(values: &[Value]) -> Result<Vec<u32>, WireError> {
    let token = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
    let tokens: Option<Vec<u32>> = values.iter().map(token).collect();
    tokens.ok_or_else(|| WireError::invalid("", "has an element that is not a token id"))
}
