//! Server-sent events: of a spoken answer, pieces of one file, then what it took.
//! No `[DONE]` there at the end: OpenAI's speech stream has none, and readers of it expect none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::ErrorBody;
use crate::error::json;

/// What an answer took. Speech has no tokens here, so hob counts what a person can check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeechUsage {
    /// Characters of the request's text.
    pub input_chars: u64,
    /// Twentieths of a second of sound: about what OpenAI counts as one audio token.
    pub output_twentieths: u64,
}

/// A piece of the file; pieces joined are the file.
pub fn speech_delta(bytes: &[u8]) -> String {
    const HEAD: &str = "data: {\"type\":\"speech.audio.delta\",\"audio\":\"";
    const TAIL: &str = "\"}\n\n";
    // Base64 needs no escaping, and this runs for every window, so it is written in place.
    let mut event = String::with_capacity(HEAD.len() + bytes.len().div_ceil(3) * 4 + TAIL.len());
    event.push_str(HEAD);
    STANDARD.encode_string(bytes, &mut event);
    event.push_str(TAIL);
    event
}

/// The last event of an answer that is whole.
pub fn speech_done(usage: SpeechUsage) -> String {
    #[derive(Serialize)]
    struct Usage {
        input_tokens: u64,
        output_tokens: u64,
        total_tokens: u64,
    }
    #[derive(Serialize)]
    struct Done {
        r#type: &'static str,
        usage: Usage,
    }
    let (input_tokens, output_tokens) = (usage.input_chars, usage.output_twentieths);
    let usage = Usage { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
    event(&json(&Done { r#type: "speech.audio.done", usage }))
}

/// The last event of a chat answer that broke off. It has no `choices`: Open WebUI shows an error only
/// where there are none.
pub fn chat_failed(error: &ErrorBody) -> String {
    event(&error.to_json())
}

/// The last event of a spoken answer that broke off.
pub fn error_event(error: &ErrorBody) -> String {
    #[derive(Serialize)]
    struct Failed<'a> {
        r#type: &'static str,
        error: &'a ErrorBody,
    }
    event(&json(&Failed { r#type: "error", error }))
}

pub(crate) fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn events_are_as_clients_read_them() {
        let usage = SpeechUsage { input_chars: 12, output_twentieths: 30 };
        let error = ErrorBody {
            message: "line\nbreak".to_owned(),
            kind: ErrorKind::Server,
            param: None,
            code: None,
        };
        insta::assert_snapshot!(
            [speech_delta(b"sound"), speech_delta(b""), speech_done(usage), error_event(&error), chat_failed(&error)].concat(),
            @r#"
            data: {"type":"speech.audio.delta","audio":"c291bmQ="}

            data: {"type":"speech.audio.delta","audio":""}

            data: {"type":"speech.audio.done","usage":{"input_tokens":12,"output_tokens":30,"total_tokens":42}}

            data: {"type":"error","error":{"message":"line\nbreak","type":"server_error","param":null,"code":null}}

            data: {"error":{"message":"line\nbreak","type":"server_error","param":null,"code":null}}
            "#
        );
    }

    proptest::proptest! {
        #[test]
        fn pieces_joined_are_the_file(file: Vec<u8>, cut in 0usize..64) {
            let cut = cut.min(file.len());
            let joined: Vec<u8> = [&file[..cut], &file[cut..]].iter().flat_map(|piece| {
                let event = speech_delta(piece);
                let data = event.strip_prefix("data: ").and_then(|e| e.strip_suffix("\n\n")).expect("one event");
                let json: serde_json::Value = serde_json::from_str(data).expect("JSON");
                STANDARD.decode(json["audio"].as_str().expect("a string")).expect("base64")
            }).collect();
            proptest::prop_assert_eq!(joined, file);
        }
    }
}
