//! What a measurement of many users asks: words of one shape, or the sound of one text, by so many at once.
//! Whoever thinks does as it does of itself: what many share is the machine, and not the answer.

use clap::Args;
use hob_bench::crowd::{Question, Wish};
use hob_bench::drive::CONNECTIONS_MAX;
use hob_bench::llm::Shape;
use hob_bench::record::Record;
use hob_bench::speech::{Formats, Text};
use hob_bench::terms::Metric;
use hob_bench::timeline::SoundFormat;

use super::aim::Purpose;
use super::llm::{ThinkingName, shape};
use super::tts::{ChoiceArgs, text};
use crate::failure::{Failure, Outcome};

#[derive(Clone, Debug, Args)]
pub(super) struct CrowdArgs {
    /// Shape of prompt and answer
    #[arg(long, value_name = "NAME", value_parser = shape, default_value = "short_short")]
    shape: Shape,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_enum, default_value_t = ThinkingName::On)]
    thinking: ThinkingName,
    /// Ask for sound instead of words: the text that is spoken
    #[arg(long, value_name = "NAME", value_parser = text, num_args = 0..=1,
        default_missing_value = "medium", conflicts_with_all = ["shape", "thinking"])]
    speech: Option<Text>,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 2)]
    rounds: usize,
}

impl CrowdArgs {
    pub(super) fn wish(&self, users: &[usize]) -> Outcome<Wish> {
        let is_possible = |users: &usize| (1..=CONNECTIONS_MAX).contains(users);
        if !users.iter().all(is_possible) {
            return Err(Failure::usage(format!("from 1 to {CONNECTIONS_MAX} users are possible")));
        }
        if self.rounds == 0 {
            return Err(Failure::usage("each user asks once at least"));
        }
        let (shape, thinking, rounds) = (self.shape, self.thinking.wish(), self.rounds);
        let question = match self.speech {
            Some(text) => {
                let formats = Formats::First(SoundFormat::ALL.to_vec());
                Question::Sound { text, choice: self.choice.choice(formats) }
            }
            None => Question::Words { shape, thinking },
        };
        Ok(Wish { question, users: users.to_vec(), rounds })
    }

    pub(super) fn purpose(&self) -> Purpose {
        if self.speech.is_some() { Purpose::Speech } else { Purpose::Chat }
    }
}

/// What all of them get together.
pub(super) fn together(record: &Record) -> String {
    let figure = |metric| record.metrics.figure(metric);
    let tokens = figure(Metric::ThroughputTokS).map(|rate| format!("{rate:.1} tok/s"));
    let sound = || figure(Metric::RealTimeX).map(|times| format!("{times:.1} × real time"));
    tokens.or_else(sound).unwrap_or_else(|| "–".to_owned())
}

/// The first token, or the first sound, ms.
pub(super) fn first_ms(record: &Record) -> Option<f64> {
    let figure = |metric| record.metrics.figure(metric);
    figure(Metric::TtftMs).or_else(|| figure(Metric::TtfaMs))
}

/// As it stands in a table.
pub(super) fn thinking(record: &Record) -> String {
    let reasoning = record.workload.reasoning;
    reasoning.map_or(String::new(), |reasoning| format!("{reasoning:?}").to_lowercase())
}
