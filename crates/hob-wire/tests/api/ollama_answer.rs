//! What Ollama's clients read: lines, whole answers, lists. Times are given, so every byte is known.
//! Where the pieces of an answer are cut changes its lines and never what they say.

use std::time::{Duration, SystemTime};

use hob_core::chat::{Completion, Embeddings, FinishReason, Timings, Usage};
use hob_core::{ChatCard, ChatEvent, MemoryUse};
use hob_wire::{
    OllamaAnswer, OllamaDelivery, OllamaModel, OllamaResident, OllamaShape, ollama_embedding,
    ollama_embeddings, ollama_error, ollama_loaded, ollama_ps, ollama_show, ollama_success,
    ollama_tags, ollama_unloaded, ollama_version,
};
use serde_json::Value;

use crate::builders::logprob;
use crate::{arguments, text, thought};

const SINCE: Duration = Duration::from_nanos(1_234_567_890);

fn at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(1_793_491_200_000_000_007)
}

fn call(index: u32, name: &str) -> ChatEvent {
    ChatEvent::ToolCall { index, id: format!("call_{index}"), name: name.to_owned() }
}

fn done(finish: FinishReason) -> ChatEvent {
    let usage = Usage { prompt_tokens: 26, completion_tokens: 9, ..Usage::default() };
    let timings = Timings {
        load_ms: 3.5,
        queue_ms: 1.0,
        prompt_ms: 130.25,
        predicted_ms: 400.0,
        ..Timings::default()
    };
    ChatEvent::Done(Completion { finish, usage, timings })
}

fn answer(shape: OllamaShape, delivery: OllamaDelivery, events: Vec<ChatEvent>) -> String {
    let mut answer = OllamaAnswer::new(shape, "smol", delivery);
    events.into_iter().map(|event| answer.take(event, at(), SINCE)).collect()
}

fn thoughtful() -> Vec<ChatEvent> {
    let logprobs = ChatEvent::Logprobs(Vec::new());
    vec![thought("Hm."), logprobs, text("Hel"), text(""), text("lo\n"), done(FinishReason::Length)]
}

#[test]
fn chat_is_a_line_for_each_piece() {
    insta::assert_snapshot!(answer(OllamaShape::Chat, OllamaDelivery::Lines, thoughtful()), @r#"
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":"","thinking":"Hm."},"done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":"Hel"},"done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":"lo\n"},"done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","total_duration":1234567890,"load_duration":3500000,"prompt_eval_count":26,"prompt_eval_duration":130250000,"eval_count":9,"eval_duration":400000000}
    "#);
}

#[test]
fn generate_is_the_same_in_other_words() {
    insta::assert_snapshot!(answer(OllamaShape::Generate, OllamaDelivery::Lines, thoughtful()), @r#"
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","response":"","thinking":"Hm.","done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","response":"Hel","done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","response":"lo\n","done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","response":"","done":true,"done_reason":"length","total_duration":1234567890,"load_duration":3500000,"prompt_eval_count":26,"prompt_eval_duration":130250000,"eval_count":9,"eval_duration":400000000}
    "#);
}

#[test]
fn a_whole_answer_is_one_object() {
    let both = [OllamaShape::Chat, OllamaShape::Generate];
    let whole = both.map(|shape| answer(shape, OllamaDelivery::Whole, thoughtful()));
    insta::assert_snapshot!(whole.concat(), @r#"
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":"Hello\n","thinking":"Hm."},"done":true,"done_reason":"length","total_duration":1234567890,"load_duration":3500000,"prompt_eval_count":26,"prompt_eval_duration":130250000,"eval_count":9,"eval_duration":400000000}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","response":"Hello\n","thinking":"Hm.","done":true,"done_reason":"length","total_duration":1234567890,"load_duration":3500000,"prompt_eval_count":26,"prompt_eval_duration":130250000,"eval_count":9,"eval_duration":400000000}
    "#);
}

#[test]
fn log_probabilities_stand_beside_their_text() {
    let likely = vec![logprob("Hi", -0.25, &[("Hi", -0.25), ("Ho", f32::NEG_INFINITY)])];
    let events = || vec![ChatEvent::Logprobs(likely.clone()), text("Hi"), done(FinishReason::Stop)];
    for (delivery, count) in [(OllamaDelivery::Lines, 3), (OllamaDelivery::Whole, 1)] {
        let said = answer(OllamaShape::Chat, delivery, events());
        let lines: Vec<Value> =
            said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let expected = serde_json::json!([{
            "token": "Hi", "logprob": -0.25, "bytes": [72, 105], "top_logprobs": [
                {"token": "Hi", "logprob": -0.25, "bytes": [72, 105]},
                {"token": "Ho", "logprob": -9999.0, "bytes": [72, 111]},
            ],
        }]);
        assert_eq!((lines.len(), &lines[0]["logprobs"]), (count, &expected), "{delivery:?}");
    }
}

#[test]
fn calls_leave_whole_and_in_order() {
    let events = || {
        vec![
            call(0, "weather"),
            arguments(0, r#"{"city":"#),
            arguments(0, r#""Rome","at":1}"#),
            call(1, "time"),
            call(2, "broken"),
            arguments(2, r#"{"a":"#),
            arguments(1, "{}"),
            done(FinishReason::ToolCalls),
        ]
    };
    let both = [OllamaDelivery::Lines, OllamaDelivery::Whole];
    let answers = both.map(|delivery| answer(OllamaShape::Chat, delivery, events()));
    insta::assert_snapshot!(answers.concat(), @r#"
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_0","function":{"index":0,"name":"weather","arguments":{"city":"Rome","at":1}}}]},"done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":"\nbroken {\"a\":","tool_calls":[{"id":"call_1","function":{"index":1,"name":"time","arguments":{}}}]},"done":false}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1234567890,"load_duration":3500000,"prompt_eval_count":26,"prompt_eval_duration":130250000,"eval_count":9,"eval_duration":400000000}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":"\nbroken {\"a\":","tool_calls":[{"id":"call_0","function":{"index":0,"name":"weather","arguments":{"city":"Rome","at":1}}},{"id":"call_1","function":{"index":1,"name":"time","arguments":{}}}]},"done":true,"done_reason":"stop","total_duration":1234567890,"load_duration":3500000,"prompt_eval_count":26,"prompt_eval_duration":130250000,"eval_count":9,"eval_duration":400000000}
    "#);
}

#[test]
fn memory_and_errors_are_one_object() {
    let both = [OllamaShape::Chat, OllamaShape::Generate];
    let loaded = both.map(|shape| ollama_loaded(shape, "smol", at()));
    let unloaded = both.map(|shape| ollama_unloaded(shape, "smol", at()));
    let rest = [ollama_error("it \"broke\""), ollama_success(), ollama_version()];
    insta::assert_snapshot!([loaded.join("\n"), unloaded.join("\n"), rest.join("\n")].join("\n"), @r#"
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","response":"","done":true,"done_reason":"load"}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"unload"}
    {"model":"smol","created_at":"2026-11-01T00:00:00.000000007Z","response":"","done":true,"done_reason":"unload"}
    {"error":"it \"broke\""}
    {"status":"success"}
    {"version":"0.12.11"}
    "#);
}

fn card() -> ChatCard {
    ChatCard {
        context_tokens: 4096,
        trained_context_tokens: 8192,
        architecture: "llama".to_owned(),
        parameters: 134_515_008,
        quantization: "Q4_1".to_owned(),
        file_bytes: 98_000_000,
        digest: Some("ab12".to_owned()),
        modified_unix_s: 1_793_491_200,
        template: Some("{{ messages }}".to_owned()),
        calls_tools: true,
        thinks: false,
        infills: false,
        ..ChatCard::default()
    }
}

#[test]
fn lists_are_as_clients_read_them() {
    let card = card();
    let bare =
        ChatCard { template: None, digest: None, thinks: true, infills: true, ..card.clone() };
    let embedder = ChatCard { is_embedder: true, ..bare.clone() };
    let models = ["smol", "team/coder:7b"].map(|name| OllamaModel { name, card: &card });
    let memory_use = MemoryUse {
        resident_bytes: Some(150_000_000),
        vram_bytes: 400_000_000,
        expires_at: Some(at()),
        ..MemoryUse::default()
    };
    let unmeasured = MemoryUse { vram_bytes: 400_000_000, ..MemoryUse::default() };
    let residents = [
        OllamaResident { model: models[0], memory_use },
        OllamaResident { model: models[1], memory_use: MemoryUse::default() },
        OllamaResident { model: models[0], memory_use: unmeasured },
    ];
    let answers = [
        ollama_tags(models),
        ollama_show(&card),
        ollama_show(&bare),
        ollama_show(&embedder),
        ollama_ps(residents),
        ollama_tags([]),
    ];
    insta::assert_snapshot!(answers.join("\n"), @r#"
    {"models":[{"name":"smol:latest","model":"smol:latest","modified_at":"2026-11-01T00:00:00.000000000Z","size":98000000,"digest":"ab12","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"}},{"name":"team/coder:7b","model":"team/coder:7b","modified_at":"2026-11-01T00:00:00.000000000Z","size":98000000,"digest":"ab12","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"}}]}
    {"parameters":"num_ctx 4096","template":"{{ messages }}","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"},"model_info":{"general.architecture":"llama","general.parameter_count":134515008,"llama.context_length":8192},"capabilities":["completion","tools"],"modified_at":"2026-11-01T00:00:00.000000000Z"}
    {"parameters":"num_ctx 4096","template":"","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"},"model_info":{"general.architecture":"llama","general.parameter_count":134515008,"llama.context_length":8192},"capabilities":["completion","thinking","insert"],"modified_at":"2026-11-01T00:00:00.000000000Z"}
    {"parameters":"num_ctx 4096","template":"","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"},"model_info":{"general.architecture":"llama","general.parameter_count":134515008,"llama.context_length":8192},"capabilities":["embedding"],"modified_at":"2026-11-01T00:00:00.000000000Z"}
    {"models":[{"name":"smol:latest","model":"smol:latest","size":550000000,"digest":"ab12","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"},"expires_at":"2026-11-01T00:00:00.000000007Z","size_vram":400000000,"context_length":4096},{"name":"team/coder:7b","model":"team/coder:7b","size":98000000,"digest":"ab12","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"},"expires_at":"2300-01-01T00:00:00.000000000Z","size_vram":0,"context_length":4096},{"name":"smol:latest","model":"smol:latest","size":400000000,"digest":"ab12","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"},"expires_at":"2300-01-01T00:00:00.000000000Z","size_vram":400000000,"context_length":4096}]}
    {"models":[]}
    "#);
}

#[test]
fn numbers_that_a_server_did_not_say_are_absent() {
    let card = ChatCard { architecture: "vllm".to_owned(), ..ChatCard::default() };
    let shown: Value = serde_json::from_str(&ollama_show(&card)).expect("JSON");
    let info = serde_json::json!({"general.architecture": "vllm"});
    assert_eq!((&shown["model_info"], &shown["parameters"]), (&info, &"".into()));
}

#[test]
fn vectors_are_lists_of_numbers() {
    let two = Embeddings { vectors: vec![vec![0.6, -0.8], vec![1.0, 0.0]], prompt_tokens: 5 };
    let none = Embeddings { vectors: Vec::new(), prompt_tokens: 0 };
    let answers = [
        ollama_embeddings("smol", &two, SINCE),
        ollama_embeddings("smol", &none, SINCE),
        ollama_embedding(&two),
        ollama_embedding(&none),
    ];
    insta::assert_snapshot!(answers.join("\n"), @r#"
    {"model":"smol","embeddings":[[0.6,-0.8],[1.0,0.0]],"total_duration":1234567890,"load_duration":0,"prompt_eval_count":5}
    {"model":"smol","embeddings":[],"total_duration":1234567890,"load_duration":0,"prompt_eval_count":0}
    {"embedding":[0.6,-0.8]}
    {"embedding":[]}
    "#);
}

#[test]
fn an_answer_can_be_logged_without_its_text() {
    let mut answer = OllamaAnswer::new(OllamaShape::Chat, "smol", OllamaDelivery::Whole);
    for event in [text("a secret"), call(0, "f"), arguments(0, "a secret")] {
        answer.take(event, at(), SINCE);
    }
    assert!(!format!("{answer:?}").contains("secret"));
}

proptest::proptest! {
    /// The lines, joined, have the content of the whole answer.
    #[test]
    fn lines_joined_are_the_whole(
        pieces in proptest::collection::vec(".{0,20}", 0..8),
        thoughts in proptest::collection::vec(".{0,20}", 0..8),
    ) {
        let events = || {
            let thoughts = thoughts.iter().cloned().map(ChatEvent::Reasoning);
            let pieces = pieces.iter().cloned().map(ChatEvent::Text);
            thoughts.chain(pieces).chain([done(FinishReason::Stop)]).collect()
        };
        let lines = answer(OllamaShape::Generate, OllamaDelivery::Lines, events());
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let joined = |key: &str| -> String { lines.iter().filter_map(|l| l[key].as_str()).collect() };
        let whole = answer(OllamaShape::Generate, OllamaDelivery::Whole, events());
        let whole: Value = serde_json::from_str(&whole).expect("JSON");
        for key in ["response", "thinking"] {
            proptest::prop_assert_eq!(joined(key), whole[key].as_str().unwrap_or_default());
        }
        let ends = lines.iter().filter(|line| line["done"] == true).count();
        proptest::prop_assert_eq!(ends, 1);
    }
}

#[test]
fn durations_that_a_server_did_not_say_are_absent() {
    let usage = Usage { prompt_tokens: 26, completion_tokens: 9, ..Usage::default() };
    let (finish, timings) = (FinishReason::Stop, Timings::default());
    let done = ChatEvent::Done(Completion { finish, usage, timings });
    let last = answer(OllamaShape::Chat, OllamaDelivery::Lines, vec![done]);
    let last: Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!((&last["eval_count"], &last["total_duration"]), (&9.into(), &1_234_567_890.into()));
    for name in ["load_duration", "prompt_eval_duration", "eval_duration"] {
        assert!(last.get(name).is_none(), "{name} in {last}");
    }
}
