//! The chat protocol's round trips, with every variant once, and garbage.
//! Values stand whole in the tests, so a field that is forgotten is a difference.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

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
        ..ChatRequest::default()
    }
}

#[test]
fn tasks_survive_the_way_in_pieces() {
    let json = || JsonText::parsed("{}");
    let mut tasks: Vec<Task> = [
        request(Prompt::Chat(conversation()), OutputFormat::JsonSchema(json()), Effort::None),
        request(Prompt::Text("x".repeat(PIECE_BYTES_MAX)), OutputFormat::Text, Effort::Minimal),
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
    .map(|request| Task::Chat { request: Box::new(request), credit: 5 })
    .collect();
    tasks.push(Task::Embed {
        request: EmbedRequest {
            inputs: vec![EmbedInput::Text("é".to_owned()), EmbedInput::Tokens(vec![3])],
            dimensions: Some(2),
            ..EmbedRequest::default()
        },
    });
    for task in tasks {
        let mut joined = Vec::new();
        let mut ended = false;
        for frame in task.to_frames(4) {
            assert!(!ended, "nothing comes after the end");
            match ChatOrder::from_frame(&frame).expect("an order") {
                ChatOrder::Piece { stream: 4, bytes } => joined.extend(bytes),
                ChatOrder::End { stream: 4 } => ended = true,
                other => panic!("{other:?}"),
            }
        }
        assert!(ended);
        assert_eq!(Task::from_bytes(joined), Ok(task));
    }
}

#[test]
fn reports_survive_the_way() {
    let token = || TokenText(vec![0xF0, 0x9F]);
    let completion = Completion {
        finish: FinishReason::ToolCalls,
        usage: Usage {
            prompt_tokens: 1,
            cached_tokens: 2,
            completion_tokens: 3,
            reasoning_tokens: 4,
        },
        timings: Timings { load_ms: 1.0, queue_ms: 2.0, prompt_ms: 3.0, predicted_ms: 4.0 },
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
        ChatEvent::Done(completion),
    ];
    let refusals = [
        Refusal::TooLong { needed: 9, available: 8 },
        Refusal::NoTemplate,
        Refusal::Field { field: "tools".to_owned(), reason: "no".to_owned() },
        Refusal::Busy { retry_after_ms: 10 },
    ];
    let stream = 3;
    let reports = events
        .map(|event| ChatReport::Event { stream, event })
        .into_iter()
        .chain(refusals.map(|refusal| ChatReport::Refused { stream, refusal }))
        .chain([
            ChatReport::Accepted { stream, ignored: vec!["tools.add.not".to_owned()] },
            ChatReport::Compiling { stream },
            ChatReport::Compiled { stream },
            ChatReport::Embedded { stream, vector: Vector { values: vec![0.5], tokens: 2 } },
        ]);
    for report in reports {
        assert_eq!(ChatReport::from_frame(&report.to_frame()), Ok(report));
    }
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
        (field("of a newer worker"), invalid("messages")),
        (
            Refusal::Busy { retry_after_ms: 1500 },
            ModelError::Busy { retry_after: Duration::from_millis(1500) },
        ),
    ] {
        assert_eq!(refusal.into_error(), error);
    }
}

#[test]
fn what_the_model_says_of_itself_survives_the_way() {
    let about = About { context_tokens: 4096, parallel: 4, vram_bytes: 1 << 40 };
    assert_eq!(About::from_payload(&about.to_payload()), Some(about));
    assert_eq!(About::from_payload(&[1]), None);
}

proptest! {
    #[test]
    fn garbage_is_refused_and_never_panics(bytes in vec(any::<u8>(), 0..300), kind in 32_u8..64) {
        let _ = Task::from_bytes(bytes.clone());
        let _ = ChatReport::from_frame(&Frame::new(kind, 1, bytes));
    }
}
