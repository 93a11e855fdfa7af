//! Room for a model, asked for before it is loaded: what a supervisor knows of the memory that its worker
//! shares with others. Who has to leave is decided in `budget`, whose turn it is in `turns`.

use std::fmt;

use futures::future::BoxFuture;

use crate::ModelError;
use crate::budget::{Bytes, Shortage};

/// One model's part in a memory that several share.
pub trait MemoryBroker: fmt::Debug + Send + Sync {
    /// Checks whether memory for the model can become free at all, before a request waits for it.
    ///
    /// # Errors
    /// A load would be refused, with the numbers.
    fn check_room(&self) -> Result<(), ModelError>;

    /// Enters the queue for memory. Dropping the result leaves the queue.
    fn queue(&self) -> Box<dyn MemoryRequest>;

    /// Whether the loaded model may begin another request, which is then counted. False if it has had its turn
    /// and other models wait for its memory.
    fn admit_request(&self) -> bool;
}

/// A model that waits for room.
pub trait MemoryRequest: Send {
    /// Reserves the memory if it is free now, or if idle models can be unloaded for it.
    fn try_reserve(&mut self) -> BoxFuture<'_, MemoryDecision>;
}

/// Memory that is reserved until the model is loaded and its use can be measured. Dropping it ends the reservation.
pub type MemoryReservation = Box<dyn ReservedMemory>;

/// See [`MemoryReservation`].
pub trait ReservedMemory: Send {
    /// Bytes of graphics cards that were taken since the reservation, as far as the system reports them. May block for a
    /// moment.
    fn taken(&self) -> Bytes {
        Bytes::new()
    }
}

/// Memory that is not measured.
impl ReservedMemory for () {}

pub enum MemoryDecision {
    Granted(MemoryReservation),
    /// In a moment: another model is being loaded, or leaves.
    Soon,
    /// When those who are in the way are no longer in use.
    Later(Shortage),
    /// Waiting does not help.
    Never(ModelError),
}

impl fmt::Debug for MemoryDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryDecision::Granted(_) => f.write_str("Granted"),
            MemoryDecision::Soon => f.write_str("Soon"),
            MemoryDecision::Later(shortage) => f.debug_tuple("Later").field(shortage).finish(),
            MemoryDecision::Never(error) => f.debug_tuple("Never").field(error).finish(),
        }
    }
}
