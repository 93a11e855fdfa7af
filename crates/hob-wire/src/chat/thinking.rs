//! How much a model is to think. Clients have at least eight ways to say so; here they become one.
//! Order: parameters, then switches of the template, then words in the text. The first that is given wins.

use hob_core::JsonText;
use hob_core::chat::{Effort, Message, Role, Thinking};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::WireError;
use crate::fields::Fields;
use crate::request_value::{Either, JsonKind, tokens};
use crate::word::Word;

/// Fields that set how much a model thinks.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ThinkingFields {
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
    reasoning_effort: Option<Word<Effort>>,
    /// OpenAI's and OpenRouter's object: `effort`, `enabled`, `max_tokens`.
    #[schemars(with = "Option<Reasoning>")]
    reasoning: Option<Map<String, Value>>,
    /// `true`, `false` or a level of `reasoning_effort`.
    think: Option<EffortOrBool>,
    /// Anthropic's object, or `true` or `false`.
    thinking: Option<Either<bool, ThinkingObject>>,
    /// Maximum tokens of thinking. Below zero: no limit.
    #[serde(default, deserialize_with = "tokens")]
    thinking_budget_tokens: Option<u32>,
    /// Variables of the chat template. `enable_thinking`, `thinking` and `reasoning_effort` set the thinking.
    chat_template_kwargs: Option<Map<String, Value>>,
}

/// True, false, or a level.
pub(crate) type EffortOrBool = Either<bool, Word<Effort>>;

pub(crate) fn effort_of(switch: EffortOrBool) -> Effort {
    match switch {
        Either::First(on) => switched(on),
        Either::Second(Word(effort)) => effort,
    }
}

/// How much to think, in OpenAI's Responses API and at OpenRouter.
#[derive(Deserialize, JsonSchema)]
struct Reasoning {
    /// A level of `reasoning_effort`.
    effort: Option<Word<Effort>>,
    enabled: Option<bool>,
    /// Maximum tokens of thinking.
    #[serde(default, deserialize_with = "tokens")]
    max_tokens: Option<u32>,
}

/// How much to think, in Anthropic's API.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
struct ThinkingObject {
    r#type: Option<ThinkingType>,
    /// Maximum tokens of thinking.
    #[serde(default, deserialize_with = "tokens")]
    budget_tokens: Option<u32>,
}

impl JsonKind for ThinkingObject {}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ThinkingType {
    Enabled,
    Disabled,
    Adaptive,
}

/// The one setting, and what is left of the template's variables.
pub(crate) fn thinking(
    sent: ThinkingFields,
    messages: &[Message],
    ignored: &mut Vec<String>,
) -> Result<(Thinking, Option<JsonText>), WireError> {
    let mut first = First::default();
    first.effort(sent.reasoning_effort.map(|Word(effort)| effort));
    if let Some(reasoning) = sent.reasoning {
        let mut fields = Fields::of(reasoning);
        let reasoning: Reasoning =
            fields.read().map_err(|error: WireError| error.within("reasoning"))?;
        first.effort(reasoning.effort.map(|Word(effort)| effort));
        first.effort(reasoning.enabled.map(switched));
        first.budget(reasoning.max_tokens);
        ignored.extend(fields.into_unknown().iter().map(|name| format!("reasoning.{name}")));
    }
    first.effort(sent.think.map(effort_of));
    match sent.thinking {
        None => {}
        Some(Either::First(on)) => first.effort(Some(switched(on))),
        Some(Either::Second(ThinkingObject { r#type, budget_tokens })) => {
            first.effort(r#type.map(|r#type| switched(r#type != ThinkingType::Disabled)));
            first.budget(budget_tokens);
        }
    }
    first.budget(sent.thinking_budget_tokens);
    let variables = sent.chat_template_kwargs.and_then(|sent| template(sent, &mut first));
    first.effort(switch_in_text(messages));
    Ok((first.0, variables))
}

/// Keeps the first setting that is given.
#[derive(Default)]
struct First(Thinking);

impl First {
    fn effort(&mut self, effort: Option<Effort>) {
        self.0.effort = self.0.effort.or(effort);
    }

    fn budget(&mut self, tokens: Option<u32>) {
        self.0.tokens_max = self.0.tokens_max.or(tokens);
    }
}

/// "Think" without a level is the middle.
fn switched(on: bool) -> Effort {
    if on { Effort::Medium } else { Effort::None }
}

/// Takes the template's switches out of its variables, so that one setting stands and not two that may disagree.
fn template(mut variables: Map<String, Value>, first: &mut First) -> Option<JsonText> {
    let known = variables.get("reasoning_effort").and_then(Value::as_str);
    let known = known.and_then(|name| name.parse::<Effort>().ok());
    for name in ["enable_thinking", "thinking"] {
        if let Some(Value::Bool(on)) = variables.get(name) {
            // A level says more than `true`. With `false`, templates do not read it.
            first.effort(known.filter(|_| *on).or(Some(switched(*on))));
            variables.shift_remove(name);
        }
    }
    if known.is_some() {
        first.effort(known);
        variables.shift_remove("reasoning_effort");
    }
    (!variables.is_empty()).then(|| JsonText::parsed(Value::Object(variables).to_string()))
}

/// Qwen's words at the end of the user's last message. They stay in the text: Qwen's template and weights
/// know them too.
fn switch_in_text(messages: &[Message]) -> Option<Effort> {
    let last = messages.iter().rev().find(|message| message.role == Role::User)?;
    match last.text.split_whitespace().next_back()? {
        "/no_think" => Some(Effort::None),
        "/think" => Some(Effort::Medium),
        _ => None,
    }
}
