//! Images in messages, on both APIs: a model with vision gets them.
//! A model without vision never answers as if it had seen them.

use std::sync::Arc;

use hob_core::ChatCard;
use hob_core::chat::Prompt;
use hob_core::scripted::ScriptedChat;
use hob_server::ServerOptions;

use crate::chat_model::{done, text};
use crate::client::post;
use crate::lifecycle::server_with;

const URL: &str = "data:image/gif;base64,R0lG";

/// The request for each route.
const ROUTES: [(&str, &str); 3] = [
    ("/api/chat", r#"{"messages":[{"role":"user","content":"What is it?","images":["R0lG"]}]}"#),
    ("/api/generate", r#"{"prompt":"What is it?","images":["R0lG"]}"#),
    (
        "/v1/chat/completions",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},
            {"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lG"}}]}]}"#,
    ),
];

fn card(template: Option<&str>, sees: bool) -> ChatCard {
    let template = template.map(str::to_owned);
    ChatCard { context_tokens: 64, template, sees, ..ChatCard::default() }
}

#[tokio::test]
async fn a_model_that_reads_text_only_is_not_asked() {
    for template in [Some("…"), None] {
        let model = Arc::new(ScriptedChat::new([]).with_card(card(template, false)));
        let server = server_with(Arc::clone(&model) as _, None, ServerOptions::default()).await;
        for (path, body) in ROUTES {
            let refused = server.ask(post(path, body)).await;
            let error = refused.json()["error"].to_string();
            let is_said = error.contains("it accepts text only, and a message contains an image");
            assert!(refused.status() == 400 && is_said, "{path}: {error}");
        }
        let body = r#"{"input":[{"role":"user","content":[
            {"type":"input_image","image_url":"data:image/gif;base64,R0lG"}]}]}"#;
        let refused = server.ask(post("/v1/responses", body)).await;
        assert_eq!(refused.json()["error"]["param"], "input");
        assert!(model.requests().is_empty());
    }
}

#[tokio::test]
async fn a_model_that_sees_gets_them() {
    let answer = || Ok(vec![text("A cat."), done(2)]);
    let model = ScriptedChat::new(ROUTES.map(|_| answer())).with_card(card(Some("…"), true));
    let model = Arc::new(model);
    let server = server_with(Arc::clone(&model) as _, None, ServerOptions::default()).await;
    for (path, body) in ROUTES {
        assert_eq!(server.ask(post(path, body)).await.status(), 200, "{path}");
    }
    for asked in model.requests() {
        let Prompt::Chat(conversation) = &asked.prompt else { unreachable!("{asked:?}") };
        let image = &conversation.messages[0].images[0];
        assert_eq!((image.at, image.url.as_str()), ("What is it?".len(), URL));
    }
}
