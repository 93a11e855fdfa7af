//! `hob bench max-context`: the longest context that starts, can be filled, and still answers.
//! Its server is restarted for each context, so it needs a command line with `{ctx}`.

use clap::Args;
use hob_bench::chat::ThinkingChoice;
use hob_bench::experiment::{Axis, Experiment};
use hob_bench::max_context::{ContextCriterion, ContextRange, MaxContextOptions, PLACE};

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::server::ServerArgs;
use crate::arguments::one_of;
use crate::failure::{CliResult, Failure};

/// Minimum of --min: a shorter context leaves no room for a prompt.
const LO_MIN: u64 = 512;

/// Find the longest context: restart the server with one context after the other until it is known
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MaxContextArgs {
    /// The shortest context to try; the search begins with it
    #[arg(long = "min", alias = "lo", value_name = "TOKENS", default_value_t = 4096)]
    lo: u64,
    /// The longest context to try
    #[arg(long = "max", alias = "hi", value_name = "TOKENS", default_value_t = 262_144)]
    hi: u64,
    /// The step of the search
    #[arg(long = "step", alias = "granule", value_name = "TOKENS", default_value_t = 256)]
    granule: u64,
    /// When a context counts as working
    #[arg(long, value_parser = one_of(CRITERIA), default_value = "usable")]
    criterion: ContextCriterion,
    /// Bytes that a token of context takes, if known: for the first guess
    #[arg(long, value_name = "BYTES")]
    token_bytes: Option<f64>,
}

const AFTER_HELP: &str = "\
Each attempt is a start of its own: the server before has ended and its port is closed. A context
counts if the server reports it, or has counted a prompt that long. The longest has to work twice,
and the next step has to fail. Reading a long prompt may take longer than --timeout-s; raise it
then.

Examples:
  hob bench max-context                the model that hob serve would load
  hob bench max-context --min 2048 --max 32768 --criterion load
  hob bench max-context --target http://127.0.0.1:8080 --launch \\
    'llama-server -m model.gguf --port 8080 --parallel 1 -c {ctx}'
  hob bench max-context --target http://127.0.0.1:11434 --model qwen3:8b --launch \\
    'OLLAMA_CONTEXT_LENGTH={ctx} ollama serve'";

const CRITERIA: [(&str, &str, ContextCriterion); 2] = [
    ("load", "The server starts with it", ContextCriterion::Load),
    ("usable", "It can be filled, and the model still answers", ContextCriterion::Usable),
];

impl MeasuringVerb for MaxContextArgs {
    fn experiment(&self, measuring: &MeasuringArgs) -> CliResult<Experiment> {
        let MaxContextArgs { lo, hi, granule, token_bytes, criterion, .. } = *self;
        if lo < LO_MIN || hi < lo || granule == 0 || u32::try_from(hi).is_err() {
            return Err(Failure::usage(format!(
                "--min {lo}, --max {hi}, --step {granule} (expected --min of at least {LO_MIN}, --max not below --min, and --step above 0)"
            )));
        }
        if let Some(bytes) = token_bytes.filter(|bytes| !(bytes.is_finite() && *bytes > 0.0)) {
            return Err(Failure::usage(format!("--token-bytes {bytes}; it must be above 0")));
        }
        let place = format!("{{{PLACE}}}");
        let launch = measuring.server.launch.as_ref();
        if launch.is_some_and(|command| !command.contains(&place)) {
            return Err(Failure::usage(format!("--launch does not contain {place}, the context"))
                .hint("such as --launch 'llama-server -m model.gguf -c {ctx} --parallel 1'"));
        }
        let range = ContextRange { lo, hi, granule };
        let options = MaxContextOptions { range, criterion, bytes_per_token: token_bytes };
        Ok(Experiment::of_chat(Axis::MaxContext(options), ThinkingChoice::On))
    }

    fn starts_with(&self, server: &ServerArgs, _: &Experiment) -> Option<u64> {
        (server.target.is_none() || server.launch.is_some()).then_some(self.lo)
    }
}
