//! `hob chat`, `hob ps`, `hob load` and `hob unload`, against a server with scripted models.
//! Input comes from pipes and from a terminal. Some tests of errors have no server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use hob_core::chat::{
    ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, Completion, Effort, EmbedRequest,
    Embeddings, FinishReason, OutputFormat, Prompt, Timings, Usage,
};
use hob_core::scripted::{ScriptedCall, ScriptedChat, ScriptedLifecycle};
use hob_core::{
    Admission, ModelError, ModelLifecycle, Registered, RegisteredModel, Registry, task,
};
use hob_server::{KeyDigest, KeyOptions, ServerOptions, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::loopback::{Answer, listen};
use crate::terminal::Terminal;
use crate::{Has, User, names, stderr, stdout};

/// A server with one model; it ends with the runtime.
pub(crate) fn serve_model<T: Registered>(
    model: RegisteredModel<T>,
    key: Option<&str>,
) -> (Runtime, SocketAddr) {
    let runtime = Runtime::new().expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut registry = Registry::default();
    registry.add(model);
    let key = key.map(|key| KeyOptions::new("default", KeyDigest::of(key).expect("a key")));
    let options = ServerOptions { keys: key.into_iter().collect(), ..ServerOptions::default() };
    runtime.handle().clone().spawn(serve(listener, registry, options, std::future::pending()));
    (runtime, address)
}

fn server(model: Arc<dyn ChatModel>, key: Option<&str>) -> (Runtime, SocketAddr) {
    let model = RegisteredModel::<task::Chat>::new("scripted", model, Admission::new(4, 0.5));
    let lifecycle = Some(Arc::new(ScriptedLifecycle::default()) as Arc<dyn ModelLifecycle>);
    serve_model(RegisteredModel { lifecycle, ..model }, key)
}

fn scripted(scripts: Vec<ScriptedCall<ChatEvent>>) -> (Arc<ScriptedChat>, Runtime, SocketAddr) {
    let model = Arc::new(ScriptedChat::new(scripts));
    let (runtime, address) = server(Arc::clone(&model) as Arc<dyn ChatModel>, None);
    (model, runtime, address)
}

fn done(finish: FinishReason) -> Result<ChatEvent, ModelError> {
    Ok(ChatEvent::Done(Completion {
        finish,
        usage: Usage {
            prompt_tokens: 45,
            cached_tokens: 30,
            completion_tokens: 41,
            reasoning_tokens: 0,
        },
        timings: Timings { predicted_ms: 400.0, ..Timings::default() },
    }))
}

fn says(pieces: &[&str]) -> ScriptedCall<ChatEvent> {
    let pieces = pieces.iter().map(|piece| Ok(ChatEvent::Text((*piece).to_owned())));
    Ok(pieces.chain([done(FinishReason::Stop)]).collect())
}

fn thinks() -> ScriptedCall<ChatEvent> {
    Ok(vec![
        Ok(ChatEvent::Reasoning("hm".to_owned())),
        Ok(ChatEvent::Text("Hi".to_owned())),
        done(FinishReason::Stop),
    ])
}

/// Each message as `role: text`.
fn said(request: &ChatRequest) -> Vec<String> {
    let Prompt::Chat(conversation) = &request.prompt else { return Vec::new() };
    let messages = conversation.messages.iter();
    messages.map(|message| format!("{}: {}", message.role.name(), message.text)).collect()
}

#[test]
fn an_answer_goes_to_stdout_and_what_it_took_to_stderr() {
    let user = User::new();
    let (model, _server, address) = scripted(vec![says(&["Good ", "evening."])]);
    let url = address.to_string();
    let line = format!("chat --server {url} --system 'be brief' --temperature 0.5 Say hi.");
    let answered = user.hob(line).assert().success();
    assert_eq!(stdout(&answered), "Good evening.\n");
    let took = stderr(&answered);
    let (begins, ends) =
        ("41 tokens, 100 tokens/s, first token after ", " 45 tokens (30 cached)\n");
    assert!(took.starts_with(begins) && took.ends_with(ends), "{took}");
    let [request] = &model.requests()[..] else { panic!("one request") };
    assert_eq!(said(request), ["system: be brief", "user: Say hi."]);
    assert_eq!(request.sampling.temperature, Some(0.5));
}

#[test]
fn stdin_is_the_prompt_or_stands_behind_it() {
    let user = User::new();
    let (model, _server, address) = scripted(vec![says(&["1"]), says(&["2"]), says(&["3"])]);
    let url = address.to_string();
    let chat = |words: &str, stdin: &str| {
        let line = format!("chat --no-stats --server {url} {words}");
        let answered = user.hob(line).write_stdin(stdin).assert().success();
        assert_eq!(stderr(&answered), "");
    };
    chat("", "one?\n");
    chat("-", "two?");
    chat("'What is this?'", "three");
    let asked: Vec<_> = model.requests().iter().flat_map(said).collect();
    assert_eq!(asked, ["user: one?\n", "user: two?", "user: What is this?\n\nthree"]);
    let nothing = user.hob(format!("chat --server {url}")).write_stdin(" \n").assert().code(2);
    stderr(&nothing).has(&["there is no prompt"]);
    let broken = user.hob(format!("chat --server {url}")).write_stdin(&b"caf\xe9"[..]).assert();
    assert!(stderr(&broken.code(2)).contains("not UTF-8 at byte 3"));
}

#[test]
fn thinking_is_shown_on_wish_and_never_on_stdout() {
    let user = User::new();
    let (_model, _server, address) = scripted(vec![thinks(), thinks()]);
    let url = address.to_string();
    let chat = format!("chat --no-stats --server {url} hi");
    let quiet = user.hob(&chat).assert().success();
    assert_eq!((stdout(&quiet).as_str(), stderr(&quiet).as_str()), ("Hi\n", ""));
    let shown = user.hob(format!("{chat} --show-thinking")).assert().success();
    assert_eq!((stdout(&shown).as_str(), stderr(&shown).as_str()), ("Hi\n", "hm\n"));
}

#[test]
fn thinking_between_texts_has_lines_of_its_own() {
    let user = User::new();
    let text = |piece: &str| Ok(ChatEvent::Text(piece.to_owned()));
    let thought = Ok(ChatEvent::Reasoning("hm".to_owned()));
    let script = vec![text("One."), thought, text("Two."), done(FinishReason::Stop)];
    let (_model, _server, address) = scripted(vec![Ok(script)]);
    let url = address.to_string();
    let line = format!("chat --no-stats --show-thinking --server {url} hi");
    let shown = user.hob(line).assert().success();
    assert_eq!((stdout(&shown).as_str(), stderr(&shown).as_str()), ("One.Two.\n", "\nhm\n"));
}

#[test]
fn programs_get_one_json_object() {
    let user = User::new();
    let (model, _server, address) = scripted(vec![thinks()]);
    user.write("schema.json", "{\"type\": \"string\"}");
    let url = address.to_string();
    let flags = "--schema schema.json --seed 7 --effort low --max-tokens 9";
    let json = user.json(format!("chat --json --server {url} hi {flags}"));
    assert_eq!(json["model"], "scripted");
    assert_eq!((&json["text"], &json["reasoning"]), (&"Hi".into(), &"hm".into()));
    assert_eq!(json["finish_reason"], "stop");
    assert_eq!(json["usage"]["total_tokens"], 86);
    assert_eq!(json["timings"]["tokens_per_second"], 100.0);
    assert!(json["timings"]["first_token_ms"].as_f64().expect("a time") > 0.0);
    let [request] = &model.requests()[..] else { panic!("one request") };
    assert!(matches!(request.output, OutputFormat::JsonSchema(_)), "{request:?}");
    assert_eq!((request.sampling.seed, request.tokens_max), (Some(7), Some(9)));
    assert_eq!(request.thinking.effort, Some(Effort::Low));
}

#[test]
fn a_flag_for_a_load_is_said_to_have_no_effect_on_a_server() {
    let user = User::new();
    let (_model, _server, address) = scripted(vec![says(&["1"]), says(&["2"])]);
    let url = address.to_string();
    let chat = format!("chat --no-stats --server {url} hi");
    assert_eq!(user.notes(&chat), "");
    let flags = "--context 512 --device cpu --gpu-layers 3 --cpu-moe 1";
    let said = user.notes(format!("{chat} {flags}"));
    for (flag, key) in [
        ("--context", "chat.context_tokens"),
        ("--device", "chat.device"),
        ("--gpu-layers", "chat.gpu_layers"),
        ("--cpu-moe", "chat.cpu_moe_layers"),
    ] {
        let sentence = format!(
            "{flag} has no effect, because http://{address} loads the model: set {key} in its hob.toml, or stop \
             that server\n"
        );
        assert!(said.contains(&sentence), "{said}");
    }
}

#[test]
fn an_answer_that_was_cut_off_is_marked() {
    let user = User::new();
    let cut = Ok(vec![Ok(ChatEvent::Text("Go".to_owned())), done(FinishReason::Length)]);
    let (_model, _server, address) = scripted(vec![cut]);
    let said = user.hob(format!("chat --server {address} hi")).assert().success();
    let said = stderr(&said);
    assert!(said.starts_with("cut off: token limit reached (raise --max-tokens), "), "{said}");
    assert!(said.contains("or text that repeats itself (ask in other words)\n"), "{said}");
}

#[test]
fn an_answer_that_breaks_off_is_a_failure_after_its_text() {
    let user = User::new();
    let lost = ModelError::WorkerLost { engine: "chat", detail: "killed".to_owned() };
    let script = Ok(vec![Ok(ChatEvent::Text("Go".to_owned())), Err(lost)]);
    let (_model, _server, address) = scripted(vec![script]);
    let said = user.hob(format!("chat --server {address} hi")).assert().code(5);
    assert_eq!(stdout(&said), "Go\n");
    stderr(&said).has(&["the chat worker ended unexpectedly"]);
}

#[test]
fn the_hob_that_runs_here_answers_without_being_named() {
    let user = User::new();
    let (model, _server, address) = scripted(vec![says(&["1"]), says(&["2"])]);
    user.configure(&format!("[server]\nlisten = \"{address}\"\n"));
    assert_eq!(user.prints("chat hi"), "1\n");
    assert_eq!(user.prints("chat -m scripted hi"), "2\n");
    assert_eq!(model.requests().len(), 2);
    // If the running hob does not have a model, the command itself looks for it.
    for model in ["smollm2", "./none.gguf"] {
        let said = user.refusal(format!("chat -m {model} hi"), 3);
        assert!(!said.contains(&address.to_string()), "{said}");
    }
}

#[test]
fn a_server_s_refusal_is_shown_in_its_words() {
    let user = User::new();
    let too_long = ModelError::TooLong { needed: 9000, available: 8192 };
    let model = Arc::new(ScriptedChat::new([Err(too_long)]));
    let (_server, address) = server(model, Some("abracadabra"));
    let args = format!("chat --server {address} hi");
    user.fails(&args, 2, "HOB_API_KEY");
    let said = user.hob(&args).env("HOB_API_KEY", "abracadabra").assert().code(2);
    stderr(&said).has(&["maximum context length is 8192 tokens"]);
    let args = format!("{args} -m other");
    stderr(&user.hob(args).env("HOB_API_KEY", "abracadabra").assert().code(3)).has(&["other"]);
}

#[test]
fn each_mistake_has_its_exit_code_and_sentence() {
    let user = User::new().configured("[server]\nlisten = \"127.0.0.1:1\"\n");
    user.write("list.json", "[]");
    user.write("text.json", "what?");
    let rows = [
        ("chat hi", 3, "hob pull"),
        ("chat --server 127.0.0.1:1 hi", 5, "check that `hob serve` runs there"),
        ("chat --schema none.json hi", 2, "cannot read the schema"),
        ("chat --schema /dev/zero hi", 2, "/dev/zero: it is not a regular file"),
        ("chat --schema list.json hi", 2, "is not a JSON object (expected a JSON schema)"),
        ("chat --schema text.json hi", 2, "text.json is not valid JSON"),
        ("chat --temperature 3 hi", 2, "expected a number from 0 to 2"),
        ("chat --effort huge hi", 2, "[possible values: none, minimal, low"),
        ("chat --max-tokens 0 hi", 2, "--max-tokens"),
        ("load m --keep-alive soon", 2, "'soon' is not a time"),
    ];
    for (args, code, expected) in rows {
        user.fails(args, code, expected);
    }
}

#[test]
fn a_conversation_at_a_terminal() {
    let user = User::new();
    let (model, _server, address) = scripted(vec![thinks(), says(&["two"]), says(&["again"])]);
    let mut talk = Terminal::start(user.process(format!("chat --server {address}")));
    talk.wait_for("scripted at http://");
    talk.next("one?\r");
    talk.wait_for("hm");
    talk.wait_for("Hi\r\n");
    talk.wait_for("41 tokens, 100 tokens/s");
    // The arrow key recalls the previous line.
    talk.next("\u{1b}[A\r");
    talk.wait_for("two\r\n");
    talk.next("/regenerate\r");
    talk.wait_for("again\r\n");
    talk.next("/save talk.md\r");
    talk.wait_for("saved as talk.md");
    talk.next("\u{4}");
    talk.end(0);
    let asked: Vec<_> = model.requests().iter().map(said).collect();
    let all = ["user: one?", "assistant: Hi", "user: one?"];
    assert_eq!(asked, [&all[..1], &all, &all].map(<[&str]>::to_vec));
    assert_eq!(names(&user.path("work")), ["talk.md"]);
    assert_eq!(names(&user.path("home")), Vec::<String>::new(), "no history is kept");
}

#[test]
fn a_dash_reads_the_prompt_from_a_terminal_too() {
    let user = User::new();
    let (model, _server, address) = scripted(vec![says(&["Hi"])]);
    let mut once = Terminal::start(user.process(format!("chat --server {address} -")));
    once.press("one?\n\u{4}");
    once.end(0);
    let asked: Vec<_> = model.requests().iter().flat_map(said).collect();
    assert_eq!(asked, ["user: one?\n"]);
}

/// Says a few words, and then nothing more.
struct Endless(ChatCard);

impl ChatModel for Endless {
    fn card(&self) -> &ChatCard {
        &self.0
    }

    fn chat(&self, _request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        let said = stream::iter([Ok(ChatEvent::Text("well, ".to_owned()))]);
        async { Ok(said.chain(stream::pending()).boxed()) }.boxed()
    }

    fn embed(&self, _request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        async { Err(ModelError::NoTemplate) }.boxed()
    }
}

#[test]
fn ctrl_c_stops_an_answer_and_not_the_conversation() {
    let user = User::new();
    let card = ChatCard { template: Some(String::new()), ..ChatCard::default() };
    let (_server, address) = server(Arc::new(Endless(card)), None);
    let mut talk = Terminal::start(user.process(format!("chat --server {address}")));
    talk.next("one?\r");
    talk.wait_for("well, ");
    talk.interrupt();
    talk.wait_for("stopped");
    // At the prompt, Ctrl-C is an ordinary key, and hob says how to leave.
    talk.next("\u{3}");
    talk.wait_for("/exit to exit");
    talk.next("/exit\r");
    talk.end(0);
}

#[test]
fn a_single_answer_ends_with_ctrl_c() {
    let user = User::new();
    let card = ChatCard { template: Some(String::new()), ..ChatCard::default() };
    let (_server, address) = server(Arc::new(Endless(card)), None);
    let mut once = Terminal::start(user.process(format!("chat --server {address} hi")));
    once.wait_for("well, ");
    once.interrupt();
    once.end(130);
}

#[test]
fn models_are_loaded_listed_and_unloaded() {
    let user = User::new();
    let (_model, _server, address) = scripted(Vec::new());
    user.configure(&format!("[server]\nlisten = \"{address}\"\n"));
    let ps = || user.prints("ps");
    let line = |list: &str| {
        let line = list.lines().nth(1).unwrap_or_default().split_whitespace();
        line.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line(&ps()), "scripted chat cold 191 MB - - 8192 0 -");
    let loaded = user.hob("load scripted --keep-alive 10m").assert().success();
    assert_eq!(stderr(&loaded), "scripted is loaded\n");
    assert_eq!(line(&ps()), "scripted chat warm 191 MB - - 8192 0 never");
    let json = user.json("ps --json");
    assert_eq!((&json[0]["name"], &json[0]["state"]), (&"scripted".into(), &"warm".into()));
    let unloaded = user.hob("unload scripted").assert().success();
    assert_eq!(stderr(&unloaded), "scripted is unloaded\n");
    assert_eq!(line(&ps()), "scripted chat cold 191 MB - - 8192 0 -");
    for verb in ["load", "unload"] {
        user.fails(format!("{verb} scriptet"), 3, "scripted");
    }
}

#[test]
fn a_model_that_answers_to_its_end_is_not_called_unloaded() {
    let user = User::new();
    let busy = r#"{"name":"m","kind":"chat","state":"warm","vram_bytes":0,"in_flight":1}"#;
    let url = listen(move |_| Answer::ok(busy.into()));
    let unloaded = user.hob(format!("unload m --server {url}")).assert().success();
    assert_eq!(stderr(&unloaded), "m will be unloaded after its answers\n");
}

#[test]
fn without_a_server_they_say_how_to_start_one() {
    let user = User::new().configured("[server]\nlisten = \"127.0.0.1:1\"\n");
    for args in ["ps", "load smollm2", "unload smollm2"] {
        stderr(&user.hob(args).timeout(Duration::from_secs(60)).assert().code(5))
            .has(&["http://127.0.0.1:1 does not answer", "start a server with `hob serve`"]);
        let there = format!("{args} --server 127.0.0.1:1");
        user.fails(there, 5, "check that `hob serve` runs there");
    }
}
