//! Requests of well-known clients, sent to the small model: all their tools fit and are accepted.
//! Open WebUI's request was recorded. Home Assistant's is generated, with as many tools and entities.

use serde_json::{Value, json};

use crate::User;
use crate::real_server::{Served, agent};

/// The request of Open WebUI 0.12.4 after a tool has answered: 36 tools, 25 kB. The descriptions were replaced by
/// others of the same length.
const OPEN_WEBUI: &str = include_str!("testdata/open-webui-tools.json");

/// Tokens of the prompt with these tools, as SmolLM2 counts them. The context used to be cut to 4,096.
const PROMPT_TOKENS_MIN: u64 = 5_500;

/// A server of the first layers of the local model. What it answers does not matter here. The settings continue the table
/// `chat`.
fn ready(stored: &[&str], settings: &str) -> (User, Served) {
    let user = User::with_only(stored);
    user.shallow_model("smollm2.gguf");
    let chat = "[transcription]\nload = \"first_request\"\n\
                [chat]\nmodel = \"smollm2.gguf\"\nthreads = 1\n";
    user.configure(&format!("{chat}{settings}"));
    let served = Served::start(&user).until_ready("smollm2");
    (user, served)
}

fn post(served: &Served, path: &str, body: &Value) -> (u16, String) {
    let mut answer = agent().post(format!("{}{path}", served.url)).send_json(body).expect(path);
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("a text"))
}

/// One server for both clients, because a server with its models takes seconds to start.
#[test]
fn open_webui_and_home_assistant_send_all_their_tools() {
    let alias = "[alias.fast]\nto = [\"smollm2\"]\n";
    let (_user, served) = ready(&["kokoro", "whisper-base"], alias);
    open_webui_chats_with_the_first_model_and_sends_all_its_tools(&served);
    home_assistant_s_tools_and_entities_fit(&served);
}

fn open_webui_chats_with_the_first_model_and_sends_all_its_tools(served: &Served) {
    let models = served.get("v1/models").body;
    let kinds: Vec<(&str, &str)> = models["data"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|model| {
            (model["id"].as_str().unwrap_or(""), model["hob"]["kind"].as_str().unwrap_or(""))
        })
        .collect();
    let sound = [("kokoro", "speech"), ("whisper-base", "transcription")];
    assert_eq!(kinds, [&[("smollm2", "chat"), ("fast", "chat")], &sound[..]].concat());
    let mut body: Value = serde_json::from_str(OPEN_WEBUI).expect("JSON");
    body["max_tokens"] = json!(8);
    body["stream_options"] = json!({"include_usage": true});
    for model in ["smollm2", "fast"] {
        body["model"] = json!(model);
        let (status, said) = post(served, "v1/chat/completions", &body);
        assert!(status == 200 && said.ends_with("data: [DONE]\n\n"), "{model}: {status} {said}");
        let events = said.lines().filter_map(|line| line.strip_prefix("data: {"));
        let events = events.map(|event| serde_json::from_str(&format!("{{{event}")).expect("JSON"));
        let events: Vec<Value> = events.collect();
        assert!(events.iter().all(|event| event.get("error").is_none()), "{said}");
        let prompt_tokens =
            events.iter().find_map(|event| event["usage"]["prompt_tokens"].as_u64());
        assert!(prompt_tokens > Some(PROMPT_TOKENS_MIN), "{model}: {prompt_tokens:?}");
        for shown in [
            served.get(&format!("v1/models/{model}")).body["hob"]["capabilities"].clone(),
            ollama_show(served, model)["capabilities"].clone(),
        ] {
            assert!(
                shown.as_array().is_some_and(|can| can.contains(&json!("tools"))),
                "{model}: {shown}"
            );
        }
    }
    let tags = served.get("api/tags").body;
    let sizes: Vec<&Value> =
        tags["models"].as_array().into_iter().flatten().map(|tag| &tag["size"]).collect();
    assert!(
        sizes.len() == 2 && sizes[0] == sizes[1] && sizes[0].as_u64() > Some(30_000_000),
        "{tags}"
    );
}

fn ollama_show(served: &Served, model: &str) -> Value {
    let (status, shown) = post(served, "api/show", &json!({"model": model}));
    assert_eq!(status, 200, "{shown}");
    serde_json::from_str(&shown).expect("JSON")
}

/// Home Assistant's intents have similar names and parameters.
fn intent(number: usize) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let list = json!({"type": "array", "items": {"type": "string", "enum": ["light", "switch", "cover", "fan"]}});
    json!({"type": "function", "function": {
        "name": format!("HassIntent{number}"),
        "description": "Turns a device or an entity on or off, opens it, or sets what it is to be. Use it for one area or one name.",
        "parameters": {"type": "object", "required": [], "properties": {
            "name": text("The name of the entity as it stands in the list"), "area": text("The area"),
            "floor": text("The floor"), "domain": list,
            "brightness": {"type": "integer", "minimum": 0, "maximum": 100, "description": "In percent"},
        }},
    }})
}

fn entity(number: usize) -> String {
    format!(
        "- names: Lamp number {number}\n  domain: light\n  state: 'on'\n  areas: Living Room\n  attributes:\n    brightness: '{number}'\n"
    )
}

fn home_assistant_s_tools_and_entities_fit(served: &Served) {
    let entities: String = (1..=40).map(entity).collect();
    let system = format!(
        "You are a voice assistant for Home Assistant. An overview of the devices:\n{entities}"
    );
    let body = json!({
        "model": "fast:latest", "stream": true, "think": false, "keep_alive": "300s",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": "Turn the lights off."}],
        "tools": (1..=27).map(intent).collect::<Vec<_>>(),
        "options": {"num_ctx": 8192, "num_predict": 8},
    });
    let (status, said) = post(served, "api/chat", &body);
    assert_eq!(status, 200, "{said}");
    let last: Value = serde_json::from_str(said.lines().last().unwrap_or("")).expect("JSON");
    assert!(
        last["done"] == true && last["prompt_eval_count"].as_u64() > Some(PROMPT_TOKENS_MIN),
        "{last}"
    );
}

/// Open WebUI asks for titles and tags so, in the background.
#[test]
fn a_request_without_a_limit_ends_at_the_limit_of_the_configuration() {
    let (_user, served) = ready(&[], "answer_tokens_max = 5\n");
    let messages = json!([{"role": "user", "content": "Suggest a title."}]);
    for (max_tokens, expected) in [(json!(null), 5), (json!(0), 5), (json!(-1), 5), (json!(7), 7)] {
        let body = json!({
            "model": "smollm2", "messages": messages, "ignore_eos": true, "max_tokens": max_tokens,
        });
        let (status, said) = post(&served, "v1/chat/completions", &body);
        let answer: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(
            (status, &answer["choices"][0]["finish_reason"], &answer["usage"]["completion_tokens"]),
            (200, &json!("length"), &json!(expected)),
            "{max_tokens}: {said}"
        );
    }
}
