//! The flags of `hob worker`, as the supervisor writes them and as the worker process reads them.
//! One type for both sides, so that they cannot disagree.

use std::path::PathBuf;

use clap::Args;
use hob_core::KvType;
use hob_engines::chat::CardUse;

/// Speak.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct SpeechWorkerArgs {
    /// The folder of the stored model
    #[arg(long)]
    pub(crate) model: PathBuf,
    /// Threads to compute with; 0: the measured default
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
    /// The espeak-ng program
    #[arg(long)]
    pub(crate) espeak: Option<PathBuf>,
    /// The folder of the Japanese dictionary
    #[arg(long)]
    pub(crate) japanese: Option<PathBuf>,
    /// The folder of the Mandarin tables
    #[arg(long)]
    pub(crate) mandarin: Option<PathBuf>,
    /// The voice of the warm-up
    #[arg(long)]
    pub(crate) voice: String,
}

/// Speak sentences, and say what the model decided about each.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct SpeechStudyArgs {
    /// The folder of the speech model
    #[arg(long)]
    pub(crate) model: PathBuf,
    #[arg(long)]
    pub(crate) voice: String,
    /// Threads to compute with; 0: the measured default
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
    /// The espeak-ng program
    #[arg(long)]
    pub(crate) espeak: Option<PathBuf>,
    /// A sentence; several are allowed
    #[arg(long = "sentence")]
    pub(crate) sentences: Vec<String>,
}

/// The graphics cards that a worker may use.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct WorkerCardArgs {
    /// Only these graphics cards, by ggml's names, separated by commas; a place may choose one of the settings'
    #[arg(long, overrides_with = "device")]
    device: Option<CardUse>,
    /// Compute nothing on graphics cards; the settings and the place may both say so
    #[arg(long = "no-cards", overrides_with = "is_cardless")]
    is_cardless: bool,
}

impl WorkerCardArgs {
    pub(crate) fn card_use(&self) -> CardUse {
        match (&self.device, self.is_cardless) {
            (_, true) => CardUse::Avoided,
            (device, false) => device.clone().unwrap_or_default(),
        }
    }
}

/// Transcribe.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct TranscriptionWorkerArgs {
    /// The Whisper file
    #[arg(long)]
    pub(crate) model: PathBuf,
    /// The file of Silero VAD
    #[arg(long)]
    pub(crate) vad: PathBuf,
    /// Threads to compute with; 0: all cores up to four
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) cards: WorkerCardArgs,
}

/// Chat.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct ChatWorkerArgs {
    /// The GGUF file
    #[arg(long)]
    pub(crate) model: PathBuf,
    /// Tokens of one sequence
    #[arg(long)]
    pub(crate) context: u32,
    /// Sequences that are computed at the same time
    #[arg(long)]
    pub(crate) parallel: u32,
    /// How the context is kept
    #[arg(long)]
    pub(crate) kv_type: KvType,
    /// Threads to compute with; 0: the measured default
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: u32,
    /// Tokens of one step
    #[arg(long)]
    pub(crate) batch: u32,
    /// Tokens of thinking, where a request does not say
    #[arg(long)]
    pub(crate) thinking: Option<u32>,
    /// Tokens of an answer, where a request does not say
    #[arg(long)]
    pub(crate) answer: Option<u32>,
    /// The GGUF file of a smaller model that guesses tokens
    #[arg(long)]
    pub(crate) draft_model: Option<PathBuf>,
    /// Guess no tokens
    #[arg(long = "no-drafts")]
    pub(crate) is_undrafted: bool,
    /// Layers on graphics cards, the output counted as one; without it, as the engine wants
    #[arg(long)]
    pub(crate) gpu_layers: Option<u32>,
    /// Layers whose experts are not
    #[arg(long, default_value_t = 0)]
    pub(crate) cpu_moe_layers: u32,
    #[command(flatten)]
    pub(crate) cards: WorkerCardArgs,
}

/// Time the chat engine's kernels, or a model.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct TimingWorkerArgs {
    /// How many types of weights
    #[arg(long, default_value_t = 0)]
    pub(crate) types: usize,
    /// The GGUF file, instead of kernels
    #[arg(long)]
    pub(crate) model: Option<PathBuf>,
    /// Tokens of the longer of two contexts
    #[arg(long, default_value_t = 1024)]
    pub(crate) context: u32,
    /// Time the model on the graphics card instead of the CPU
    #[arg(long)]
    pub(crate) on_card: bool,
}

/// Try the chat engine's devices.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct DevicesWorkerArgs {
    /// The GGUF file; without it, the devices are only listed
    #[arg(long)]
    pub(crate) model: Option<PathBuf>,
}

/// Quantise a chat model.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct QuantizeWorkerArgs {
    /// The GGUF file, or the first of several
    #[arg(long)]
    pub(crate) source: PathBuf,
    /// Say the type that each tensor would get, and write nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// The file to write
    #[arg(long, required_unless_present = "plan")]
    pub(crate) target: Option<PathBuf>,
    /// The type of the weights
    #[arg(long)]
    pub(crate) kind: String,
    /// A text that shows which weights matter
    #[arg(long)]
    pub(crate) importance: Option<PathBuf>,
    /// Where the importance matrix is kept
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
    /// The most pieces of that text, of 512 tokens each
    #[arg(long, default_value_t = 0)]
    pub(crate) pieces: usize,
    /// The text on which the result will be compared, which must be long enough
    #[arg(long, requires = "context")]
    pub(crate) text: Option<PathBuf>,
    /// Tokens of a piece of that text
    #[arg(long)]
    pub(crate) context: Option<usize>,
    /// KEY=TEXT for the header
    #[arg(long)]
    pub(crate) header: Vec<String>,
}

/// Compare two chat models on a text.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct DistanceWorkerArgs {
    /// The GGUF file that counts as right
    #[arg(long)]
    pub(crate) reference: PathBuf,
    #[arg(long)]
    pub(crate) model: PathBuf,
    #[arg(long)]
    pub(crate) text: PathBuf,
    /// Tokens of a piece
    #[arg(long)]
    pub(crate) context: usize,
    /// The most pieces
    #[arg(long)]
    pub(crate) pieces: usize,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        cards: WorkerCardArgs,
    }

    #[test]
    fn the_settings_and_the_place_may_both_avoid_cards() {
        for words in [vec!["hob", "--no-cards"], vec!["hob", "--no-cards", "--no-cards"]] {
            let line = Line::try_parse_from(words).expect("a worker's flags");
            assert_eq!(line.cards.card_use(), CardUse::Avoided);
        }
    }

    #[test]
    fn a_place_chooses_one_of_the_settings_cards() {
        let words = ["hob", "--device", "CUDA0,CUDA1", "--device", "CUDA1"];
        let line = Line::try_parse_from(words).expect("a worker's flags");
        assert_eq!(line.cards.card_use(), CardUse::Only(vec!["CUDA1".to_owned()]));
    }
}
