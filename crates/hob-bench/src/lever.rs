//! The ways in which servers are told not to think: the client tries them, and the mock heeds one.
//! No server heeds all of them, and few say which.

/// A way to ask for no thinking. Which of them a server heeds is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lever {
    ReasoningEffort,
    Think,
    EnableThinking,
    NoThink,
}

impl Lever {
    pub const ALL: [Lever; 4] =
        [Lever::ReasoningEffort, Lever::Think, Lever::EnableThinking, Lever::NoThink];

    pub fn name(self) -> &'static str {
        match self {
            Lever::ReasoningEffort => "reasoning_effort: none",
            Lever::Think => "think: false",
            Lever::EnableThinking => "enable_thinking: false",
            Lever::NoThink => "/no_think",
        }
    }
}
