//! OpenAI's Realtime API: events of the client become commands, and events of a session become JSON.
//! Clients of the older dialect ("beta") write flat settings and read other event names.

mod client_event;
mod item;
mod merge;
mod response;
mod secret;
mod server_event;
mod session;
#[cfg(test)]
mod tests;
mod tools;

use hob_core::realtime::RealtimeFault;

use crate::{ErrorBody, ErrorKind, WireError};

pub use client_event::{ClientInput, SOUND_BYTES_MAX, parse_client_event, parse_realtime_query};
pub(crate) use client_event::{RealtimeClientEvent, RealtimeQueryFields};
pub use secret::{ClientSecret, WireClientSecret, parse_client_secret};
pub(crate) use secret::{ClientSecretFields, SecretAnswer};
pub(crate) use server_event::RealtimeServerEvent;
pub use server_event::{RealtimeWriter, TurnStagesMs, turn_stages_event};

/// Which form of the events a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RealtimeDialect {
    /// The API since it is generally available.
    #[default]
    Ga,
    /// With `OpenAI-Beta: realtime=v1`.
    Beta,
}

/// A client's mistake, in the words of an error event.
fn realtime_fault(error: &WireError, event_id: Option<String>) -> RealtimeFault {
    let code = match error {
        WireError::NotUtf8 { .. } | WireError::Malformed { .. } | WireError::NotAnObject { .. } => {
            "invalid_json"
        }
        WireError::Missing { .. } => "missing_required_parameter",
        WireError::WrongType { .. } => "invalid_type",
        WireError::TooManyFields { .. } | WireError::TooManyValues { .. } => "event_too_large",
        WireError::NotOneOf { .. } | WireError::Invalid { .. } => "invalid_value",
    };
    RealtimeFault {
        kind: "invalid_request_error".to_owned(),
        code: Some(code.to_owned()),
        // The errors of bodies are those of events.
        message: error.to_string().replace("the body", "the event"),
        param: error.field().map(str::to_owned),
        client_event_id: event_id,
    }
}

impl From<ErrorBody> for RealtimeFault {
    fn from(error: ErrorBody) -> RealtimeFault {
        RealtimeFault {
            kind: match error.kind {
                ErrorKind::Server | ErrorKind::Upstream => "server_error",
                ErrorKind::InvalidRequest
                | ErrorKind::Authentication
                | ErrorKind::Permission
                | ErrorKind::RateLimit => "invalid_request_error",
            }
            .to_owned(),
            code: error.code.map(str::to_owned),
            message: error.message,
            param: error.param,
            client_event_id: None,
        }
    }
}
