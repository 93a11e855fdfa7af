//! The bytes of a speech request in OpenAI's API, prepared before it is due.
//! Servers have different defaults for streaming, so the request says what it wants, unless the server rejects the field.

use bytes::Bytes;
use serde_json::json;

use crate::target::Target;
use crate::timeline::SoundFormat;

/// The `stream` field of a request. OpenAI has no such field. hob and Kokoro-FastAPI stream unless it is false; others,
/// such as vLLM-Omni, stream only if it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamField {
    /// No field, because the server rejects it.
    Absent,
    True,
    False,
}

impl StreamField {
    /// The value of the field, also in a record.
    pub fn value(self) -> Option<bool> {
        match self {
            StreamField::Absent => None,
            StreamField::True => Some(true),
            StreamField::False => Some(false),
        }
    }
}

/// The parts that all requests of a cell share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestParts<'a> {
    pub(crate) target: &'a Target,
    pub(crate) voice: &'a str,
    pub(crate) format: SoundFormat,
    pub(crate) stream: StreamField,
}

impl RequestParts<'_> {
    /// The complete request with `number` as its `x-request-id`.
    pub(crate) fn bytes(&self, words: &str, number: usize) -> Bytes {
        let mut body = json!({
            "model": self.target.model,
            "input": words,
            "voice": self.voice,
            "response_format": self.format.name(),
        });
        if let Some(stream) = self.stream.value() {
            body["stream"] = json!(stream);
        }
        self.target.post("/v1/audio/speech", &body.to_string(), Some(number))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::target::Api;

    #[test]
    fn the_stream_field_is_sent_as_chosen() {
        let target = Target::for_tests("http://box:1/speech", Api::OpenAi);
        let rows = [
            (StreamField::Absent, Value::Null),
            (StreamField::True, json!(true)),
            (StreamField::False, json!(false)),
        ];
        for (stream, expected) in rows {
            let parts =
                RequestParts { target: &target, voice: "v", format: SoundFormat::Pcm, stream };
            let bytes = parts.bytes("Hi.", 3);
            let text = std::str::from_utf8(&bytes).expect("text");
            let (head, body) = text.split_once("\r\n\r\n").expect("a head");
            assert!(head.starts_with("POST /speech/v1/audio/speech HTTP/1.1\r\nhost: box:1\r\n"));
            assert!(head.contains("authorization: Bearer k\r\n"));
            assert!(head.ends_with(&format!("content-length: {}", body.len())));
            let body: Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(
                (&body["input"], &body["voice"], &body["response_format"], &body["stream"]),
                (&json!("Hi."), &json!("v"), &json!("pcm"), &expected)
            );
        }
    }
}
