//! A spoken conversation: its settings, its items, what a client asks for, and what it learns.
//! `hob-wire` reads and writes these as JSON of OpenAI's Realtime API, and `hob-voice` decides what follows what.

mod command;
mod event;
mod item;
mod settings;

pub use command::{ItemPlace, RealtimeCommand, ResponseInput, ResponseOptions};
pub use event::{
    ContentRef, OutputPart, RealtimeEvent, RealtimeFault, RealtimeResponse, ResponseStatus,
    ResponseUsage, StoppedBy,
};
pub use item::{ItemBody, ItemContent, ItemStatus, RealtimeItem};
pub use settings::{
    Eagerness, InputTranscription, NoiseReduction, OutputModality, PromptTruncation,
    RealtimeSettings, SessionKind, SoundEncoding, TurnDetection, TurnDetector,
};
