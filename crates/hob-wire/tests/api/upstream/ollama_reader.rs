//! Ollama's lines, as its versions write them.
//! Versions differ in what they leave out; the events must not.

use hob_core::chat::{FinishReason, Timings, Usage};
use hob_core::{ChatEvent, Fault};
use hob_wire::{OllamaReader, PieceError, UsageSource};

use super::{Read, call, done, text, thought};
use crate::builders::logprob;

fn read(lines: &[&str]) -> Read {
    Read::whole(OllamaReader::default(), lines)
}

#[test]
fn a_chat_is_its_text_and_what_it_took() {
    let read = read(&[
        r#"{"model":"q","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":"Hel"},"done":false}"#,
        r#"{"model":"q","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":"lo"},"done":false}"#,
        r#"{"model":"q","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,
            "done_reason":"stop","total_duration":4500000,"load_duration":1500000,"prompt_eval_count":26,
            "prompt_eval_cached_count":20,"prompt_eval_duration":2000000,"eval_count":298,"eval_duration":750000}"#,
    ]);
    assert_eq!(read.events[..2], [text("Hel"), text("lo")]);
    let completion = read.done();
    let usage =
        Usage { prompt_tokens: 26, cached_tokens: 20, completion_tokens: 298, reasoning_tokens: 0 };
    let timings = Timings {
        load_ms: 1.5,
        queue_ms: 0.0,
        prompt_ms: 2.0,
        predicted_ms: 0.75,
        ..Timings::default()
    };
    assert_eq!((completion.usage, completion.timings), (usage, timings));
    assert_eq!(completion.finish, FinishReason::Stop);
    assert_eq!((read.usage, read.repairs), (UsageSource::Reported, Vec::new()));
}

#[test]
fn thinking_is_told_apart_under_its_name_or_in_tags() {
    let named = read(&[
        r#"{"message":{"content":"","thinking":"So"},"done":false}"#,
        r#"{"message":{"content":"","thinking":"."},"done":false}"#,
        r#"{"message":{"content":"Hi"},"done":true,"done_reason":"stop","eval_count":9}"#,
    ]);
    assert_eq!(named.events[..3], [thought("So"), thought("."), text("Hi")]);
    assert_eq!(named.done().usage.reasoning_tokens, 2);
    let tagged = read(&[
        r#"{"message":{"content":"<thi"},"done":false}"#,
        r#"{"message":{"content":"nk>\nSo.\n</think>\n\nHi"},"done":true,"done_reason":"stop"}"#,
    ]);
    assert_eq!((tagged.thought(), tagged.text()), ("So.".to_owned(), "Hi".to_owned()));
}

#[test]
fn a_continued_text_is_what_it_is() {
    let read = read(&[
        r#"{"response":"<think>","done":false}"#,
        r#"{"response":"x","thinking":"","done":false,"context":[1,2]}"#,
        r#"{"response":"","done":true,"done_reason":"length","prompt_eval_count":2,"eval_count":3}"#,
    ]);
    let length = done(FinishReason::Length, 2, 3);
    assert_eq!(read.events, [text("<think>"), text("x"), length]);
    let thinks = Read::whole(
        OllamaReader::default(),
        &[r#"{"response":"Hi","thinking":"So","done":true,"done_reason":"stop"}"#],
    );
    assert_eq!(thinks.events[..2], [thought("So"), text("Hi")]);
}

#[test]
fn calls_come_whole_with_arguments_as_objects() {
    let weather =
        call("weather", r#"{"city":"Rome","days":[1,2.5],"at":{"b":1,"a":null},"fast":true}"#);
    let both = r#"{"message":{"content":"","tool_calls":[
        {"function":{"name":"weather","arguments":{"city":"Rome","days":[1,2.5],"at":{"b":1,"a":null},"fast":true}}},
        {"function":{"name":"now","arguments":{}}}]},"done":false}"#;
    let end = r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#;
    let read = read(&[both, end]);
    assert_eq!(read.calls(), [weather, call("now", "{}")]);
    assert_eq!(read.finish(), FinishReason::ToolCalls);
}

#[test]
fn the_same_function_twice_is_two_calls() {
    for calls in [
        r#"{"function":{"index":0,"name":"now","arguments":{}}},{"function":{"index":0,"name":"now","arguments":{}}}"#,
        r#"{"id":"a","function":{"name":"now"}},{"id":"a","function":{"name":"now","arguments":null}}"#,
        r#"{"id":"","function":{"name":"now","arguments":"{}"}},{"id":"b","function":{"name":"now","arguments":{}}}"#,
    ] {
        let line = format!(r#"{{"message":{{"tool_calls":[{calls}]}},"done":true}}"#);
        assert_eq!(read(&[&line]).calls(), [call("now", "{}"), call("now", "{}")], "{calls}");
        let pieces: Vec<String> = calls
            .split_inclusive("}},")
            .map(|call| call.trim_end_matches(','))
            .map(|call| format!(r#"{{"message":{{"tool_calls":[{call}]}}}}"#))
            .chain([r#"{"done":true}"#.to_owned()])
            .collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(read(&pieces).calls(), [call("now", "{}"), call("now", "{}")], "{calls}");
    }
}

#[test]
fn likelihoods_of_the_text_are_kept_and_of_thinking_are_not() {
    let read = read(&[
        r#"{"message":{"thinking":"So"},"logprobs":[{"token":"So","logprob":-1}]}"#,
        r#"{"message":{"content":"Hi"},"logprobs":[{"token":"Hi","logprob":-0.5,"bytes":[72,105],
            "top_logprobs":[{"token":"Ho","logprob":-2}]}]}"#,
        r#"{"message":{"content":""},"done":true,"done_reason":"stop","eval_count":2}"#,
    ]);
    let hi = logprob("Hi", -0.5, &[("Ho", -2.0)]);
    let expected = [thought("So"), ChatEvent::Logprobs(vec![hi]), text("Hi")];
    assert_eq!(read.events[..3], expected);
}

#[test]
fn what_is_left_out_is_put_right() {
    for (line, repairs) in [
        (r#"{"message":{"content":"Hi"},"done":true}"#, vec!["finish_reason"]),
        (r#"{"message":{"content":"Hi"},"done":true,"done_reason":"stop"}"#, Vec::new()),
    ] {
        let read = read(&[line, "what follows is ignored"]);
        assert_eq!(read.events, [text("Hi"), done(FinishReason::Stop, 0, 1)]);
        assert_eq!((read.repairs, read.usage), (repairs, UsageSource::Counted));
    }
    let loaded = read(&[r#"{"response":"","done":true,"done_reason":"load"}"#]);
    assert_eq!(loaded.events, [done(FinishReason::Stop, 0, 0)], "an answer that says nothing");
}

#[test]
fn nulls_and_strange_types_are_nothing() {
    let read = read(&[
        r#"{"message":null,"response":null,"thinking":null,"error":null,"logprobs":null,"done":null}"#,
        r#"{"message":{"content":null,"thinking":7,"tool_calls":null,"images":null},"done":"no"}"#,
        r#"{"message":{"tool_calls":[null,{"function":null},{"function":[]}]},"error":"","done":false}"#,
        r#"{"message":{"content":"Hi"},"done":true,"done_reason":null,"eval_count":-1,"eval_duration":"x"}"#,
    ]);
    assert_eq!(read.events, [text("Hi"), done(FinishReason::Stop, 0, 1)]);
}

#[test]
fn a_failure_is_the_answer_s_end() {
    let message = || "model runner has unexpectedly stopped".to_owned();
    let too_long = "the input length exceeds the context length";
    for (line, fault) in [
        (
            r#"{"error":"model runner has unexpectedly stopped"}"#.to_owned(),
            Fault::Reported { message: message() },
        ),
        (
            r#"{"error":"model runner has unexpectedly stopped","status":429}"#.to_owned(),
            Fault::Limited { message: message(), retry_after: None },
        ),
        (
            format!(r#"{{"error":"{too_long}"}}"#),
            Fault::TooLong { message: too_long.to_owned(), needed: None, available: None },
        ),
        (
            r#"{"message":{"content":""},"done":true,"done_reason":"error"}"#.to_owned(),
            Fault::Reported { message: "the answer ended with 'error'".to_owned() },
        ),
    ] {
        let begun = r#"{"message":{"content":"Hi"}}"#;
        let read = Read::of(OllamaReader::default(), &[begun, &line]);
        assert_eq!(read.misread, [PieceError::Failed(fault)], "{line}");
        assert_eq!((read.events, read.end), (vec![text("Hi")], Err(Fault::CutOff)));
    }
}

#[test]
fn a_broken_line_is_passed_over_and_a_missing_end_is_not() {
    let lines =
        [r#"{"message":{"content":"H"#, "<html>", r#"{"message":{"content":"Hi"},"done":true}"#];
    let read = Read::of(OllamaReader::default(), &lines);
    assert_eq!(read.misread, [PieceError::Malformed, PieceError::Malformed]);
    assert_eq!((read.end.clone(), read.text()), (Ok(()), "Hi".to_owned()));
    let cut = Read::of(OllamaReader::default(), &lines[..2]);
    assert_eq!(cut.end, Err(Fault::CutOff));
}
