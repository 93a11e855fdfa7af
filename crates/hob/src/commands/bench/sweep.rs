//! `hob bench sweep`: speed over the length of the prompt.
//! New and cached prompts are separate rows: the time to compute a prompt and the time to find it in the cache are two figures.

use clap::Args;
use hob_bench::chat::{ThinkingChoice, context_needed};
use hob_bench::experiment::{Axis, Experiment};
use hob_bench::sweep::{AGAIN_MIN, ContextOptions, ServerContext};

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::server::ServerArgs;
use super::workload::THINKING;
use crate::arguments::one_of;
use crate::failure::{CliResult, Failure};

/// Measure speed by the length of the prompt: how fast a server reads a new prompt, reuses a cached one, and answers
/// each
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SweepArgs {
    /// Tokens of the prompt
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "512,4096,16384,65536,131072"
    )]
    context_tokens: Vec<u32>,
    /// Tokens of the answer
    #[arg(long, value_name = "N", default_value_t = 512)]
    answer: u32,
    /// Requests with a cached prompt, after each with a new one
    #[arg(long, value_name = "N", default_value_t = AGAIN_MIN)]
    cached_requests: usize,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_parser = one_of(THINKING), default_value = "on")]
    thinking: ThinkingChoice,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench sweep                      the model that hob serve would load
  hob bench sweep --target http://127.0.0.1:8080 --context-tokens 4096,32768 --runs-max 6
  hob bench sweep --target http://127.0.0.1:11434 --model qwen3:8b --answer 128
  hob bench sweep --target http://127.0.0.1:8080 --launch \\
    'llama-server -m model.gguf -c {ctx} --port 8080'

With --launch, hob starts the server again for each length. In its command line hob replaces {ctx}
with --context, or else with the tokens that this length needs, so that the measured memory belongs
to this length. hob leaves out lengths above the limit that the server reports. If the server
refuses a length, the sweep ends with a record that has the reason.";

impl MeasuringVerb for SweepArgs {
    fn experiment(&self, measuring: &MeasuringArgs) -> CliResult<Experiment> {
        if self.context_tokens.contains(&0) || self.context_tokens.is_empty() {
            return Err(Failure::usage("--context-tokens 0 (expected at least 1 token)"));
        }
        if self.answer < 2 {
            let sentence = format!(
                "--answer {} (expected at least 2 tokens, to measure a speed)",
                self.answer
            );
            return Err(Failure::usage(sentence));
        }
        if self.cached_requests < AGAIN_MIN {
            return Err(Failure::usage(format!(
                "--cached-requests {} (expected at least {AGAIN_MIN})",
                self.cached_requests
            )));
        }
        let context = if measuring.server.context.is_none() {
            ServerContext::ForEachLength
        } else {
            ServerContext::AsStarted
        };
        let (lengths, cached) = (self.context_tokens.clone(), self.cached_requests);
        let options = ContextOptions { lengths, answer: self.answer, cached, context };
        Ok(Experiment::of_chat(Axis::Context(options), self.thinking))
    }

    /// The context of the first start: --context, or else room for the shortest length.
    fn starts_with(&self, server: &ServerArgs, experiment: &Experiment) -> Option<u64> {
        let Axis::Context(options) = &experiment.axis else { return None };
        let shortest = options.lengths.iter().min()?;
        Some(server.context.unwrap_or_else(|| context_needed(*shortest, options.answer).into()))
    }
}
