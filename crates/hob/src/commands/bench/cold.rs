//! `hob bench cold`: from a start to the first answer; or from one model to another.
//! Cold starts differ by where the weights are: on the disk, in memory, or replaced by another model's.

use clap::{Args, ValueEnum};
use hob_bench::chat::ThinkingChoice;
use hob_bench::cold::{ColdRequest, ColdSpeech, StartOptions, StartState, WeightsFile};
use hob_bench::experiment::{Axis, Experiment};

use super::measuring::{MeasuringArgs, MeasuringVerb};
use crate::failure::{CliResult, Failure};
use crate::settings::DEFAULT_SPEECH;

/// Measure the time from a start to the first token or sound: with the weights on the disk, and in memory
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ColdArgs {
    /// Where the weights are before each start [default: on disk, then in memory; with --swap-with: model_swap]
    #[arg(long, value_enum, value_name = "STATE", value_delimiter = ',')]
    state: Vec<StateName>,
    /// Another model of the same server, which answers in between: the time until the first model answers again
    #[arg(long, value_name = "NAME")]
    swap_with: Option<String>,
    /// Measure speech instead of chat
    #[arg(long)]
    speech: bool,
    /// The voice
    #[arg(long, value_name = "NAME", default_value = "alloy", requires = "speech")]
    voice: String,
    /// The text to speak
    #[arg(
        long,
        value_name = "TEXT",
        requires = "speech",
        default_value = "Good evening. The kettle is on, and the door is open."
    )]
    text: String,
    /// Requests after the first of each start, for the speed once it is warm
    #[arg(long, value_name = "N", default_value_t = 3)]
    warm: usize,
}

const AFTER_HELP: &str = "\
Each sample is a new process. 'load' is the time from its start until it is ready. 'cold / warm' is
the time of the first request divided by that of a later one. For page_cache_cold, hob drops the
weights' file from memory before each start, checks that it is gone, and says so if not.

Examples:
  hob bench cold                       the model that hob serve would load
  hob bench cold --speech              its voice; --model-file names its weights
  hob bench cold --target http://127.0.0.1:8080 --model-file model.gguf --launch \\
    'llama-server -m model.gguf --port 8080'
  hob bench cold --target http://127.0.0.1:11434 --model qwen3:8b --swap-with qwen3:4b";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum StateName {
    PageCacheCold,
    PageCacheWarm,
    ModelSwap,
}

impl MeasuringVerb for ColdArgs {
    fn experiment(&self, measuring: &MeasuringArgs) -> CliResult<Experiment> {
        let server = &measuring.server;
        let is_own = server.target.is_none();
        // hob knows the file of its chat model's weights only, and speech has other weights.
        let is_blind = self.speech && is_own && server.model_file.is_none();
        let states = match (&self.state[..], &self.swap_with) {
            ([], Some(_)) => &[StateName::ModelSwap][..],
            ([], None) if is_blind => &[StateName::PageCacheWarm],
            ([], None) => &[StateName::PageCacheCold, StateName::PageCacheWarm],
            (states, Some(_)) if !states.contains(&StateName::ModelSwap) => {
                return Err(Failure::usage("--swap-with has no effect without --state model_swap")
                    .hint("add model_swap to --state, or leave out --swap-with"));
            }
            (states, _) => states,
        };
        let states: CliResult<Vec<StartState>> =
            states.iter().map(|name| self.state(*name)).collect();
        let spoken = self.speech.then(|| ColdSpeech {
            model: is_own.then(|| DEFAULT_SPEECH.to_owned()),
            voice: self.voice.clone(),
            text: self.text.clone(),
        });
        let request = spoken.map_or(ColdRequest::Chat, ColdRequest::Speech);
        let weights = if is_blind { WeightsFile::Unknown } else { WeightsFile::OfTheServer };
        let options = StartOptions { states: states?, request, warm: self.warm, weights };
        Ok(Experiment::of_chat(Axis::Start(options), ThinkingChoice::On))
    }
}

impl ColdArgs {
    fn state(&self, name: StateName) -> CliResult<StartState> {
        match (name, &self.swap_with) {
            (StateName::PageCacheCold, _) => Ok(StartState::PageCacheCold),
            (StateName::PageCacheWarm, _) => Ok(StartState::PageCacheWarm),
            (StateName::ModelSwap, Some(with)) => Ok(StartState::ModelSwap { with: with.clone() }),
            (StateName::ModelSwap, None) => Err(Failure::usage(
                "--state model_swap needs --swap-with, the model that takes the other's place",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::super::measuring::Measure;
    use super::*;

    fn experiment(words: &[&str]) -> CliResult<Experiment> {
        let command = Measure::<ColdArgs>::augment_args(clap::Command::new("cold"));
        let typed = command.try_get_matches_from([&["cold"][..], words].concat());
        let typed = typed.expect("options");
        let Measure { measuring, own } =
            Measure::<ColdArgs>::from_arg_matches(&typed).expect("options");
        own.experiment(&measuring)
    }

    #[test]
    fn another_model_needs_the_state_in_which_it_answers() {
        let swap = ["--swap-with", "b"];
        let with = |state: &'static str| experiment(&[&swap[..], &["--state", state]].concat());
        let refused = with("page_cache_warm").expect_err("no swap").sentence;
        assert_eq!(refused, "--swap-with has no effect without --state model_swap");
        assert!(with("page_cache_warm,model_swap").is_ok() && experiment(&swap).is_ok());
    }
}
