//! The request fields that turn a model's thinking off. The client tries them; the mock server accepts one of them.
//! No server accepts all of them, and few report which.

use serde_json::{Value, json};

/// A field that turns thinking off. The client finds out which one a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingSwitch {
    ReasoningEffort,
    Think,
    EnableThinking,
    NoThink,
}

impl ThinkingSwitch {
    pub const ALL: [ThinkingSwitch; 4] = [
        ThinkingSwitch::ReasoningEffort,
        ThinkingSwitch::Think,
        ThinkingSwitch::EnableThinking,
        ThinkingSwitch::NoThink,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ThinkingSwitch::ReasoningEffort => "reasoning_effort: none",
            ThinkingSwitch::Think => "think: false",
            ThinkingSwitch::EnableThinking => "enable_thinking: false",
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
            ThinkingSwitch::NoThink => {}
        }
    }
}
