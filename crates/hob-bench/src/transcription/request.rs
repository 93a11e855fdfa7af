//! The bytes of a transcription request in OpenAI's API: a form whose last field is the file.
//! So the last bytes that are sent are those of the last sample, and times count from there.

use bytes::{BufMut as _, Bytes, BytesMut};
use hob_core::TranscriptRequest;
use hob_wire::{RequestedFormat, transcript_fields, transcript_path};

use super::clips::Clip;
use crate::ask::client_headers;
use crate::speech::Streaming;
use crate::target::Target;

/// Between the fields; no sound contains it.
const BOUNDARY: &str = "hob-bench-7c1e60c0a4f24f1e9d2b3c5a8e6f0d71";

/// The complete request.
pub(super) fn bytes(target: &Target, clip: &Clip, streaming: Streaming) -> Bytes {
    let Target { endpoint, key, model, .. } = target;
    let request =
        TranscriptRequest { language: Some(clip.language.clone()), ..TranscriptRequest::default() };
    let shape = match streaming {
        Streaming::Requested => RequestedFormat::Events,
        Streaming::Declined => RequestedFormat::Short,
    };
    let field = |(name, value): (&str, String)| {
        format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let fields: String = transcript_fields(&request, model, shape).into_iter().map(field).collect();
    let before = format!(
        "{fields}--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"audio.wav\"\r\n\
         content-type: audio/wav\r\n\r\n"
    );
    let after = format!("\r\n--{BOUNDARY}--\r\n");
    let length = before.len() + clip.wav.len() + after.len();
    let head = format!(
        "POST {}/v1/{} HTTP/1.1\r\nhost: {}\r\n{}content-type: multipart/form-data; boundary={BOUNDARY}\r\n\
         accept: */*\r\ncontent-length: {length}\r\n\r\n",
        endpoint.prefix,
        transcript_path(request.task),
        endpoint.authority(),
        client_headers(key.as_deref()),
    );
    let mut bytes = BytesMut::with_capacity(head.len() + length);
    bytes.put_slice(head.as_bytes());
    bytes.put_slice(before.as_bytes());
    bytes.put_slice(&clip.wav);
    bytes.put_slice(after.as_bytes());
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Api;
    use crate::wav::Wav;

    #[test]
    fn the_file_is_the_last_field() {
        let target = Target::for_tests("http://box:1/a", Api::OpenAi);
        let wav = Wav { rate_hz: 16_000, samples: vec![1; 4] }.to_bytes();
        let clip = Clip::new("a", wav.clone(), "Hallo.", "de").expect("a clip");
        for (streaming, is_streamed) in [(Streaming::Requested, true), (Streaming::Declined, false)]
        {
            let sent = bytes(&target, &clip, streaming);
            let text = String::from_utf8_lossy(&sent);
            let (head, body) = text.split_once("\r\n\r\n").expect("a head");
            assert!(
                head.starts_with("POST /a/v1/audio/transcriptions HTTP/1.1\r\nhost: box:1\r\n")
            );
            assert!(head.contains("authorization: Bearer k\r\n"));
            assert!(body.contains("name=\"language\"\r\n\r\nde\r\n"), "{body}");
            assert_eq!(body.contains("name=\"stream\"\r\n\r\ntrue\r\n"), is_streamed);
            let end = format!("\r\n--{BOUNDARY}--\r\n");
            let file = &sent[sent.len() - end.len() - wav.len()..sent.len() - end.len()];
            assert_eq!(file, &wav[..]);
            let length = format!("content-length: {}", sent.len() - head.len() - 4);
            assert!(head.ends_with(&length), "{head}");
        }
    }
}
