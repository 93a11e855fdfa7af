//! The nouns of hob: requests, events, the three model traits, the registry and its admission.
//! No I/O, no JSON, no async runtime. serde is derived behind the feature `serde` only.

pub mod admission;
pub mod attempt;
pub mod budget;
pub mod card_losses;
pub mod chat;
mod count_text;
pub mod error;
pub mod fault;
pub mod fit;
pub mod footprint;
pub mod language;
pub mod lifecycle;
pub mod load_queue;
pub mod load_times;
pub mod locking;
pub mod machine;
mod macros;
pub mod names;
pub mod realtime;
pub mod registry;
pub mod reservation;
pub mod routing;
pub mod scripted;
pub mod shape;
pub mod speech;
pub mod statistics;
pub mod task;
pub mod trace;
pub mod transcript;
pub mod turn_taking;
pub mod voice_blend;
pub mod wav;
pub mod weights;

pub use admission::{Admission, Busy, Permit};
pub use budget::{MemoryBudget, Shortage};
pub use chat::{
    ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest, Embeddings, JsonText,
    KeepAlive, UnknownFields,
};
pub use count_text::{count_text, grouped_digits};
pub use error::{ModelError, whole_seconds};
pub use fault::{Clock, Fault, one_line};
pub use footprint::{ContextPlan, Footprint, KvType, KvTypes};
pub use language::{Language, is_full_stop};
pub use lifecycle::{MemoryUse, ModelLifecycle, ModelState, PoolUse};
pub use load_times::LoadTimes;
pub use locking::locked;
pub use names::{nearest, nearest_hint};
pub use registry::{
    AnyModel, Registered, RegisteredModel, Registry, Resolve, Timeouts, UnknownModel,
    UpstreamResolver,
};
pub use reservation::{
    MemoryBroker, MemoryDecision, MemoryRequest, MemoryReservation, ReservedMemory,
};
pub use shape::ModelShape;
pub use speech::{
    Gender, InstructionSupport, PhonemeTiming, SpeechEvent, SpeechModel, SpeechPace, SpeechRequest,
    SpeechStream, SpeechText, Speed, Voice, WordTiming,
};
pub use task::{
    Chat, Kind, SoundSeconds, Speech, Started, Task, Tokens, Transcription, Work, WorkUnit,
};
pub use trace::{FailedAttempt, Trace};
pub use transcript::{
    Chunking, HeardWord, LiveSound, PcmLayout, Segment, Sound, SoundFile, Timestamps,
    TranscriptEvent, TranscriptModel, TranscriptRequest, TranscriptStream, TranscriptSummary,
    TranscriptTask, TranscriptUsage,
};
pub use turn_taking::{TurnModel, TurnTaking, VOICE_FRAME_SAMPLES, VoiceDetector, silence_below};
pub use voice_blend::VoiceBlend;
pub use wav::{WAV_COUNTED_BYTES, wav_header};
