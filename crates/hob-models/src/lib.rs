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
pub mod recipe;
pub mod safetensors;
mod store;
mod transform;
mod weights;

pub use catalog::{Catalog, Entry, SourceKind, UnknownEntry};
pub use checksum::{NotAChecksum, Sha256};
pub use disk::DiskError;
pub use fetch::{FetchError, Fetcher, Limits, PythonClient};
pub use find::{FindError, Finder, Found, Located};
pub use gguf::{Gguf, GgufError};
pub use progress::{Cancelled, Progress, Task, Watch};
pub use pull::{Arrival, PullError, PullOptions, Pulled, Puller, SourceFailure, room_bytes};
pub use recipe::{Dimensions, Mixture, UnknownMixture};
pub use store::{
    Manifest, PartSource, Removed, Store, StoreError, StoredFile, StoredModel, check_changed,
};
pub use transform::{
    CHAT_MODEL_FILE, ChatTransform, KokoroTransform, RawFiles, Transform, TransformError,
};
