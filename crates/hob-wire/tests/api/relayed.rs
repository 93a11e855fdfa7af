//! Streams of a server that speaks OpenAI's protocol, byte for byte as a client of the same protocol gets them.
//! hob replaces names, numbers and what servers write in their own way. Texts and unknown fields of a chunk pass as they are.

use hob_core::Fault;
use hob_wire::{
    AnswerChunks, AnswerHead, CallShape, ChatAnswer, ChatChunks, CollectedAnswer, ErrorBody,
    ErrorKind, OpenAiReader, PieceError, PieceKind, Pieces, UpstreamReader, UsageChunk,
    chat_failed,
};
use proptest::prelude::*;

const ROLE: &str = r#"{"role":"assistant","content":""}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const DONE: &str = "data: [DONE]\n\n";

/// What a client gets of a body that comes in these packets.
fn relayed(packets: &[&str], usage: UsageChunk) -> String {
    let head = AnswerHead {
        id: "1".to_owned(),
        created_unix_s: 7,
        model: "as \"asked\"".to_owned(),
        fingerprint: "hob-test",
    };
    let mut pieces = Pieces::new(PieceKind::Event, 1 << 20);
    let mut reader = OpenAiReader::default();
    let mut chunks = ChatChunks::new(head, 1, CallShape::ToolCalls, usage);
    let (mut said, mut out) = (Vec::new(), String::new());
    let mut read = |piece: &str, out: &mut String| {
        let read = reader.read(piece, &mut said);
        said.drain(..).for_each(|event| *out += &chunks.event(0, event));
        read
    };
    for packet in packets {
        pieces.push(packet.as_bytes()).expect("short");
        while let Some(piece) = pieces.next_piece() {
            if let Err(misread) = read(&piece, &mut out) {
                return out + &failed(misread);
            }
            pieces.reuse(piece);
        }
    }
    if let Some(rest) = pieces.rest() {
        read(&rest, &mut out).expect("an answer");
    }
    match reader.end(&mut said) {
        Ok(()) => {
            said.drain(..).for_each(|event| out += &chunks.event(0, event));
            out + &chunks.end()
        }
        Err(fault) => out + &failed(PieceError::Failed(fault)),
    }
}

/// The last event of an answer that broke off, as the server writes it.
fn failed(misread: PieceError) -> String {
    let PieceError::Failed(fault) = misread else { unreachable!("every piece is JSON") };
    let (kind, message) = (ErrorKind::Upstream, fault.to_string());
    chat_failed(&ErrorBody { message, kind, param: None, code: None })
}

/// A chunk as clients get it, with what stands behind its delta.
fn chunk_with(delta: &str, behind: &str) -> String {
    let head = r#""id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"as \"asked\"","system_fingerprint":"hob-test""#;
    format!("data: {{{head},\"choices\":[{{\"index\":0,\"delta\":{delta},{behind}}}\n\n")
}

fn chunk(delta: &str) -> String {
    chunk_with(delta, r#""logprobs":null,"finish_reason":null}]"#)
}

/// The last chunk, with the field of [`piece`] that hob does not know.
fn stop() -> String {
    stop_with(r#","provider":"x""#)
}

fn stop_with(extra: &str) -> String {
    chunk_with("{}", &format!(r#""logprobs":null,"finish_reason":"stop"}}]{extra}"#))
}

/// A piece as a server with names and fields of its own writes it.
fn piece(delta: &str) -> String {
    format!(
        r#"{{"id":"up-1","object":"chat.completion.chunk","created":1,"model":"up/m","choices":[{{"index":0,"delta":{delta},"native_finish_reason":null,"finish_reason":null}}],"provider":"x"}}"#
    )
}

fn body(pieces: &[&str]) -> String {
    pieces.iter().map(|piece| format!("data: {piece}\n\n")).collect()
}

/// What a client gets of these deltas, before the end.
fn relayed_deltas(deltas: &[&str]) -> String {
    let pieces: Vec<String> = deltas.iter().map(|delta| piece(delta)).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).chain([STOP, "[DONE]"]).collect();
    let out = relayed(&[&body(&pieces)], UsageChunk::Unwanted);
    let end = stop() + DONE;
    out.strip_suffix(&end).unwrap_or_else(|| unreachable!("{out}")).to_owned()
}

#[test]
fn names_are_replaced_however_the_body_is_written_and_cut() {
    let [one, two, three] =
        ["Hel", "lo", "!"].map(|text| piece(&format!(r#"{{"content":"{text}"}}"#)));
    let (begin, end) = three.split_at(three.find(r#""choices""#).expect("choices"));
    for line in ["\n", "\r\n", "\r"] {
        let body = format!(
            ": still here{line}{line}event: message{line}data: {one}{line}{line}data:{two}{line}: ping{line}{line}\
             data: {begin}{line}data: {end}{line}{line}data: {STOP}{line}{line}data: [DONE]{line}{line}"
        );
        let expected =
            [ROLE, r#"{"content":"Hel"}"#, r#"{"content":"lo"}"#, r#"{"content":"!"}"#].map(chunk);
        let expected = expected.concat() + &stop() + DONE;
        for at in (0..=body.len()).step_by(7) {
            let (before, behind) = body.split_at(at);
            assert_eq!(relayed(&[before, behind], UsageChunk::Unwanted), expected, "{line:?} {at}");
        }
    }
}

#[test]
fn thinking_text_and_log_probabilities_pass() {
    let thought = r#"{"reasoning_content":"So…\n"}"#;
    let rows = [
        (r#"{"reasoning_content":"So…\n"}"#, [ROLE, thought].map(chunk).concat()),
        (r#"{"reasoning":"So…\n","content":""}"#, [ROLE, thought].map(chunk).concat()),
        (
            r#"{"content":"a \"b\"","annotations":[]}"#,
            [ROLE, r#"{"content":"a \"b\""}"#].map(chunk).concat(),
        ),
    ];
    for (delta, expected) in rows {
        assert_eq!(relayed_deltas(&[delta]), expected, "{delta}");
    }
    let both = [r#"{"reasoning_content":"a"}"#, r#"{"content":"b"}"#];
    let deltas = [both[0], both[1], both[0], both[1]];
    let expected = [ROLE].into_iter().chain(deltas).map(chunk).collect::<String>();
    assert_eq!(relayed_deltas(&deltas), expected, "alternately");

    let token = r#"{"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[]}"#;
    let with = format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":"Hi"}},"logprobs":{{"content":[{token}]}}}}]}}"#
    );
    let without = piece(r#"{"content":"!"}"#);
    let out = relayed(&[&body(&[&with, &without, STOP, "[DONE]"])], UsageChunk::Unwanted);
    let logprobs =
        format!(r#""logprobs":{{"content":[{token}],"refusal":null}},"finish_reason":null}}]"#);
    let expected = [
        chunk(ROLE),
        chunk_with(r#"{"content":"Hi"}"#, &logprobs),
        chunk(r#"{"content":"!"}"#),
        stop(),
        DONE.to_owned(),
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn the_usage_comes_where_it_was_asked_for() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"cost":0.1}}"#;
    let (first, second) = (piece(r#"{"content":"a"}"#), piece(r#"{"content":"b"}"#));
    let body = body(&[&first, &second, STOP, usage, "[DONE]"]);
    let null =
        |finish: &str| format!(r#""logprobs":null,"finish_reason":{finish}}}],"usage":null"#);
    let texts = [ROLE, r#"{"content":"a"}"#, r#"{"content":"b"}"#];
    let mut expected: String =
        texts.into_iter().map(|delta| chunk_with(delta, &null("null"))).collect();
    expected += &chunk_with("{}", &(null(r#""stop""#) + r#","provider":"x""#));
    let last = relayed(&[&body], UsageChunk::Wanted);
    let last = last.strip_prefix(&expected).expect("the chunks before the usage");
    assert!(
        last.contains(
            r#""choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7"#
        ),
        "{last}"
    );
    assert!(last.ends_with(DONE), "{last}");
    assert!(!relayed(&[&body], UsageChunk::Unwanted).contains("usage"));
}

#[test]
fn fields_that_hob_does_not_know_come_with_the_end() {
    let pieces = [
        r#"{"id":"up-1","created":1,"model":"up/m","system_fingerprint":"fp","choices":[],"filter":[],"service_tier":null,"obfuscation":"x","p":"y"}"#,
        r#"{"choices":[{"delta":{"content":"a"},"token_ids":[1]}],"provider":"x","citations":["1"]}"#,
        r#"{"choices":[{"delta":{"content":"b","annotations":[{"a":1}]},"token_ids":[2]}],"provider":"x","citations":["1", "2"]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":"stop","stop_reason":"\n","hob":{}}],"service_tier":"flex","citations":null,"__verbose":{"model":"/up/m"}}"#,
        "[DONE]",
    ];
    let of_choice = r#""stop_reason":"\n","#;
    let of_message = r#""annotations":[{"a":1}]"#;
    let extra = r#","filter":[],"provider":"x","citations":["1", "2"],"service_tier":"flex""#;
    let texts = [ROLE, r#"{"content":"a"}"#, r#"{"content":"b"}"#].map(chunk).concat();
    let out = relayed(&[&body(&pieces)], UsageChunk::Unwanted);
    let behind = format!(r#"{of_choice}"logprobs":null,"finish_reason":"stop"}}]{extra}"#);
    assert_eq!(out, texts + &chunk_with(&format!("{{{of_message}}}"), &behind) + DONE);

    let head = AnswerHead {
        id: "1".to_owned(),
        created_unix_s: 7,
        model: "m".to_owned(),
        fingerprint: "hob-test",
    };
    let mut whole = ChatAnswer::new(head, 1, CallShape::ToolCalls);
    let (mut reader, mut said) = (OpenAiReader::default(), Vec::new());
    pieces.iter().for_each(|piece| reader.read(piece, &mut said).expect("JSON"));
    said.into_iter().for_each(|event| whole.add(0, event));
    let json = whole.to_json();
    assert!(json.ends_with(&format!("{extra}}}")), "{json}");
    let message =
        format!(r#""content":"ab","refusal":null,{of_message}}},{of_choice}"logprobs":null"#);
    assert!(json.contains(&message), "{json}");
    let parsed: serde_json::Value = serde_json::from_str(&json).expect("an object");
    assert_eq!((&parsed["id"], &parsed["model"]), (&"chatcmpl-1".into(), &"m".into()));
}

#[test]
fn an_answer_that_breaks_off_ends_with_its_error() {
    let text = piece(r#"{"content":"Hel"}"#);
    let begun = [ROLE, r#"{"content":"Hel"}"#].map(chunk).concat();
    let error = r#"{"error":{"message":"out of memory","code":500}}"#;
    let reported = Fault::Reported { message: "out of memory".to_owned() };
    for (pieces, fault) in
        [(vec![&*text, error, STOP, "[DONE]"], reported), (vec![&*text], Fault::CutOff)]
    {
        let out = relayed(&[&body(&pieces)], UsageChunk::Unwanted);
        assert_eq!(out, begun.clone() + &failed(PieceError::Failed(fault)));
    }
}

#[test]
fn a_missing_end_mark_is_added_if_the_answer_is_whole() {
    let text = piece(r#"{"content":"Hi"}"#);
    let out = relayed(&[&body(&[&text, STOP])], UsageChunk::Unwanted);
    let begun = [ROLE, r#"{"content":"Hi"}"#].map(chunk).concat();
    assert_eq!(out, begun + &stop() + DONE);
}

proptest! {
    #[test]
    fn every_text_passes_as_it_is(
        texts in prop::collection::vec("\\PC{0,12}|[\\x00-\\x7f]{0,6}", 0..12),
        is_thinking: bool,
    ) {
        let field = if is_thinking { "reasoning_content" } else { "content" };
        // Blanks and tags count at the beginning of an answer only.
        let texts = ["x".to_owned()].into_iter().chain(texts).filter(|text| !text.is_empty());
        let delta = |text: String| {
            format!(r#"{{"{field}":{}}}"#, serde_json::to_string(&text).expect("JSON"))
        };
        let deltas: Vec<String> = texts.map(delta).collect();
        let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
        let expected: String = [ROLE].iter().chain(&deltas).map(|delta| chunk(delta)).collect();
        prop_assert_eq!(relayed_deltas(&deltas), expected);
    }
}
