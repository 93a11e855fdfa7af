//! Why the bytes of a Wyoming client are not an event.
//! The decoder reports what is wrong with the parts of an event, and the event what is wrong with its fields.

use crate::WireError;

/// Why the bytes are not an event. The connection cannot go on: where the next event begins is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WyomingError {
    #[error("the line that begins an event is longer than {bytes_max} bytes")]
    HeaderTooLong { bytes_max: usize },
    #[error("the line that begins an event cannot be read: {0}")]
    Header(WireError),
    #[error("an event announces {bytes} bytes of {part}, and the limit is {bytes_max}")]
    TooLarge { part: &'static str, bytes: u64, bytes_max: u64 },
    #[error("the data of an event cannot be read: {0}")]
    Data(WireError),
    #[error("an event of the type '{kind}' cannot be read: {error}")]
    Event { kind: String, error: WireError },
}
