//! `hob bench stream`: whether a server sends sound while it makes it, or all of it at the end.
//! Raw and packed formats are both measured, because an encoder may hold sound back.

use clap::Args;
use hob_bench::experiment::{Axis, Experiment, Workload};
use hob_bench::speech::{Formats, Streaming, Text};
use hob_bench::timeline::SoundFormat;

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::workload::{VoiceArgs, run_size, text};
use crate::arguments::one_of;
use crate::failure::CliResult;

/// Measure whether a server sends sound while it computes: for one sentence, two, and a long text
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StreamArgs {
    /// Texts to speak; longer ones are compared with one sentence
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = text,
        default_value = "medium,two_sentences,long")]
    text: Vec<Text>,
    #[command(flatten)]
    voice: VoiceArgs,
    /// Whether to request streaming, to decline it, or both one after the other
    #[arg(long = "stream", alias = "asked", value_parser = one_of(ASKED), default_value = "both")]
    asked: &'static [Streaming],
    /// Requests in a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    requests: usize,
}

const ASKED: [(&str, &str, &[Streaming]); 3] = [
    ("yes", "", &[Streaming::Requested]),
    ("no", "", &[Streaming::Declined]),
    ("both", "", &[Streaming::Requested, Streaming::Declined]),
];

const AFTER_HELP: &str = "\
A server may send its answer in pieces and still make all of it first. Then the first sound comes
with the last, and a listener waits as long as for a file. If that happens in mp3 and not in pcm,
the encoder holds the sound back.

The line under the table goes from the request to the last byte; its height shows how many bytes
arrived.

Examples:
  hob bench stream                     the voice that hob serve would speak with
  hob bench stream --target http://127.0.0.1:8880 --model kokoro --voice af_heart
  hob bench stream --target http://127.0.0.1:8880 --model tts-1 --voice alloy --format mp3 \\
    --stream yes";

impl MeasuringVerb for StreamArgs {
    fn experiment(&self, _: &MeasuringArgs) -> CliResult<Experiment> {
        let mut texts = self.text.clone();
        // A sentence is measured before the texts that are compared with it.
        texts.sort_by_key(|text| text.chars());
        let usual = Formats::Offered(vec![SoundFormat::Pcm, SoundFormat::Mp3]);
        Ok(Experiment {
            workload: Workload::Speech(self.voice.speech(&texts, usual, self.asked)),
            axis: Axis::Delivery,
            run_size: run_size(self.requests, 0)?,
        })
    }
}
