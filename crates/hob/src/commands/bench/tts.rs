//! `hob bench tts`: how fast a server speaks.
//! Its options become an `Experiment`; all else is the same for every measuring verb.

use clap::Args;
use hob_bench::experiment::{Experiment, Workload};
use hob_bench::speech::{Formats, Streaming, Text};
use hob_bench::timeline::SoundFormat;

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::workload::{VoiceArgs, own_text, run_size, text, waiting_users};
use crate::failure::CliResult;

/// Measure how fast a server speaks: three texts, in every format that it offers, without the time to load
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TtsArgs {
    /// Texts to speak
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = text,
        default_value = "short,medium,long")]
    text: Vec<Text>,
    /// A text of your own instead: a file of up to 100,000 characters, or - for standard input
    #[arg(long, value_name = "FILE", value_parser = own_text, conflicts_with = "text")]
    text_file: Option<Text>,
    #[command(flatten)]
    voice: VoiceArgs,
    /// Concurrent users; each waits for its answer
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    users: Vec<usize>,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    requests: usize,
}

const AFTER_HELP: &str = "\
Texts: short (12 characters), medium (49), long (210), first_sound (90), two_sentences (67), article
(8700).
The mean time of the first three decides the tier: 1 under 3 s, 2 under 7 s, 3 slower.

Examples:
  hob bench tts                        the voice that hob serve would speak with
  hob bench tts --format pcm --text article --runs-min 2 --runs-max 2
  hob bench tts --text-file chapter.txt --format mp3 --voice af_heart,bm_fable
  hob bench tts --target http://127.0.0.1:8880 --model kokoro --voice af_heart --users 1,4
  hob bench tts --target http://127.0.0.1:8880 --model tts-1 --voice alloy --format mp3";

impl MeasuringVerb for TtsArgs {
    fn experiment(&self, _: &MeasuringArgs) -> CliResult<Experiment> {
        let texts = self.text_file.map_or_else(|| self.text.clone(), |text| vec![text]);
        let usual = Formats::Offered(SoundFormat::ALL.to_vec());
        let speech = self.voice.speech(&texts, usual, &[Streaming::Requested]);
        Ok(Experiment {
            workload: Workload::Speech(speech),
            axis: waiting_users(&self.users)?,
            run_size: run_size(self.requests, 0)?,
        })
    }
}
