//! The nouns of hob: requests, events, the three model traits, the roster and its admission.
//! No I/O, no serde, no async runtime: whatever reads a clock, a file or a socket lives elsewhere.

pub mod admission;
pub mod chat;
pub mod error;
pub mod language;
pub mod names;
pub mod roster;
pub mod scripted;
pub mod speech;
pub mod transcript;

pub use admission::{Admission, Busy, Permit};
pub use chat::{ChatModel, ChatRequest, ChatStream};
pub use error::ModelError;
pub use language::Language;
pub use names::nearest;
pub use roster::{Roster, SpeechTarget, UnknownModel};
pub use speech::{
    Direction, Gender, ModelState, SpeechEvent, SpeechModel, SpeechRequest, SpeechStream,
    SpeechText, Speed, Voice, WordTiming,
};
pub use transcript::{TranscriptModel, TranscriptRequest, TranscriptStream};
