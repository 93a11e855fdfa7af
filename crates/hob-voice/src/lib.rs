//! A spoken conversation without I/O: turns, barge-in, truncation, deadlines. Inputs come in, effects come out.
//! It reads no clock and starts no task: `hob-server` drives it, and tests feed it from scripts.

mod clause;
mod conversation;
mod endpoint;
mod faults;
mod interface;
mod limits;
mod listener;
mod marks;
mod open_sentence;
mod outbox;
mod playback;
mod prompt;
mod response;
mod session;
mod spoken;
mod turn_transcript;
mod voice;

pub use interface::{
    ChatStart, SessionEffect, SessionInput, SessionOptions, SpeechStart, TranscriptStart,
    TurnStages,
};
pub use session::VoiceSession;
