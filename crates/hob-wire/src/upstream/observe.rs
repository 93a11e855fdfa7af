//! Reads a piece of an upstream's answer exactly as it was sent. The benchmark uses it, so nothing is corrected or filled in.
//! If a server reports no number of tokens, the number is unknown and not zero.

use hob_core::ChatEvent;
use serde_json::Value;

use super::ThoughtSplitter;
use super::chunk::{Choice, Chunk, Delta, WireCall};
use super::fault::shortened;
use super::lenient::{Objects, error_in};
use super::ollama::line::{Line, WireMessage};

const NS_PER_MS: f64 = 1e6;

/// One piece of a streamed answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    Said(ObservedPart),
    /// `[DONE]`, which ends a stream.
    Done,
    /// Not JSON, or JSON that is not part of an answer.
    Malformed,
    /// The server reports an error.
    Failed {
        message: String,
    },
}

/// The content of a piece. Most pieces have only one of these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedPart {
    /// Bytes of thinking, of text and of calls.
    pub thought: usize,
    pub content: usize,
    pub calls: usize,
    /// The text itself. [`ObservedText`] separates thinking from it.
    pub text: String,
    pub finish: Option<String>,
    pub counts: ObservedCounts,
    /// The server marked it as the last piece.
    pub is_last: bool,
}

/// What the server counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObservedCounts {
    /// Cached ones included.
    pub prompt: Option<u32>,
    pub cached: Option<u32>,
    /// Reasoning included.
    pub completion: Option<u32>,
    pub reasoning: Option<u32>,
    /// By the engine's own clock.
    pub prefill_ms: Option<f64>,
}

impl ObservedCounts {
    /// These counts; a missing one is taken from `before`.
    pub fn or(self, before: ObservedCounts) -> ObservedCounts {
        ObservedCounts {
            prompt: self.prompt.or(before.prompt),
            cached: self.cached.or(before.cached),
            completion: self.completion.or(before.completion),
            reasoning: self.reasoning.or(before.reasoning),
            prefill_ms: self.prefill_ms.or(before.prefill_ms),
        }
    }
}

/// The data of an event, or a whole answer, of OpenAI's protocol.
pub fn observe_openai(piece: &str) -> Observed {
    if piece.trim_ascii() == "[DONE]" {
        return Observed::Done;
    }
    let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(piece) else { return Observed::Malformed };
    if let Some(error) = error_in(chunk.error.as_ref()) {
        return failed(error);
    }
    let timings = chunk.timings.0.unwrap_or_default();
    let usage = chunk.usage.0.unwrap_or_default();
    let counts = ObservedCounts {
        prompt: usage.prompt_tokens.0,
        cached: usage.cached_tokens().or(timings.cache_n.0),
        completion: usage.completion_tokens.0,
        reasoning: usage.reasoning_tokens(),
        prefill_ms: timings.prompt_ms.0,
    };
    let said = chunk.choices.0.as_ref().map(of_choice).unwrap_or_default();
    Observed::Said(ObservedPart { counts, ..said })
}

fn of_choice(choice: &Choice<'_>) -> ObservedPart {
    let said = choice.said().map(of_delta).unwrap_or_default();
    let finish = Some(choice.finish_reason.as_str()).filter(|reason| !reason.is_empty());
    ObservedPart {
        content: said.content + choice.text.as_str().len(),
        text: said.text + choice.text.as_str(),
        finish: finish.map(str::to_owned),
        ..said
    }
}

fn of_delta(delta: &Delta<'_>) -> ObservedPart {
    let function = delta.function_call.0.as_ref();
    let function =
        function.map_or(0, |call| call.name.as_str().len() + call.arguments.as_str().len());
    ObservedPart {
        thought: delta.thought().len(),
        content: delta.content.text.as_str().len() + delta.refusal.as_str().len(),
        calls: function + bytes_of(&delta.tool_calls),
        text: delta.content.text.as_str().to_owned(),
        ..ObservedPart::default()
    }
}

fn bytes_of(calls: &Objects<WireCall<'_>>) -> usize {
    let bytes = |call: &WireCall<'_>| {
        let function = call.function.0.as_ref();
        function.map_or(0, |said| said.name.as_str().len() + said.arguments.as_str().len())
    };
    calls.0.iter().map(bytes).sum()
}

/// A line of Ollama's, or a whole answer.
pub fn observe_ollama(piece: &str) -> Observed {
    let Ok(line) = serde_json::from_str::<Line<'_>>(piece) else { return Observed::Malformed };
    if let Some(error) = error_in(line.error.as_ref()) {
        return failed(error);
    }
    let none = WireMessage::default();
    let message = line.message.0.as_ref().unwrap_or(&none);
    let cached = line.prompt_eval_cached_count.0;
    let counts = ObservedCounts {
        prompt: line.prompt_eval_count.0,
        cached,
        completion: line.eval_count.0,
        // Ollama counts them together.
        reasoning: None,
        prefill_ms: line.prompt_eval_duration.0.map(|ns| ns / NS_PER_MS),
    };
    let finish = Some(line.done_reason.as_str()).filter(|reason| !reason.is_empty());
    Observed::Said(ObservedPart {
        thought: message.thinking.as_str().len() + line.thinking.as_str().len(),
        content: message.content.as_str().len() + line.response.as_str().len(),
        calls: bytes_of(&message.tool_calls) + bytes_of(&line.tool_calls),
        text: [message.content.as_str(), line.response.as_str()].concat(),
        finish: finish.map(str::to_owned),
        counts,
        is_last: line.done.0,
    })
}

/// The kind of a piece of text, for servers that leave thinking in it: `<think>…</think>` at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Bytes of thinking and of the answer, one of which is usually 0.
    Said { thought: usize, answer: usize },
    /// A tag or blanks around it, which are neither.
    Mark,
    /// Blanks, or what may become a tag: if the next that is decided is answer, this was, too.
    Undecided,
}

/// Tells thinking from answer while a text comes piece by piece.
#[derive(Debug, Default)]
pub struct ObservedText {
    splitter: ThoughtSplitter,
}

impl ObservedText {
    pub fn take(&mut self, piece: &str) -> TextKind {
        let mut said = Vec::new();
        self.splitter.push(piece, &mut said);
        let bytes = |wanted: fn(&ChatEvent) -> usize| said.iter().map(wanted).sum::<usize>();
        let thought =
            bytes(|event| if let ChatEvent::Reasoning(text) = event { text.len() } else { 0 });
        let answer = bytes(|event| if let ChatEvent::Text(text) = event { text.len() } else { 0 });
        match (thought, answer) {
            (0, 0) if self.splitter.is_undecided() => TextKind::Undecided,
            // Held back, because it may be the end's beginning.
            (0, 0) if self.splitter.is_thinking() => {
                TextKind::Said { thought: piece.len(), answer: 0 }
            }
            (0, 0) => TextKind::Mark,
            (thought, answer) => TextKind::Said { thought, answer },
        }
    }
}

fn failed(error: &Value) -> Observed {
    let said = error.as_str().or_else(|| error["message"].as_str());
    Observed::Failed { message: shortened(said.unwrap_or("the server sent no error message")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(thought: usize, text: &str, calls: usize) -> ObservedPart {
        let (text, content) = (text.to_owned(), text.len());
        ObservedPart { thought, content, calls, text, ..ObservedPart::default() }
    }

    #[test]
    fn thinking_in_the_text_is_told_from_the_answer() {
        let thought = |thought| TextKind::Said { thought, answer: 0 };
        let answer = |answer| TextKind::Said { thought: 0, answer };
        let (mark, undecided) = (TextKind::Mark, TextKind::Undecided);
        let rows: [(&[&str], &[TextKind]); 7] = [
            (
                &["<think>", "\n", "So", "\n", "</think>", "\n\n", "Hi"],
                &[mark, mark, thought(2), thought(1), mark, mark, answer(2)],
            ),
            (&["<th", "ink>So", "</th", "ink>"], &[undecided, thought(2), thought(4), mark]),
            (&["<think>", "\n\n", "</think>", "\n\n", "Hi"], &[mark, mark, mark, mark, answer(2)]),
            (&["<think>So.</think>Hi"], &[TextKind::Said { thought: 3, answer: 2 }]),
            (&[" ", "Hi", " <think>"], &[undecided, answer(3), answer(8)]),
            (&["<", "b>"], &[undecided, answer(3)]),
            (&["Hi"], &[answer(2)]),
        ];
        for (pieces, expected) in rows {
            let mut text = ObservedText::default();
            let got: Vec<TextKind> = pieces.iter().map(|piece| text.take(piece)).collect();
            assert_eq!(got, expected, "{pieces:?}");
        }
    }

    #[test]
    fn pieces_of_openai() {
        let rows = [
            (r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, said(0, "", 0)),
            (r#"{"choices":[{"delta":{"reasoning_content":"Hm"}}]}"#, said(2, "", 0)),
            (r#"{"choices":[{"delta":{"content":"<think>"}}]}"#, said(0, "<think>", 0)),
            (r#"{"choices":[{"text":"abc"}]}"#, said(0, "abc", 0)),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}"#,
                said(0, "", 3),
            ),
            (r#"{"choices":[],"usage":null}"#, said(0, "", 0)),
        ];
        for (piece, expected) in rows {
            assert_eq!(observe_openai(piece), Observed::Said(expected), "{piece}");
        }
        assert_eq!(observe_openai(" [DONE]"), Observed::Done);
        assert_eq!(observe_openai("<html>"), Observed::Malformed);
        let failed = Observed::Failed { message: "full".to_owned() };
        assert_eq!(observe_openai(r#"{"error":{"message":"full"}}"#), failed);
    }

    #[test]
    fn counts_are_what_was_said_of_them_and_no_more() {
        let piece = r#"{"choices":[{"delta":{},"finish_reason":"length"}],
            "usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":0}},
            "timings":{"prompt_ms":7.5}}"#;
        let counts = ObservedCounts {
            prompt: Some(9),
            cached: Some(0),
            completion: Some(5),
            reasoning: None,
            prefill_ms: Some(7.5),
        };
        let expected =
            ObservedPart { finish: Some("length".to_owned()), counts, ..ObservedPart::default() };
        assert_eq!(observe_openai(piece), Observed::Said(expected));
        let more =
            ObservedCounts { reasoning: Some(2), completion: Some(6), ..ObservedCounts::default() };
        let both = ObservedCounts { reasoning: Some(2), completion: Some(6), ..counts };
        assert_eq!(more.or(counts), both);
    }

    #[test]
    fn lines_of_ollama() {
        let thought =
            r#"{"message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}"#;
        assert_eq!(observe_ollama(thought), Observed::Said(said(2, "", 0)));
        let last = r#"{"response":"","done":true,"done_reason":"stop","prompt_eval_count":4,"prompt_eval_duration":2000000,"eval_count":3}"#;
        let counts = ObservedCounts {
            prompt: Some(4),
            completion: Some(3),
            prefill_ms: Some(2.0),
            ..ObservedCounts::default()
        };
        let expected = ObservedPart {
            finish: Some("stop".to_owned()),
            counts,
            is_last: true,
            ..ObservedPart::default()
        };
        assert_eq!(observe_ollama(last), Observed::Said(expected));
        let failed = Observed::Failed { message: "no such model".to_owned() };
        assert_eq!(observe_ollama(r#"{"error":"no such model"}"#), failed);
    }
}
