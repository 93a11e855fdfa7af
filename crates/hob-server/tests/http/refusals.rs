//! The content of every error, for people and for a client's retry logic.

use serde_json::json;

use crate::client::Answer;

/// Status, type, param, code, x-should-retry, retry-after.
pub(crate) type Row = (
    u16,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
    Option<&'static str>,
    Option<&'static str>,
);

pub(crate) fn check_refusal(answer: &Answer, expected: Row, message: &str) {
    let (status, kind, param, code, should_retry, retry_after) = expected;
    let error = json!({"message": message, "type": kind, "param": param, "code": code});
    assert_eq!(answer.json(), json!({ "error": error }));
    assert_eq!(answer.status(), status, "{message}");
    assert_eq!(answer.header("x-should-retry"), should_retry, "{message}");
    assert_eq!(answer.header("retry-after"), retry_after, "{message}");
}
