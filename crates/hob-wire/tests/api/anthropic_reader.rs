//! Reads recorded and broken Anthropic streams, and checks the events for the client.

use hob_core::Fault;
use hob_core::chat::{ChatEvent, Completion, FinishReason, Timings, Usage};
use hob_wire::{
    AnswerRepairs, AnthropicReader, PieceError, PieceKind, Pieces, UpstreamReader, UsageSource,
};

use crate::{arguments, call, text, thought};

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":565,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":100},"output_tokens":7,"service_tier":"standard"}}}"#;

const HI: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;

const STOP: &str = r#"{"type":"message_stop"}"#;

fn ended(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":48}}}}"#
    )
}

/// The events of an answer, and its repairs or its error.
fn read(pieces: &[&str]) -> (Vec<ChatEvent>, Result<AnswerRepairs, PieceError>) {
    let (mut reader, mut events) = (AnthropicReader::default(), Vec::new());
    let outcome = pieces
        .iter()
        .try_for_each(|piece| reader.read(piece, &mut events))
        .and_then(|()| reader.end(&mut events).map_err(PieceError::Failed))
        .map(|()| reader.repairs());
    (events, outcome)
}

fn done(finish: FinishReason, usage: Usage) -> ChatEvent {
    ChatEvent::Done(Completion { finish, usage, timings: Timings::default() })
}

fn counted(prompt_tokens: u32, cached_tokens: u32, completion_tokens: u32) -> Usage {
    Usage { prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens: 0 }
}

fn repairs(repairs: &[&'static str], usage: UsageSource) -> Result<AnswerRepairs, PieceError> {
    Ok(AnswerRepairs { repairs: repairs.to_vec(), usage })
}

/// Thinking, text, two calls together, the second without arguments, and a tool that Anthropic runs itself.
const RECORDED: &str = r#"event: message_start
data: {"type":"message_start","message":{"model":"claude-sonnet-5","id":"msg_01","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{"input_tokens":43,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2,"service_tier":"standard","inference_geo":"global"}}  }

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two \"things\","}          }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" then."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EsECCokBCBAYAipA9i3H"}       }

event: content_block_stop
data: {"type":"content_block_stop","index":0        }

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me\nlook"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"char_location"}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":" 世."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Os"}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"lo\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: content_block_start
data: {"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_2","name":"clock","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_stop
data: {"type":"content_block_stop","index":5}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null},"usage":{"input_tokens":61,"cache_read_input_tokens":20,"output_tokens":373,"output_tokens_details":{"thinking_tokens":62}}    }

event: message_stop
data: {"type":"message_stop"               }

"#;

#[test]
fn a_recorded_stream_becomes_chat_events() {
    let mut pieces = Pieces::new(PieceKind::Event, 1 << 20);
    pieces.push(RECORDED.as_bytes()).expect("short");
    let pieces: Vec<String> = std::iter::from_fn(|| pieces.next_piece()).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let usage = Usage {
        prompt_tokens: 81,
        cached_tokens: 20,
        completion_tokens: 373,
        reasoning_tokens: 62,
    };
    let expected = vec![
        thought("Two \"things\","),
        thought(" then."),
        text("Let me\nlook"),
        text(" 世."),
        call(0, "toolu_1", "weather"),
        arguments(0, "{\"city\": \"Os"),
        arguments(0, "lo\"}"),
        call(1, "toolu_2", "clock"),
        arguments(1, "{}"),
        done(FinishReason::ToolCalls, usage),
    ];
    assert_eq!(read(&pieces), (expected, repairs(&[], UsageSource::Reported)));
}

#[test]
fn a_tool_call_is_emitted_when_its_block_ends() {
    let (mut reader, mut events) = (AnthropicReader::default(), Vec::new());
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":1}}}"#;
    reader.read(start, &mut events).expect("well-formed");
    assert_eq!(events, [], "its arguments may still come piece by piece");
    reader.read(r#"{"type":"content_block_stop","index":0}"#, &mut events).expect("well-formed");
    assert_eq!(events, [call(0, "a", "f"), arguments(0, "{\"x\":1}")]);
}

#[test]
fn a_block_may_start_with_content_and_lack_a_stop_event() {
    let pieces = [
        r#"{"type":"content_block_start","content_block":{"type":"thinking","thinking":"Hm"}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"f","input":null}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"text","text":"Hi"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        &ended("end_turn"),
    ];
    let usage = Usage { completion_tokens: 48, reasoning_tokens: 1, ..Usage::default() };
    let expected = vec![
        thought("Hm"),
        call(0, "a", "f"),
        arguments(0, "{}"),
        text("Hi"),
        done(FinishReason::ToolCalls, usage),
    ];
    assert_eq!(read(&pieces), (expected, repairs(&["done"], UsageSource::Reported)));
}

#[test]
fn stop_reasons_map_to_finish_reasons() {
    for (reason, finish) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("pause_turn", FinishReason::Stop),
        ("a_new_one", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("tool_use", FinishReason::ToolCalls),
        ("refusal", FinishReason::ContentFilter),
    ] {
        let (events, outcome) = read(&[START, HI, &ended(reason), STOP, HI]);
        let expected = [text("Hi"), done(finish, counted(2665, 2000, 48))];
        assert_eq!(events, expected, "{reason}, and nothing follows");
        assert_eq!(outcome, repairs(&[], UsageSource::Reported));
    }
}

#[test]
fn a_stream_without_an_end_event_is_cut_off() {
    let cut = |pieces: &[&str]| read(pieces).1;
    for pieces in [&[][..], &[START], &[START, HI]] {
        assert_eq!(cut(pieces), Err(PieceError::Failed(Fault::CutOff)));
    }
    let no_reason = r#"{"type":"message_delta","delta":{"stop_reason":null}}"#;
    assert_eq!(cut(&[START, HI, no_reason]), Err(PieceError::Failed(Fault::CutOff)));
    assert_eq!(cut(&[START, HI, &ended("end_turn")]), repairs(&["done"], UsageSource::Reported));
    assert_eq!(cut(&[START, HI, STOP]), repairs(&["finish_reason"], UsageSource::Counted));
}

#[test]
fn tokens_are_counted_here_when_the_server_does_not_say() {
    let thought =
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"Hm"}}"#;
    let reason = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}"#;
    let (events, outcome) = read(&[START, thought, HI, HI, reason, STOP]);
    let usage = Usage { reasoning_tokens: 1, ..counted(2665, 2000, 3) };
    assert_eq!(events.last(), Some(&done(FinishReason::Stop, usage)));
    assert_eq!(outcome, repairs(&[], UsageSource::Counted));
    let few = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#;
    let (events, _) = read(&[START, thought, thought, few, STOP]);
    let usage = Usage { reasoning_tokens: 1, ..counted(2665, 2000, 1) };
    let expected = done(FinishReason::Stop, usage);
    assert_eq!(events.last(), Some(&expected), "thinking is part of the answer");
}

#[test]
fn a_field_of_another_type_counts_as_absent() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":"many","output_tokens":null}}}"#;
    let odd = r#"{"type":"content_block_delta","index":0,"delta":"Ho"}"#;
    let (events, outcome) = read(&[start, odd, HI, &ended("end_turn"), STOP]);
    assert_eq!(events, [text("Hi"), done(FinishReason::Stop, counted(0, 0, 48))]);
    assert_eq!(outcome, repairs(&[], UsageSource::Reported));
}

#[test]
fn error_events_become_faults() {
    let message = || "no".to_owned();
    for (kind, fault) in [
        ("overloaded_error", Fault::Overloaded { message: message(), retry_after: None }),
        ("rate_limit_error", Fault::Limited { message: message(), retry_after: None }),
        ("api_error", Fault::Reported { message: message() }),
        ("a_new_one", Fault::Reported { message: message() }),
    ] {
        let error = format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}},"request_id":"r"}}"#
        );
        let (events, outcome) = read(&[START, HI, &error]);
        assert_eq!((events, outcome), (vec![text("Hi")], Err(PieceError::Failed(fault))), "{kind}");
    }
    let long = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 5 maximum"}}"#;
    let outcome = read(&[long]).1;
    assert!(matches!(outcome, Err(PieceError::Failed(Fault::TooLong { .. }))), "{outcome:?}");
    let message = "the server sent no error message".to_owned();
    assert_eq!(
        read(&[r#"{"type":"error"}"#]).1,
        Err(PieceError::Failed(Fault::Reported { message }))
    );
}

#[test]
fn unknown_json_is_malformed_and_the_reader_continues() {
    let (mut reader, mut events) = (AnthropicReader::default(), Vec::new());
    for piece in ["", "{", "[]", "{}", "null", "7", r#"{"choices":[]}"#, r#"{"type":7}"#] {
        assert_eq!(reader.read(piece, &mut events), Err(PieceError::Malformed), "{piece}");
    }
    for piece in [r#"{"type":"ping"}"#, r#"{"type":"a_new_one","delta":{"type":"x","text":null}}"#]
    {
        assert_eq!(reader.read(piece, &mut events), Ok(()), "{piece}");
    }
    let ended = ended("end_turn");
    for piece in [HI, &ended, STOP] {
        reader.read(piece, &mut events).expect("well-formed");
    }
    assert_eq!(events, [text("Hi"), done(FinishReason::Stop, counted(0, 0, 48))]);
}
