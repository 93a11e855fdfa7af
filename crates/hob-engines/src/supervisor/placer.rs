//! Where a worker computes. The supervisor asks before each start, and says what went wrong on a device.
//! It knows commands and faults. Machines and layers are the other side's.

use std::fmt;

use hob_core::budget::Bytes;

use super::WorkerCommand;
use crate::worker::protocol::DeviceShortage;

/// A worker at one place.
#[derive(Clone, Debug)]
pub struct PlacedWorker {
    pub command: WorkerCommand,
    /// Predicted bytes of each memory pool.
    pub predicted: Bytes,
    /// Why it is not where it was to go, and where it is. `None`: it is there.
    pub note: Option<String>,
}

/// Chooses where a worker computes.
pub trait Placer: fmt::Debug + Send + Sync {
    /// The place for the worker that starts now. Its memory is reserved.
    fn place(&self) -> PlacedWorker;

    /// Chooses another place, because a device had no room. The numbers are `None` if the driver named none.
    ///
    /// # Errors
    /// There is no other place, or the user chose this one. The text says what would fit; it may be empty.
    fn move_from(&self, shortage: Option<&DeviceShortage>) -> Result<(), String>;

    /// What helps after a device had no memory left during an answer, to follow a semicolon.
    fn device_full(&self) -> String;

    /// Notes that a device was lost. Returns where the next worker starts, to follow a semicolon.
    fn device_lost(&self) -> String;
}
