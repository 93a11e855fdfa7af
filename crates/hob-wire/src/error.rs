//! What is wrong with a request's JSON, and the envelope in which every error travels.
//! Messages name the field and what it takes; they never repeat the text that was to be spoken.

use serde::Serialize;

/// Why a body could not become a request. The client can act on every one of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("the body is not valid UTF-8: byte {at} begins no character")]
    NotUtf8 { at: usize },
    #[error("the body is not valid JSON: {detail} at line {line} column {column}")]
    Malformed { detail: String, line: usize, column: usize },
    #[error("the body must be a JSON object, and is {got}")]
    NotAnObject { got: &'static str },
    #[error("the body has {count} fields and the limit is {count_max}")]
    TooManyFields { count: usize, count_max: usize },
    #[error(
        "the body has more than {count_max} JSON values and names in it, lists of token ids aside; \
         send less in one request"
    )]
    TooManyValues { count_max: usize },
    #[error("'{field}' is missing")]
    Missing { field: &'static str },
    #[error("'{field}' must be {wanted}, and is {got}")]
    WrongType { field: &'static str, wanted: &'static str, got: &'static str },
    #[error("'{field}' must be one of {}, and is '{got}'", accepted.join(", "))]
    NotOneOf { field: &'static str, got: String, accepted: Vec<&'static str> },
    #[error("'{field}' has {chars} characters and the limit is {chars_max}")]
    NameTooLong { field: &'static str, chars: usize, chars_max: usize },
    #[error("'{field}' {reason}")]
    Invalid { field: &'static str, reason: String },
    /// Something is wrong with one element of a list.
    #[error("{field}[{index}]: {error}")]
    Element { field: &'static str, index: usize, error: Box<WireError> },
}

impl WireError {
    /// The field at fault, when the body could be read at all.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            WireError::NotUtf8 { .. }
            | WireError::Malformed { .. }
            | WireError::TooManyFields { .. }
            | WireError::TooManyValues { .. }
            | WireError::NotAnObject { .. } => None,
            WireError::Missing { field }
            | WireError::WrongType { field, .. }
            | WireError::NotOneOf { field, .. }
            | WireError::NameTooLong { field, .. }
            | WireError::Invalid { field, .. }
            | WireError::Element { field, .. } => Some(field),
        }
    }

    /// The same of the element at `index` of the list `field`.
    pub(crate) fn within(self, field: &'static str, index: usize) -> WireError {
        WireError::Element { field, index, error: Box::new(self) }
    }
}

impl From<&WireError> for ErrorBody {
    fn from(error: &WireError) -> ErrorBody {
        ErrorBody {
            message: error.to_string(),
            kind: ErrorKind::InvalidRequest,
            param: error.field(),
            code: None,
        }
    }
}

/// OpenAI's names for who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ErrorKind {
    #[serde(rename = "invalid_request_error")]
    InvalidRequest,
    #[serde(rename = "authentication_error")]
    Authentication,
    #[serde(rename = "permission_error")]
    Permission,
    #[serde(rename = "rate_limit_error")]
    RateLimit,
    #[serde(rename = "server_error")]
    Server,
    /// The failure of a server behind this one.
    #[serde(rename = "upstream_error")]
    Upstream,
}

/// The inside of `{"error": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBody {
    pub message: String,
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    pub param: Option<&'static str>,
    pub code: Option<&'static str>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: &'a ErrorBody,
}

impl ErrorBody {
    pub fn to_json(&self) -> String {
        json(&Envelope { error: self })
    }
}

/// Types of this room hold strings, numbers and lists only, which always have a JSON form; should
/// that ever change, clients still get JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_openais() {
        let error = WireError::Missing { field: "input" };
        assert_eq!(
            ErrorBody::from(&error).to_json(),
            r#"{"error":{"message":"'input' is missing","type":"invalid_request_error","param":"input","code":null}}"#
        );
    }
}
