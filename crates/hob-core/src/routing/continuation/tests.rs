//! Which answers may be continued, what is counted, and how a continuation differs from a new start.
//! Each decision is a row: the request, the answer so far, and what came then.

use std::time::Duration;

use super::*;
use crate::JsonText;
use crate::chat::{Conversation, Message, Tool};

fn chat_request(role: Role) -> ChatRequest {
    let messages = vec![Message::new(role, "Hi")];
    let conversation = Conversation { messages, ..Conversation::default() };
    ChatRequest { prompt: Prompt::Chat(conversation), ..ChatRequest::default() }
}

fn answer_so_far(request: &ChatRequest, events: &[ChatEvent]) -> AnswerSoFar {
    let mut said = AnswerSoFar::new(request);
    events.iter().for_each(|event| said.add(event));
    said
}

fn text(text: &str) -> ChatEvent {
    ChatEvent::Text(text.to_owned())
}

#[test]
fn only_plain_text_is_gone_on_with() {
    let user = || chat_request(Role::User);
    let forced = || {
        let tool =
            Tool { name: "add".to_owned(), description: None, parameters: None, strict: false };
        let Prompt::Chat(conversation) = user().prompt else { unreachable!() };
        let choice = ToolChoice::Required;
        let conversation = Conversation { tools: vec![tool], tool_choice: choice, ..conversation };
        ChatRequest { prompt: Prompt::Chat(conversation), ..user() }
    };
    let thought = || ChatEvent::Reasoning("Hm".to_owned());
    let call = || ChatEvent::ToolCall { index: 0, id: "a".to_owned(), name: "add".to_owned() };
    for (request, events, goes_on) in [
        (user(), vec![text("Hel"), text("lo")], true),
        (user(), vec![thought(), text("Hel")], true),
        (user(), vec![ChatEvent::TurnEnd { probability: 0.5 }, text("Hel")], true),
        (user(), vec![], false),
        (user(), vec![text(" \n")], false),
        (user(), vec![thought()], false),
        (user(), vec![text("Hel"), thought()], false),
        (user(), vec![text("Hel"), call()], false),
        (user(), vec![text(&"x".repeat(SAID_BYTES_MAX)), text("y")], false),
        (chat_request(Role::Assistant), vec![text("Hel")], false),
        (forced(), vec![text("Hel")], false),
        (ChatRequest { output: OutputFormat::JsonObject, ..user() }, vec![text("{")], false),
        (ChatRequest { logprobs: Some(0), ..user() }, vec![text("Hel")], false),
        (
            ChatRequest { extra: Some(JsonText::parsed(r#"{"ebnf":"x"}"#)), ..user() },
            vec![text("Hel")],
            false,
        ),
        (ChatRequest { prompt: Prompt::Text("Hi".to_owned()), ..user() }, vec![text("Hel")], false),
    ] {
        let rest = answer_so_far(&request, &events).rest_of(&request);
        assert_eq!(rest.is_some(), goes_on, "{request:?} {events:?}");
    }
}

#[test]
fn the_text_so_far_counts_against_the_limit() {
    let limited = |tokens| ChatRequest { tokens_max: Some(tokens), ..chat_request(Role::User) };
    for (limit, events, left) in [
        (10, vec![text("a"), text("b")], Some(8)),
        (10, vec![ChatEvent::Reasoning("Hm".to_owned()), text("b")], Some(8)),
        (10, vec![text("several tokens in one piece")], Some(3)),
        (2, vec![text("a"), text("b")], None),
        (1, vec![text("a"), text("b")], None),
    ] {
        let request = limited(limit);
        let rest = answer_so_far(&request, &events).rest_of(&request);
        assert_eq!(rest.and_then(|rest| rest.tokens_max), left, "{events:?}");
    }
    let request = chat_request(Role::User);
    let rest = answer_so_far(&request, &[text("Hel")]).rest_of(&request).expect("it is plain");
    assert_eq!((rest.partial.as_deref(), rest.tokens_max), (Some("Hel"), None));
}

#[test]
fn usage_is_the_client_s_prompt_and_both_parts_of_the_answer() {
    let events = [ChatEvent::Reasoning("Hm".to_owned()), text("a"), text("b")];
    let pieces = answer_so_far(&chat_request(Role::User), &events).pieces();
    let rest =
        Usage { prompt_tokens: 12, cached_tokens: 11, completion_tokens: 4, reasoning_tokens: 0 };
    let whole =
        Usage { prompt_tokens: 10, cached_tokens: 10, completion_tokens: 7, reasoning_tokens: 1 };
    assert_eq!(pieces.with_rest(rest), whole);
}

#[test]
fn breaks_are_distinguished_from_refusals() {
    let idle = Fault::TimedOut { clock: Clock::Idle, after: Duration::from_secs(30) };
    let total = Fault::TimedOut { clock: Clock::Total, after: Duration::from_secs(600) };
    let message = || "no".to_owned();
    for (fault, is) in [
        (Fault::CutOff, true),
        (idle, true),
        (Fault::Reported { message: message() }, true),
        (Fault::Overloaded { message: message(), retry_after: None }, true),
        (total, false),
        (Fault::Limited { message: message(), retry_after: None }, false),
        (Fault::Refused { message: message() }, false),
        (Fault::InvalidAnswer { detail: message() }, false),
    ] {
        assert_eq!(is_break(&ModelError::upstream("a", fault.clone())), is, "{fault}");
    }
}

#[test]
fn a_continuation_is_distinguished_from_a_new_start() {
    const LONG: &str = "The capital of France is";
    let rest = |text: &str| RestartDecision::Continues(text.to_owned());
    for (said, pieces, decision) in [
        (LONG, &[" Par", "is."][..], rest(" Par")),
        // By chance the same word.
        (LONG, &["The", " end"], rest("The end")),
        // An exact echo is taken away, also one whose first blank was lost or added.
        (LONG, &["The capital", " of France", " is Paris"], rest(" Paris")),
        (" The capital of France", &["The capital of France is"], rest(" is")),
        (LONG, &[" The capital of France is Paris"], rest(" Paris")),
        // The same beginning in other words.
        (LONG, &["The capital of Fra", "nkia"], RestartDecision::StartedOver),
        ("Hello from", &["Hello", " again"], RestartDecision::StartedOver),
        // Too short to say whether it is repeated or goes on.
        ("1", &["10"], RestartDecision::StartedOver),
        ("ha", &["ha"], RestartDecision::StartedOver),
        ("1", &["05"], rest("05")),
        ("wör", &["ld"], rest("ld")),
    ] {
        let mut check = RestartCheck::new(said);
        let decisions: Vec<RestartDecision> =
            pieces.iter().map(|piece| check.push(piece)).collect();
        let first = decisions.into_iter().find(|decision| *decision != RestartDecision::Undecided);
        assert_eq!(first, Some(decision), "{said:?} {pieces:?}");
    }
}

#[test]
fn an_undecided_check_is_decided_at_the_end() {
    for (pieces, decision) in [
        (&[][..], RestartDecision::Continues(String::new())),
        (&["The"], RestartDecision::Continues("The".to_owned())),
        (&["The capital of France"], RestartDecision::StartedOver),
    ] {
        let mut check = RestartCheck::new("The capital of France is");
        pieces.iter().for_each(|piece| assert_eq!(check.push(piece), RestartDecision::Undecided));
        assert_eq!(check.end(), decision);
    }
}
