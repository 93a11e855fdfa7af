//! A request for speech, as OpenAI's clients make it: for whoever asks for sound.
//! WAV, because its first sample can be found and its header says how it is meant.

use bytes::Bytes;
use serde_json::json;

use crate::ask::introduction;
use crate::target::Target;

/// What is to be said, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// None: the target's own.
    pub model: Option<String>,
    pub voice: String,
    pub text: String,
}

/// The whole request, ready to be written.
pub(crate) fn speech_request(target: &Target, spoken: &Spoken) -> Bytes {
    let model = spoken.model.as_ref().unwrap_or(&target.model);
    let body = json!({
        "model": model,
        "voice": spoken.voice,
        "input": spoken.text,
        "response_format": "wav",
    });
    let body = body.to_string();
    format!(
        "POST {}/v1/audio/speech HTTP/1.1\r\nhost: {}\r\n{}content-type: application/json\r\n\
         accept: */*\r\ncontent-length: {}\r\n\r\n{body}",
        target.endpoint.prefix,
        target.endpoint.authority(),
        introduction(target.key.as_deref()),
        body.len()
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Endpoint;
    use crate::target::Api;

    #[test]
    fn a_speech_request_says_who_speaks_and_what() {
        let endpoint = Endpoint::parse("http://box:1").expect("an address");
        let (model, key) = ("m".to_owned(), None);
        let target = Target { endpoint, api: Api::OpenAi, model, key, engine: None, version: None };
        let asked = |model: Option<&str>| {
            let (voice, text) = ("v".to_owned(), "Hello.".to_owned());
            let spoken = Spoken { model: model.map(str::to_owned), voice, text };
            let bytes = speech_request(&target, &spoken);
            let (head, body) = std::str::from_utf8(&bytes)
                .expect("text")
                .split_once("\r\n\r\n")
                .map(|(head, body)| (head.to_owned(), body.to_owned()))
                .expect("a head");
            assert!(head.ends_with(&format!("content-length: {}", body.len())));
            body
        };
        assert_eq!(
            asked(None),
            r#"{"model":"m","voice":"v","input":"Hello.","response_format":"wav"}"#
        );
        assert!(asked(Some("tts-1")).contains(r#""model":"tts-1""#));
    }
}
