//! The request fields that turn a model's thinking off. The client tries them; the mock server accepts one of them.
//! No server accepts all of them, and few report which.

use std::fmt;

use hob_core::enum_table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

enum_table! {
    /// A field that turns thinking off. The client finds out which one a server accepts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ThinkingSwitch: name {
        /// OpenAI, hob, Ollama's `/v1`.
        ReasoningEffort = "reasoning_effort: none",
        /// Ollama.
        Think = "think: false",
        /// vLLM, SGLang and llama.cpp, for the templates of Qwen and others.
        EnableThinking = "enable_thinking: false",
        /// vLLM, SGLang and llama.cpp, for the templates of DeepSeek and Granite.
        TemplateThinking = "thinking: false",
        /// Qwen's API and others.
        ThinkingBudget = "thinking_budget: 0",
        /// OpenRouter.
        ReasoningTokens = "reasoning.max_tokens: 0",
        /// Qwen's first thinking models, on any server.
        NoThink = "/no_think",
    }
}

impl ThinkingSwitch {
    /// Sets the field in the body of a chat request. `/no_think` is not a field: it stands at the end of the prompt.
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

enum_table! {
    /// What a switch did.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum SwitchEffect: name {
        /// The model no longer thinks.
        Works = "works",
        /// The model thinks all the same.
        StillThinks = "without effect",
        /// The thought moves into the visible answer.
        Leaks = "moves the thought into the answer",
        /// The server refuses the request, or fails.
        Fails = "the request fails",
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
