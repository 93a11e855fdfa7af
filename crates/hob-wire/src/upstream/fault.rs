//! Statuses and error bodies of other servers, sorted by what may help.
//! Their words are kept short: they are shown to people, and a page of HTML says nothing.

use std::time::Duration;

use hob_core::Fault;
use serde_json::Value;

/// Characters of a server's message that are shown.
const MESSAGE_CHARS_MAX: usize = 500;

/// What came instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpFailure {
    /// The HTTP status.
    pub code: u16,
    /// The server's `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// Reads an error from a status and its body.
pub fn fault_of(status: HttpFailure, body: &[u8]) -> Fault {
    let body = serde_json::from_slice::<Value>(body).ok();
    let fields = body.as_ref().map(ErrorFields::of).unwrap_or_default();
    let message = fields.message.unwrap_or_else(|| without_words(status.code));
    if let Some(fault) = too_long(&fields.code, &message, fields.numbers) {
        return fault;
    }
    let HttpFailure { code, retry_after } = status;
    match code {
        401 | 403 => Fault::KeyRefused { message },
        402 => Fault::NoCredit { message },
        404 => Fault::NoSuchModel { message },
        429 => Fault::Limited { message, retry_after },
        502 | 503 | 504 | 529 => Fault::Overloaded { message, retry_after },
        400 | 422 => match unknown_parameter(&fields.code, fields.param.as_deref(), &message) {
            Some(field) => Fault::UnknownParameter { field, message },
            None => Fault::Refused { message },
        },
        508 => Fault::Circular { message },
        408 | 425 | 500.. => Fault::Failed { message },
        ..200 => Fault::InvalidAnswer {
            detail: format!("status {code}: hob asked for no other protocol"),
        },
        300..400 => {
            Fault::InvalidAnswer { detail: format!("status {code}: hob follows no redirects") }
        }
        _ => Fault::Refused { message },
    }
}

/// JSON where another format was expected: the error that it reports, or [`Fault::InvalidAnswer`].
pub fn fault_within(body: &[u8]) -> Fault {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) if !value["error"].is_null() => reported(&value["error"]),
        _ => Fault::InvalidAnswer { detail: "JSON instead of an answer".to_owned() },
    }
}

/// An error that a server reports within an answer of status 200.
pub(crate) fn reported(error: &Value) -> Fault {
    let fields = ErrorFields::of(error);
    let message = fields.message.unwrap_or_else(|| "the server sent no error message".to_owned());
    if let Some(fault) = too_long(&fields.code, &message, fields.numbers) {
        return fault;
    }
    match fields.code.as_str() {
        "429" => Fault::Limited { message, retry_after: None },
        "402" => Fault::NoCredit { message },
        _ => Fault::Reported { message },
    }
}

/// Shortened at a character.
pub(crate) fn shortened(message: &str) -> String {
    let message = message.trim();
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[derive(Debug, Default)]
struct ErrorFields {
    message: Option<String>,
    /// Code and type, in small letters.
    code: String,
    param: Option<String>,
    /// Tokens needed and available.
    numbers: (Option<u32>, Option<u32>),
}

impl ErrorFields {
    /// `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}` or what is inside those.
    fn of(body: &Value) -> ErrorFields {
        let error = if body["error"].is_null() { body } else { &body["error"] };
        let message =
            [&error["message"], &error["detail"], error].into_iter().find_map(Value::as_str);
        let word = |field: &str| match &error[field] {
            Value::String(text) => text.to_lowercase(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let number = |field: &str| error[field].as_u64().and_then(|n| u32::try_from(n).ok());
        let code = [word("code"), word("type")].into_iter().filter(|word| !word.is_empty());
        // OpenRouter hands on what the server behind it said.
        let behind = error["metadata"]["raw"].as_str().filter(|raw| !raw.is_empty());
        let message = match (message, behind) {
            (Some(message), Some(behind)) => Some(shortened(&format!("{message}: {behind}"))),
            (message, behind) => message.or(behind).map(shortened),
        };
        ErrorFields {
            message: message.filter(|message| !message.is_empty()),
            code: code.collect::<Vec<_>>().join(" "),
            param: error["param"].as_str().map(str::to_owned),
            numbers: (number("n_prompt_tokens"), number("n_ctx")),
        }
    }
}

fn without_words(code: u16) -> String {
    format!("status {code}")
}

fn too_long(code: &str, message: &str, numbers: (Option<u32>, Option<u32>)) -> Option<Fault> {
    const CODES: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];
    const WORDS: [&str; 6] = [
        "maximum context length",
        "exceeds the context length",
        "longer than the context length",
        "exceeds the available context size",
        "prompt is too long",
        "context length exceeded",
    ];
    let small = message.to_lowercase();
    let is_said = CODES.iter().any(|known| code.contains(known))
        || WORDS.iter().any(|known| small.contains(known));
    let (needed, available) = numbers;
    is_said.then(|| Fault::TooLong { message: message.to_owned(), needed, available })
}

/// The field that a server says it does not know, or not for this model.
fn unknown_parameter(code: &str, param: Option<&str>, message: &str) -> Option<String> {
    // Ollama's words, which quote the model and not the field.
    const NO_THINKING: [&str; 2] = ["does not support thinking", "invalid think value"];
    const WORDS: [&str; 6] = [
        "unsupported parameter",
        "unknown parameter",
        "unrecognized request argument",
        "extra inputs are not permitted",
        "extra fields not permitted",
        "unknown field",
    ];
    let small = message.to_lowercase();
    if NO_THINKING.iter().any(|known| small.contains(known)) {
        return Some("think".to_owned());
    }
    let is_said = code.contains("unsupported_parameter")
        || code.contains("unknown_parameter")
        || WORDS.iter().any(|known| small.contains(known));
    is_said.then(|| {
        param.filter(|param| is_field(param)).map(str::to_owned).or_else(|| named(message))
    })?
}

/// The first word in quotes: `Unknown parameter: 'min_p'.`; or what stands alone behind a colon:
/// `Unrecognized request argument supplied: min_p`.
fn named(message: &str) -> Option<String> {
    let mut parts = message.split(['\'', '"', '`']);
    let quoted = parts.nth(1).filter(|_| parts.next().is_some());
    let name = quoted.or_else(|| Some(message.rsplit_once(": ")?.1.trim_end_matches('.')))?;
    is_field(name).then(|| name.to_owned())
}

/// The name of a field, such as `min_p` or `tools[0].strict`: what else a server says is not repeated.
fn is_field(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-[]".contains(c);
    !name.is_empty() && name.len() <= 100 && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u16, body: &str) -> Fault {
        fault_of(HttpFailure { code, retry_after: Some(Duration::from_secs(7)) }, body.as_bytes())
    }

    #[test]
    fn statuses_say_who_may_help() {
        let wait = Some(Duration::from_secs(7));
        let message = || "no".to_owned();
        let body = r#"{"error":{"message":"no"}}"#;
        for (codes, fault) in [
            (&[401u16, 403][..], Fault::KeyRefused { message: message() }),
            (&[402], Fault::NoCredit { message: message() }),
            (&[404], Fault::NoSuchModel { message: message() }),
            (&[429], Fault::Limited { message: message(), retry_after: wait }),
            (&[502, 503, 504, 529], Fault::Overloaded { message: message(), retry_after: wait }),
            (&[408, 425, 500, 501], Fault::Failed { message: message() }),
            (&[400, 413, 422], Fault::Refused { message: message() }),
            (&[508], Fault::Circular { message: message() }),
        ] {
            for &code in codes {
                assert_eq!(of(code, body), fault, "{code}");
            }
        }
        for code in [100, 101, 302] {
            assert!(matches!(of(code, ""), Fault::InvalidAnswer { .. }), "{code}");
        }
    }

    #[test]
    fn words_are_found_where_servers_put_them_and_kept_short() {
        for body in [r#"{"error":"no"}"#, r#"{"message":"no"}"#, r#"{"detail":"no"}"#, r#""no""#] {
            assert_eq!(of(500, body), Fault::Failed { message: "no".to_owned() }, "{body}");
        }
        for body in ["", "<html>busy</html>", "{}", r#"{"error":{"message":""}}"#] {
            assert_eq!(of(500, body), Fault::Failed { message: "status 500".to_owned() }, "{body}");
        }
        let Fault::Failed { message } = of(500, &format!(r#"{{"error":"{}"}}"#, "é".repeat(9000)))
        else {
            panic!("another fault")
        };
        assert_eq!(message.chars().count(), MESSAGE_CHARS_MAX + 1);
    }

    #[test]
    fn a_prompt_that_is_too_long_is_known_by_code_or_words() {
        let numbers = r#"{"error":{"code":400,"message":"request (900 tokens) exceeds the available context size (512 tokens)",
            "type":"exceed_context_size_error","n_prompt_tokens":900,"n_ctx":512}}"#;
        let Fault::TooLong { needed, available, .. } = of(400, numbers) else { panic!("another") };
        assert_eq!((needed, available), (Some(900), Some(512)));
        for body in [
            r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
            r#"{"error":"input exceeds the context length"}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 5"}}"#,
        ] {
            assert!(matches!(of(400, body), Fault::TooLong { .. }), "{body}");
        }
    }

    #[test]
    fn a_parameter_that_a_server_does_not_know_is_named() {
        for body in [
            r#"{"error":{"message":"Unsupported parameter: 'min_p'","code":"unsupported_parameter","param":"min_p"}}"#,
            r#"{"error":{"message":"Unknown parameter: 'min_p'.","param":null}}"#,
            r#"{"error":{"message":"x","code":"unknown_parameter","param":"min_p"}}"#,
            r#"{"error":{"message":"Unrecognized request argument supplied: min_p","param":null}}"#,
        ] {
            let Fault::UnknownParameter { field, .. } = of(400, body) else { panic!("{body}") };
            assert_eq!(field, "min_p");
        }
        for body in [
            r#"{"error":"\"llama3.2\" does not support thinking"}"#,
            r#"{"error":"invalid think value: \"max\" (must be \"high\", \"low\", true, or false)"}"#,
        ] {
            let Fault::UnknownParameter { field, .. } = of(400, body) else { panic!("{body}") };
            assert_eq!(field, "think");
        }
        let vague = r#"{"error":{"message":"unknown parameter somewhere"}}"#;
        assert!(matches!(of(400, vague), Fault::Refused { .. }));
    }

    #[test]
    fn errors_within_an_answer_are_the_server_s() {
        for (error, fault) in [
            (serde_json::json!({"message": "boom", "code": 500}), "reported"),
            (serde_json::json!("boom"), "reported"),
            (serde_json::json!({"message": "slow down", "code": 429}), "rate_limited"),
            (serde_json::json!({"code": 402}), "no_credit"),
            (serde_json::json!({"message": "prompt is too long"}), "too_long"),
        ] {
            assert_eq!(reported(&error).kind(), fault, "{error}");
        }
    }
}
