//! Parts of an answer as bytes of each protocol.
//! Formatted by hand: serialising each event would delay the ones that are due.

use super::schedule::{Kind, Part, Usage};

/// The API whose events an answer consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Chat,
    Completions,
    OllamaChat,
    OllamaGenerate,
}

/// One token, with a character of several bytes in it to be cut.
const WORD: &str = " wörd";

impl Protocol {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Protocol::Chat | Protocol::Completions => "text/event-stream",
            Protocol::OllamaChat | Protocol::OllamaGenerate => "application/x-ndjson",
        }
    }

    /// A part as bytes to send; empty if the protocol has no such part.
    pub(super) fn part(self, part: Part) -> String {
        match self {
            Protocol::Chat | Protocol::Completions => self.event(part),
            Protocol::OllamaChat | Protocol::OllamaGenerate => self.line(part),
        }
    }

    /// The bytes that follow the last part.
    pub(super) fn end(self) -> &'static str {
        match self {
            Protocol::Chat | Protocol::Completions => "data: [DONE]\n\n",
            Protocol::OllamaChat | Protocol::OllamaGenerate => "",
        }
    }

    fn event(self, part: Part) -> String {
        let choice = |delta: &str, finish: &str| {
            format!(r#"[{{"index":0,{delta},"finish_reason":{finish}}}]"#)
        };
        let delta = |inner: &str| format!(r#""delta":{{{inner}}}"#);
        let (choices, usage) = match part {
            Part::Comment => return ": still here\n\n".to_owned(),
            Part::Drop => return String::new(),
            Part::Role => (choice(&delta(r#""role":"assistant","content":"""#), "null"), None),
            Part::Empty => (choice(&self.text(Kind::Content, 0), "null"), None),
            Part::Tokens { kind, count, .. } => (choice(&self.text(kind, count), "null"), None),
            Part::Finish { usage } => (choice(&self.text(Kind::Content, 0), r#""length""#), usage),
            Part::Usage(usage) => ("[]".to_owned(), Some(usage)),
        };
        let object =
            if self == Protocol::Chat { "chat.completion.chunk" } else { "text_completion" };
        let usage =
            usage.map_or(String::new(), |usage| format!(r#","usage":{}"#, usage_json(usage)));
        format!(
            "data: {{\"id\":\"mock-1\",\"object\":\"{object}\",\"created\":1,\"model\":\"mock\",\"choices\":{choices}{usage}}}\n\n"
        )
    }

    fn text(self, kind: Kind, count: u32) -> String {
        let words = words(kind, count);
        match (self, kind) {
            (Protocol::Chat, Kind::Thought) => {
                format!(r#""delta":{{"reasoning_content":"{words}"}}"#)
            }
            (Protocol::Chat, _) => format!(r#""delta":{{"content":"{words}"}}"#),
            _ => format!(r#""text":"{words}""#),
        }
    }

    fn line(self, part: Part) -> String {
        let inner = match (self, part) {
            (_, Part::Comment | Part::Drop) => return String::new(),
            (_, Part::Finish { usage }) => {
                // Ollama's last line has the counts and the reason for the end together.
                let counts = usage.map_or(String::new(), |usage| {
                    format!(
                        r#","prompt_eval_count":{},"eval_count":{}"#,
                        usage.prompt - usage.cached.unwrap_or(0),
                        usage.completion
                    )
                });
                return format!(
                    "{{\"model\":\"mock\",\"done\":true,\"done_reason\":\"length\"{counts}}}\n"
                );
            }
            (_, Part::Usage(_)) => return String::new(),
            (Protocol::OllamaChat, Part::Tokens { kind: Kind::Thought, count, .. }) => {
                message("thinking", &words(Kind::Thought, count))
            }
            (Protocol::OllamaChat, Part::Tokens { kind, count, .. }) => {
                message("content", &words(kind, count))
            }
            (Protocol::OllamaChat, _) => message("content", ""),
            (_, Part::Tokens { kind: Kind::Thought, count, .. }) => {
                format!(r#""response":"","thinking":"{}""#, words(Kind::Thought, count))
            }
            (_, Part::Tokens { kind, count, .. }) => {
                format!(r#""response":"{}""#, words(kind, count))
            }
            (_, _) => r#""response":"""#.to_owned(),
        };
        format!("{{\"model\":\"mock\",{inner},\"done\":false}}\n")
    }

    /// The whole answer as one object.
    pub(super) fn whole(self, parts: &[Part]) -> String {
        let of = |is_thought: bool| -> String {
            let texts = parts.iter().map(|part| match *part {
                Part::Tokens { kind, count, .. } if (kind == Kind::Thought) == is_thought => {
                    words(kind, count)
                }
                _ => String::new(),
            });
            texts.collect()
        };
        let usage = parts.iter().find_map(|part| match part {
            Part::Usage(usage) | Part::Finish { usage: Some(usage) } => Some(*usage),
            _ => None,
        });
        let [thought, content] = [true, false].map(of);
        let counts = usage.map_or("null".to_owned(), usage_json);
        match self {
            Protocol::Chat => format!(
                r#"{{"id":"mock-1","object":"chat.completion","created":1,"model":"mock","choices":[{{"index":0,"message":{{"role":"assistant","reasoning_content":"{thought}","content":"{content}"}},"finish_reason":"length"}}],"usage":{counts}}}"#
            ),
            Protocol::Completions => format!(
                r#"{{"id":"mock-1","object":"text_completion","created":1,"model":"mock","choices":[{{"index":0,"text":"{content}","finish_reason":"length"}}],"usage":{counts}}}"#
            ),
            Protocol::OllamaChat | Protocol::OllamaGenerate => {
                let text = if self == Protocol::OllamaChat {
                    format!(
                        r#""message":{{"role":"assistant","content":"{content}","thinking":"{thought}"}}"#
                    )
                } else {
                    format!(r#""response":"{content}","thinking":"{thought}""#)
                };
                let (prompt, completion) =
                    usage.map_or((0, 0), |usage| (usage.prompt, usage.completion));
                format!(
                    r#"{{"model":"mock",{text},"done":true,"done_reason":"length","prompt_eval_count":{prompt},"eval_count":{completion}}}"#
                )
            }
        }
    }
}

fn words(kind: Kind, count: u32) -> String {
    let words = WORD.repeat(count as usize);
    if let Kind::Tagged(tag) = kind { [tag, &words].concat() } else { words }
}

fn message(field: &str, words: &str) -> String {
    let content = if field == "content" { "" } else { r#""content":"","# };
    format!(r#""message":{{"role":"assistant",{content}"{field}":"{words}"}}"#)
}

fn usage_json(usage: Usage) -> String {
    let Usage { prompt, cached, completion, reasoning } = usage;
    let details = cached.map_or(String::new(), |cached| {
        format!(r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#)
    });
    format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{}{details},"completion_tokens_details":{{"reasoning_tokens":{reasoning}}}}}"#,
        prompt + completion
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const USAGE: Usage = Usage { prompt: 9, cached: Some(4), completion: 3, reasoning: 1 };
    const PARTS: [Part; 6] = [
        Part::Role,
        Part::Empty,
        Part::Tokens { kind: Kind::Thought, first: 0, count: 1 },
        Part::Tokens { kind: Kind::Content, first: 1, count: 2 },
        Part::Finish { usage: Some(USAGE) },
        Part::Usage(USAGE),
    ];

    #[test]
    fn every_part_is_valid_json() {
        for part in PARTS {
            for protocol in [Protocol::Chat, Protocol::Completions] {
                let event = protocol.part(part);
                let data = event.strip_prefix("data: ").and_then(|e| e.strip_suffix("\n\n"));
                serde_json::from_str::<Value>(data.unwrap()).unwrap();
            }
            for protocol in [Protocol::OllamaChat, Protocol::OllamaGenerate] {
                let line = protocol.part(part);
                if part != Part::Usage(USAGE) {
                    serde_json::from_str::<Value>(line.strip_suffix('\n').unwrap()).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_whole_answer_holds_the_text_of_its_parts() {
        let whole: Value = serde_json::from_str(&Protocol::Chat.whole(&PARTS)).unwrap();
        let message = &whole["choices"][0]["message"];
        assert_eq!(message["reasoning_content"], " wörd");
        assert_eq!(message["content"], " wörd wörd");
        assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
        assert_eq!(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 1);
        for protocol in [Protocol::Completions, Protocol::OllamaChat, Protocol::OllamaGenerate] {
            serde_json::from_str::<Value>(&protocol.whole(&PARTS)).unwrap();
        }
    }
}
