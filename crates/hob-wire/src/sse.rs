//! Server-sent events: of a spoken answer, pieces of one file, then what it took.
//! No `[DONE]` there at the end: OpenAI's speech stream has none, and readers of it expect none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Serialize;

use crate::ErrorBody;
use crate::captions::CaptionWord;
use crate::error::json;

/// What an answer took. Speech has no tokens here, so hob counts what a person can check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeechUsage {
    /// Characters of the request's text.
    pub input_chars: u64,
    /// Twentieths of a second of sound: about what OpenAI counts as one audio token.
    pub output_twentieths: u64,
}

/// An event with a piece of the file: `speech.audio.delta`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct SpeechDelta {
    r#type: &'static str,
    /// In base64. The pieces of all events, decoded and joined, are the file.
    audio: String,
    /// The words that begin in this piece. OpenAI has no such field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    timestamps: Vec<CaptionWord>,
}

/// The last event of a whole answer: `speech.audio.done`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct SpeechDone {
    r#type: &'static str,
    usage: SpeechTokens,
}

/// Characters of text in, twentieths of a second of sound out.
#[derive(JsonSchema, Serialize)]
struct SpeechTokens {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
}

/// The last event of an answer that broke off: `error`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ErrorEvent<'a> {
    r#type: &'static str,
    error: &'a ErrorBody,
}

/// A piece of the file, and the words that begin in it.
pub fn speech_delta(bytes: &[u8], words: Vec<CaptionWord>) -> String {
    let (r#type, audio) = ("speech.audio.delta", STANDARD.encode(bytes));
    event(&json(&SpeechDelta { r#type, audio, timestamps: words }))
}

/// The last event of an answer that is whole.
pub fn speech_done(usage: SpeechUsage) -> String {
    let (input_tokens, output_tokens) = (usage.input_chars, usage.output_twentieths);
    let total_tokens = input_tokens + output_tokens;
    let usage = SpeechTokens { input_tokens, output_tokens, total_tokens };
    event(&json(&SpeechDone { r#type: "speech.audio.done", usage }))
}

/// The last event of a chat answer that broke off. It has no `choices`: Open WebUI shows an error only
/// where there are none.
pub fn chat_failed(error: &ErrorBody) -> String {
    event(&error.to_json())
}

/// The last event of a spoken answer that broke off.
pub fn error_event(error: &ErrorBody) -> String {
    event(&json(&ErrorEvent { r#type: "error", error }))
}

pub(crate) fn event(data: &str) -> String {
    let mut event = String::new();
    push_event(&mut event, data);
    event
}

pub(crate) fn push_event(out: &mut String, data: &str) {
    const AROUND_BYTES: usize = "data: \n\n".len();
    out.reserve(AROUND_BYTES + data.len());
    out.push_str("data: ");
    out.push_str(data);
    out.push_str("\n\n");
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
        let words = vec![CaptionWord {
            word: "é".to_owned(),
            start_time: 0.1,
            end_time: 0.25,
            start_byte: 0,
            end_byte: 2,
            phonemes: None,
        }];
        insta::assert_snapshot!(
            [speech_delta(b"sound", words), speech_delta(b"", Vec::new()), speech_done(usage), error_event(&error), chat_failed(&error)].concat(),
            @r#"
            data: {"type":"speech.audio.delta","audio":"c291bmQ=","timestamps":[{"word":"é","start_time":0.1,"end_time":0.25,"start_byte":0,"end_byte":2}]}

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
                let event = speech_delta(piece, Vec::new());
                let data = event.strip_prefix("data: ").and_then(|e| e.strip_suffix("\n\n")).expect("one event");
                let json: serde_json::Value = serde_json::from_str(data).expect("JSON");
                STANDARD.decode(json["audio"].as_str().expect("a string")).expect("base64")
            }).collect();
            proptest::prop_assert_eq!(joined, file);
        }
    }
}
