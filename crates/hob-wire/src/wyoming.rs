//! Wyoming, the protocol of Home Assistant's voice services: a line of JSON, more JSON, and raw samples.
//! Bytes become events and events become bytes. Events of unknown types are kept as their name, to be ignored.

mod decoder;
mod error;
mod event;
mod info;
mod server_event;

pub use decoder::WyomingDecoder;
pub use error::WyomingError;
pub use event::{WyomingEvent, WyomingTranscribe, WyomingVoice};
pub use info::{SpeechProgram, TranscriptionProgram, WyomingInfo};
pub use server_event::WyomingAnswer;
