//! `hob bench stt`: how well and how fast a server writes down what is said.
//! Its options become an `Experiment`; with `--compare` a second server gets the same clips alternately.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use hob_bench::experiment::{Experiment, Workload};
use hob_bench::speech::Streaming;
use hob_bench::transcription::{ClipSet, ClipSource, SpokenClips, TranscriptionWorkload};

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::server::ServerArgs;
use super::workload::{run_size, waiting_users};
use crate::arguments::{number, one_of, sentences};
use crate::failure::{CliResult, Failure};

const SENTENCES_MAX: usize = 500;
/// Above the maximum, the noise is inaudible; below the minimum, the speech is inaudible.
const SNR_DB_MAX: f64 = 100.0;
const SNR_DB_MIN: f64 = -20.0;

/// Measure how well and how fast a server transcribes: word errors, time to the final text, real-time factor
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SttArgs {
    /// Recordings: a YAML file that lists WAV files with their texts
    #[arg(long, value_name = "FILE", conflicts_with_all = ["spoken", "voice", "speech_model"])]
    set: Option<PathBuf>,
    /// A text file with your own English sentences, one per line, which the server's speech model speaks first
    #[arg(long, value_name = "FILE")]
    spoken: Option<PathBuf>,
    /// The voices of spoken sentences, one after the other; without it the first few that the server lists
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    voice: Vec<String>,
    /// The model that speaks; not needed where the server has only one
    #[arg(long, value_name = "NAME")]
    speech_model: Option<String>,
    /// Also measure with white noise, this many decibels below the speech
    #[arg(long, value_name = "DB", value_delimiter = ',', value_parser = snr_db, allow_negative_numbers = true)]
    noise: Vec<f64>,
    /// How to request the text: yes = in pieces, no = whole, both = first whole, then in pieces
    #[arg(long, value_parser = one_of(STREAMED), default_value = "no")]
    stream: &'static [Streaming],
    /// Concurrent users; each waits for its answer
    #[arg(
        long,
        alias = "concurrency",
        value_name = "N",
        value_delimiter = ',',
        default_value = "1"
    )]
    users: Vec<usize>,
    /// How often each user sends all clips in a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: usize,
    /// A second server, which is measured alternately with the first
    #[arg(long, value_name = "NAME|URL")]
    compare: Option<String>,
    /// The model of the second server [default: the same]
    #[arg(long, value_name = "NAME", requires = "compare")]
    compare_model: Option<String>,
}

const STREAMED: [(&str, &str, &[Streaming]); 3] = [
    ("yes", "", &[Streaming::Requested]),
    ("no", "", &[Streaming::Declined]),
    ("both", "", &[Streaming::Declined, Streaming::Requested]),
];

const AFTER_HELP: &str = "\
Without --set, the server's own speech model first speaks twelve English sentences. Such speech is
clearer than people's, so there are fewer word errors; the records say that it is synthetic. A model
may speak a sentence differently each time. So two servers hear the same sound only with --compare.

A set is a YAML file; its sound files are relative to it. Only file and text are required:
  clips:
  - file: one.wav
    text: \"Two tickets, please.\"
    language: en
    speaker: ada
    origin: own
    noise: street

Times count from the last sample, which is sent last. Before the words are compared, both texts are
normalised: lower case, no punctuation, no fillers, short forms in full, English numbers in digits.

Examples:
  hob bench stt                        the models that hob serve would hear and speak with
  hob bench stt --set clips.yaml --noise 20,10 --users 1,3
  hob bench stt --target http://127.0.0.1:8000 --model whisper-1 --set clips.yaml --stream both
  hob bench stt --target http://127.0.0.1:8484 --model whisper-base \\
    --compare http://127.0.0.1:8000";

impl MeasuringVerb for SttArgs {
    fn experiment(&self, _: &MeasuringArgs) -> CliResult<Experiment> {
        let clips = match &self.set {
            Some(file) => {
                let set = ClipSet::read(file).map_err(Failure::usage)?;
                ClipSource::Set(Arc::new(set))
            }
            None => ClipSource::Spoken(SpokenClips {
                // None: the built-in sentences.
                sentences: match &self.spoken {
                    Some(file) => sentences(file, SENTENCES_MAX)?,
                    None => Vec::new(),
                },
                voices: self.voice.clone(),
                model: self.speech_model.clone(),
            }),
        };
        let noise = [None].into_iter().chain(self.noise.iter().copied().map(Some)).collect();
        let workload =
            TranscriptionWorkload { clips, noise, streaming: self.stream.to_vec(), other: None };
        Ok(Experiment {
            workload: Workload::Transcription(workload),
            axis: waiting_users(&self.users)?,
            run_size: run_size(self.repeats, 0)?,
        })
    }

    fn other_server(&self, first: &ServerArgs) -> Option<ServerArgs> {
        let model = self.compare_model.as_ref().or(first.model.as_ref());
        self.compare.as_ref().map(|server| ServerArgs::of(server, model))
    }
}

fn snr_db(text: &str) -> Result<f64, String> {
    let suits = |db: &f64| (SNR_DB_MIN..=SNR_DB_MAX).contains(db);
    number(text, suits, format_args!("decibels from {SNR_DB_MIN} to {SNR_DB_MAX}"))
}
