//! Conversations with a scripted model and scripted input.

use std::collections::VecDeque;
use std::sync::Arc;

use clap::Parser;
use hob_core::ModelError;
use hob_core::chat::{
    ChatEvent, ChatModel, Completion, Effort, FinishReason, Message, Prompt, Timings, Usage,
};
use hob_core::scripted::{ScriptedCall, ScriptedChat, ScriptedLifecycle};

use super::*;
use crate::folders::Folders;
use crate::printer::{Printer, Volume};
use crate::settings::{Environment, Overrides, Settings};

#[derive(Parser)]
struct Typing {
    #[command(flatten)]
    args: ChatArgs,
}

/// Types these lines, then leaves.
struct ScriptedInput(VecDeque<Input>);

impl ScriptedInput {
    fn typing(lines: &[&str]) -> ScriptedInput {
        ScriptedInput(lines.iter().map(|line| Input::Line((*line).to_owned())).collect())
    }
}

impl Lines for ScriptedInput {
    async fn next(&mut self, _prompt: &'static str) -> CliResult<Input> {
        Ok(self.0.pop_front().unwrap_or(Input::End))
    }
}

fn app(printer: &Printer) -> App<'_> {
    let folders = Folders { data: Some("/nowhere".into()), ..Folders::default() };
    let environment = Environment { folders, ..Environment::default() };
    let written = crate::config::LoadedConfig::default();
    let settings =
        Settings::resolve(&Overrides::default(), &environment, &written).expect("settings");
    App { environment, written, settings, printer }
}

fn says(text: &str) -> ScriptedCall<ChatEvent> {
    let usage =
        Usage { prompt_tokens: 9, cached_tokens: 4, completion_tokens: 2, reasoning_tokens: 0 };
    let done = Completion { finish: FinishReason::Stop, usage, timings: Timings::default() };
    Ok(vec![Ok(ChatEvent::Text(text.to_owned())), Ok(ChatEvent::Done(done))])
}

/// The result of a conversation.
struct ChatResult {
    ended: CliResult<()>,
    asked: Vec<Vec<String>>,
    requests: Vec<ChatRequest>,
    markdown: String,
    totals: Totals,
}

async fn converse(
    options: &[&str],
    scripts: Vec<ScriptedCall<ChatEvent>>,
    mut hands: ScriptedInput,
) -> ChatResult {
    let model = Arc::new(ScriptedChat::new(scripts));
    let args = Typing::parse_from([&["chat"], options].concat()).args;
    let printer = Printer::new(Volume::ErrorsOnly);
    let app = app(&printer);
    let source = Source::Here {
        name: "scripted".to_owned(),
        model: Arc::clone(&model) as Arc<dyn ChatModel>,
        lifecycle: Arc::new(ScriptedLifecycle::default()),
    };
    let options = super::super::options(&args).expect("options");
    let mut session = Session::new(&args, &app, source, options);
    session.text = TextShown::AtTheEnd;
    let mut signals = StopSignals::listen().expect("signals");
    let ended = session.converse(&mut hands, &mut signals).await;
    let (markdown, totals) = (session.history.markdown(), session.totals);
    let requests = model.requests();
    let asked = requests.iter().map(|request| said(&request.prompt)).collect();
    ChatResult { ended, asked, requests, markdown, totals }
}

fn said(prompt: &Prompt) -> Vec<String> {
    let Prompt::Chat(conversation) = prompt else { return Vec::new() };
    let line = |Message { role, text, .. }: &Message| format!("{}: {text}", role.name());
    conversation.messages.iter().map(line).collect()
}

#[tokio::test]
async fn the_whole_conversation_is_sent_each_turn() {
    let hands = ScriptedInput::typing(&["one?", "", "two\\", "lines?"]);
    let held = converse(&["--system", "be brief"], vec![says("1"), says("2")], hands).await;
    assert_eq!(held.ended, Ok(()));
    let first = ["system: be brief", "user: one?"].map(str::to_owned).to_vec();
    let more = ["assistant: 1", "user: two\nlines?"].map(str::to_owned);
    assert_eq!(held.asked, [first.clone(), [first, more.to_vec()].concat()]);
    let totals = Totals { answers: 2, prompt_tokens: 18, cached_tokens: 8, completion_tokens: 4 };
    assert_eq!(held.totals, totals);
    let line = "4 tokens in 2 answers, to 18 tokens of prompts (8 cached)";
    assert_eq!(held.totals.to_string(), line);
}

#[tokio::test]
async fn orders_change_what_is_asked_next() {
    let lines = ["one?", "/new", "/system be kind", "/no_think", "two?", "/exit", "three?"];
    let held =
        converse(&["--seed", "7"], vec![says("1"), says("2")], ScriptedInput::typing(&lines)).await;
    assert_eq!(held.asked[1], ["system: be kind", "user: two?"]);
    assert_eq!(held.asked.len(), 2, "nothing is asked after /exit");
    let efforts = held.requests.iter().map(|request| request.thinking.effort);
    assert_eq!(efforts.collect::<Vec<_>>(), [None, Some(Effort::None)]);
}

#[tokio::test]
async fn an_answer_again_comes_from_another_seed() {
    let lines = ["/regenerate", "one?", "/regenerate"];
    let held =
        converse(&["--seed", "7"], vec![says("1"), says("2")], ScriptedInput::typing(&lines)).await;
    assert_eq!(held.asked, [["user: one?"], ["user: one?"]]);
    let seeds = held.requests.iter().map(|request| request.sampling.seed);
    assert_eq!(seeds.collect::<Vec<_>>(), [Some(7), Some(8)]);
    assert_eq!(held.markdown, "## user\n\none?\n\n## assistant\n\n2\n\n");
}

#[tokio::test]
async fn an_answer_stays_if_there_is_no_new_one() {
    let too_long = ModelError::TooLong { needed: 9000, available: 8192 };
    let lines = ["one?", "/regenerate", "two?"];
    let scripts = vec![says("1"), Err(too_long), says("2")];
    let held = converse(&[], scripts, ScriptedInput::typing(&lines)).await;
    assert_eq!(held.asked[2], ["user: one?", "assistant: 1", "user: two?"]);
}

#[tokio::test]
async fn a_question_that_failed_is_taken_back_and_the_conversation_goes_on() {
    let too_long = ModelError::TooLong { needed: 9000, available: 8192 };
    let lost = ModelError::WorkerLost { engine: "chat", detail: "killed".to_owned() };
    let half = Ok(vec![Ok(ChatEvent::Text("ha".to_owned())), Err(lost)]);
    let scripts = vec![Err(too_long), half, says("3")];
    let hands =
        ScriptedInput::typing(&["one?", "/sistem", "/effort huge", "/save", "two?", "three?"]);
    let held = converse(&[], scripts, hands).await;
    assert_eq!(held.ended, Ok(()));
    assert_eq!(held.asked[1], ["user: two?"], "the first was taken back");
    assert_eq!(held.asked[2], ["user: two?", "assistant: ha", "user: three?"]);
}

#[tokio::test]
async fn a_conversation_is_saved_and_no_file_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("history.json");
    let save = format!("/save {}", place.display());
    let early = folder.path().join("early.md");
    let too_early = format!("/save {}", early.display());
    let lines = [&too_early, "one?", &save, "/new", "two?", &save];
    let held = converse(&[], vec![says("1"), says("2")], ScriptedInput::typing(&lines)).await;
    assert_eq!(held.ended, Ok(()));
    assert!(!early.exists(), "nothing was said by then");
    let saved = fs_err::read_to_string(&place).expect("a file");
    let saved: serde_json::Value = serde_json::from_str(&saved).expect("JSON");
    assert_eq!(saved["messages"][1]["content"], "1", "the second /save replaced nothing");
}
