//! What is wrong with a request's JSON, and the envelope in which every error travels.
//! Messages name the field and what it takes; they never repeat the text that was to be spoken.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{Expected, Unexpected};

/// Characters of a wrong word that an error repeats.
pub(crate) const WORD_CHARS_MAX: usize = 32;

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
    Missing { field: String },
    #[error("'{field}' must be {wanted}, and is {got}")]
    WrongType { field: String, wanted: String, got: &'static str },
    #[error("'{field}' must be one of {}, and is '{got}'", accepted.join(", "))]
    NotOneOf { field: String, got: String, accepted: Vec<&'static str> },
    #[error("'{field}' {reason}")]
    Invalid { field: String, reason: String },
}

impl WireError {
    /// The field at fault, as a path: `messages[2].role`. None where the body could not be read at all.
    pub fn field(&self) -> Option<&str> {
        match self {
            WireError::NotUtf8 { .. }
            | WireError::Malformed { .. }
            | WireError::TooManyFields { .. }
            | WireError::TooManyValues { .. }
            | WireError::NotAnObject { .. } => None,
            WireError::Missing { field }
            | WireError::WrongType { field, .. }
            | WireError::NotOneOf { field, .. }
            | WireError::Invalid { field, .. } => Some(field),
        }
    }

    pub fn missing(field: &str) -> WireError {
        WireError::Missing { field: field.to_owned() }
    }

    /// `reason` completes the sentence that the field's name begins.
    pub fn invalid(field: &str, reason: impl Into<String>) -> WireError {
        WireError::Invalid { field: field.to_owned(), reason: reason.into() }
    }

    /// `got` is shortened: long values do not belong in errors.
    pub(crate) fn not_one_of(field: &str, got: &str, accepted: &[&'static str]) -> WireError {
        let got = got.chars().take(WORD_CHARS_MAX).collect();
        WireError::NotOneOf { field: field.to_owned(), got, accepted: accepted.to_vec() }
    }

    /// This error, where its field is a member of `outer`. An element of a list is `[2]`.
    pub(crate) fn within(mut self, outer: &str) -> WireError {
        if let WireError::Missing { field }
        | WireError::WrongType { field, .. }
        | WireError::NotOneOf { field, .. }
        | WireError::Invalid { field, .. } = &mut self
        {
            let joint = if field.is_empty() || field.starts_with('[') { "" } else { "." };
            *field = format!("{outer}{joint}{field}");
        }
        self
    }
}

/// What derived types report. The field's name is added where the value was taken from.
impl serde::de::Error for WireError {
    fn custom<T: fmt::Display>(reason: T) -> WireError {
        WireError::invalid("", reason.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> WireError {
        let (wanted, got) = (expected.to_string(), kind_of_unexpected(unexpected));
        WireError::WrongType { field: String::new(), wanted, got }
    }

    fn unknown_variant(word: &str, accepted: &'static [&'static str]) -> WireError {
        WireError::not_one_of("", word, accepted)
    }

    fn missing_field(field: &'static str) -> WireError {
        WireError::missing(field)
    }
}

/// The kind alone: values do not belong in errors.
fn kind_of_unexpected(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Str(_) | Unexpected::Char(_) => "a string",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        _ => "another value",
    }
}

impl From<&WireError> for ErrorBody {
    fn from(error: &WireError) -> ErrorBody {
        ErrorBody {
            message: error.to_string(),
            kind: ErrorKind::InvalidRequest,
            param: error.field().map(str::to_owned),
            code: None,
        }
    }
}

/// OpenAI's names for who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ErrorBody {
    /// What happened, the value, what was expected, what to do.
    pub message: String,
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    /// The field at fault, as a path: `messages[2].role`.
    pub param: Option<String>,
    /// A stable name of the error, for programs.
    pub code: Option<&'static str>,
}

/// Every error of OpenAI's routes and of hob's own.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ErrorEnvelope<'a> {
    error: &'a ErrorBody,
}

impl ErrorBody {
    pub fn to_json(&self) -> String {
        json(&ErrorEnvelope { error: self })
    }
}

/// Types of this room hold strings, numbers and lists only, which always have a JSON form; should
/// that ever change, clients still get JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// Whether a text is the same in JSON, between quotation marks: without any character that has to be escaped.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_openais() {
        let error = WireError::missing("input");
        assert_eq!(
            ErrorBody::from(&error).to_json(),
            r#"{"error":{"message":"'input' is missing","type":"invalid_request_error","param":"input","code":null}}"#
        );
    }
}
