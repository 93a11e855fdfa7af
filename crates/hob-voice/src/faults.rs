//! The errors that a client gets, in the words of the API where clients search for them.
//! A session survives each of them.

use hob_core::ModelError;
use hob_core::realtime::RealtimeFault;

/// The client's request is wrong.
pub(crate) fn invalid(
    code: &str,
    message: impl Into<String>,
    param: Option<&str>,
) -> RealtimeFault {
    RealtimeFault {
        kind: "invalid_request_error".to_owned(),
        code: Some(code.to_owned()),
        message: message.into(),
        param: param.map(str::to_owned),
        client_event_id: None,
    }
}

pub(crate) fn item_not_found(id: &str) -> RealtimeFault {
    let message = format!("the conversation has no item '{id}'");
    invalid("item_not_found", message, Some("item_id"))
}

/// A fault whose id stands in another field of the event.
pub(crate) fn in_field(fault: RealtimeFault, field: &str) -> RealtimeFault {
    RealtimeFault { param: Some(field.to_owned()), ..fault }
}

/// The fault of an unknown item, with OpenAI's code for the command. Clients know by it that they can go on.
pub(crate) fn in_command(fault: RealtimeFault, command: &str) -> RealtimeFault {
    RealtimeFault { code: Some(format!("item_{command}_invalid_item_id")), ..fault }
}

/// A model failed.
pub(crate) fn failure(error: &ModelError) -> RealtimeFault {
    server_error(error.kind(), error.to_string())
}

/// A stream ended before its last event.
pub(crate) fn broke_off(what: &str) -> RealtimeFault {
    server_error("stream_broke_off", format!("the {what} ended too early"))
}

pub(crate) fn server_error(code: &str, message: impl Into<String>) -> RealtimeFault {
    RealtimeFault { kind: "server_error".to_owned(), ..invalid(code, message, None) }
}
