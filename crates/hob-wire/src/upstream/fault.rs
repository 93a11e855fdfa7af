//! Statuses and error bodies of other servers, sorted by what may help.
//! Their words are kept short: they are shown to people, and a page of HTML says nothing.

use std::time::Duration;

use hob_core::Fault;
use serde_json::Value;

use super::request::{CALL_SIGNATURE, REASONING};

/// Asks Claude to send a tool's arguments while it writes them. Gateways to Claude may not know it.
pub(super) const STREAMED_ARGUMENTS: &str = "eager_input_streaming";

/// Asks Claude to keep the prompt for the next request. Gateways to Claude may not know it.
pub(super) const PROMPT_CACHING: &str = "cache_control";

/// Characters of a server's message that are shown.
const MESSAGE_CHARS_MAX: usize = 500;
/// The rest of a target whose quota is used up, if its server names no time. OpenAI says so of an account without money,
/// but Alibaba of too many tokens in a minute.
const QUOTA_REST: Duration = Duration::from_secs(60);

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
    let rest = fields.code.contains("insufficient_quota").then_some(QUOTA_REST);
    let retry_after = retry_after.or(fields.retry_after).or(rest);
    match code {
        // Anthropic's message begins so. Later words may quote a client.
        400 if message.starts_with("Your credit balance is too low") => Fault::NoCredit { message },
        403 if fields.is_flagged => Fault::Refused { message },
        401 | 403 => Fault::KeyRefused { message },
        402 => Fault::NoCredit { message },
        404 => Fault::NoSuchModel { message },
        429 => Fault::Limited { message, retry_after },
        // Groq's, of a request with more tokens than it allows in a minute.
        413 if fields.code.contains("rate_limit_exceeded") => {
            Fault::Limited { message, retry_after }
        }
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
    retry_after: Option<Duration>,
    /// OpenRouter's: the text of the request is not allowed.
    is_flagged: bool,
}

impl ErrorFields {
    /// `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}` or what is inside those.
    /// Gemini sends a list of one.
    fn of(body: &Value) -> ErrorFields {
        let body = body.get(0).unwrap_or(body);
        let error = match (&body["error"], &body["detail"]) {
            (Value::Null, detail) if detail.is_object() && body["message"].is_null() => detail,
            (Value::Null, _) => body,
            (error, _) => error,
        };
        let invalid = InvalidField::of(error);
        let message =
            [&error["message"], &error["detail"], error].into_iter().find_map(Value::as_str);
        let message = message.or(invalid.as_ref().map(|field| field.message.as_str()));
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
            param: error["param"].as_str().map(str::to_owned).or(invalid.map(|field| field.path)),
            numbers: (number("n_prompt_tokens"), number("n_ctx")),
            retry_after: retry_delay(error),
            is_flagged: error["metadata"]["flagged_input"].is_string(),
        }
    }
}

/// The first field that FastAPI or pydantic finds invalid: `{"loc": ["body", "stop"], "msg": "…"}`.
struct InvalidField {
    path: String,
    message: String,
}

impl InvalidField {
    /// Servers have the list in `detail`. Mistral has it in `message`, or in a `detail` there.
    fn of(error: &Value) -> Option<InvalidField> {
        let lists = [&error["detail"], &error["message"]["detail"], &error["message"]];
        let first = lists.into_iter().find_map(|list| list.get(0))?;
        let parts = first["loc"].as_array().into_iter().flatten().filter(|part| **part != "body");
        let parts = parts.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
        let path = parts.collect::<Vec<_>>().join(".");
        let message = first["msg"].as_str()?;
        let message =
            if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") };
        Some(InvalidField { path, message })
    }
}

/// Google's `retryDelay`, such as `34.07s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

fn without_words(code: u16) -> String {
    format!("status {code}")
}

fn too_long(code: &str, message: &str, numbers: (Option<u32>, Option<u32>)) -> Option<Fault> {
    const CODES: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];
    const WORDS: [&str; 14] = [
        "maximum context length",
        "maximum model length",
        // xAI.
        "maximum prompt length",
        // vLLM, SGLang and Together.
        "model's context length",
        // Ollama.
        "exceeded max context length",
        // LM Studio.
        "greater than the context length",
        "exceeds the context length",
        "exceeds the context window",
        // Gemini.
        "exceeds the maximum number of tokens allowed",
        // Kimi.
        "exceeded model token limit",
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
    const WORDS: [&str; 7] = [
        "unsupported parameter",
        "unknown parameter",
        "unrecognized request argument",
        "extra inputs are not permitted",
        "extra fields not permitted",
        "unknown field",
        // Gemini, of a field that stands in no other.
        "\": cannot find field",
    ];
    // What servers say of a field that hob adds. DeepSeek names its field if it is missing.
    const REFUSED: [&str; 6] = [
        "is unsupported",
        "not permitted",
        "not allowed",
        "cannot find field",
        "unknown",
        "unrecognized",
    ];
    let small = message.to_lowercase();
    let added = [REASONING, STREAMED_ARGUMENTS, PROMPT_CACHING];
    if let Some(field) = added.into_iter().find(|field| small.contains(field))
        && REFUSED.iter().any(|known| small.contains(known))
    {
        return Some(field.to_owned());
    }
    if small.contains("missing a thought_signature") {
        return Some(CALL_SIGNATURE.to_owned());
    }
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
        for body in [
            r#"{"error":"no"}"#,
            r#"{"message":"no"}"#,
            r#"{"detail":"no"}"#,
            r#""no""#,
            r#"[{"error":{"code":500,"message":"no","status":"INTERNAL"}}]"#,
            r#"{"detail":{"error":"processing_error","message":"no","type":"server_error"}}"#,
            r#"{"message":"no","detail":{"id":7}}"#,
            r#"{"detail":[{"type":"value_error","loc":["body"],"msg":"no","input":"my secret"}]}"#,
        ] {
            assert_eq!(of(500, body), Fault::Failed { message: "no".to_owned() }, "{body}");
        }
        let missing = r#"{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required"}]}"#;
        let message = "messages.0.role: Field required".to_owned();
        assert_eq!(of(422, missing), Fault::Refused { message });
        for body in ["", "[]", "<html>busy</html>", "{}", r#"{"error":{"message":""}}"#] {
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
            r#"{"error":{"message":"You passed 9 input tokens and requested 3 output tokens. However, the model's context length is only 8 tokens."}}"#,
            r#"{"message":"The input (9 tokens) is longer than the model's context length (8 tokens)."}"#,
            r#"{"error":{"message":"The decoder prompt (length 9) is longer than the maximum model length of 8."}}"#,
            r#"{"error":"This model's maximum prompt length is 8 but the request contains 9 tokens."}"#,
            r#"{"error":"prompt too long; exceeded max context length by 1 tokens"}"#,
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
            r#"{"error":{"message":"Your input exceeds the context window of this model."}}"#,
            r#"[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}]"#,
            r#"{"error":{"message":"Your request exceeded model token limit: 8 (requested: 9)"}}"#,
        ] {
            assert!(matches!(of(400, body), Fault::TooLong { .. }), "{body}");
        }
    }

    #[test]
    fn a_parameter_that_a_server_does_not_know_is_named() {
        let named = |body: &str| match of(400, body) {
            Fault::UnknownParameter { field, .. } => field,
            other => panic!("{body}: {other:?}"),
        };
        for body in [
            r#"{"error":{"message":"Unsupported parameter: 'min_p'","code":"unsupported_parameter","param":"min_p"}}"#,
            r#"{"error":{"message":"Unknown parameter: 'min_p'.","param":null}}"#,
            r#"{"error":{"message":"x","code":"unknown_parameter","param":"min_p"}}"#,
            r#"{"error":{"message":"Unrecognized request argument supplied: min_p","param":null}}"#,
            r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"min_p\": Cannot find field."}}]"#,
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","min_p"],"msg":"Extra inputs are not permitted","input":1}]}"#,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","min_p"],
                "msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}"#,
            r#"{"object":"Error","message":[{"type":"extra_forbidden","loc":["body","min_p"],
                "msg":"Extra inputs are not permitted"}],"type":"invalid_request_error","code":3001}"#,
        ] {
            assert_eq!(named(body), "min_p", "{body}");
        }
        for body in [
            r#"{"error":"\"llama3.2\" does not support thinking"}"#,
            r#"{"error":"invalid think value: \"max\" (must be \"high\", \"low\", true, or false)"}"#,
        ] {
            assert_eq!(named(body), "think", "{body}");
        }
        for body in [
            // Groq, Cerebras, Mistral and Gemini.
            r#"{"error":{"message":"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"}}"#,
            r#"{"message":"messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported","param":"validation_error"}"#,
            r#"{"object":"Error","message":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning_content"],
                "msg":"Extra inputs are not permitted"}]}"#,
            r#"[{"error":{"message":"Unknown name \"reasoning_content\" at 'messages[1]': Cannot find field."}}]"#,
            r#"{"error":{"message":"Additional properties are not allowed ('reasoning_content' was unexpected) - 'messages.1'"}}"#,
        ] {
            assert_eq!(named(body), REASONING, "{body}");
        }
        let unsigned = r#"[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]"#;
        assert_eq!(named(unsigned), CALL_SIGNATURE);
        let eager = r#"{"type":"error","error":{"message":"tools.0.custom.eager_input_streaming: Extra inputs are not permitted"}}"#;
        assert_eq!(named(eager), STREAMED_ARGUMENTS);
        let caching = r#"{"type":"error","error":{"message":"cache_control: Extra inputs are not permitted"}}"#;
        assert_eq!(named(caching), PROMPT_CACHING);
        let missing = r#"{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API."}}"#;
        assert!(matches!(of(400, missing), Fault::Refused { .. }));
        for vague in [
            r#"{"error":{"message":"unknown parameter somewhere"}}"#,
            r#"[{"error":{"message":"Unknown name \"const\" at 'tools[0].parameters': Cannot find field."}}]"#,
        ] {
            assert!(matches!(of(400, vague), Fault::Refused { .. }), "{vague}");
        }
    }

    #[test]
    fn an_account_without_money_and_a_text_that_is_not_allowed_are_known() {
        for (code, body, kind) in [
            (400, r#"{"error":{"message":"Your credit balance is too low to"}}"#, "no_credit"),
            (400, r#"{"error":{"message":"'Your credit balance is too low'"}}"#, "refused"),
            (429, r#"{"error":{"message":"no","type":"requests"}}"#, "rate_limited"),
            (413, r#"{"error":{"message":"no","code":"rate_limit_exceeded"}}"#, "rate_limited"),
            (
                403,
                r#"{"error":{"message":"no","metadata":{"reasons":["x"],"flagged_input":"y"}}}"#,
                "refused",
            ),
        ] {
            assert_eq!(of(code, body).kind(), kind, "{body}");
        }
    }

    #[test]
    fn a_time_in_the_body_counts_where_the_header_names_none() {
        let body = r#"[{"error":{"message":"no","details":[{"@type":"type.googleapis.com/google.rpc.Help"},
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#;
        for (header, expected_s) in [(None, 34.5), (Some(7.0), 7.0)] {
            let retry_after = header.map(Duration::from_secs_f64);
            let fault = fault_of(HttpFailure { code: 429, retry_after }, body.as_bytes());
            let retry_after = Some(Duration::from_secs_f64(expected_s));
            assert_eq!(fault, Fault::Limited { message: "no".to_owned(), retry_after });
        }
        let spent = br#"{"error":{"message":"no","type":"insufficient_quota"}}"#;
        let fault = fault_of(HttpFailure { code: 429, retry_after: None }, spent);
        let retry_after = Some(QUOTA_REST);
        assert_eq!(fault, Fault::Limited { message: "no".to_owned(), retry_after });
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
