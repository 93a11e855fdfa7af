//! The command line as it is typed. The doc comments are the help texts.
//! What the flags mean together with the file and the environment is settled in `settings`.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::app::App;
use crate::commands::{
    bench, chat, config, docs, doctor, eval, fit, hear, ledger, load, mock, models, ps, pull,
    quantize, route, say, selftest, serve, site, talk, team, unload, upstreams, worker,
};
use crate::failure::{CliResult, Exit};
use crate::globals::Globals;
use crate::logging;
use crate::printer::{Printer, Volume};
use crate::settings::Overrides;

/// Local AI behind one OpenAI-compatible address: speech, chat, transcription, routing to other servers,
/// benchmarks, and advice on which models fit this machine.
#[derive(Debug, Parser)]
#[command(name = "hob", version, max_term_width = 100, after_help = AFTER_HELP)]
#[command(propagate_version = false, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

const AFTER_HELP: &str = "\
First steps:
  hob pull                     download the default models
  hob chat \"Tell me a story.\"  chat with a model
  hob say \"Good evening.\"      read text aloud
  hob hear talk.mp3            transcribe a recording
  hob serve                    serve the web page and the OpenAI API
  hob talk                     speak with a model of the running server
  hob team run \"TASK\"          let a team of agents work on a task
  hob fit --recommend          recommend models for this machine
  hob doctor                   check the installation

Exit codes:
  0  success                                5  address in use, or server silent or busy
  1  file, disk, or a bug in hob;           6  engine, player or recorder failed
     worse (bench) or does not fit (fit)    7  doctor found a problem
  2  command, request or configuration      8  nothing could be compared
  3  model missing or damaged             130  interrupted
  4  no source delivered the model";

#[derive(Debug, Subcommand)]
enum Verb {
    Serve(serve::ServeArgs),
    Chat(chat::ChatArgs),
    Say(say::SayArgs),
    Hear(hear::HearArgs),
    Talk(talk::TalkArgs),
    Team(team::TeamArgs),
    Pull(pull::PullArgs),
    Quantize(Box<quantize::QuantizeArgs>),
    Models(models::ModelsArgs),
    Ps(ps::PsArgs),
    Route(route::RouteArgs),
    Upstreams(upstreams::UpstreamsArgs),
    Selftest(selftest::SelftestArgs),
    Fit(Box<fit::FitArgs>),
    Bench(bench::BenchArgs),
    Eval(eval::EvalCommand),
    Site(site::SiteArgs),
    Mock(mock::MockArgs),
    Load(load::LoadArgs),
    Unload(unload::UnloadArgs),
    Ledger(ledger::LedgerArgs),
    Doctor(doctor::DoctorArgs),
    Config(config::ConfigArgs),
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
    #[command(hide = true)]
    Docs(docs::DocsArgs),
}

/// The command tree, for the reference page and for tests.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Parses the command line, runs the command and prints its error.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return print_refusal(&refusal),
    };
    let volume = if cli.globals.quiet { Volume::ErrorsOnly } else { Volume::Normal };
    let printer = Printer::new(volume);
    match dispatch(cli, &printer) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            printer.failure(&failure);
            failure.exit.into()
        }
    }
}

/// Clap prints help and versions to stdout, refusals to stderr.
fn print_refusal(refusal: &clap::Error) -> ExitCode {
    // A closed stderr cannot report its own error.
    let _nobody_reads = refusal.print();
    if refusal.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

fn dispatch(cli: Cli, printer: &Printer) -> CliResult<Exit> {
    // The self-test causes failures on purpose, so their warnings are left out.
    let is_selftest = matches!(cli.verb, Verb::Selftest(_));
    // The library for MCP (`rmcp`) would log failures of MCP servers that hob reports itself.
    let default = if is_selftest { "error" } else { "warn,rmcp=off" };
    logging::start(cli.globals.log.as_deref(), default)?;
    let globals = &cli.globals;
    let open = || App::open(globals, Overrides::default(), printer);
    match cli.verb {
        Verb::Serve(args) => serve::run(&args, globals, printer),
        Verb::Chat(args) => chat::run(&args, globals, printer),
        Verb::Say(args) => say::run(&args, globals, printer),
        Verb::Hear(args) => hear::run(&args, globals, printer),
        Verb::Talk(args) => talk::run(&args, &open()?),
        Verb::Team(args) => team::run(&args, globals, printer),
        Verb::Pull(args) => pull::run(&args, &open()?),
        Verb::Quantize(args) => quantize::run(&args, globals, printer),
        Verb::Models(args) => models::run(&args, &open()?),
        Verb::Ps(args) => ps::run(&args, &open()?),
        Verb::Route(args) => route::run(&args, &open()?),
        Verb::Upstreams(args) => upstreams::run(&args, &open()?),
        Verb::Selftest(args) => selftest::run(&args, &open()?),
        Verb::Fit(args) => fit::run(&args, globals, printer),
        Verb::Bench(args) => bench::run(&args, globals, printer),
        Verb::Eval(args) => eval::run(args, globals, printer),
        Verb::Site(args) => site::run(&args, globals, printer),
        Verb::Mock(args) => mock::run(&args, printer),
        Verb::Load(args) => load::run(&args, &open()?),
        Verb::Unload(args) => unload::run(&args, &open()?),
        Verb::Ledger(args) => ledger::run(&args, &open()?),
        Verb::Doctor(args) => doctor::run(&args, globals, printer),
        Verb::Config(args) => config::run(&args, globals, printer),
        Verb::Worker(args) => worker::run(&args),
        Verb::Docs(args) => docs::run(&args, command(), printer),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_exit_code_is_in_the_help() {
        for exit in Exit::ALL {
            let code = exit.code().to_string();
            let words = AFTER_HELP.split_whitespace().filter(|word| *word == code).count();
            assert_eq!(words, 1, "{exit:?}");
        }
    }

    #[test]
    fn the_guides_name_only_commands_that_exist() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let guides = fs_err::read_dir(docs.join("guides")).unwrap();
        let guides = guides.map(|file| file.unwrap().path());
        let others = [docs.join("../README.md"), docs.join("reference/performance.md")];
        let mut root = command();
        root.build();
        for file in guides.chain(others) {
            let text = fs_err::read_to_string(&file).unwrap();
            for code in code_in(&text) {
                for words in code.split("hob ").skip(1) {
                    assert!(names_a_command(&root, words), "{}: hob {words}", file.display());
                }
            }
        }
    }

    /// The code spans, and the lines of code blocks without their comments.
    fn code_in(markdown: &str) -> Vec<&str> {
        let mut code = Vec::new();
        for (part, is_block) in markdown.split("```").zip([false, true].into_iter().cycle()) {
            if is_block {
                code.extend(part.lines().filter_map(|line| line.split('#').next()));
            } else {
                code.extend(part.split('`').skip(1).step_by(2));
            }
        }
        code
    }

    fn names_a_command(root: &clap::Command, words: &str) -> bool {
        let mut command = root;
        for word in words.split_whitespace() {
            match command.find_subcommand(word) {
                Some(inner) => command = inner,
                None => {
                    let is_name = word.starts_with(|c: char| c.is_ascii_lowercase());
                    return !(is_name && command.is_subcommand_required_set());
                }
            }
        }
        true
    }
}
