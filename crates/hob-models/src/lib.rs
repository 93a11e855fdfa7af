//! Models: the catalog, sources, checksums, storage and header readers.
//! Nothing here runs a model, reads the environment or writes to the terminal.

pub mod catalog;
mod checksum;
mod disk;
mod fetch;
pub mod find;
pub mod gguf;
pub mod known;
pub mod kokoro;
pub mod onnx;
mod progress;
mod pull;
pub mod quantized_speech;
pub mod recipe;
pub mod safetensors;
mod store;
mod transform;
mod turn_taking;
mod weights;
mod whisper;

pub use catalog::{Catalog, Entry, JAPANESE_NAME, MANDARIN_NAME, SourceKind, UnknownEntry};
pub use checksum::{NotAChecksum, Sha256};
pub use disk::{DiskError, free_bytes, room_for};
pub use fetch::{FetchError, FetchLimits, Fetcher, PythonClient};
pub use find::{FindError, Finder, FoundModel, Located};
pub use gguf::{Gguf, GgufError};
pub use progress::{Cancelled, Progress, PullStep, Watch};
pub use pull::{PullError, PullOptions, PullOutcome, Pulled, Puller, SourceFailure};
pub use recipe::{Dimensions, QuantMix, UnknownQuant, retyped};
pub use store::{
    Manifest, PartSource, Removed, SpeechWeights, Store, StoreError, StoredFile, StoredForm,
    StoredModel, TurnTakingFiles, WhisperFiles, check_changed,
};
pub use transform::{
    ChatTransform, DictionaryTransform, KokoroTransform, RawFiles, Transform, TransformError,
    Transformed, TurnTakingTransform, WhisperTransform, transform_for,
};
pub use turn_taking::NAME as TURN_TAKING_NAME;
pub use whisper::{WhisperDims, WhisperError, WhisperHeader, WhisperMemory, mel_filters};
