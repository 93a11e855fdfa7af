//! Completions and embeddings. The last test shows that no text of a chat request is logged.

use std::sync::Arc;
use std::time::Duration;

use hob_core::ChatEvent;
use hob_core::chat::{ChatCard, Prompt, TokenLogprob, TokenText};
use hob_core::scripted::ScriptedChat;
use hob_server::ServerOptions;
use serde_json::{Value, json};

use crate::chat_model::{
    Event, StagedChat, begun, card, chat_lost, done, scripted, serve_chat, serve_chat_with,
    serve_staged, talkative, text,
};
use crate::client::{post, post_with};
use crate::log::Log;

fn complete(json: &str) -> Vec<u8> {
    post("/v1/completions", json)
}

#[tokio::test]
async fn each_prompt_has_its_answers() {
    let answers = ["a", "b", "c", "d"].map(|piece| Ok(vec![text(piece), done(1)]));
    let model = scripted(answers);
    let server = serve_chat(Arc::clone(&model)).await;
    let answer = server
        .ask(complete(r#"{"prompt":["1","2"],"n":2,"seed":5,"echo":true,"user":"me"}"#))
        .await;
    let json = answer.json();
    let texts: Vec<_> =
        json["choices"].as_array().expect("choices").iter().map(|c| c["text"].clone()).collect();
    assert_eq!(texts, ["1a", "1b", "2c", "2d"]);
    assert_eq!(json["usage"]["prompt_tokens"], 24, "each prompt once");
    assert_eq!(
        (answer.header("x-hob-ignored"), answer.header("x-hob-queue-ms")),
        (Some("user"), Some("7"))
    );
    let asked: Vec<_> =
        model.requests().into_iter().map(|asked| (asked.prompt, asked.sampling.seed)).collect();
    let one = |text: &str, seed| (Prompt::Text(text.to_owned()), Some(seed));
    assert_eq!(asked, [one("1", 5), one("1", 6), one("2", 5), one("2", 6)]);
}

/// `text_offset` has one value for each token. With `echo`, the text begins with the prompt.
#[tokio::test]
async fn the_tokens_of_the_prompt_come_first_only_if_the_model_scores_prompts() {
    let token = |text: &str| TokenLogprob {
        token: TokenText(text.as_bytes().to_vec()),
        logprob: -0.5,
        top: Vec::new(),
    };
    for (scores_prompts, prompt, offsets) in
        [(true, vec![token("Say"), token(":")], json!([0, 3, 4])), (false, vec![], json!([4]))]
    {
        let tokens = [prompt, vec![token("Hi")]].concat();
        let events = vec![Ok(ChatEvent::Logprobs(tokens)), text("Hi"), done(1)];
        let model = ScriptedChat::new([Ok(events)]);
        let model = model.with_card(ChatCard { scores_prompts, ..card() });
        let server = serve_chat(Arc::new(model)).await;
        let answer = server.ask(complete(r#"{"prompt":"Say:","echo":true,"logprobs":1}"#)).await;
        let choice = &answer.json()["choices"][0];
        assert_eq!(choice["text"], "Say:Hi");
        assert_eq!(choice["logprobs"]["text_offset"], offsets);
    }
}

#[tokio::test]
async fn a_continued_text_streams_too() {
    let server = serve_chat(scripted([
        Ok(vec![text("Hel"), text("lo"), done(2)]),
        Ok(vec![text("Hel"), Err(chat_lost())]),
    ]))
    .await;
    let body = r#"{"prompt":"Say:","stream":true}"#;
    let answer = server.ask(complete(body)).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let said: String = answer
        .text()
        .split_terminator("\n\n")
        .filter_map(|event| serde_json::from_str::<Value>(event.strip_prefix("data: ")?).ok())
        .filter_map(|chunk| chunk["choices"][0]["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(said, "Hello");
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    let broken = server.ask(complete(body)).await;
    let text = broken.text();
    assert!(text.contains(r#""code":"worker_lost""#) && !text.contains("[DONE]"), "{text}");
}

#[tokio::test]
async fn a_silent_completion_says_that_it_lives() {
    let (server, model) = serve_staged(talkative()).await;
    let request = complete(r#"{"prompt":"Say:","stream":true}"#);
    let (_sender, mut client) = begun(&server, &model, request).await;
    client.chunk().await.expect("a chunk");
    assert_eq!(client.chunk().await.expect("a chunk").as_deref(), Some(&b": hob\n\n"[..]));
}

#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts() {
    let scripts: [Result<Vec<Event>, _>; 0] = [];
    let model =
        Arc::new(ScriptedChat::new(scripts).with_vectors(vec![vec![0.5, -1.0], vec![0.25, 0.0]]));
    let server = serve_chat(model).await;
    let answer = server
        .ask(post("/v1/embeddings", r#"{"model":"assistant","input":["a","b"],"user":"me"}"#))
        .await;
    let item = |index, embedding: [f64; 2]| json!({"object": "embedding", "index": index, "embedding": embedding});
    let expected = json!({
        "object": "list",
        "data": [item(0, [0.5, -1.0]), item(1, [0.25, 0.0])],
        "model": "assistant",
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    });
    assert_eq!(answer.json(), expected);
    for (name, value) in
        [("alias", "assistant"), ("target", "smol"), ("warm", "true"), ("ignored", "user")]
    {
        assert_eq!(answer.header(&format!("x-hob-{name}")), Some(value), "{name}");
    }
    let body = r#"{"input":[1,2],"encoding_format":"base64"}"#;
    let answer = server.ask(post("/v1/embeddings", body)).await;
    assert_eq!(answer.json()["data"][0]["embedding"], "AAAAPwAAgL8=");
    let line = r#"hob_chat_tokens_total{model="smol",kind="embedded"} 3"#;
    server.get("/metrics").await.has_lines(&[line]);
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn vectors_are_not_waited_for_forever() {
    let token_time_max = Duration::from_millis(20);
    let options = ServerOptions { token_time_max, ..ServerOptions::default() };
    let server = serve_chat_with(Arc::new(StagedChat::new()), options).await;
    assert_eq!(server.ask(post("/v1/embeddings", r#"{"input":"a"}"#)).await.status(), 504);
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn conversations_are_logged_without_a_word_of_them() {
    let log = Log::default();
    let _guard = log.listen();
    let server = serve_chat(scripted([Ok(vec![text("xyzzy-answer"), done(1)])])).await;
    let body = r#"{"messages":[{"role":"user","content":"xyzzy-secret"}],"stop":"xyzzy-stop",
        "user":"xyzzy-user"}"#;
    let headers = "Content-Type: application/json\r\nX-Hob-Agent: coder\r\n";
    let by_agent = post_with("/v1/chat/completions", headers, body);
    assert_eq!(server.ask(by_agent).await.status(), 200);
    // The script has one answer only, so this request fails.
    assert_eq!(server.ask(post("/v1/chat/completions", body)).await.status(), 500);
    let wrong = r#"{"messages":[{"role":"user","content":{"xyzzy":1}}]}"#;
    assert_eq!(server.ask(post("/v1/chat/completions", wrong)).await.status(), 400);
    let log = log.text();
    assert!(log.contains("chat/completions") && log.contains("completion_tokens=1"), "{log}");
    assert_eq!(log.matches("agent=\"coder\"").count(), 1, "{log}");
    assert!(!log.contains("xyzzy"), "{log}");
}
