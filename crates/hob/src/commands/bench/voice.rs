//! `hob bench voice`: how soon a server answers a spoken question.
//! Its options become an `Experiment`; without recordings the server's own speech model asks the questions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hob_bench::cold::{ColdRequest, StartOptions, StartState, WeightsFile};
use hob_bench::experiment::{Axis, Experiment, Workload};
use hob_bench::transcription::{ClipSet, ClipSource, SpokenClips};
use hob_bench::voice::{Manner, TurnEnd, VoiceWorkload};

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::workload::{run_size, waiting_users};
use crate::failure::{CliResult, Failure};

/// Measure how soon a server answers a spoken question: from its last sound to the first audible sample
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct VoiceArgs {
    /// Recorded questions: a YAML file that lists WAV files with their texts, as for `hob bench stt`
    /// [default: twelve sentences that the server's own speech model says]
    #[arg(long, value_name = "FILE")]
    set: Option<PathBuf>,
    /// The voice of the answers [default: the server's]
    #[arg(long, value_name = "NAME")]
    voice: Option<String>,
    /// How the server finds the end of a question
    #[arg(long, value_enum, default_value_t = TurnEndChoice::Semantic)]
    turn_end: TurnEndChoice,
    /// The silence that ends a question, with `--turn-end silence`
    #[arg(long, value_name = "MS", default_value_t = 250, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    silence_ms: u32,
    /// Interrupt each answer with the next question, and measure until the voice stops
    #[arg(long)]
    interrupt: bool,
    /// Pause this long in the middle of each question, and count how often the server answers too early
    #[arg(long, value_name = "MS", conflicts_with = "interrupt", value_parser = clap::value_parser!(u32).range(100..=5_000))]
    pause_ms: Option<u32>,
    /// Restart the server for each first question, and measure how long the person waits for the
    /// session and for the answer
    #[arg(long, conflicts_with_all = ["interrupt", "pause_ms", "users", "repeats"])]
    cold: bool,
    /// People who talk at the same time, each in a session of their own
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    users: Vec<usize>,
    /// How often each of them asks all questions in a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TurnEndChoice {
    /// A model hears whether the sentence is complete
    Semantic,
    /// After a silence
    Silence,
}

const AFTER_HELP: &str = "\
Each question is a session of its own. Its sound is sent at the pace of a microphone. Times count
from its last sample that is louder than -40 dB to the answer: to the start of sound that is louder
than that for 50 ms. If the server takes a question for finished before its last word, the turn has
failed; with --pause-ms it is counted instead.

Examples:
  hob bench voice                      the models that hob serve would hear, think and speak with
  hob bench voice --turn-end silence --silence-ms 500 --users 1,2
  hob bench voice --pause-ms 600       the share of questions that the server answers too early
  hob bench voice --cold               the first answer of a server that has just started
  hob bench voice --interrupt          the time from a person's first sound to the end of the voice";

/// Questions after the first of each start, for the time once it is warm.
const WARM: usize = 3;

impl MeasuringVerb for VoiceArgs {
    fn experiment(&self, _: &MeasuringArgs) -> CliResult<Experiment> {
        let questions = match &self.set {
            Some(file) => ClipSource::Set(Arc::new(ClipSet::read(file).map_err(Failure::usage)?)),
            None => ClipSource::Spoken(SpokenClips::default()),
        };
        let turn_end = match self.turn_end {
            TurnEndChoice::Semantic => TurnEnd::Semantic,
            TurnEndChoice::Silence => TurnEnd::Silence { ms: self.silence_ms },
        };
        let manner = if self.interrupt { Manner::Interrupts } else { Manner::Listens };
        let pause = self.pause_ms.map(|ms| Duration::from_millis(ms.into()));
        let voice = self.voice.clone();
        let workload = VoiceWorkload { questions, turn_end, voice, manner, pause };
        let axis = match self.cold {
            true => Axis::Start(start(&workload)),
            false => waiting_users(&self.users)?,
        };
        let run_size = run_size(self.repeats, 0)?;
        Ok(Experiment { workload: Workload::Voice(workload), axis, run_size })
    }
}

/// Three models load, so there is no single file of weights to drop from memory.
fn start(workload: &VoiceWorkload) -> StartOptions {
    StartOptions {
        states: vec![StartState::PageCacheWarm],
        request: ColdRequest::Conversation(workload.clone()),
        warm: WARM,
        weights: WeightsFile::Unknown,
    }
}
