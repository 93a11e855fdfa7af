//! The request fields that turn a model's thinking off. The client tries them; the mock server accepts one of them.
//! No server accepts all of them, and few report which.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A field that turns thinking off. The client finds out which one a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingSwitch {
    /// OpenAI, hob, Ollama's `/v1`.
    ReasoningEffort,
    /// Ollama.
    Think,
    /// vLLM, SGLang and llama.cpp, for the templates of Qwen and others.
    EnableThinking,
    /// The same servers, for the templates of DeepSeek and Granite.
    TemplateThinking,
    /// Qwen's API and others.
    ThinkingBudget,
    /// OpenRouter.
    ReasoningTokens,
    /// Qwen's first thinking models, on any server.
    NoThink,
}

impl ThinkingSwitch {
    pub const ALL: [ThinkingSwitch; 7] = [
        ThinkingSwitch::ReasoningEffort,
        ThinkingSwitch::Think,
        ThinkingSwitch::EnableThinking,
        ThinkingSwitch::TemplateThinking,
        ThinkingSwitch::ThinkingBudget,
        ThinkingSwitch::ReasoningTokens,
        ThinkingSwitch::NoThink,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ThinkingSwitch::ReasoningEffort => "reasoning_effort: none",
            ThinkingSwitch::Think => "think: false",
            ThinkingSwitch::EnableThinking => "enable_thinking: false",
            ThinkingSwitch::TemplateThinking => "thinking: false",
            ThinkingSwitch::ThinkingBudget => "thinking_budget: 0",
            ThinkingSwitch::ReasoningTokens => "reasoning.max_tokens: 0",
            ThinkingSwitch::NoThink => "/no_think",
        }
    }

    /// Sets the field in the body of a chat request. `/no_think` is no field: it stands at the end of the prompt.
    pub(crate) fn set(self, body: &mut Value) {
        match self {
            ThinkingSwitch::ReasoningEffort => body["reasoning_effort"] = json!("none"),
            ThinkingSwitch::Think => body["think"] = json!(false),
            ThinkingSwitch::EnableThinking => {
                body["chat_template_kwargs"] = json!({ "enable_thinking": false });
            }
            ThinkingSwitch::TemplateThinking => {
                body["chat_template_kwargs"] = json!({ "thinking": false });
            }
            ThinkingSwitch::ThinkingBudget => body["thinking_budget"] = json!(0),
            ThinkingSwitch::ReasoningTokens => body["reasoning"] = json!({ "max_tokens": 0 }),
            ThinkingSwitch::NoThink => {}
        }
    }
}

/// What a switch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchEffect {
    Works,
    /// The model thinks all the same.
    StillThinks,
    /// The thought moves into the visible answer.
    Leaks,
    /// The server refuses the request, or fails.
    Fails,
}

impl SwitchEffect {
    pub fn name(self) -> &'static str {
        match self {
            SwitchEffect::Works => "works",
            SwitchEffect::StillThinks => "without effect",
            SwitchEffect::Leaks => "moves the thought into the answer",
            SwitchEffect::Fails => "the request fails",
        }
    }
}

/// A switch that was tried, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriedSwitch {
    pub switch: ThinkingSwitch,
    pub effect: SwitchEffect,
}

impl fmt::Display for TriedSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.switch.name(), self.effect.name())
    }
}
