//! `hob mock`: a server with known timing, to test a client or a benchmark.
//! `/truth` returns what it sent and when, by its own clock; `/reset` forgets it.

use std::net::SocketAddr;

use clap::Args;
use hob_bench::mock::{MockServer, Script, all_names};

use crate::app::block_on;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::Printer;
use crate::signals::StopSignals;

/// Run a mock server with scripted timing, and record what it sent and when
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MockArgs {
    /// Address to listen on; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Time to the first token
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    ttft_ms: f64,
    /// Time between two tokens
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    itl_ms: f64,
    /// Another setting of the script, as NAME=VALUE; may be repeated
    #[arg(long = "script", value_name = "NAME=VALUE")]
    scripts: Vec<String>,
    /// List the settings of a script
    #[arg(long)]
    names: bool,
}

const AFTER_HELP: &str = "\
A request can change the script: after a ~ in its model's name (mock~itl_ms=5,usage=nothing), or in
the header x-mock. A prompt's tokens are its words. It answers /v1/chat/completions,
/v1/completions, /v1/audio/speech, /v1/audio/transcriptions, /api/chat, /api/generate, and lists of
models; /truth returns what it sent and when.

Examples:
  hob mock                                        100 ms, then 20 ms a token
  hob mock --itl-ms 2 --script stall_ms=500       a pause before token 32
  hob mock --script slots=1                       one request after the other
  hob mock --script status=429                    every answer is status 429
  hob mock --script fault=cut-mid                 every connection ends after two words
  hob mock --script prefill_max=4096              ends at a longer prompt, as if out of memory";

pub(crate) fn run(args: &MockArgs, printer: &Printer) -> CliResult<Exit> {
    if args.names {
        printer.data(all_names().join("\n"))?;
        return Ok(Exit::Done);
    }
    let times = format!("ttft_ms={},itl_ms={}", args.ttft_ms, args.itl_ms);
    let script = Script::default().with(&times).and_then(|script| {
        args.scripts.iter().try_fold(script, |script, pairs| script.with(pairs))
    });
    let script = script.map_err(|error| {
        Failure::usage(error).hint("`hob mock --names` lists the settings of a script")
    })?;
    let (context, most) = (script.context_tokens, script.load_max);
    if context > most {
        return Err(out_of_memory(format_args!(
            "a context of {context} tokens does not fit; {most} do"
        )));
    }
    let mock = MockServer::start(args.listen, script)
        .map_err(|error| Failure::server(format!("cannot listen on {}: {error}", args.listen)))?;
    printer.data(mock.url())?;
    block_on(async {
        let mut signals = StopSignals::listen()?;
        tokio::select! {
            () = signals.next() => Ok(Exit::Done),
            () = mock.out_of_memory() => Err(out_of_memory("a request was too long")),
        }
    })
}

/// The script imitates a server whose memory is full.
fn out_of_memory(why: impl std::fmt::Display) -> Failure {
    Failure::engine(format!("out of memory: {why}"))
}
