//! A conversation in a terminal. Each request contains all turns so far.
//! That is cheap, because the model's prompt cache holds the earlier turns.

use std::path::Path;
use std::time::Instant;

use hob_core::ChatRequest;

use super::lines::{Input, Keyboard, Lines};
use super::slash_command::{SlashCommand, help};
use super::{ChatArgs, find_source, print_stats, thinking_shown};
use crate::app::App;
use crate::chatting::{ChatHistory, Reply, Show, Source, TextShown, figures};
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::count_text;
use crate::signals::{Stop, StopSignals, interrupted};
use crate::sink::write_new;

const PROMPT: &str = "> ";
const MORE_PROMPT: &str = "… ";

/// A conversation, its source and its options.
struct Session<'a> {
    args: &'a ChatArgs,
    app: &'a App<'a>,
    source: Source,
    options: ChatRequest,
    history: ChatHistory,
    last: Reply,
    totals: Totals,
    text: TextShown,
}

/// Sums over all answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    answers: u32,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Stay,
    Leave,
}

pub(super) async fn run(
    args: &ChatArgs,
    app: &App<'_>,
    options: ChatRequest,
    signals: &mut StopSignals,
) -> CliResult<Exit> {
    let source = signals.or(find_source(args, app)).await?;
    app.printer.note(format_args!("{}; /help lists commands, Ctrl-D exits", source.place()));
    let mut lines = Keyboard::open()?;
    let mut session = Session::new(args, app, source, options);
    let ended = session.converse(&mut lines, signals).await;
    session.source.leave().await;
    ended.map(|()| Exit::Done)
}

impl<'a> Session<'a> {
    fn new(args: &'a ChatArgs, app: &'a App<'a>, source: Source, options: ChatRequest) -> Self {
        Session {
            args,
            app,
            source,
            options,
            history: ChatHistory::new(args.system.clone()),
            last: Reply::default(),
            totals: Totals::default(),
            text: TextShown::AsItComes,
        }
    }

    async fn converse(
        &mut self,
        lines: &mut impl Lines,
        signals: &mut StopSignals,
    ) -> CliResult<()> {
        loop {
            let typed = tokio::select! {
                typed = entry(lines) => typed?,
                () = signals.next() => return Err(interrupted()),
            };
            let line = match typed {
                Input::Line(line) => line,
                Input::Interrupt => {
                    self.app.printer.note("press Ctrl-D or type /exit to exit");
                    continue;
                }
                Input::End => return Ok(()),
            };
            match self.obey(SlashCommand::parse(&line), signals).await {
                Ok(After::Stay) => {}
                Ok(After::Leave) => return Ok(()),
                Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
                // An error does not end the conversation.
                Err(failure) => self.app.printer.failure(&failure),
            }
        }
    }

    async fn obey(&mut self, command: SlashCommand, signals: &mut StopSignals) -> CliResult<After> {
        match command {
            SlashCommand::Nothing => {}
            SlashCommand::Message(text) => {
                self.history.ask(text);
                self.answer(signals).await?;
            }
            SlashCommand::Regenerate => self.regenerate(signals).await?,
            SlashCommand::New => {
                self.history.forget();
                self.note("started a new conversation");
            }
            SlashCommand::System(text) => self.system(text),
            SlashCommand::Model(name) => self.model(name, signals).await?,
            SlashCommand::Effort(level) => self.effort(level)?,
            SlashCommand::Save(name) => self.save(name.as_deref())?,
            SlashCommand::Stats => self.stats(),
            SlashCommand::Help => self.note(help()),
            SlashCommand::Exit => return Ok(After::Leave),
            SlashCommand::Unknown { name, near } => return Err(unknown(&name, &near)),
        }
        Ok(After::Stay)
    }

    /// Ctrl-C stops the answer and keeps the text so far; SIGTERM ends hob.
    async fn answer(&mut self, signals: &mut StopSignals) -> CliResult<()> {
        let mut show = Show::new(self.app.printer, self.text, thinking_shown(self.args));
        let mut reply = Reply::default();
        let asked = Instant::now();
        let request = self.history.request(&self.options);
        let work = async {
            let answer = self.source.ask(request).await?;
            reply.take(answer, &mut show, asked).await
        };
        let taken = tokio::select! {
            taken = work => taken,
            stop = signals.which() => match stop {
                Stop::Interrupt => Ok(()),
                Stop::Terminate => Err(interrupted()),
            },
        };
        show.end()?;
        self.history.answered(&reply.text);
        if taken.is_ok() && reply.completion.is_none() {
            self.note("stopped");
        }
        self.totals.add(&reply);
        print_stats(self.args, self.app.printer, &reply);
        self.last = reply;
        taken
    }

    /// Without a new answer, the old one stays.
    async fn regenerate(&mut self, signals: &mut StopSignals) -> CliResult<()> {
        let before = self.history.clone();
        let Some(question) = self.history.take_back() else {
            return Err(Failure::usage("there is no question to answer again"));
        };
        // The same seed would give the same answer.
        self.options.sampling.seed = self.options.sampling.seed.map(|seed| seed.wrapping_add(1));
        self.history.ask(question);
        let answered = self.answer(signals).await;
        if self.last.text.is_empty() {
            self.history = before;
        }
        answered
    }

    fn system(&mut self, text: Option<String>) {
        match text {
            Some(text) => self.history.system = Some(text),
            None => self.note(self.history.system.as_deref().unwrap_or("no system message is set")),
        }
    }

    async fn model(&mut self, name: Option<String>, signals: &mut StopSignals) -> CliResult<()> {
        if let Some(name) = name {
            signals.or(self.source.switch(&name, self.app)).await?;
        }
        self.note(format_args!("{} answers", self.source.place()));
        Ok(())
    }

    fn effort(&mut self, level: Option<String>) -> CliResult<()> {
        if let Some(level) = level {
            self.options.thinking.effort = Some(level.parse().map_err(Failure::usage)?);
        }
        let effort = self.options.thinking.effort.map_or("the model's own", |effort| effort.name());
        self.note(format_args!("effort: {effort}"));
        Ok(())
    }

    /// An existing file is never overwritten.
    fn save(&self, name: Option<&str>) -> CliResult<()> {
        let path = Path::new(name.ok_or_else(|| Failure::usage("/save needs a file name"))?);
        if self.history.is_empty() {
            return Err(Failure::usage("the conversation is empty"));
        }
        let json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let text = if json { self.history.json() } else { self.history.markdown() };
        write_new(path, &text, "choose another name")?;
        self.note(format_args!("saved as {}", path.display()));
        Ok(())
    }

    fn stats(&self) {
        match figures(&self.last) {
            Some(line) => self.note(format_args!("last: {line}\nall:  {}", self.totals)),
            None => self.note("there is no complete answer yet"),
        }
    }

    fn note(&self, text: impl std::fmt::Display) {
        self.app.printer.note(text);
    }
}

impl Totals {
    fn add(&mut self, reply: &Reply) {
        let Some(completion) = reply.completion else { return };
        self.answers += 1;
        self.prompt_tokens += u64::from(completion.usage.prompt_tokens);
        self.cached_tokens += u64::from(completion.usage.cached_tokens);
        self.completion_tokens += u64::from(completion.usage.completion_tokens);
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals { answers, prompt_tokens, cached_tokens, completion_tokens } = self;
        write!(
            f,
            "{} in {}, to {} of prompts ({cached_tokens} cached)",
            count_text(completion_tokens, "token"),
            count_text(answers, "answer"),
            count_text(prompt_tokens, "token"),
        )
    }
}

/// Reads a line, or several lines that end with a backslash.
async fn entry(lines: &mut impl Lines) -> CliResult<Input> {
    let mut whole = String::new();
    let mut prompt = PROMPT;
    loop {
        match lines.next(prompt).await? {
            Input::Line(line) => match line.strip_suffix('\\') {
                Some(begun) => {
                    whole.push_str(begun);
                    whole.push('\n');
                    prompt = MORE_PROMPT;
                }
                None => return Ok(Input::Line(whole + &line)),
            },
            other => return Ok(other),
        }
    }
}

fn unknown(name: &str, near: &[String]) -> Failure {
    let failure = Failure::usage(format!("unknown command '{name}'"));
    match near.first() {
        Some(near) => failure.hint(format!("did you mean {near}? /help lists all commands")),
        None => failure.hint("/help lists all commands"),
    }
}

#[cfg(test)]
mod tests;
