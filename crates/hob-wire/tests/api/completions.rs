//! Texts to be continued and texts to be embedded: bodies in, answers out, byte for byte.
//! Both take their prompts in the same four forms.

use hob_core::chat::{
    Completion, EmbedInput, FinishReason, Prompt, Timings, TokenLogprob, TokenText, Usage,
};
use hob_core::{ChatEvent, ChatRequest, EmbedRequest, Embeddings, JsonText};
use hob_wire::{
    AnswerChunks, AnswerHead, ChatDelivery, CollectedAnswer, CompletionAnswer, CompletionChunks,
    Echo, UsageChunk, VectorEncoding, WireCompletion, WireEmbeddings, embeddings, parse_completion,
    parse_embeddings,
};

use crate::builders::logprob;
use crate::{chat_answer, rows};

fn head() -> AnswerHead {
    AnswerHead { model: "smol".to_owned(), ..chat_answer::head() }
}

fn read(body: &str) -> WireCompletion {
    parse_completion(body.as_bytes()).expect(body)
}

fn prompts(body: &str) -> Vec<Prompt> {
    read(body).requests.into_iter().map(|request| request.prompt).collect()
}

fn text(text: &str) -> Prompt {
    Prompt::Text(text.to_owned())
}

#[test]
fn a_prompt_has_four_forms_and_may_have_a_suffix() {
    for (body, expected) in [
        (r#"{"prompt":"a"}"#, vec![text("a")]),
        (r#"{"prompt":["a","b"]}"#, vec![text("a"), text("b")]),
        (r#"{"prompt":[1,2]}"#, vec![Prompt::Tokens(vec![1, 2])]),
        (r#"{"prompt":[[1],[2,3]]}"#, vec![Prompt::Tokens(vec![1]), Prompt::Tokens(vec![2, 3])]),
        (r#"{"prompt":"a","suffix":""}"#, vec![text("a")]),
        (
            r#"{"prompt":"a","suffix":"c"}"#,
            vec![Prompt::Infill { prefix: "a".to_owned(), suffix: "c".to_owned() }],
        ),
    ] {
        assert_eq!(prompts(body), expected, "{body}");
    }
}

#[test]
fn every_field_of_a_completion_is_parsed() {
    let body = r#"{"model":"smol","prompt":"a","max_tokens":5,"temperature":0,"n":2,"best_of":1,
        "logprobs":3,"echo":true,"stop":"\n","stream":true,"seed":1,"regex":"b+","user":"me"}"#;
    let wire = read(body);
    let expected = ChatRequest {
        prompt: text("a"),
        tokens_max: Some(5),
        stop: vec!["\n".to_owned()],
        logprobs: Some(3),
        echo: true,
        output: hob_core::chat::OutputFormat::Regex("b+".to_owned()),
        sampling: hob_core::chat::Sampling {
            temperature: Some(0.0),
            seed: Some(1),
            ..hob_core::chat::Sampling::default()
        },
        extra: Some(JsonText::parsed(r#"{"user":"me"}"#)),
        ..ChatRequest::default()
    };
    assert_eq!(wire.prefixes(), ["a"]);
    assert_eq!(
        wire,
        WireCompletion {
            model: Some("smol".to_owned()),
            requests: vec![expected],
            choices: 2,
            delivery: ChatDelivery::Events(UsageChunk::Unwanted),
            echo: Echo::Prompt,
            ignored: Vec::new(),
            unknown: vec!["user".to_owned()],
        }
    );
}

#[test]
fn max_tokens_defaults_to_16_as_in_openais_api() {
    for (body, expected) in [
        (r#"{"prompt":"a"}"#, Some(16)),
        (r#"{"prompt":"a","max_tokens":40}"#, Some(40)),
        (r#"{"prompt":"a","max_tokens":-1}"#, None),
        (r#"{"prompt":"a","max_tokens":0}"#, Some(0)),
    ] {
        assert_eq!(read(body).requests[0].tokens_max, expected, "{body}");
    }
}

#[test]
fn hob_echoes_text_prompts_and_the_model_echoes_token_prompts() {
    let tokens = read(r#"{"prompt":[1],"echo":true}"#);
    assert_eq!((tokens.prefixes(), tokens.ignored.len()), (vec![String::new()], 0));
    assert!(tokens.requests[0].echo);
    let infill = read(r#"{"prompt":"a","suffix":"c","echo":true}"#);
    assert_eq!(infill.prefixes(), ["a"]);
    assert_eq!(read(r#"{"prompt":"a"}"#).prefixes(), [""]);
}

#[test]
fn invalid_completion_requests_are_rejected() {
    let many = format!(r#"{{"prompt":{:?}}}"#, vec!["a"; 17]);
    let table = r#"
        {} => 'prompt' is missing
        {"prompt":7} => 'prompt' must be a string or a list, and is a number
        {"prompt":[]} => 'prompt' is empty
        {"prompt":[1,"a"]} => 'prompt' has an element that is not a token id
        {"prompt":[[-1]]} => 'prompt[0]' has an element that is not a token id
        {"prompt":["a",{}]} => 'prompt[1]' must be a string or a list of token ids, and is an object
        {"prompt":[1],"suffix":"c"} => 'suffix' needs a prompt that is text, and this one is token ids
        {"prompt":["a","b","c"],"n":6} => 'n' of 6 for 3 prompts makes 18 answers, and the limit is 16
        {"prompt":"a","best_of":2} => 'best_of' must be from 0 to 1, and is 2
        {"prompt":"a","logprobs":21} => 'logprobs' must be from 0 to 20, and is 21
        {"prompt":"a","logprobs":true} => 'logprobs' must be a whole number, and is a boolean
        {"prompt":"a","echo":1} => 'echo' must be true or false, and is a number
    "#;
    let limit = (many.as_str(), "'prompt' has 17 elements and the limit is 16");
    for (body, expected) in rows(table).chain([limit]) {
        let error = parse_completion(body.as_bytes()).expect_err(body);
        assert_eq!(error.to_string(), expected);
    }
}

fn events() -> Vec<(u32, ChatEvent)> {
    let done = |finish| {
        let usage = Usage { prompt_tokens: 2, completion_tokens: 2, ..Usage::default() };
        let timings = Timings { prompt_ms: 4.0, predicted_ms: 10.0, ..Timings::default() };
        ChatEvent::Done(Completion { finish, usage, timings })
    };
    vec![
        (0, ChatEvent::Logprobs(vec![logprob("é", -0.5, &[("é", -0.5), ("e", -2.0)])])),
        (0, ChatEvent::Text("é".to_owned())),
        (1, ChatEvent::Text("b".to_owned())),
        (0, ChatEvent::Logprobs(vec![logprob("!", -0.25, &[])])),
        (0, ChatEvent::Text("!".to_owned())),
        (1, done(FinishReason::Length)),
        (0, done(FinishReason::Stop)),
        // An event of an unknown choice is ignored.
        (9, ChatEvent::Text("ignored".to_owned())),
    ]
}

#[test]
fn completions_have_openais_json() {
    let prefixes = ["ab".to_owned(), String::new()];
    let mut answer = CompletionAnswer::new(head(), &prefixes, 1);
    events().into_iter().for_each(|(choice, event)| answer.add(choice, event));
    insta::assert_snapshot!(answer.to_json(), @r#"{"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[{"text":"abé!","index":0,"logprobs":{"tokens":["é","!"],"token_logprobs":[-0.5,-0.25],"top_logprobs":[{"é":-0.5,"e":-2.0},{}],"text_offset":[2,3]},"finish_reason":"stop"},{"text":"b","index":1,"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":4,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"timings":{"cache_n":0,"prompt_n":4,"prompt_ms":8.0,"prompt_per_token_ms":2.0,"prompt_per_second":500.0,"predicted_n":4,"predicted_ms":10.0,"predicted_per_token_ms":2.5,"predicted_per_second":400.0,"load_ms":0.0,"queue_ms":0.0}}"#);
    insta::assert_snapshot!(streamed(&prefixes, UsageChunk::Wanted), @r#"
    data: {"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[{"text":"ab","index":0,"logprobs":{"tokens":["é"],"token_logprobs":[-0.5],"top_logprobs":[{"é":-0.5,"e":-2.0}],"text_offset":[2]},"finish_reason":null}],"usage":null}

    data: {"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[{"text":"é","index":0,"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[{"text":"b","index":1,"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[{"text":"!","index":0,"logprobs":{"tokens":["!"],"token_logprobs":[-0.25],"top_logprobs":[{}],"text_offset":[3]},"finish_reason":null}],"usage":null}

    data: {"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[{"text":"","index":1,"logprobs":null,"finish_reason":"length"}],"usage":null}

    data: {"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}],"usage":null,"timings":{"cache_n":0,"prompt_n":4,"prompt_ms":8.0,"prompt_per_token_ms":2.0,"prompt_per_second":500.0,"predicted_n":4,"predicted_ms":10.0,"predicted_per_token_ms":2.5,"predicted_per_second":400.0,"load_ms":0.0,"queue_ms":0.0}}

    data: {"id":"cmpl-1","object":"text_completion","created":1793491200,"model":"smol","system_fingerprint":"hob-test","choices":[],"usage":{"prompt_tokens":4,"completion_tokens":4,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}

    data: [DONE]
    "#);
    let wanted = streamed(&prefixes, UsageChunk::Wanted);
    assert_eq!(streamed(&prefixes, UsageChunk::Unwanted), chat_answer::without_usage(&wanted));
}

/// lm-evaluation-harness (`local-completions`) reads the log probabilities after the context. It leaves out the last
/// token, which the model generated.
#[test]
fn echoed_prompt_tokens_have_logprobs() {
    let token = |text: &str, logprob| TokenLogprob {
        token: TokenText(text.as_bytes().to_vec()),
        logprob,
        // Two incomplete UTF-8 sequences both become U+FFFD. hob keeps the more likely one.
        top: vec![(TokenText(vec![0xC3]), -0.1), (TokenText(vec![0xC4]), -3.0)],
    };
    let first = TokenLogprob { top: Vec::new(), ..token("The", f32::NAN) };
    let mut answer = CompletionAnswer::new(head(), &["The sky".to_owned()], 1).with_prompt_tokens();
    answer.add(0, ChatEvent::Logprobs(vec![first, token(" sky", -0.5)]));
    answer.add(0, ChatEvent::Logprobs(vec![token("!", -0.25)]));
    answer.add(0, ChatEvent::Text("!".to_owned()));
    let whole: serde_json::Value = serde_json::from_str(&answer.to_json()).expect("JSON");
    let choice = &whole["choices"][0];
    assert_eq!(choice["text"], "The sky!");
    let expected = serde_json::json!({
        "tokens": ["The", " sky", "!"],
        "token_logprobs": [null, -0.5, -0.25],
        "top_logprobs": [null, { "\u{FFFD}": -0.1f32 }, { "\u{FFFD}": -0.1f32 }],
        "text_offset": [0, 3, 7],
    });
    assert_eq!(choice["logprobs"], expected);
}

fn streamed(prefixes: &[String], usage: UsageChunk) -> String {
    let mut chunks = CompletionChunks::new(head(), prefixes, 1, usage);
    let said: String =
        events().into_iter().map(|(choice, event)| chunks.event(choice, event)).collect();
    said + &chunks.end()
}

#[test]
fn several_choices_count_the_prompt_tokens_once() {
    let mut answer = CompletionAnswer::new(head(), &[String::new()], 2);
    events().into_iter().for_each(|(choice, event)| answer.add(choice, event));
    let whole: serde_json::Value = serde_json::from_str(&answer.to_json()).expect("JSON");
    assert_eq!(
        (&whole["usage"]["prompt_tokens"], &whole["usage"]["total_tokens"]),
        (&2.into(), &6.into())
    );
    assert_eq!(answer.queue_ms(), 0.0);
}

#[test]
fn embedding_inputs_are_parsed() {
    let body = r#"{"model":"smol","input":["a","b"],"dimensions":4,"encoding_format":"base64","user":"me"}"#;
    let inputs = ["a", "b"].map(|text| EmbedInput::Text(text.to_owned())).to_vec();
    assert_eq!(
        parse_embeddings(body.as_bytes()),
        Ok(WireEmbeddings {
            model: Some("smol".to_owned()),
            request: EmbedRequest { inputs, dimensions: Some(4), ..EmbedRequest::default() },
            encoding: VectorEncoding::Base64,
            ignored: vec!["user".to_owned()],
        })
    );
    let tokens = parse_embeddings(br#"{"input":[1,2]}"#).expect("a request");
    assert_eq!(tokens.request.inputs, [EmbedInput::Tokens(vec![1, 2])]);
    assert_eq!(tokens.encoding, VectorEncoding::Float);
}

#[test]
fn invalid_embedding_requests_are_rejected() {
    for (body, expected) in [
        ("{}", "'input' is missing"),
        (r#"{"input":""}"#, "'input[0]' is empty"),
        (r#"{"input":["a",""]}"#, "'input[1]' is empty"),
        (r#"{"input":[[]]}"#, "'input[0]' is empty"),
        (r#"{"input":"a","dimensions":0}"#, "'dimensions' must be from 1 to 65536, and is 0"),
        (
            r#"{"input":"a","encoding_format":"int8"}"#,
            "'encoding_format' must be one of float, base64, and is 'int8'",
        ),
    ] {
        assert_eq!(parse_embeddings(body.as_bytes()).expect_err(body).to_string(), expected);
    }
}

#[test]
fn embeddings_have_openais_json() {
    let made = Embeddings { vectors: vec![vec![0.5, -1.0], vec![1e-7]], prompt_tokens: 5 };
    let both = [VectorEncoding::Float, VectorEncoding::Base64];
    insta::assert_snapshot!(both.map(|encoding| embeddings("smol", &made, encoding)).join("\n"), @r#"
    {"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1.0]},{"object":"embedding","index":1,"embedding":[1e-7]}],"model":"smol","usage":{"prompt_tokens":5,"total_tokens":5}}
    {"object":"list","data":[{"object":"embedding","index":0,"embedding":"AAAAPwAAgL8="},{"object":"embedding","index":1,"embedding":"lb/WMw=="}],"model":"smol","usage":{"prompt_tokens":5,"total_tokens":5}}
    "#);
}

proptest::proptest! {
    #[test]
    fn vectors_survive_base64(vector: Vec<f32>) {
        use base64::Engine as _;
        let made = Embeddings { vectors: vec![vector.clone()], prompt_tokens: 1 };
        let json = embeddings("smol", &made, VectorEncoding::Base64);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let text = json["data"][0]["embedding"].as_str().expect("a string");
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
        let back: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes(four.try_into().expect("four bytes")))
            .collect();
        let sent: Vec<u32> = vector.iter().map(|number| number.to_bits()).collect();
        proptest::prop_assert_eq!(back, sent);
    }
}
