//! `hob mock`: a server whose times are known, for whoever wants to test a client or a benchmark.
//! What it did is told at `/truth`, by its own clock; `/reset` forgets it.

use std::net::SocketAddr;

use clap::Args;
use hob_bench::mock::scripted::{Script, Scripted, all_names};

use crate::app::block_on;
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;
use crate::signals::StopSignals;

/// Answer as a script says, with known times, and remember when what was written
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MockArgs {
    /// Where to listen; port 0 is any free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Time to the first token
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    ttft_ms: f64,
    /// Time between two tokens
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    itl_ms: f64,
    /// Anything else that is not as usual, as NAME=VALUE; may be repeated
    #[arg(long = "script", value_name = "NAME=VALUE")]
    scripts: Vec<String>,
    /// List what a script may say
    #[arg(long)]
    names: bool,
}

const AFTER_HELP: &str = "\
A request may say otherwise: in its model's name behind a ~ (mock~itl_ms=5,usage=nothing), or in the
header x-mock. A prompt's tokens are its words. It answers /v1/chat/completions, /v1/completions,
/v1/audio/speech, /api/chat, /api/generate, and lists of models; /truth tells when what was written.

Examples:
  hob mock                                        100 ms, then 20 ms a token
  hob mock --itl-ms 2 --script stall_ms=500       a pause before token 32
  hob mock --script slots=1                       one request after the other
  hob mock --script status=429                    always busy
  hob mock --script prefill_max=4096              dies of a longer prompt, as of a full memory";

pub(crate) fn run(args: &MockArgs, printer: &Printer) -> Outcome<Exit> {
    if args.names {
        printer.data(all_names().join("\n"))?;
        return Ok(Exit::Done);
    }
    let times = format!("ttft_ms={},itl_ms={}", args.ttft_ms, args.itl_ms);
    let script = Script::default().with(&times).and_then(|script| {
        args.scripts.iter().try_fold(script, |script, pairs| script.with(pairs))
    });
    let script = script.map_err(|error| {
        Failure::usage(error).hint("`hob mock --names` lists what a script may say")
    })?;
    let (context, most) = (script.context_tokens, script.limits.load_max);
    if context > most {
        return Err(out_of_memory(format_args!("a context of {context} tokens, and {most} fit")));
    }
    let mock = Scripted::start(args.listen, script).map_err(|error| {
        Failure::new(Exit::Server, format!("{} cannot be listened on: {error}", args.listen))
    })?;
    printer.data(mock.url())?;
    block_on(async {
        let mut signals = StopSignals::listen()?;
        tokio::select! {
            () = signals.next() => Ok(Exit::Done),
            () = mock.out_of_memory() => Err(out_of_memory("a request was too long")),
        }
    })
}

/// As the script has it: the mock plays a server whose memory is full.
fn out_of_memory(why: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Engine, format!("out of memory: {why}"))
}
