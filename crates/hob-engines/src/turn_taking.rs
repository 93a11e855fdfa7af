//! Smart Turn: hears whether a person who pauses has finished, from the last 8 s of their turn.
//! One thread judges for all sessions; silence itself is found by `transcription::vad`.

mod judge;
mod smart_turn;
#[cfg(test)]
mod tests;

pub use judge::TurnJudge;
pub use smart_turn::{SmartTurn, SmartTurnError};
