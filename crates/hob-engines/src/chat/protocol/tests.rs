//! The chat protocol's round trips, with every variant once, and garbage.
//! Values stand whole in the tests, so a field that is forgotten is a difference.

use hob_core::chat::{
    Completion, Conversation, Effort, EmbedInput, FinishReason, Image, JsonText, KeepAlive,
    Message, OutputFormat, Prompt, Reading, Role, Sampling, Thinking, Timings, TokenLogprob,
    TokenText, Tool, ToolCall, ToolChoice, Usage,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::frame::{Frame, FrameKind};
use crate::worker::protocol::PROTOCOL_VERSION;

fn conversation() -> Conversation {
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: "now".to_owned(),
        arguments: JsonText::parsed("{}"),
    };
    let mut assistant = Message::new(Role::Assistant, "");
    assistant.tool_calls.push(call);
    let mut answer = Message::new(Role::Tool, "12:00");
    answer.tool_call_id = Some("call_1".to_owned());
    let mut user = Message::new(Role::User, "what time is it? ⏰");
    user.name = Some("anna".to_owned());
    let url = "data:image/png;base64,AA==".to_owned();
    user.images.push(Image { at: 4, url, detail: Some("low".to_owned()) });
    Conversation {
        messages: vec![Message::new(Role::System, "be brief"), user, assistant, answer],
        tools: vec![Tool {
            name: "now".to_owned(),
            description: Some("the time".to_owned()),
            parameters: Some(JsonText::parsed(r#"{"type":"object"}"#)),
            strict: false,
        }],
        tool_choice: ToolChoice::Named("now".to_owned()),
        parallel_tool_calls: true,
        template_arguments: Some(JsonText::parsed("{}")),
    }
}

fn request(prompt: Prompt, output: OutputFormat, effort: Effort) -> ChatRequest {
    ChatRequest {
        prompt,
        sampling: Sampling {
            temperature: Some(0.5),
            top_p: Some(0.9),
            top_k: Some(40),
            min_p: Some(0.05),
            repeat_penalty: Some(1.1),
            presence_penalty: Some(-1.0),
            frequency_penalty: Some(2.0),
            seed: Some(u64::MAX),
            logit_bias: vec![(7, -100.0)],
            ignore_eos: Some(true),
        },
        tokens_max: Some(16),
        stop: vec!["\n".to_owned()],
        output,
        thinking: Thinking { effort: Some(effort), tokens_max: Some(9) },
        logprobs: Some(3),
        keep_alive: Some(KeepAlive::For(Duration::from_millis(1500))),
        reading: Reading::Whole,
        partial: Some("Hel".to_owned()),
        extra: Some(JsonText::parsed(r#"{"user":"me"}"#)),
        judges_turn: true,
        ..ChatRequest::default()
    }
}

#[test]
fn orders_come_back_unchanged() {
    let json = || JsonText::parsed("{}");
    let mut orders: Vec<ChatOrder> = [
        request(Prompt::Chat(conversation()), OutputFormat::JsonSchema(json()), Effort::None),
        request(Prompt::Text("x".repeat(300_000)), OutputFormat::Text, Effort::Minimal),
        request(Prompt::Tokens(vec![1, 2]), OutputFormat::JsonObject, Effort::Max),
        request(
            Prompt::Infill { prefix: "a".to_owned(), suffix: "b".to_owned() },
            OutputFormat::Regex("a+".to_owned()),
            Effort::XHigh,
        ),
        request(Prompt::default(), OutputFormat::Lark("start: \"a\"".to_owned()), Effort::High),
        ChatRequest { keep_alive: Some(KeepAlive::Forever), ..ChatRequest::default() },
    ]
    .into_iter()
    .map(|request| ChatOrder::Chat { request: Box::new(request), credit: 5 })
    .collect();
    orders.push(ChatOrder::Embed(EmbedRequest {
        inputs: vec![EmbedInput::Text("é".to_owned()), EmbedInput::Tokens(vec![3])],
        dimensions: Some(2),
        ..EmbedRequest::default()
    }));
    for order in orders {
        let frame = Frame::new(FrameKind::Model, 4, &order).expect("small");
        assert_eq!(frame.decode(), Ok(order));
    }
}

#[test]
fn reports_come_back_unchanged() {
    let token = || TokenText(vec![0xF0, 0x9F]);
    let completion = Completion {
        finish: FinishReason::ToolCalls,
        usage: Usage {
            prompt_tokens: 1,
            cached_tokens: 2,
            completion_tokens: 3,
            reasoning_tokens: 4,
        },
        timings: Timings {
            load_ms: 1.0,
            queue_ms: 2.0,
            prompt_ms: 3.0,
            predicted_ms: 4.0,
            draft_tokens: 5,
            accepted_tokens: 6,
        },
    };
    let events = [
        ChatEvent::Reasoning("hm".to_owned()),
        ChatEvent::Text("hé".to_owned()),
        ChatEvent::Logprobs(vec![TokenLogprob {
            token: token(),
            logprob: -0.5,
            top: vec![(token(), -0.5)],
        }]),
        ChatEvent::ToolCall { index: 1, id: "a".to_owned(), name: "b".to_owned() },
        ChatEvent::ToolArguments { index: 1, piece: "{".to_owned() },
        ChatEvent::TurnEnd { probability: 0.25 },
        ChatEvent::Done(completion),
    ];
    let refusals = [
        Refusal::TooLong { needed: 9, available: 8 },
        Refusal::NoTemplate,
        Refusal::Field { field: "tools".to_owned(), reason: "no".to_owned() },
        Refusal::Busy { retry_after_ms: 10 },
    ];
    let reports =
        events.map(ChatReport::Event).into_iter().chain(refusals.map(ChatReport::Refused)).chain([
            ChatReport::Accepted { ignored: vec!["tools.add.not".to_owned()] },
            ChatReport::Compiling,
            ChatReport::Compiled,
            ChatReport::Embedded(Vector { values: vec![0.5], tokens: 2 }),
        ]);
    for report in reports {
        let frame = Frame::new(FrameKind::Model, 3, &report).expect("small");
        assert_eq!(frame.decode(), Ok(report));
    }
}

/// The end of an answer has more fields than other reports. When its length changes, the version must be raised.
#[test]
fn the_length_of_a_message_belongs_to_the_version() {
    let completion = Completion {
        finish: FinishReason::Stop,
        usage: Usage::default(),
        timings: Timings::default(),
    };
    let report = ChatReport::Event(ChatEvent::Done(completion));
    let frame = Frame::new(FrameKind::Model, 3, &report).expect("small");
    assert_eq!((PROTOCOL_VERSION, frame.payload.len()), (8, 41));
}

#[test]
fn refusals_are_errors_with_their_numbers() {
    let field = |name: &str| Refusal::Field { field: name.to_owned(), reason: "is odd".to_owned() };
    let invalid = |field| ModelError::InvalidField { field, reason: "is odd".to_owned() };
    for (refusal, error) in [
        (
            Refusal::TooLong { needed: 9, available: 8 },
            ModelError::TooLong { needed: 9, available: 8 },
        ),
        (Refusal::NoTemplate, ModelError::NoTemplate),
        (field("tools"), invalid("tools")),
        (field("dimensions"), invalid("dimensions")),
        (field("regex"), invalid("regex")),
        (field("grammar"), invalid("grammar")),
        (field("of a newer worker"), invalid("messages")),
        (
            Refusal::Busy { retry_after_ms: 1500 },
            ModelError::Busy { retry_after: Duration::from_millis(1500) },
        ),
    ] {
        assert_eq!(refusal.into_error(), error);
    }
}

proptest! {
    #[test]
    fn garbage_is_refused_and_never_panics(payload in vec(any::<u8>(), 0..300)) {
        let frame = Frame { kind: FrameKind::Model, stream: 1, payload };
        // Random bytes may well be a message: only a panic or a large allocation would be wrong.
        drop((frame.decode::<ChatOrder>(), frame.decode::<ChatReport>()));
    }
}
