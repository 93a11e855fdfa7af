//! The outside world's JSON: what OpenAI's clients send becomes types, and answers become what they read.
//! The only room that says "OpenAI". No sockets and no status codes: those are `hob-server`'s.

mod error;
mod fields;
mod lists;
mod names;
mod speech;
mod sse;

pub use error::{ErrorBody, ErrorKind, WireError};
pub use lists::{
    ModelEntry, audio_models, model, models, readiness, state_name, voice_ids, voices,
};
pub use names::{is_default_speech_model, language_agrees, local_voice};
pub use speech::{Delivery, WireSpeech, ignored_header, parse_speech};
pub use sse::{SpeechUsage, error_event, speech_delta, speech_done};
