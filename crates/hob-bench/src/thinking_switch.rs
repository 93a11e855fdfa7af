//! The ways in which servers are told not to think: the client tries them, and the mock heeds one.
//! No server heeds all of them, and few say which.

/// A way to ask for no thinking. Which of them a server heeds is found out.
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
