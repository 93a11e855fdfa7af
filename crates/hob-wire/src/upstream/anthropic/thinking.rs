//! How much a model is to think, in the words that it knows, and how long the answer may become: both
//! come out of one limit, because Anthropic counts what was thought as part of the answer.

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, Effort, Message, Role, ToolChoice};
use serde_json::{Value, json};

use super::model::{ModelTraits, ThinkingForm, ThinkingOff};

/// Tokens of an answer without thinking, if the request sets no limit. Anthropic requires a limit. Some older models refuse
/// a longer one.
const ANSWER_TOKENS: u32 = 4096;

/// The same for models that decide how much they think. Agents write whole files in one call and set no limit.
const LONG_ANSWER_TOKENS: u32 = 32_000;

/// Tokens that each of these models gives, with its thinking. Only a longer budget of the request goes beyond.
const TOKENS_MAX: u32 = 64_000;

/// What a budget leaves of the request's own limit for the answer.
const ANSWER_TOKENS_MIN: u32 = 1024;

/// Anthropic takes no smaller budget.
const BUDGET_TOKENS_MIN: u32 = 1024;

/// What is said of thinking, and the limit that it leads to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThinkingPlan {
    /// `thinking`, where something is said.
    pub(super) shape: Option<Value>,
    /// `output_config.effort`
    pub(super) effort: Option<&'static str>,
    /// `max_tokens`
    pub(super) tokens_max: u32,
    /// With thinking, Anthropic rejects some samplers.
    pub(super) is_on: bool,
    /// The parameter that could not be heeded.
    pub(super) unmet: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Unsaid,
    Off,
    On { effort: Option<Effort>, tokens: Option<u32> },
}

impl ThinkingPlan {
    pub(super) fn of(
        request: &ChatRequest,
        conversation: &Conversation,
        traits: ModelTraits,
    ) -> ThinkingPlan {
        let answer_tokens = match traits.thinking {
            ThinkingForm::Budget => ANSWER_TOKENS,
            ThinkingForm::Adaptive => LONG_ANSWER_TOKENS,
        };
        let tokens_max = request.tokens_max.unwrap_or(answer_tokens);
        let without = |shape: Option<&str>| ThinkingPlan {
            shape: shape.map(|r#type| json!({ "type": r#type })),
            effort: None,
            tokens_max,
            is_on: false,
            unmet: None,
        };
        match (traits.thinking, Wish::of(request)) {
            (ThinkingForm::Budget, Wish::Unsaid) => without(None),
            (ThinkingForm::Budget, Wish::Off) => without(Some("disabled")),
            (ThinkingForm::Budget, Wish::On { effort, tokens }) => {
                let plan = ThinkingPlan::budgeted(request, effort, tokens);
                let plan = plan.filter(|_| !refuses_budgets(conversation));
                let unmet = Some(wished_by(effort));
                plan.unwrap_or_else(|| ThinkingPlan { unmet, ..without(Some("disabled")) })
            }
            (ThinkingForm::Adaptive, Wish::Unsaid) if !traits.thinks_unasked => without(None),
            (ThinkingForm::Adaptive, Wish::Unsaid) => ThinkingPlan::adaptive(request, None, None),
            (ThinkingForm::Adaptive, Wish::Off) => match traits.off {
                ThinkingOff::Disabled => without(Some("disabled")),
                ThinkingOff::BetweenTools => without(Some("between_tools")),
                ThinkingOff::Never => ThinkingPlan {
                    effort: Some("low"),
                    unmet: Some(wished_by(Some(Effort::None))),
                    ..ThinkingPlan::adaptive(request, Some(Effort::Low), None)
                },
            },
            (ThinkingForm::Adaptive, Wish::On { effort, tokens }) => ThinkingPlan {
                effort: effort.map(|effort| effort_word(effort, traits)),
                unmet: tokens.map(|_| wished_by(None)),
                ..ThinkingPlan::adaptive(request, effort, tokens)
            },
        }
    }

    /// Newer models think silently unless the request wants a summary. Without a summary, a thinking model
    /// would look like one that hangs.
    fn adaptive(
        request: &ChatRequest,
        effort: Option<Effort>,
        tokens: Option<u32>,
    ) -> ThinkingPlan {
        let thought = tokens.unwrap_or_else(|| thought_tokens(effort));
        let room = TOKENS_MAX.saturating_sub(thought);
        let answer = room.clamp(ANSWER_TOKENS, LONG_ANSWER_TOKENS);
        ThinkingPlan {
            shape: Some(json!({ "type": "adaptive", "display": "summarized" })),
            effort: None,
            tokens_max: request.tokens_max.unwrap_or(thought.saturating_add(answer)),
            is_on: true,
            unmet: None,
        }
    }

    /// None where the request's own limit has no room for a budget and an answer.
    fn budgeted(
        request: &ChatRequest,
        effort: Option<Effort>,
        tokens: Option<u32>,
    ) -> Option<ThinkingPlan> {
        let wanted = tokens.unwrap_or_else(|| thought_tokens(effort)).max(BUDGET_TOKENS_MIN);
        let room = request.tokens_max.map(|all| all.saturating_sub(ANSWER_TOKENS_MIN));
        let budget = wanted.min(room.unwrap_or(u32::MAX));
        (budget >= BUDGET_TOKENS_MIN).then(|| ThinkingPlan {
            shape: Some(json!({ "type": "enabled", "budget_tokens": budget })),
            effort: None,
            tokens_max: request.tokens_max.unwrap_or(budget.saturating_add(ANSWER_TOKENS)),
            is_on: true,
            unmet: None,
        })
    }
}

impl Wish {
    /// A limit alone is a wish too: that is how OpenRouter's clients ask for thinking.
    fn of(request: &ChatRequest) -> Wish {
        match (request.thinking.effort, request.thinking.tokens_max) {
            (None, None) => Wish::Unsaid,
            (Some(Effort::None), _) | (_, Some(0)) => Wish::Off,
            (effort, tokens) => Wish::On { effort, tokens },
        }
    }
}

/// A budget cannot be combined with a forced call, nor set within a turn that has begun. What an earlier answer thought
/// would have to come back with its signature, and a conversation has no place for that: it is dropped. So the turn
/// that answers a call goes on without thinking; a model that decides itself takes such a turn as it is.
fn refuses_budgets(conversation: &Conversation) -> bool {
    let is_forced = match conversation.tool_choice {
        ToolChoice::Required | ToolChoice::Named(_) => !conversation.tools.is_empty(),
        ToolChoice::Auto | ToolChoice::None => false,
    };
    is_forced || has_begun(&conversation.messages)
}

/// The assistant spoke last, or was answered by tools.
fn has_begun(messages: &[Message]) -> bool {
    let mut latest =
        messages.iter().rev().filter(|message| message.role != Role::System).peekable();
    let is_assistants = latest.peek().is_some_and(|message| message.role == Role::Assistant);
    let mut since = latest.take_while(|message| message.role != Role::Assistant);
    is_assistants || since.any(|message| message.role == Role::Tool)
}

/// Tokens that an effort may take. With a short answer they stay below the 32,000 that Opus 4 gives at most.
fn thought_tokens(effort: Option<Effort>) -> u32 {
    match effort {
        Some(Effort::None | Effort::Minimal) => 1024,
        Some(Effort::Low) => 2048,
        None | Some(Effort::Medium) => 8192,
        Some(Effort::High) => 16_384,
        Some(Effort::XHigh) => 22_000,
        Some(Effort::Max) => 27_000,
    }
}

/// A word that a model does not know becomes the next one below, which costs no more than was asked for.
fn effort_word(effort: Effort, traits: ModelTraits) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::XHigh if !traits.takes_xhigh => "high",
        Effort::Medium | Effort::High | Effort::XHigh | Effort::Max => effort.name(),
    }
}

/// The parameter that a client asked for thinking with.
fn wished_by(effort: Option<Effort>) -> &'static str {
    if effort.is_some() { "reasoning_effort" } else { "thinking_budget_tokens" }
}
