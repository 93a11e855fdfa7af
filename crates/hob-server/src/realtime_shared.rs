//! What all realtime sessions of a server share: the models of turn taking, the places, and the secrets of pages.
//! It knows neither requests nor sockets.

mod places;
mod secrets;

use std::path::PathBuf;
use std::sync::Arc;

use hob_core::TurnTaking;

pub(crate) use places::{Place, Places};
pub(crate) use secrets::{Secret, Secrets};

use crate::options::ServerOptions;

/// What sessions share.
pub(crate) struct RealtimeShared {
    pub(crate) turn_taking: Option<Arc<dyn TurnTaking>>,
    pub(crate) listens_while_speaking: bool,
    /// `None`: no session is recorded.
    pub(crate) recordings: Option<PathBuf>,
    pub(crate) places: Arc<Places>,
    pub(crate) secrets: Secrets,
}

impl RealtimeShared {
    pub(crate) fn new(options: &ServerOptions) -> RealtimeShared {
        RealtimeShared {
            turn_taking: options.turn_taking.clone(),
            listens_while_speaking: options.listens_while_speaking,
            recordings: options.recordings.clone(),
            places: Arc::new(Places::new(options.sessions_max)),
            secrets: Secrets::default(),
        }
    }

    pub(crate) fn places(&self) -> Arc<Places> {
        Arc::clone(&self.places)
    }
}
