//! Answers of OpenAI's protocol as its many servers write them, and the events that each gives.
//! Each server forgets or repeats something else; the events must not show it.

use hob_core::chat::{FinishReason, Timings, Usage};
use hob_core::{ChatEvent, Fault};
use hob_wire::{OpenAiReader, PieceError, UsageSource};

use super::{Read, call, done, text, thought};
use crate::builders::logprob;

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

fn read(pieces: &[&str]) -> Read {
    Read::whole(OpenAiReader::default(), pieces)
}

/// What a delta says before a proper end.
fn said(delta: &str) -> Vec<ChatEvent> {
    let piece = format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#);
    let mut events = read(&[&piece, STOP, "[DONE]"]).events;
    events.pop();
    events
}

#[test]
fn a_streamed_answer_is_read_as_llama_server_sends_it() {
    let read = read(&[
        r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,
            "id":"chatcmpl-R","model":"m","system_fingerprint":"b11434","object":"chat.completion.chunk"}"#,
        r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hello"}}],"created":1,"id":"chatcmpl-R",
            "model":"m","object":"chat.completion.chunk"}"#,
        r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"!\n"}}]}"#,
        r#"{"choices":[{"finish_reason":"length","index":0,"delta":{}}]}"#,
        r#"{"choices":[],"usage":{"completion_tokens":4,"prompt_tokens":31,"total_tokens":35,
            "prompt_tokens_details":{"cached_tokens":7}},"timings":{"cache_n":7,"prompt_n":24,"prompt_ms":104.5,
            "predicted_n":4,"predicted_ms":20.25,"predicted_per_second":147.0,"draft_n":6,"draft_n_accepted":3}}"#,
        "[DONE]",
    ]);
    assert_eq!(read.events[..2], [text("Hello"), text("!\n")]);
    let completion = read.done();
    let usage =
        Usage { prompt_tokens: 31, cached_tokens: 7, completion_tokens: 4, reasoning_tokens: 0 };
    let timings = Timings {
        prompt_ms: 104.5,
        predicted_ms: 20.25,
        draft_tokens: 6,
        accepted_tokens: 3,
        ..Timings::default()
    };
    assert_eq!((completion.usage, completion.timings), (usage, timings));
    assert_eq!(completion.finish, FinishReason::Length);
    assert_eq!((read.usage, read.repairs), (UsageSource::Reported, Vec::new()));
}

#[test]
fn pieces_that_differ_in_their_text_only_are_read_like_the_first() {
    let texts = ["a", " wörd", "\"", "\\n", "\n", "", "}],\"x\":[", "\u{1f600}", "\u{7f}", "b"];
    for is_thought in [false, true] {
        let field = if is_thought { "reasoning_content" } else { "content" };
        let event = if is_thought { thought } else { text };
        let pieces = texts.map(|text| {
            let text = serde_json::to_string(text).expect("JSON");
            format!(
                r#"{{"id":"m","choices":[{{"delta":{{"{field}":{text}}},"finish_reason":null}}]}}"#
            )
        });
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).chain([STOP, "[DONE]"]).collect();
        let read = read(&pieces);
        let expected: Vec<ChatEvent> =
            texts.into_iter().filter(|text| !text.is_empty()).map(event).collect();
        assert_eq!(read.events[..read.events.len() - 1], expected, "{field}");
        assert_eq!(read.done().usage.completion_tokens, expected.len() as u32, "counted here");
    }
}

#[test]
fn thinking_is_read_under_each_of_its_names() {
    for delta in [
        r#"{"reasoning_content":"So."}"#,
        r#"{"reasoning":"So."}"#,
        r#"{"thinking":"So."}"#,
        r#"{"content":"","reasoning_content":"So."}"#,
        r#"{"reasoning_content":null,"reasoning":"So.","content":null}"#,
        r#"{"reasoning_content":"So.","reasoning":"So."}"#,
        r#"{"reasoning":"So.","reasoning_details":[{"type":"reasoning.text","text":"So."}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"S"},{"type":"reasoning.summary","summary":"o."},
            {"type":"reasoning.encrypted","data":"x"}]}"#,
        r#"{"reasoning":[{"text":"So."}]}"#,
        r#"{"content":"<think>So.</think>"}"#,
        // Mistral.
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"So"},{"type":"text","text":"."}]}]}"#,
    ] {
        assert_eq!(said(delta), [thought("So.")], "{delta}");
    }
    for delta in [
        r#"{"content":"Hi","reasoning_content":"So."}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"So."}]},{"type":"text","text":"Hi"}]}"#,
    ] {
        assert_eq!(said(delta), [thought("So."), text("Hi")], "{delta}");
    }
}

#[test]
fn tags_are_found_across_pieces_and_half_a_tag_is_text() {
    let cut = [
        r#"{"choices":[{"delta":{"content":"<thi"}}]}"#,
        r#"{"choices":[{"delta":{"content":"nk>So.</think>Hi <think>"}}]}"#,
    ];
    let whole = read(&[cut[0], cut[1], STOP, "[DONE]"]);
    assert_eq!((whole.thought(), whole.text()), ("So.".to_owned(), "Hi <think>".to_owned()));
    assert_eq!(read(&[cut[0], STOP]).text(), "<thi");
}

#[test]
fn text_comes_as_one_or_in_parts() {
    for delta in [
        r#"{"content":"Hi"}"#,
        r#"{"content":[{"type":"text","text":"H"},{"type":"text","text":"i"}]}"#,
        r#"{"content":["H","i",7]}"#,
        r#"{"content":null,"refusal":"Hi"}"#,
    ] {
        let read = format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#);
        assert_eq!(super::Read::whole(OpenAiReader::default(), &[&read, STOP]).text(), "Hi");
    }
}

#[test]
fn calls_are_read_in_every_form() {
    let expected = [call("weather", r#"{"city":"Rome"}"#), call("now", "{}")];
    let rows: [&[&str]; 3] = [
        // OpenAI.
        &[
            r#"{"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"city\""}}"#,
            r#"{"index":0,"function":{"arguments":":\"Rome\"}"}}"#,
            r#"{"index":1,"id":"b","type":"function","function":{"name":"now","arguments":"{}"}}"#,
        ],
        // Counted from 1, with ids that are empty later on.
        &[
            r#"{"index":1,"id":"a","function":{"name":"weather","arguments":null}}"#,
            r#"{"index":1,"id":"","function":{"name":null,"arguments":"{\"city\":\"Rome\"}"}}"#,
            r#"{"index":2,"id":"b","function":{"name":"now","arguments":""}}"#,
        ],
        // Neither number nor id.
        &[
            r#"{"function":{"name":"weather","arguments":{"city":"Rome"}}}"#,
            r#"{"function":{"name":"now","arguments":{}}}"#,
        ],
    ];
    for rows in rows {
        let piece = |row: &&str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{row}]}}}}]}}"#);
        let pieces: Vec<String> = rows.iter().map(piece).collect();
        let ends = [r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#, STOP];
        for end in ends {
            let mut pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            pieces.extend([end, "[DONE]"]);
            let read = read(&pieces);
            assert_eq!(read.calls(), expected, "{rows:?}");
            assert_eq!(read.finish(), FinishReason::ToolCalls);
        }
    }
}

#[test]
fn an_older_call_is_a_call() {
    let read = read(&[
        r#"{"choices":[{"delta":{"function_call":{"name":"now","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{}"}}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
        "[DONE]",
    ]);
    assert_eq!((read.calls(), read.finish()), (vec![call("now", "{}")], FinishReason::ToolCalls));
}

#[test]
fn tokens_are_counted_where_the_server_says_no_number() {
    let thinks = r#"{"choices":[{"delta":{"reasoning":"So"}}]}"#;
    let speaks = r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":null}"#;
    let counted = read(&[thinks, speaks, speaks, STOP, "[DONE]"]);
    let usage = Usage { completion_tokens: 3, reasoning_tokens: 1, ..Usage::default() };
    assert_eq!((counted.done().usage, counted.usage), (usage, UsageSource::Counted));
    let details = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9.0,
        "completion_tokens_details":{"reasoning_tokens":4},"prompt_tokens_details":null}}"#;
    let running = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#;
    let reported = read(&[running, thinks, speaks, STOP, details, "[DONE]"]);
    let usage =
        Usage { prompt_tokens: 5, cached_tokens: 0, completion_tokens: 9, reasoning_tokens: 4 };
    assert_eq!((reported.done().usage, reported.usage), (usage, UsageSource::Reported));
    let absurd = r#"{"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":-1}}"#;
    let read = read(&[speaks, STOP, absurd, "[DONE]"]);
    assert_eq!(read.done().usage, Usage { completion_tokens: 1, ..Usage::default() });
}

#[test]
fn a_missing_end_is_said_for_the_server() {
    let hi = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let calls = r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"now"}}]}}]}"#;
    for (pieces, finish, repairs) in [
        (&[hi, "[DONE]"][..], FinishReason::Stop, &["finish_reason"][..]),
        (&[calls, "[DONE]"], FinishReason::ToolCalls, &["finish_reason"]),
        (&[hi, STOP], FinishReason::Stop, &["done"]),
        (&[calls, STOP], FinishReason::ToolCalls, &["done"]),
        (&[hi, STOP, " [DONE] ", hi, "[DONE]"], FinishReason::Stop, &[]),
    ] {
        let read = read(pieces);
        assert_eq!((read.finish(), read.repairs.as_slice()), (finish, repairs), "{pieces:?}");
        let ends = read.events.iter().filter(|event| matches!(event, ChatEvent::Done(_)));
        assert_eq!(ends.count(), 1);
    }
    for pieces in [&[hi][..], &[calls], &[]] {
        let read = Read::of(OpenAiReader::default(), pieces);
        assert_eq!(read.end, Err(Fault::CutOff), "{pieces:?}");
        assert!(!read.events.iter().any(|event| matches!(event, ChatEvent::Done(_))));
    }
}

#[test]
fn every_way_to_say_that_it_failed_is_heard() {
    let message = || "boom".to_owned();
    let reported = Fault::Reported { message: message() };
    let limited = Fault::Limited { message: message(), retry_after: None };
    for (frame, fault) in [
        // OpenAI, LiteLLM, SGLang; then OpenRouter with a number, before and within an answer.
        (
            r#"{"error":{"message":"boom","type":"server_error","param":null,"code":null}}"#,
            &reported,
        ),
        (r#"{"error":"boom"}"#, &reported),
        (r#"{"error":{"code":502,"message":"boom"}}"#, &reported),
        (r#"{"error":{"code":429,"message":"boom"}}"#, &limited),
        (
            r#"{"id":"g","object":"chat.completion.chunk","error":{"code":502,"message":"boom"},
                "choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            &reported,
        ),
        (r#"{"choices":[{"index":0,"error":{"code":429,"message":"boom"}}]}"#, &limited),
        // vLLM, as it was.
        (
            r#"{"object":"error","message":"boom","type":"BadRequestError","param":null,"code":400}"#,
            &reported,
        ),
    ] {
        let hi = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
        let read = Read::of(OpenAiReader::default(), &[hi, frame, "[DONE]"]);
        assert_eq!(read.misread, [PieceError::Failed(fault.clone())], "{frame}");
        assert_eq!((read.events, read.end), (vec![text("Hi")], Err(Fault::CutOff)));
    }
    let long = r#"{"object":"error","message":"This model's maximum context length is 8 tokens."}"#;
    let read = Read::of(OpenAiReader::default(), &[long]);
    assert!(matches!(&read.misread[..], [PieceError::Failed(Fault::TooLong { .. })]), "{read:?}");
    let aborted = r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#;
    let read = Read::of(OpenAiReader::default(), &[aborted]);
    let message = "the answer ended with 'abort'".to_owned();
    assert_eq!(read.misread, [PieceError::Failed(Fault::Reported { message })]);
}

#[test]
fn a_broken_piece_is_passed_over() {
    let hi = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let broken = [r#"{"choices":[{"delta":{"content":"H"#, "<html>", "", "7", "{\"a\":}"];
    let pieces: Vec<&str> = broken.into_iter().chain([hi, STOP, "[DONE]"]).collect();
    let read = Read::of(OpenAiReader::default(), &pieces);
    assert_eq!(read.misread, vec![PieceError::Malformed; broken.len()]);
    assert_eq!((read.text(), read.end), ("Hi".to_owned(), Ok(())));
}

#[test]
fn an_answer_that_is_not_streamed_is_read_too() {
    let read = read(&[
        r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,
        "message":{"role":"assistant","content":"Hi","refusal":null,"reasoning_content":"So.","annotations":[],
            "tool_calls":[{"id":"a","type":"function","function":{"name":"now","arguments":"{}"}},
                {"id":"b","type":"function","function":{"name":"now","arguments":"{}"}}]},
        "logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":9}}"#,
    ]);
    assert_eq!(read.events[..2], [thought("So."), text("Hi")]);
    assert_eq!(read.calls(), [call("now", "{}"), call("now", "{}")]);
    assert_eq!(read.done().usage.total_tokens(), 14);
    assert_eq!(read.repairs, ["done"]);
    let second = Read::whole(
        OpenAiReader::default(),
        &[
            r#"{"choices":[{"message":{"content":"one"},"finish_reason":"stop"},{"message":{"content":"two"}}]}"#,
        ],
    );
    assert_eq!(second.text(), "one", "one answer was asked for");
}

#[test]
fn completions_are_texts_as_they_are() {
    let read = read(&[
        r#"{"object":"text_completion","choices":[{"index":0,"text":"<think>","logprobs":null,"finish_reason":null}]}"#,
        r#"{"object":"text_completion","choices":[{"index":0,"text":" x","finish_reason":"length"}],
            "usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        "[DONE]",
    ]);
    assert_eq!(read.events, [text("<think>"), text(" x"), done(FinishReason::Length, 1, 2)]);
}

#[test]
fn likelihoods_come_before_their_text() {
    let hi = logprob("Hi", -0.5, &[("Ho", -2.0)]);
    for choice in [
        r#"{"delta":{"content":"Hi"},"logprobs":{"content":[{"id":19556,"token":"Hi","bytes":[72,105],"logprob":-0.5,
            "top_logprobs":[{"id":1,"token":"Ho","bytes":[72,111],"logprob":-2}]}],"refusal":null}}"#,
        r#"{"text":"Hi","logprobs":{"tokens":["Hi"],"token_logprobs":[-0.5],"top_logprobs":[{"Ho":-2}],"text_offset":[0]}}"#,
    ] {
        let piece = format!(r#"{{"choices":[{choice}]}}"#);
        let read = read(&[&piece, STOP, "[DONE]"]);
        assert_eq!(read.events[..2], [ChatEvent::Logprobs(vec![hi.clone()]), text("Hi")]);
    }
}

#[test]
fn nulls_and_strange_types_are_nothing() {
    let hi = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let mut pieces = vec![
        "{}",
        r#"{"choices":null,"usage":null,"timings":null,"error":null,"object":null,"message":null}"#,
        r#"{"choices":{},"usage":[],"timings":"x","error":"","object":7,"message":{"a":1}}"#,
        r#"{"choices":[null]}"#,
        r#"{"choices":[{"delta":null,"message":null,"text":null,"finish_reason":null,"logprobs":null,"error":{}}]}"#,
        r#"{"choices":[{"delta":"x","finish_reason":"","logprobs":{"content":null},"text":""}]}"#,
        r#"{"choices":[{"delta":{"role":null,"content":null,"reasoning_content":null,"reasoning":null,
            "reasoning_details":null,"refusal":null,"tool_calls":null,"function_call":null,"audio":null}}]}"#,
        r#"{"choices":[{"delta":{"content":7,"reasoning":false,"reasoning_details":{"text":"x"},"tool_calls":{}}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[null,7,{},{"index":0,"id":"","function":{"name":null}}]}}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":"many","completion_tokens_details":7}}"#,
    ];
    pieces.extend([hi, STOP, "[DONE]"]);
    assert_eq!(read(&pieces).events, [text("Hi"), done(FinishReason::Stop, 0, 1)]);
}
