//! `hob chat`: answers one prompt, or starts a conversation in a terminal.
//! It keeps no text. A conversation is lost unless the user saves it.

mod interactive;
mod lines;
mod slash_command;
mod terminal;

use std::io::{self, IsTerminal};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hob_core::chat::{Effort, OutputFormat, Sampling, Thinking};
use hob_core::{ChatRequest, JsonText};
use serde_json::Value;

use crate::app::{App, block_on};
use crate::arguments::{number, one_of};
use crate::bounded_file::read_text_once;
use crate::chatting::{
    ChatHistory, Reply, Show, Source, SourceOptions, TextShown, ThinkingShown, figures, record,
    warning,
};
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::settings::{Overrides, PlaceFlags};
use crate::signals::StopSignals;
use crate::stdin_text::StdinText;

/// Maximum bytes of a prompt, longer than any context. The model reports a prompt that is too long for it.
const PROMPT_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of a JSON schema.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// Chat with a model: one answer to a prompt, or a conversation
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ChatArgs {
    /// The prompt, or "-" for stdin; piped text is appended. With neither, a conversation starts
    prompt: Vec<String>,
    /// The system message
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    #[command(flatten)]
    source: SourceOptions,
    /// Sampling temperature, from 0 (always the likeliest token) to 2
    #[arg(long, value_name = "NUMBER", value_parser = temperature)]
    temperature: Option<f32>,
    /// Seed; the same seed and prompt give the same answer
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Maximum tokens of the answer, thinking included
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<NonZeroU32>,
    /// How much to think before answering
    #[arg(long, value_parser = one_of(Effort::ALL.map(|effort| (effort.name(), "", effort))))]
    effort: Option<Effort>,
    /// Show the thinking even if the output is not a terminal
    #[arg(long)]
    show_thinking: bool,
    /// A file with a JSON schema that the answer must follow
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Context length in tokens, if this command loads the model itself
    #[arg(long, value_name = "TOKENS")]
    context: Option<NonZeroU32>,
    #[command(flatten)]
    place: PlaceFlags,
    /// Print the answer as JSON, with thinking, usage and timings
    #[arg(long)]
    json: bool,
    /// Leave out the line with token counts and times
    #[arg(long)]
    no_stats: bool,
}

const AFTER_HELP: &str = "\
Examples:
  hob chat \"Tell me a story.\"
  hob chat
  git diff | hob chat \"Write a commit message for this.\"
  hob chat --server http://nas:8484 -m qwen3 \"Good evening.\"
  hob chat --schema person.json --json \"Invent a person.\"

In a conversation, /help lists what can be done; Ctrl-C stops an answer, Ctrl-D leaves. The
arrow keys recall earlier input. hob keeps it in memory only, because it may be private.";

fn temperature(text: &str) -> Result<f32, String> {
    number(text, |number| (0.0..=2.0).contains(number), "a number from 0 to 2")
}

pub(crate) fn run(args: &ChatArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let flags = Overrides {
        chat_model: args.source.model.clone(),
        context_tokens: args.context,
        place: args.place.clone(),
        ..Overrides::default()
    };
    let app = App::open(globals, flags, printer)?;
    let options = options(args)?;
    let is_interactive = args.prompt.is_empty() && io::stdin().is_terminal();
    if is_interactive && args.json {
        return Err(Failure::usage("--json needs a prompt").hint(
            "for example hob chat --json \"Good evening.\"; use /save to save a conversation",
        ));
    }
    block_on(async {
        let mut signals = StopSignals::listen()?;
        if is_interactive {
            interactive::run(args, &app, options, &mut signals).await
        } else {
            signals.or(once(args, &app, options)).await
        }
    })
}

/// One prompt, one answer.
async fn once(args: &ChatArgs, app: &App<'_>, options: ChatRequest) -> CliResult<Exit> {
    let mut history = ChatHistory::new(args.system.clone());
    history.ask(prompt(&args.prompt).await?);
    let source = find_source(args, app).await?;
    let answered = answer_once(args, app, &source, history.request(&options)).await;
    source.leave().await;
    answered.map(|()| Exit::Done)
}

async fn answer_once(
    args: &ChatArgs,
    app: &App<'_>,
    source: &Source,
    request: ChatRequest,
) -> CliResult<()> {
    let text = if args.json { TextShown::AtTheEnd } else { TextShown::AsItComes };
    let mut show = Show::new(app.printer, text, thinking_shown(args));
    let mut reply = Reply::default();
    let asked = Instant::now();
    let answer = source.ask(request).await?;
    let taken = reply.take(answer, &mut show, asked).await;
    show.end()?;
    taken?;
    if args.json {
        app.printer.json(&record(source.name(), &reply))?;
    }
    print_stats(args, app.printer, &reply);
    Ok(())
}

/// Prints the warning and the figures after an answer.
fn print_stats(args: &ChatArgs, printer: &Printer, reply: &Reply) {
    if let Some(warning) = warning(reply) {
        printer.note(warning);
    }
    if let (Some(figures), false) = (figures(reply), args.no_stats) {
        printer.faint(figures);
    }
}

/// Finds who answers. If a server loads the model, a note names each flag that has no effect.
async fn find_source(args: &ChatArgs, app: &App<'_>) -> CliResult<Source> {
    let source = Source::find(&args.source, app).await?;
    if let Source::There { remote, .. } = &source {
        for (flag, key) in load_flags(args) {
            app.printer.note(format_args!(
                "{flag} has no effect, because {} loads the model: set {key} in its hob.toml, or stop that server",
                remote.base()
            ));
        }
    }
    Ok(source)
}

/// The flags that count if this command loads the model, each with its key in hob.toml.
fn load_flags(args: &ChatArgs) -> impl Iterator<Item = (&'static str, &'static str)> {
    let PlaceFlags { device, gpu_layers, cpu_moe_layers } = &args.place;
    let flags = [
        (args.context.is_some(), ("--context", "chat.context_tokens")),
        (device.is_some(), ("--device", "chat.device")),
        (gpu_layers.is_some(), ("--gpu-layers", "chat.gpu_layers")),
        (cpu_moe_layers.is_some(), ("--cpu-moe", "chat.cpu_moe_layers")),
    ];
    flags.into_iter().filter_map(|(is_given, flag)| is_given.then_some(flag))
}

/// The options of every request of this run.
fn options(args: &ChatArgs) -> CliResult<ChatRequest> {
    let output = args.schema.as_deref().map(schema).transpose()?;
    Ok(ChatRequest {
        sampling: Sampling {
            temperature: args.temperature,
            seed: args.seed,
            ..Sampling::default()
        },
        tokens_max: args.max_tokens.map(NonZeroU32::get),
        thinking: Thinking { effort: args.effort, tokens_max: None },
        output: output.unwrap_or_default(),
        ..ChatRequest::default()
    })
}

fn schema(path: &Path) -> CliResult<OutputFormat> {
    let text = read_text_once(path, SCHEMA_BYTES_MAX)
        .map_err(|error| Failure::usage(format!("cannot read the schema: {error}")))?;
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) => Ok(OutputFormat::JsonSchema(JsonText::parsed(text))),
        Ok(_) => Err(Failure::usage(format!(
            "{} is not a JSON object (expected a JSON schema)",
            path.display()
        ))),
        Err(error) => Err(Failure::usage(format!("{} is not valid JSON: {error}", path.display()))),
    }
}

fn thinking_shown(args: &ChatArgs) -> ThinkingShown {
    if args.show_thinking || (io::stderr().is_terminal() && !args.json) {
        ThinkingShown::AsItComes
    } else {
        ThinkingShown::Never
    }
}

/// The typed prompt, then the text from stdin.
async fn prompt(words: &[String]) -> CliResult<String> {
    let is_dash = matches!(words, [dash] if dash == "-");
    let typed = if is_dash { String::new() } else { words.join(" ") };
    let piped = if io::stdin().is_terminal() && !is_dash {
        String::new()
    } else {
        StdinText::read().whole(PROMPT_BYTES_MAX).await?
    };
    match (typed.trim().is_empty(), piped.trim().is_empty()) {
        (true, true) => Err(Failure::usage("there is no prompt")
            .hint("for example hob chat \"Good evening.\", or pipe text into hob chat")),
        (true, false) => Ok(piped),
        (false, true) => Ok(typed),
        (false, false) => Ok(format!("{typed}\n\n{piped}")),
    }
}
