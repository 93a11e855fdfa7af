//! Recordings with their chunks, and each way to fail with its fault.
//! Each piece is one read, so a chunk's time shows its piece.

use super::*;
use crate::drive::Recording;

/// One read for each piece, 10 ms apart; the request was sent after 5 ms.
fn read(pieces: &[&str], end: End, protocol: Protocol) -> Timeline {
    let mut recording = Recording::default();
    for (number, piece) in (1..).zip(pieces) {
        recording.push(Duration::from_millis(5 + 10 * number), piece.as_bytes());
    }
    let (sched, sent) = (Duration::from_millis(4), Duration::from_millis(5));
    timeline(&Exchange { job: 0, sched, connect: None, sent, recording, end }, protocol)
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunked(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn event(inner: &str) -> String {
    chunked(&format!("data: {{\"choices\":[{{{inner}}}]}}\n\n"))
}

#[test]
fn a_chunk_has_the_time_of_the_read_with_its_last_byte() {
    let two = event(r#""delta":{"content":"b"}"#) + &event(r#""delta":{"content":"c"}"#);
    let cut = event(r#""delta":{"content":"de"}"#);
    let (before, after) = cut.split_at(20);
    let end =
        event(r#""delta":{},"finish_reason":"stop""#) + &chunked("data: [DONE]\n\n") + "0\r\n\r\n";
    let thought = event(r#""delta":{"reasoning_content":"a"}"#);
    let role = format!("{HEAD}{}", event(r#""delta":{"role":"assistant","content":""}"#));
    let got = read(&[&role, &thought, &two, before, after, &end], End::Whole, Protocol::OpenAi);
    let chunk = |ms, kind, bytes, is_coalesced| Chunk {
        at: Duration::from_millis(ms),
        kind,
        bytes,
        is_coalesced,
    };
    let expected = [
        chunk(20, ChunkKind::Thought, 1, false),
        chunk(30, ChunkKind::Content, 1, false),
        chunk(30, ChunkKind::Content, 1, true),
        chunk(50, ChunkKind::Content, 2, false),
    ];
    assert_eq!(got.chunks, expected);
    assert_eq!((got.head, got.fault), (Some(Duration::from_millis(10)), None));
    assert_eq!((got.finish.as_deref(), got.dispatch), (Some("stop"), Duration::from_millis(1)));
}

#[test]
fn thinking_tags_in_the_text_are_not_part_of_the_answer() {
    let kinds = |texts: &[&str]| {
        let events = texts.iter().map(|text| event(&format!(r#""delta":{{"content":"{text}"}}"#)));
        let mut pieces: Vec<String> = [HEAD.to_owned()].into_iter().chain(events).collect();
        pieces.push(chunked("data: [DONE]\n\n") + "0\r\n\r\n");
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let got = read(&pieces, End::Whole, Protocol::OpenAi);
        assert_eq!(got.fault, None, "{texts:?}");
        got.chunks.iter().map(|chunk| chunk.kind).collect::<Vec<_>>()
    };
    let (thought, content, mark) = (ChunkKind::Thought, ChunkKind::Content, ChunkKind::Mark);
    let rows: [(&[&str], &[ChunkKind]); 6] = [
        (&["<think>", "So", "</think>", "Hi", "!"], &[mark, thought, mark, content, content]),
        (&["\\n", "<thi", "nk>So", ".</think>Hi"], &[mark, mark, thought, thought, content]),
        (&["<think>", "</think>", "Hi"], &[mark, mark, content]),
        (&[" ", "Hi"], &[content, content]),
        (&["\\n", "<"], &[content, content]),
        (&["Say <think>", "x</think>"], &[content, content]),
    ];
    for (texts, expected) in rows {
        assert_eq!(kinds(texts), expected, "{texts:?}");
    }
}

#[test]
fn lines_are_parsed_like_events() {
    let lines = [
        format!("{HEAD}{}", chunked("{\"message\":{\"content\":\"a\"},\"done\":false}\n")),
        chunked("{\"done\":true,\"done_reason\":\"length\",\"eval_count\":1}\n") + "0\r\n\r\n",
    ];
    let got = read(&[&lines[0], &lines[1]], End::Whole, Protocol::Ollama);
    assert_eq!((got.chunks.len(), got.counts.completion, got.fault), (1, Some(1), None));
}

#[test]
fn each_failure_has_its_own_fault() {
    let token = event(r#""delta":{"content":"a"}"#);
    let cut = format!("{HEAD}{token}");
    let unended = format!("{cut}0\r\n\r\n");
    let failed =
        format!("{cut}{}0\r\n\r\n", chunked("data: {\"error\":{\"message\":\"oom\"}}\n\n"));
    let empty = format!("{HEAD}{}0\r\n\r\n", chunked("data: [DONE]\n\n"));
    let html = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>";
    let broken = format!("{HEAD}{}0\r\n\r\n", chunked("data: {\"cho\n\n"));
    let busy =
        "HTTP/1.1 429 Too Many\r\ncontent-length: 28\r\n\r\n{\"error\":{\"message\":\"busy\"}}";
    let unreachable = End::Unreachable { cause: "refused".to_owned() };
    let refused = RequestFault::Refused { status: 429, message: "busy".to_owned() };
    let rows: [(&str, End, RequestFault); 10] = [
        ("", unreachable, RequestFault::Unreachable { cause: "refused".to_owned() }),
        (&cut, End::CutOff, RequestFault::CutOff { chunks: 1 }),
        (&cut, End::Silent, RequestFault::Silent { chunks: 1 }),
        (&cut, End::TooSlow, RequestFault::TooSlow { chunks: 1 }),
        (&unended, End::Whole, RequestFault::CutOff { chunks: 1 }),
        (&failed, End::Whole, RequestFault::Failed { message: "oom".to_owned() }),
        (&empty, End::Whole, RequestFault::Empty),
        (html, End::Whole, RequestFault::Garbage),
        (&broken, End::Whole, RequestFault::Garbage),
        (busy, End::Whole, refused),
    ];
    for (bytes, end, expected) in rows {
        assert_eq!(read(&[bytes], end, Protocol::OpenAi).fault, Some(expected), "{bytes}");
    }
}
