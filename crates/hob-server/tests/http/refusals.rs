//! The content of every error, for people and for a client's retry logic.

use serde_json::json;

use crate::client::Answer;

/// Status, param, code, x-should-retry, retry-after. The type follows from the status.
pub(crate) type Row =
    (u16, Option<&'static str>, Option<&'static str>, Option<&'static str>, Option<&'static str>);

/// A request that cannot be answered as it is.
pub(crate) fn invalid(param: Option<&'static str>) -> Row {
    (400, param, None, Some("false"), None)
}

/// The same with a code.
pub(crate) fn invalid_as(code: &'static str, param: &'static str) -> Row {
    (400, Some(param), Some(code), Some("false"), None)
}

/// A model that cannot answer now. The client may try again if it reads when.
pub(crate) fn unavailable(code: &'static str, retry_after: Option<&'static str>) -> Row {
    let should_retry = if retry_after.is_some() { "true" } else { "false" };
    (503, None, Some(code), Some(should_retry), retry_after)
}

pub(crate) fn check_refusal(answer: &Answer, expected: Row, message: &str) {
    let (status, param, code, should_retry, retry_after) = expected;
    let kind = match status {
        403 => "permission_error",
        ..500 => "invalid_request_error",
        _ => "server_error",
    };
    let error = json!({"message": message, "type": kind, "param": param, "code": code});
    assert_eq!(answer.json(), json!({ "error": error }));
    assert_eq!(answer.status(), status, "{message}");
    assert_eq!(answer.header("x-should-retry"), should_retry, "{message}");
    assert_eq!(answer.header("retry-after"), retry_after, "{message}");
}
