//! The parts of a request that the mock server needs: path, id, script and body.
//! A prompt's tokens are its words, so a client can count them too.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::{Buf, BytesMut};
use memchr::memmem;
use serde_json::{Map, Value};

use super::protocol::Protocol;
use crate::head;
use crate::thinking_switch::ThinkingSwitch;

/// Tests of body limits send more than 64 MiB.
const BODY_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, PartialEq)]
pub(super) struct MockRequest {
    pub(super) path: String,
    pub(super) id: String,
    /// The script in the header `x-mock`.
    pub(super) script: String,
    pub(super) body: Value,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a complete HTTP request")]
pub(super) struct Unreadable;

/// Takes the next request from `unread`, once all of it has arrived.
pub(super) fn take(unread: &mut BytesMut) -> Result<Option<MockRequest>, Unreadable> {
    let Some(head_bytes) = head::length(unread) else {
        return if unread.len() > head::BYTES_MAX { Err(Unreadable) } else { Ok(None) };
    };
    let head = &unread[..head_bytes];
    let body_bytes = head::content_length(head).unwrap_or(0);
    if body_bytes > BODY_BYTES_MAX || head::field(head, "transfer-encoding").is_some() {
        return Err(Unreadable);
    }
    let Some(body) = unread.get(head_bytes..head_bytes + body_bytes) else {
        return Ok(None);
    };
    let field = |name: &str| {
        let value = head::field(head, name).unwrap_or_default();
        String::from_utf8_lossy(value).into_owned()
    };
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let path = line.split(|byte| *byte == b' ').nth(1).ok_or(Unreadable)?;
    let request = MockRequest {
        path: String::from_utf8_lossy(path).into_owned(),
        id: field("x-request-id"),
        script: field("x-mock"),
        body: match field("content-type").split_once("boundary=") {
            Some((_, boundary)) => form(boundary.trim_matches('"'), body),
            None => serde_json::from_slice(body).unwrap_or_default(),
        },
    };
    unread.advance(head_bytes + body_bytes);
    Ok(Some(request))
}

/// The texts of a form, by name. `true` is a flag; files are left out.
fn form(boundary: &str, body: &[u8]) -> Value {
    let mut fields = Map::new();
    let boundary = format!("--{boundary}");
    let starts: Vec<usize> = memmem::find_iter(body, &boundary).collect();
    for pair in starts.windows(2) {
        let part = String::from_utf8_lossy(&body[pair[0] + boundary.len()..pair[1]]);
        let Some((head, text)) = part.split_once("\r\n\r\n") else { continue };
        let name = head.split_once("name=\"").and_then(|(_, rest)| rest.split('"').next());
        if let Some(name) = name.filter(|_| !head.contains("filename=")) {
            let text = text.strip_suffix("\r\n").unwrap_or(text);
            let value = if text == "true" { Value::Bool(true) } else { Value::from(text) };
            fields.insert(name.to_owned(), value);
        }
    }
    Value::Object(fields)
}

impl MockRequest {
    pub(super) fn protocol(&self) -> Option<Protocol> {
        match self.path.as_str() {
            "/v1/chat/completions" => Some(Protocol::Chat),
            "/v1/completions" => Some(Protocol::Completions),
            "/api/chat" => Some(Protocol::OllamaChat),
            "/api/generate" => Some(Protocol::OllamaGenerate),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default()
    }

    /// Ollama streams unless the request says otherwise.
    pub(super) fn streams(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or_else(|| self.path.starts_with("/api/"))
    }

    /// A speech request that asks for all sound in one piece.
    pub(super) fn wants_whole(&self) -> bool {
        self.body["stream"] == false
    }

    pub(super) fn tokens_max(&self) -> Option<u32> {
        let fields = [
            &self.body["max_completion_tokens"],
            &self.body["max_tokens"],
            &self.body["options"]["num_predict"],
        ];
        fields.into_iter().find_map(Value::as_u64).and_then(|tokens| u32::try_from(tokens).ok())
    }

    /// One number for each word of the prompt, of all messages together.
    pub(super) fn words(&self) -> Vec<u64> {
        let messages = self.body["messages"].as_array();
        let contents = messages.into_iter().flatten().map(|message| &message["content"]);
        // GuideLLM sends a list of parts.
        let texts = contents.flat_map(|content| match content {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            text => text.as_str().into_iter().collect::<Vec<_>>(),
        });
        let prompts = self.body["prompt"].as_str().into_iter();
        texts.chain(prompts).flat_map(str::split_whitespace).map(number).collect()
    }

    pub(super) fn turns_thinking_off(&self, switch: Option<ThinkingSwitch>) -> bool {
        let body = &self.body;
        match switch {
            Some(ThinkingSwitch::ReasoningEffort) => body["reasoning_effort"] == "none",
            Some(ThinkingSwitch::Think) => body["think"] == false,
            Some(ThinkingSwitch::EnableThinking) => {
                body["chat_template_kwargs"]["enable_thinking"] == false
            }
            Some(ThinkingSwitch::TemplateThinking) => {
                body["chat_template_kwargs"]["thinking"] == false
            }
            Some(ThinkingSwitch::ThinkingBudget) => body["thinking_budget"] == 0,
            Some(ThinkingSwitch::ReasoningTokens) => body["reasoning"]["max_tokens"] == 0,
            Some(ThinkingSwitch::NoThink) => body.to_string().contains("/no_think"),
            None => false,
        }
    }
}

fn number(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str) -> MockRequest {
        let text = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nX-Request-Id: a7\r\nx-mock: itl_ms=1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut unread = BytesMut::from(&text.as_bytes()[..text.len() - 1]);
        assert_eq!(take(&mut unread), Ok(None), "a byte is missing");
        unread.extend_from_slice(&text.as_bytes()[text.len() - 1..]);
        let request = take(&mut unread).unwrap().unwrap();
        assert!(unread.is_empty());
        request
    }

    #[test]
    fn fields_of_a_request_are_read() {
        let read = request(
            r#"{"model":"m","stream":true,"max_tokens":9,"reasoning_effort":"none","messages":[{"role":"user","content":"a b  c /no_think"}]}"#,
        );
        assert_eq!((read.id.as_str(), read.script.as_str()), ("a7", "itl_ms=1"));
        assert_eq!((read.streams(), read.tokens_max()), (true, Some(9)));
        assert_eq!(read.words().len(), 4);
        let parts = request(
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"text","text":"c"}]}]}"#,
        );
        assert_eq!(parts.words().len(), 3);
        let off = [ThinkingSwitch::ReasoningEffort, ThinkingSwitch::NoThink]
            .map(|switch| read.turns_thinking_off(Some(switch)));
        assert_eq!(off, [true, true]);
        let on = [Some(ThinkingSwitch::Think), Some(ThinkingSwitch::EnableThinking), None];
        assert_eq!(on.map(|switch| read.turns_thinking_off(switch)), [false; 3]);
    }

    #[test]
    fn a_form_has_its_texts_and_no_file() {
        let part = |head: &str, text: &str| {
            format!("--x\r\ncontent-disposition: form-data; {head}\r\n\r\n{text}\r\n")
        };
        let body = [
            part("name=\"model\"", "m"),
            part("name=\"stream\"", "true"),
            part("name=\"prompt\"", "two lines\r\n"),
            part("name=\"file\"; filename=\"a.wav\"", "RIFF"),
            "--x--\r\n".to_owned(),
        ];
        let expected =
            serde_json::json!({ "model": "m", "stream": true, "prompt": "two lines\r\n" });
        assert_eq!(form("x", body.concat().as_bytes()), expected);
    }

    #[test]
    fn other_bytes_are_rejected() {
        let mut endless = BytesMut::from(&vec![b'x'; head::BYTES_MAX + 1][..]);
        assert_eq!(take(&mut endless), Err(Unreadable));
        let huge = format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
        assert_eq!(take(&mut BytesMut::from(huge.as_bytes())), Err(Unreadable));
    }
}
