//! The request fields that turn a model's thinking off. The client tries them; the mock server accepts one of them.
//! No server accepts all of them, and few report which.

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
}
