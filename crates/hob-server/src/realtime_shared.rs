//! What all realtime sessions of a server share: the models of turn taking, the slots, and the secrets of pages.
//! It knows neither requests nor sockets.

mod secrets;
mod session_slots;

use std::path::PathBuf;
use std::sync::Arc;

use hob_core::TurnTaking;

pub(crate) use secrets::{Secret, Secrets};
pub(crate) use session_slots::{SessionSlot, SessionSlots};

use crate::options::ServerOptions;

/// What sessions share.
pub(crate) struct RealtimeShared {
    pub(crate) turn_taking: Option<Arc<dyn TurnTaking>>,
    pub(crate) listens_while_speaking: bool,
    /// `None`: no session is recorded.
    pub(crate) recordings: Option<PathBuf>,
    pub(crate) slots: Arc<SessionSlots>,
    pub(crate) secrets: Secrets,
}

impl RealtimeShared {
    pub(crate) fn new(options: &ServerOptions) -> RealtimeShared {
        RealtimeShared {
            turn_taking: options.turn_taking.clone(),
            listens_while_speaking: options.listens_while_speaking,
            recordings: options.recordings.clone(),
            slots: Arc::new(SessionSlots::new(options.sessions_max)),
            secrets: Secrets::default(),
        }
    }
}
