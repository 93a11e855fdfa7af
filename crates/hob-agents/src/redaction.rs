//! Keeps keys and tokens out of the trace of a run: those that hob knows, and texts that look like one.
//! Models and tools get them as they are, and the state from which a run goes on has them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::Value;

use crate::event::RunEvent;

/// Shorter values of the environment are words and numbers, and would make the trace unreadable.
const KNOWN_BYTES_MIN: usize = 8;
const LEFT_OUT: &str = "…";
const BLOCK_BEGIN: &str = "-----BEGIN ";
const BLOCK_END: &str = "-----END ";
const DASHES: &str = "-----";
/// What tokens begin with, and the characters in them besides letters and digits.
const TOKENS: [(&str, &str); 8] = [
    ("sk-", "-_"),
    ("hf_", ""),
    ("ghp_", ""),
    ("gho_", ""),
    ("ghs_", ""),
    ("github_pat_", "_"),
    ("glpat-", "-_"),
    ("Bearer ", "-._~+/="),
];
/// Bytes behind that beginning. A shorter text is a token only if it has a digit.
const TOKEN_BYTES_MIN: usize = 20;
const TOKEN_WITH_DIGIT_BYTES_MIN: usize = 8;

/// The keys that are left out of events, besides texts that look like one. Clones share them.
#[derive(Clone, Default)]
pub struct Redaction {
    /// The longest first, because a key may contain another one.
    known: Arc<[String]>,
    /// The known keys, escaped as inside a JSON text.
    written: Arc<[String]>,
}

hob_core::debug_fields!(Redaction: known.len());

impl Redaction {
    pub fn new(known: impl IntoIterator<Item = String>) -> Redaction {
        let known = known.into_iter().filter(|key| key.len() >= KNOWN_BYTES_MIN);
        let mut known: Vec<String> = known.collect();
        known.sort_unstable_by_key(|key| Reverse(key.len()));
        // Without the quotes around it.
        let in_json = |key: &String| {
            let quoted = Value::from(key.as_str()).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let written = known.iter().map(in_json).collect();
        Redaction { known: known.into(), written }
    }

    /// The text without keys and tokens.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for key in &*self.known {
            if text.contains(key) {
                text = text.replace(key, LEFT_OUT);
            }
        }
        without_tokens(&without_private_keys(&text))
    }

    /// The events without keys and tokens in any of their texts. Most have none, and are not copied.
    pub(crate) fn events<'e>(&self, events: &'e [RunEvent]) -> Cow<'e, [RunEvent]> {
        if events.iter().any(|event| self.may_have_secrets(event)) {
            Cow::Owned(events.iter().map(|event| self.event(event)).collect())
        } else {
            Cow::Borrowed(events)
        }
    }

    fn event(&self, event: &RunEvent) -> RunEvent {
        let redacted = serde_json::to_value(event).map(|value| self.value(value));
        // Texts alone are changed, so the event stays one.
        redacted.and_then(serde_json::from_value).unwrap_or_else(|_| event.clone())
    }

    /// Whether a text of the event has a known key, or what a token or a private key begins with. Much faster than to look
    /// for whole tokens in each text, and never false where one of them would be left out.
    fn may_have_secrets(&self, event: &RunEvent) -> bool {
        let Ok(json) = serde_json::to_string(event) else { return true };
        self.written.iter().any(|key| json.contains(&**key))
            || json.contains(BLOCK_BEGIN)
            || has_token_prefix(json.as_bytes())
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                fields.map(|(name, value)| (self.text(&name), self.value(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

fn without_private_keys(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, block)) = rest.split_once(BLOCK_BEGIN) {
        kept += before;
        let title = block.split(DASHES).next().unwrap_or_default();
        if !title.contains("PRIVATE KEY") {
            kept += BLOCK_BEGIN;
            rest = block;
            continue;
        }
        kept += "[a private key was left out]";
        // A block without an end was cut off.
        let behind = block.split_once(BLOCK_END).map_or("", |(_, end)| end);
        rest = behind.split_once(DASHES).map_or("", |(_, rest)| rest);
    }
    kept + rest
}

fn without_tokens(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    let mut is_in_word = false;
    while let Some(first) = rest.chars().next() {
        let begun = if is_in_word { None } else { token(rest) };
        let (shown, read) = begun.unwrap_or((first.len_utf8(), first.len_utf8()));
        kept += &rest[..shown];
        if begun.is_some() {
            kept += LEFT_OUT;
        }
        is_in_word = first.is_alphanumeric();
        rest = &rest[read..];
    }
    kept
}

/// Whether a token may begin anywhere in the text. JSON changes no character of these beginnings.
fn has_token_prefix(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, first)| {
        let is_here = |prefix: &str| {
            let here = text.get(at..at + prefix.len());
            here.is_some_and(|here| here.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        matches!(first | 0x20, b's' | b'h' | b'g' | b'b')
            && TOKENS.iter().any(|(prefix, _)| is_here(prefix))
    })
}

/// The token at the beginning of a text: the bytes that say what it is, and all its bytes.
fn token(text: &str) -> Option<(usize, usize)> {
    TOKENS.iter().find_map(|(prefix, others)| {
        let begin = text.get(..prefix.len())?;
        let secret = &text[prefix.len()..];
        let is_other = |c: char| !c.is_ascii_alphanumeric() && !others.contains(c);
        let bytes = secret.find(is_other).unwrap_or(secret.len());
        let has_digit = secret[..bytes].contains(|c: char| c.is_ascii_digit());
        let bytes_min = if has_digit { TOKEN_WITH_DIGIT_BYTES_MIN } else { TOKEN_BYTES_MIN };
        let is_token = begin.eq_ignore_ascii_case(prefix) && bytes >= bytes_min;
        is_token.then_some((prefix.len(), prefix.len() + bytes))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::EventKind;
    use crate::tool::ToolOutput;

    const GITHUB: &str = "ghp_0123456789abcdefghij0123456789abcdef";
    const KEY: &str =
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END OPENSSH PRIVATE KEY-----";

    fn redaction() -> Redaction {
        Redaction::new(["known-by-name", "known-by-name-too", "short"].map(str::to_owned))
    }

    fn event(what: EventKind) -> RunEvent {
        RunEvent {
            v: 1,
            seq: 7,
            ts: 5,
            run_id: "run-1".to_owned(),
            agent: Some("lead".to_owned()),
            depth: 2,
            span_id: 4,
            parent_id: Some(1),
            number: None,
            what,
        }
    }

    #[test]
    fn keys_and_tokens_are_left_out_of_texts() {
        let address = format!("https://{GITHUB}@github.com");
        let block = format!("a {KEY} b");
        for (text, expected) in [
            ("nothing to hide", "nothing to hide"),
            ("a known-by-name, known-by-name-too", "a …, …"),
            ("a short word", "a short word"),
            ("OPENAI_API_KEY=sk-proj-abc_DEF123-x.", "OPENAI_API_KEY=sk-…."),
            ("'sk-abcdefghijklmnopqrstuvwxyz'", "'sk-…'"),
            ("hf_abcdefghij0123456789 and hf_hub_download", "hf_… and hf_hub_download"),
            (address.as_str(), "https://ghp_…@github.com"),
            ("Authorization: bearer abc.DEF/0123==\n", "Authorization: bearer …\n"),
            ("a bearer of news; Bearer authentication", "a bearer of news; Bearer authentication"),
            ("task-0123456789 sk-learn äsk-0123456789", "task-0123456789 sk-learn äsk-0123456789"),
            (block.as_str(), "a [a private key was left out] b"),
            (&KEY[..50], "[a private key was left out]"),
            (
                "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
                "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            ),
        ] {
            assert_eq!(redaction().text(text), expected, "{text}");
        }
    }

    #[test]
    fn all_texts_of_an_event_are_redacted() {
        let arguments = |secret: &str| json!({ "env": [{ "token": secret }], "count": 3 });
        let output = |secret: &str| ToolOutput {
            text: format!("it is {secret}"),
            is_error: true,
            artifacts: vec![format!("{secret}.txt")],
        };
        let kinds = |secret: &str| {
            [
                EventKind::ToolCalled {
                    call_id: "1".to_owned(),
                    name: "shell".to_owned(),
                    arguments: arguments(secret),
                },
                EventKind::ToolOutput { call_id: "1".to_owned(), output: output(secret) },
                EventKind::ModelFailed { error: secret.to_owned() },
            ]
        };
        for (what, expected) in kinds(GITHUB).into_iter().zip(kinds("ghp_…")) {
            assert_eq!(*redaction().events(&[event(what)]), [event(expected)]);
        }
    }

    /// The quick look must find all that is left out, however JSON writes it.
    #[test]
    fn events_without_secrets_are_not_copied() {
        let redaction = Redaction::new([r#"a"key\with signs"#.to_owned()]);
        let failed = |text: &str| event(EventKind::ModelFailed { error: text.to_owned() });
        let block = format!("\n{KEY}");
        for text in [
            r#"is a"key\with signs"#,
            "line\nsk-abc0123456789",
            "\"BEARER abcdefgh0123\"",
            "\tGHP_0123456789abcdefghij",
            block.as_str(),
        ] {
            let events = [failed(text)];
            let found = redaction.events(&events);
            assert!(matches!(found, Cow::Owned(_)) && *found != events, "{text}");
        }
        let events = [failed("the bear hides a graph")];
        assert!(matches!(redaction.events(&events), Cow::Borrowed(_)));
        for (prefix, _) in TOKENS {
            assert!(has_token_prefix(format!("é{prefix}").as_bytes()), "{prefix}");
        }
    }
}
