//! Decides where a worker computes. The supervisor asks before each start, and reports what went wrong on a device.
//! This file knows commands and faults only. The implementation knows the machine and the layers of the model.

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
    /// Why the worker is not at its first choice, and where it is. `None`: it is at its first choice.
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
