//! `hob bench llm`: how fast a chat model answers.
//! Its options become an `Experiment`; all else is the same for every measuring verb.

use clap::Args;
use hob_bench::chat::{ChatWorkload, Prompts, Shape, ThinkingChoice};
use hob_bench::drive::Arrivals;
use hob_bench::experiment::{Axis, Experiment, OPEN_CONNECTIONS, Workload};

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::workload::{THINKING, run_size, shape, waiting_users};
use crate::arguments::one_of;
use crate::failure::{CliResult, Failure};

/// Measure how fast a chat model answers: four shapes of prompts, for one user and for four, with thinking and without
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LlmArgs {
    /// Shapes of prompt and answer
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = shape,
        default_value = "short_short,long_short,short_long,agentic")]
    shape: Vec<Shape>,
    /// Concurrent users; each waits for its answer
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4")]
    users: Vec<usize>,
    /// Requests a second, at random times, whether or not they are answered, instead of users that wait;
    /// times then count from when a request was due
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "users")]
    rate: Vec<f64>,
    /// With --rate: at even times instead of random ones
    #[arg(long, requires = "rate")]
    even: bool,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_parser = one_of(THINKING), default_value = "auto")]
    thinking: ThinkingChoice,
    /// Send the same prompt again and again, to measure what the cache saves
    #[arg(long)]
    cached: bool,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 2)]
    requests: usize,
    /// Length of a run at a rate
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "rate")]
    duration_s: u16,
}

const AFTER_HELP: &str = "\
Shapes, as tokens of prompt and answer: short_short 64/128, long_short 8192/128, short_long 64/1024,
agentic 2048/512 with six tools; and the questions quick_word, quick_reasoning, quick_coding.

Examples:
  hob bench llm                        the model that hob serve would load
  hob bench llm --target http://127.0.0.1:8484
  hob bench llm --target http://127.0.0.1:11434 --model qwen3:8b --shape short_short --users 1,4,8
  hob bench llm --target http://127.0.0.1:8484 --shape short_short --rate 0.5,1,2
  hob bench llm --target http://127.0.0.1:8080 --launch 'llama-server -m model.gguf --port 8080'";

impl MeasuringVerb for LlmArgs {
    fn experiment(&self, _: &MeasuringArgs) -> CliResult<Experiment> {
        if let Some(rate) = self.rate.iter().find(|rate| !(rate.is_finite() && **rate > 0.0)) {
            return Err(Failure::usage(format!("--rate {rate}; a rate is above 0")));
        }
        let prompts = if self.cached { Prompts::Cached } else { Prompts::Cold };
        let (shapes, thinking) = (self.shape.clone(), self.thinking);
        let connections = OPEN_CONNECTIONS;
        let at = |rate: &f64| match self.even {
            true => Arrivals::Constant { per_second: *rate, connections },
            false => Arrivals::Poisson { per_second: *rate, connections },
        };
        let axis = match self.rate.is_empty() {
            true => waiting_users(&self.users)?,
            false => Axis::Load(self.rate.iter().map(at).collect()),
        };
        Ok(Experiment {
            workload: Workload::Chat(ChatWorkload { shapes, thinking, prompts }),
            axis,
            run_size: run_size(self.requests, self.duration_s)?,
        })
    }
}
