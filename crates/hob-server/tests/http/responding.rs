//! The Responses API: its object, its events, and what later requests continue.

use std::sync::Arc;
use std::time::Duration;

use hob_core::chat::{
    BudgetUnit, Completion, FinishReason, Message, Prompt, Role, SpentBudget, ToolChoice,
};
use hob_core::scripted::ScriptedChat;
use hob_core::{ChatEvent, ModelError, ModelState};
use hob_server::ServerOptions;
use serde_json::{Value, json};

use crate::chat_model::{
    Event, StagedChat, begun, chat_lost, done, scripted, serve_chat, serve_chat_with, serve_staged,
    talkative, text,
};
use crate::client::{get, post, request, send_all};
use crate::keys::{LAPTOP, PHONE, get_as, named, post_as, with_keys};
use crate::lifecycle::{StagedLifecycle, server_with};
use crate::server::Server;

fn respond(body: &Value) -> Vec<u8> {
    post("/v1/responses", body.to_string())
}

fn delete(path: &str) -> String {
    request("DELETE", path, "Host: localhost\r\n")
}

/// Where a stored response is.
fn path_of(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().expect("an id"))
}

/// An answer that names its calls, as engines send them.
fn call(index: u32, name: &str, arguments: &[&str]) -> Vec<Event> {
    let begin = ChatEvent::ToolCall { index, id: format!("call_{name}"), name: name.to_owned() };
    let pieces = arguments.iter().map(|piece| (*piece).to_owned());
    let pieces = pieces.map(|piece| ChatEvent::ToolArguments { index, piece });
    std::iter::once(begin).chain(pieces).map(Ok).collect()
}

/// The messages of the model's last request.
fn seen(model: &ScriptedChat) -> Vec<(Role, String)> {
    let said = |message: Message| (message.role, message.text);
    last_messages(model).into_iter().map(said).collect()
}

fn last_messages(model: &ScriptedChat) -> Vec<Message> {
    match model.requests().pop().expect("a request").prompt {
        Prompt::Chat(conversation) => conversation.messages,
        other => unreachable!("a conversation, not {other:?}"),
    }
}

fn said(role: Role, text: &str) -> (Role, String) {
    (role, text.to_owned())
}

/// The events of a stream. Each names its type twice, and all are numbered.
fn events(body: &str) -> Vec<Value> {
    let read = |(number, event): (usize, &str)| {
        let (kind, data) = event.split_once('\n').expect("two lines");
        let data: Value =
            serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
        assert_eq!(kind.strip_prefix("event: "), data["type"].as_str());
        assert_eq!(data["sequence_number"], number);
        data
    };
    let events = body.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
    events.enumerate().map(read).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let names = events.iter().map(|event| event["type"].as_str().expect("a type"));
    names.map(|name| name.strip_prefix("response.").expect("a prefix")).collect()
}

#[tokio::test]
async fn a_response_is_stored_and_can_be_shown_and_deleted() {
    let model = scripted([Ok(vec![text("Hel"), text("lo"), done(2)])]);
    let server = serve_chat(Arc::clone(&model)).await;
    let body = json!({
        "model": "smol", "input": "Hi", "instructions": "Be short.", "metadata": {"a": "b"}, "user": "me",
        "temperature": 0.5, "max_output_tokens": 99, "text": {"verbosity": "low"},
    });
    let answer = server.ask(respond(&body)).await;
    assert_eq!(answer.header("x-hob-ignored"), Some("text.verbosity,user"));
    let response = answer.json();
    let id = response["id"].as_str().expect("an id").to_owned();
    assert!(id.starts_with("resp_"), "{id}");
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(response["output"][0]["role"], "assistant");
    assert_eq!(
        response["usage"],
        json!({
            "input_tokens": 12, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 14,
        })
    );
    for (name, value) in [
        ("metadata", json!({"a": "b"})),
        ("instructions", json!("Be short.")),
        ("temperature", json!(0.5)),
        ("max_output_tokens", json!(99)),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("store", json!(true)),
        ("error", Value::Null),
    ] {
        assert_eq!(response[name], value, "{name}");
    }
    assert_eq!(seen(&model), [said(Role::System, "Be short."), said(Role::User, "Hi")]);
    let path = format!("/v1/responses/{id}");
    assert_eq!(server.get(&path).await.json(), response);
    assert_eq!(server.ask(post(&format!("{path}/cancel"), "{}")).await.json(), response);
    let input = server.get(&format!("{path}/input_items")).await.json();
    assert_eq!(input["data"][0]["content"], json!([{"type": "input_text", "text": "Hi"}]));
    assert_eq!(
        (&input["has_more"], input["data"].as_array().map(Vec::len)),
        (&json!(false), Some(1))
    );
    let deleted = server.ask(delete(&path)).await.json();
    assert_eq!(deleted, json!({"id": id, "object": "response", "deleted": true}));
    let gone = server.get(&path).await;
    assert_eq!(gone.error("code"), (404, json!("not_found")));
    assert_eq!(server.ask(delete(&path)).await.status(), 404);
}

#[tokio::test]
async fn a_stream_builds_the_response_event_by_event() {
    let think = |piece: &str| Ok(ChatEvent::Reasoning(piece.to_owned()));
    let calls = [call(0, "look", &["{\"a\"", ":1}"]), call(1, "wait", &[])].concat();
    let script =
        [vec![think("Hm"), think("."), text("Let me"), text(" see.")], calls, vec![done(9)]];
    let server = serve_chat(scripted([Ok(script.concat())])).await;
    let function = |name: &str| json!({"type": "function", "name": name});
    let body =
        json!({"input": "Hi", "stream": true, "tools": [function("look"), function("wait")]});
    let answer = server.ask(respond(&body)).await;
    let events = events(answer.text());
    let text_item = |kind: &str| {
        let delta = format!("{kind}.delta");
        let around = ["output_item.added", "content_part.added", &delta, &delta];
        let end = [&format!("{kind}.done"), "content_part.done", "output_item.done"];
        around.iter().chain(&end).map(|name| (*name).to_owned()).collect::<Vec<String>>()
    };
    let arguments = "function_call_arguments";
    let expected = [
        vec!["created".to_owned(), "in_progress".to_owned()],
        text_item("reasoning_text"),
        text_item("output_text"),
        vec!["output_item.added".to_owned()],
        vec![format!("{arguments}.delta"), format!("{arguments}.delta")],
        vec!["output_item.added".to_owned()],
        vec![format!("{arguments}.done"), "output_item.done".to_owned()],
        vec![format!("{arguments}.done"), "output_item.done".to_owned()],
        vec!["completed".to_owned()],
    ];
    assert_eq!(kinds(&events), expected.concat());
    let last = &events.last().expect("an event")["response"];
    assert_eq!(events[0]["response"]["status"], "in_progress");
    assert_eq!(events[0]["response"]["output"], json!([]));
    let output = last["output"].as_array().expect("items");
    let shown: Vec<_> = output.iter().map(|item| item["type"].as_str().expect("a type")).collect();
    assert_eq!(shown, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(output[1]["content"][0]["text"], "Let me see.");
    assert_eq!(
        (&output[2]["arguments"], &output[2]["call_id"]),
        (&json!("{\"a\":1}"), &json!("call_look"))
    );
    assert_eq!(output[3]["arguments"], "{}");
    // Every whole item of an event is the item of the response.
    let items = events.iter().filter(|event| event["type"] == "response.output_item.done");
    assert_eq!(items.map(|event| event["item"].clone()).collect::<Vec<_>>(), *output);
    assert_eq!(&server.get(&path_of(last)).await.json(), last);
}

#[tokio::test]
async fn the_loading_of_the_model_is_shown_and_not_stored() {
    let loading = ModelState::Loading { ready_in: Duration::from_secs(7) };
    let model = Arc::new(StagedChat::new().with_state(loading));
    let server = serve_chat_with(Arc::clone(&model), talkative()).await;
    let sender = model.stage();
    let mut client = server.client().await;
    let body = json!({"input": "Hi", "stream": true, "loading_status": true});
    client.send(respond(&body)).await;
    assert_eq!(client.head().await.status, 200);
    let mut shown = client.chunk().await.expect("a chunk").expect("no end");
    send_all(&sender, [Ok(ChatEvent::Reasoning("Hm.".to_owned())), text("Hello"), done(1)]).await;
    shown.extend(client.chunks().await);
    let events = events(&String::from_utf8(shown).expect("text"));
    let response = &events.last().expect("an event")["response"];
    let output = response["output"].as_array().expect("items");
    let said = output[0]["content"][0]["text"].as_str().expect("a text");
    assert!(said.starts_with("smol is being loaded, about 7 s left.\n"), "{said}");
    let path = path_of(response);
    assert_eq!(server.get(&path).await.json()["output"], json!(output[1..]));
    assert_eq!(output[1]["content"][0]["text"], "Hm.");
    let replayed = server.get(&format!("{path}?stream=true")).await;
    assert!(replayed.text().contains(output[2]["id"].as_str().expect("an id")));
}

#[tokio::test]
async fn a_request_continues_a_response_with_its_calls_but_not_its_instructions() {
    let first = [vec![text("I look.")], call(0, "look", &["{\"a\":1}"]), vec![done(3)]].concat();
    let model =
        scripted([Ok(first), Ok(vec![text("Sunny."), done(1)]), Ok(vec![text("Yes."), done(1)])]);
    let server = serve_chat(Arc::clone(&model)).await;
    let tools = json!([{"type": "function", "name": "look", "parameters": {"type": "object"}}]);
    let body = json!({"input": "Weather?", "instructions": "Be short.", "tools": tools});
    let first = server.ask(respond(&body)).await.json();
    let output = json!({"type": "function_call_output", "call_id": "call_look", "output": "sun"});
    let body = json!({"previous_response_id": first["id"], "input": [output], "tools": tools});
    let second = server.ask(respond(&body)).await.json();
    assert_eq!(second["previous_response_id"], first["id"]);
    let messages = last_messages(&model);
    let texts: Vec<_> = messages.iter().map(|message| (message.role, &*message.text)).collect();
    assert_eq!(
        texts,
        [(Role::User, "Weather?"), (Role::Assistant, "I look."), (Role::Tool, "sun")]
    );
    assert_eq!(messages[1].tool_calls[0].arguments.as_str(), "{\"a\":1}");
    assert_eq!(messages[2].tool_call_id.as_deref(), Some("call_look"));
    // The third request names items of the first two, as clients do that keep ids alone.
    let named = |response: &Value, at: usize| json!({"type": "item_reference", "id": response["output"][at]["id"]});
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        named(&first, 0), named(&second, 0), {"role": "user", "content": "Sure?"},
    ]);
    assert_eq!(server.ask(respond(&json!({"input": input}))).await.status(), 200);
    let expected = [
        said(Role::User, "Weather?"),
        said(Role::Assistant, "I look."),
        said(Role::Assistant, "Sunny."),
        said(Role::User, "Sure?"),
    ];
    assert_eq!(seen(&model), expected);
    // Its end is deleted, and the response that continues it still has the whole conversation.
    let path = path_of(&first);
    assert_eq!(server.ask(delete(&path)).await.status(), 200);
    let path = format!("{}/input_items?order=asc&limit=2", path_of(&second));
    let page = server.get(&path).await.json();
    assert_eq!((&page["data"][0]["role"], &page["has_more"]), (&json!("user"), &json!(true)));
    let path = format!("{path}&after={}", page["last_id"].as_str().expect("an id"));
    let page = server.get(&path).await.json();
    let shown: Vec<_> =
        page["data"].as_array().expect("items").iter().map(|item| item["type"].clone()).collect();
    assert_eq!(
        (shown, &page["has_more"]),
        (vec![json!("function_call"), json!("function_call_output")], &json!(false))
    );
}

#[tokio::test]
async fn thinking_before_a_call_goes_back_to_the_model() {
    let thought = |said: &str| -> Vec<Event> { vec![Ok(ChatEvent::Reasoning(said.to_owned()))] };
    let first = [thought("Where?"), vec![text("I look.")], call(0, "look", &[]), vec![done(3)]];
    let second = [thought("So."), vec![text("Sunny."), done(2)]];
    let model = scripted([Ok(first.concat()), Ok(second.concat()), Ok(vec![done(0)])]);
    let server = serve_chat(Arc::clone(&model)).await;
    let tools = json!([{"type": "function", "name": "look", "parameters": {"type": "object"}}]);
    let mut last = server.ask(respond(&json!({"input": "Weather?", "tools": tools}))).await.json();
    let output = json!({"type": "function_call_output", "call_id": "call_look", "output": "sun"});
    for next in [output, json!({"role": "user", "content": "Sure?"})] {
        let body = json!({"previous_response_id": last["id"], "input": [next], "tools": tools});
        last = server.ask(respond(&body)).await.json();
    }
    let messages = last_messages(&model);
    let thoughts: Vec<_> = messages.iter().map(|message| message.reasoning.as_deref()).collect();
    assert_eq!(thoughts, [None, Some("Where?"), None, Some("So."), None]);
    assert_eq!(messages[1].tool_calls.len(), 1);
}

#[tokio::test]
async fn a_conversation_grows_with_each_response() {
    let answers = ["One.", "Two.", "Three."].map(|said| Ok(vec![text(said), done(1)]));
    let model = scripted(answers);
    let server = serve_chat(Arc::clone(&model)).await;
    let item = json!({"type": "message", "role": "developer", "content": "Count."});
    let made =
        server.ask(post("/v1/conversations", json!({"items": [item]}).to_string())).await.json();
    let id = made["id"].as_str().expect("an id");
    assert_eq!((&made["object"], &made["metadata"]), (&json!("conversation"), &json!({})));
    let body = json!({"conversation": id, "input": "Go", "store": false});
    let first = server.ask(respond(&body)).await.json();
    assert_eq!(first["conversation"], json!({"id": id}));
    let path = path_of(&first);
    assert_eq!(server.get(&path).await.status(), 404, "it was not to be stored");
    let body = json!({"conversation": {"id": id}, "input": "On", "stream": true});
    server.ask(respond(&body)).await;
    let expected = [
        said(Role::System, "Count."),
        said(Role::User, "Go"),
        said(Role::Assistant, "One."),
        said(Role::User, "On"),
    ];
    assert_eq!(seen(&model), expected);
    let reference = json!({"type": "item_reference", "id": first["output"][0]["id"]});
    let body = json!({"conversation": id, "input": [reference]});
    assert_eq!(server.ask(respond(&body)).await.status(), 200, "an item of the conversation");
    assert_eq!(seen(&model).last(), Some(&said(Role::Assistant, "One.")));
    let items = format!("/v1/conversations/{id}/items");
    let listed = server.get(&items).await.json();
    assert_eq!(listed["data"][0]["content"][0]["text"], "Three.", "the newest is first");
    let added = json!({"items": [{"role": "user", "content": "More"}]}).to_string();
    let added = server.ask(post(&items, added)).await.json();
    let one = format!("{items}/{}", added["data"][0]["id"].as_str().expect("an id"));
    assert_eq!(server.get(&one).await.json(), added["data"][0]);
    assert_eq!(server.ask(delete(&one)).await.json()["id"], id);
    assert_eq!(server.get(&one).await.status(), 404);
    assert_eq!(server.ask(delete(&one)).await.status(), 404);
    let path = format!("/v1/conversations/{id}");
    let changed = server.ask(post(&path, r#"{"metadata":{"k":"v"}}"#)).await.json();
    assert_eq!(changed["metadata"], json!({"k": "v"}));
    assert_eq!(changed, server.get(&path).await.json());
    assert_eq!(server.ask(delete(&path)).await.json()["object"], "conversation.deleted");
    let gone = server.ask(respond(&json!({"conversation": id, "input": "x"}))).await;
    assert_eq!(gone.status(), 404);
}

#[tokio::test]
async fn an_answer_that_breaks_off_fails_and_is_not_stored() {
    let server = serve_chat(scripted([Ok(vec![text("Hel"), Err(chat_lost())])])).await;
    let answer = server.ask(respond(&json!({"input": "Hi", "stream": true}))).await;
    let events = events(answer.text());
    let last = events.last().expect("an event");
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert!(
        last["response"]["error"]["message"].as_str().is_some_and(|why| why.contains("signal 9"))
    );
    let path = path_of(&last["response"]);
    assert_eq!(server.get(&path).await.status(), 404);
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_model() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    let body = respond(&json!({"model": "smol", "input": "Hi", "stream": true}));
    let (sender, client) = begun(&server, &model, body).await;
    client.leave(&sender).await;
}

#[tokio::test]
async fn a_limit_of_zero_or_below_is_no_limit() {
    let answer = || Ok(vec![text("Hello"), done(1)]);
    let model = scripted([answer(), answer()]);
    let server = serve_chat(Arc::clone(&model)).await;
    for limit in [0, -1] {
        let body = json!({"input": "Hi", "max_output_tokens": limit});
        let response = server.ask(respond(&body)).await.json();
        assert_eq!(response["max_output_tokens"], Value::Null, "{limit}");
    }
    let limits: Vec<_> = model.requests().iter().map(|request| request.tokens_max).collect();
    assert_eq!(limits, [None, None]);
}

#[tokio::test]
async fn an_answer_at_its_limit_is_incomplete() {
    let Ok(ChatEvent::Done(end)) = done(1) else { unreachable!("an end") };
    let end = Completion { finish: FinishReason::Length, ..end };
    let end = || Ok(ChatEvent::Done(end));
    let server =
        serve_chat(scripted([Ok(vec![text("Hel"), end()]), Ok(vec![text("Hel"), end()])])).await;
    let whole = server.ask(respond(&json!({"input": "Hi"}))).await.json();
    assert_eq!(whole["status"], "incomplete");
    assert_eq!(whole["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(whole["output"][0]["status"], "incomplete");
    let answer = server.ask(respond(&json!({"input": "Hi", "stream": true}))).await;
    assert_eq!(events(answer.text()).last().expect("an event")["type"], "response.incomplete");
}

#[tokio::test]
async fn an_answer_at_the_budget_of_its_team_is_complete() {
    let Ok(ChatEvent::Done(end)) = done(1) else { unreachable!("an end") };
    let spent = SpentBudget { unit: BudgetUnit::Turns, limit: 40, used: 40 };
    let end = Completion { finish: FinishReason::BudgetSpent(spent), ..end };
    let server = serve_chat(scripted([Ok(vec![text("Hel"), Ok(ChatEvent::Done(end))])])).await;
    let answer = server.ask(respond(&json!({"input": "Hi", "stream": true}))).await;
    let events = events(answer.text());
    let last = events.last().expect("an event");
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.completed"), &json!("completed"))
    );
    assert_eq!(last["response"]["hob"]["budget"]["unit"], "turns");
}

#[tokio::test]
async fn a_key_sees_its_own_responses_alone() {
    let model = scripted([Ok(vec![text("Mine."), done(1)])]);
    let options = with_keys([named("laptop", LAPTOP), named("phone", PHONE)]);
    let server: Server = crate::chat_model::serve_chat_with(model, options).await;
    let mine = server.ask(post_as(LAPTOP, "/v1/responses", r#"{"input":"Hi"}"#)).await.json();
    let id = mine["id"].as_str().expect("an id");
    let path = format!("/v1/responses/{id}");
    assert_eq!(server.ask(get_as(LAPTOP, &path)).await.status(), 200);
    assert_eq!(server.ask(get_as(PHONE, &path)).await.status(), 404);
    let body = json!({"input": "Hi", "previous_response_id": id}).to_string();
    let refused = server.ask(post_as(PHONE, "/v1/responses", &body)).await;
    assert_eq!(refused.json()["error"]["code"], "previous_response_not_found");
    let body =
        json!({"input": [{"type": "item_reference", "id": mine["output"][0]["id"]}]}).to_string();
    assert_eq!(server.ask(post_as(PHONE, "/v1/responses", &body)).await.status(), 404);
    assert_eq!(server.ask(get(&path)).await.status(), 401);
}

#[tokio::test]
async fn what_hob_cannot_do_is_refused_by_name() {
    let server = serve_chat(scripted([])).await;
    let table = r#"
        {"input": "Hi", "tools": [{"type": "web_search"}]} => tools[0].type web_search
        {"input": "Hi", "previous_response_id": "resp_x"} => previous_response_id input
        {"input": "Hi", "previous_response_id": "resp_x", "conversation": "conv_x"} => conversation previous_response_id
        {"model": "smol"} => input missing
        {"input": [{"type": "web_search_call", "id": "x"}]} => input[0].type web_search_call
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]} => input[0].content[0].type input_file
        {"input": [{"role": "user"}]} => input[0].content missing
        {"input": [{"role": "king", "content": "Hi"}]} => input[0].role must be one of system, developer, user, assistant, and is 'king'
        {"input": "Hi", "text": {"format": {"type": "xml"}}} => text.format.type json_schema
        {"input": "Hi", "tool_choice": {"type": "function", "name": "f"}} => tool_choice f
    "#;
    let rows = table.trim().lines().map(|row| {
        let (body, said) = row.trim().split_once(" => ").expect(row);
        (serde_json::from_str::<Value>(body).expect(body), said)
    });
    let long = json!({"input": "Hi", "metadata": {"a": "b".repeat(513)}});
    for (body, said) in rows.chain([(long, "metadata 512")]) {
        let (param, words) = said.split_once(' ').expect(said);
        let answer = server.ask(respond(&body)).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, Some(param)),
            "{body} {error}"
        );
        assert!(error["message"].as_str().is_some_and(|said| said.contains(words)), "{error}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_does_not_end_the_conversation() {
    let model = scripted([Ok(vec![text("Again."), done(1)])]);
    let server = serve_chat(Arc::clone(&model)).await;
    let input = json!([
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"path"},
        {"type": "function_call_output", "call_id": "a", "output": "no JSON"},
    ]);
    assert_eq!(server.ask(respond(&json!({"input": input}))).await.status(), 200);
    assert_eq!(last_messages(&model)[0].tool_calls[0].arguments.as_str(), "{}");
}

#[tokio::test]
async fn hosted_tools_next_to_functions_are_left_out() {
    let model = scripted([Ok(vec![text("Hi."), done(1)])]);
    let server = serve_chat(Arc::clone(&model)).await;
    let tools = json!([
        {"type": "web_search", "external_web_access": false},
        {"type": "function", "name": "shell", "parameters": {"type": "object"}},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
    ]);
    let answer = server.ask(respond(&json!({"input": "Hi", "tools": tools}))).await;
    let ignored = Some("tools.web_search,tools.custom");
    assert_eq!((answer.status(), answer.header("x-hob-ignored")), (200, ignored));
    let shown = answer.json()["tools"].clone();
    assert_eq!((shown[0]["name"].as_str(), &shown[1]), (Some("shell"), &Value::Null));
    let Prompt::Chat(asked) = model.requests().pop().expect("a request").prompt else {
        unreachable!("a conversation")
    };
    assert_eq!(asked.tools.len(), 1);
}

#[tokio::test]
async fn addresses_that_cannot_be_read_get_an_error_as_others() {
    let server = serve_chat(scripted([])).await;
    for (path, words) in [
        ("/v1/responses/%ff", "UTF-8"),
        ("/v1/conversations/conv_1/items/%ff", "UTF-8"),
        ("/v1/responses/resp_1/input_items?limit=0", "'limit' must be"),
        ("/v1/conversations/conv_1/items?order=%ff", "'order' must be"),
    ] {
        let answer = server.get(path).await;
        let message = answer.json()["error"]["message"].clone();
        assert_eq!(answer.status(), 400, "{path} {message}");
        assert!(message.as_str().is_some_and(|said| said.contains(words)), "{path} {message}");
    }
}

#[tokio::test]
async fn a_stored_response_is_sent_again_as_events() {
    let think = Ok(ChatEvent::Reasoning("Hm.".to_owned()));
    let calls = call(0, "look", &["{\"a\"", ":1}"]);
    let script = [vec![think, text("Let me"), text(" see.")], calls, vec![done(9)]];
    let server = serve_chat(scripted([Ok(script.concat())])).await;
    let body = json!({"input": "Hi", "tools": [{"type": "function", "name": "look"}]});
    let stored = server.ask(respond(&body)).await.json();
    let path = path_of(&stored);
    let answer = server.get(&format!("{path}?stream=true")).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let all = events(answer.text());
    let [created, .., completed] = &all[..] else { panic!("{all:?}") };
    assert_eq!(created["response"]["output"], json!([]));
    assert_eq!(completed["response"], stored);
    let done: Vec<&Value> =
        all.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let items: Vec<&Value> = done.iter().map(|event| &event["item"]).collect();
    assert_eq!(items, stored["output"].as_array().expect("items").iter().collect::<Vec<_>>());
    let is_text = |event: &&Value| event["type"] == "response.output_text.delta";
    let texts: Vec<&Value> = all.iter().filter(is_text).map(|event| &event["delta"]).collect();
    assert_eq!(texts, [&json!("Let me see.")]);

    let rest = server.get(&format!("{path}?stream=true&starting_after=3")).await;
    let numbers: Vec<u64> = rest
        .text()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .map(|event| event["sequence_number"].as_u64().expect("a number"))
        .collect();
    assert_eq!(numbers, (4..all.len() as u64).collect::<Vec<_>>());
    for (query, field) in
        [("stream=perhaps", "stream"), ("stream=true&starting_after=x", "starting_after")]
    {
        let refused = server.get(&format!("{path}?{query}")).await;
        assert_eq!(refused.error("param"), (400, json!(field)));
    }
}

#[tokio::test]
async fn errors_of_the_model_name_the_fields_of_this_route() {
    let invalid = |field| ModelError::InvalidField { field, reason: "does not fit".to_owned() };
    let broken = Ok(vec![text("{"), Err(invalid("response_format"))]);
    let refusals = [Err(invalid("response_format")), Err(invalid("max_tokens"))];
    let server = serve_chat(scripted(refusals.into_iter().chain([broken]))).await;
    for param in ["text.format", "max_output_tokens"] {
        let error = server.ask(respond(&json!({"input": "Hi"}))).await.json()["error"].clone();
        let message = format!("'{param}' does not fit");
        assert_eq!((&error["param"], &error["message"]), (&json!(param), &json!(message)));
    }
    let answer = server.ask(respond(&json!({"input": "Hi", "stream": true}))).await;
    let all = events(answer.text());
    let failed = &all.last().expect("an event")["response"];
    assert_eq!(failed["error"]["message"], "'text.format' does not fit");
}

#[tokio::test]
async fn tokens_are_counted_by_the_model_or_estimated() {
    let count = |body: Value| post("/v1/responses/input_tokens", body.to_string());
    let model = scripted([Ok(vec![done(0)])]);
    let server = serve_chat(Arc::clone(&model)).await;
    // A model of another server: 8 letters.
    let estimated = server.ask(count(json!({"model": "smol", "input": "Hi there"}))).await.json();
    let note = json!({"estimated": true});
    assert_eq!(
        estimated,
        json!({"object": "response.input_tokens", "input_tokens": 2, "hob": note})
    );
    assert!(model.requests().is_empty());

    let (lifecycle, _load_results) = StagedLifecycle::new();
    let server = server_with(model.clone(), Some(lifecycle), ServerOptions::default()).await;
    let tool = json!({"type": "function", "name": "look"});
    let body = json!({"input": "Hi there", "tools": [tool], "tool_choice": "required", "max_output_tokens": 9});
    let counted = server.ask(count(body)).await.json();
    assert_eq!(counted, json!({"object": "response.input_tokens", "input_tokens": 12}));
    let asked = model.requests().pop().expect("a request");
    assert_eq!(asked.tokens_max, Some(0));
    let Prompt::Chat(conversation) = asked.prompt else { panic!("a conversation") };
    assert_eq!(conversation.tool_choice, ToolChoice::Auto, "a call would need tokens");
}

#[tokio::test]
async fn what_the_responses_api_lacks_is_refused_with_a_reason() {
    let server = serve_chat(scripted([])).await;
    let compacted = server.ask(post("/v1/responses/compact", r#"{"model":"smol"}"#)).await;
    let message = compacted.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        compacted.status() == 501 && message.contains("send the conversation again"),
        "{message}"
    );
    let empty = server.ask(respond(&json!({"input": []}))).await;
    let message = empty.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(empty.status() == 400 && message.contains("'input' is empty"), "{message}");
}
