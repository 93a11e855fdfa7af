//! Memory for a model, reserved before the model is loaded: what a supervisor knows of the memory that its worker
//! shares with others. `budget` decides which models are unloaded, and `load_queue` which one loads next.

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

/// The place of a model in the queue for memory.
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

/// A reservation of memory that is not measured.
impl ReservedMemory for () {}

/// What follows from an attempt to reserve memory.
pub enum MemoryDecision {
    Granted(MemoryReservation),
    /// Try again in a moment: another model is loading or unloading.
    Soon,
    /// Try again when the models that take the memory are idle.
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
