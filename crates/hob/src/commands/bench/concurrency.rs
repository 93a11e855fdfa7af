//! `hob bench concurrency` and `hob bench batch`: several concurrent users, as each of them and as all together notice it.
//! Both send the same requests. `concurrency` measures one user in turn with each number of users, and so compares times;
//! `batch` measures one number after the other, and compares totals.

use clap::Args;
use hob_bench::chat::{ChatWorkload, Prompts, Shape, ThinkingChoice};
use hob_bench::experiment::{Axis, Experiment, Workload};
use hob_bench::speech::{Formats, Streaming, Text};
use hob_bench::timeline::SoundFormat;

use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::workload::{THINKING, VoiceArgs, run_size, shape, text, users};
use crate::arguments::one_of;
use crate::failure::{CliResult, Failure};

/// Measure latency per user under concurrent load: how many times as long each user waits, and whether users are
/// served together or one after the other
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ConcurrencyArgs {
    /// Concurrent users; one user is measured alternately with each number
    /// [default: 1,2,3,4,8, and for speech 1,2,4,8]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    users: Vec<usize>,
    #[command(flatten)]
    request: RequestArgs,
}

/// Measure the throughput of several users together: the total, the gain over one user, and the memory
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_BATCH_HELP)]
pub(crate) struct BatchArgs {
    /// Concurrent users
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8")]
    users: Vec<usize>,
    #[command(flatten)]
    request: RequestArgs,
}

/// What every user asks for.
#[derive(Clone, Debug, Args)]
struct RequestArgs {
    /// Shape of prompt and answer
    #[arg(long, value_name = "NAME", value_parser = shape, default_value = "short_short")]
    shape: Shape,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_parser = one_of(THINKING), default_value = "on")]
    thinking: ThinkingChoice,
    /// Measure speech instead of chat: the text to speak
    #[arg(long, value_name = "NAME", value_parser = text, num_args = 0..=1,
        default_missing_value = "medium", conflicts_with_all = ["shape", "thinking"])]
    speech: Option<Text>,
    #[command(flatten)]
    voice: VoiceArgs,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 2)]
    requests: usize,
}

const USERS: [usize; 5] = [1, 2, 3, 4, 8];
const LISTENERS: [usize; 4] = [1, 2, 4, 8];

const AFTER_HELP: &str = "\
Examples:
  hob bench concurrency                the model that hob serve would load
  hob bench concurrency --target http://127.0.0.1:8080 --users 2,3
  hob bench concurrency --target http://127.0.0.1:11434 --model qwen3:8b --shape long_short \\
    --users 4
  hob bench concurrency --speech       its voice, for 1, 2, 4 and 8 listeners
  hob bench concurrency --speech long --requests 12   enough for a p95 of one listener

Times (×) are geometric means of pairs: a run of many users against the run of one user next to it.
Scaling is the throughput of all users, divided by the throughput of one user times their number;
under 0.6 they queue.

For listeners, the table has the gain (seconds of sound per second of all, divided by those of one),
the first sound of each (p50; p95 from 72 answers on; the longest), and the peak memory of the
speech engine, if hob started it. hob bench batch --speech has the memory of one listener too.";

const AFTER_BATCH_HELP: &str = "\
Examples:
  hob bench batch                      the model that hob serve would load
  hob bench batch --target http://127.0.0.1:8080 --users 1,16,32
  hob bench batch --speech long        its voice: seconds of sound a second
  hob bench batch --target http://127.0.0.1:8080 --launch \\
    'llama-server -m model.gguf --port 8080 -np 8'

With --launch, hob starts the server again for each number of users, and also measures its memory.
The gain is the tokens per second (or seconds of sound per second) of all users together, divided by
those of one user. So --users must contain 1.";

impl MeasuringVerb for ConcurrencyArgs {
    fn experiment(&self, _: &MeasuringArgs) -> CliResult<Experiment> {
        let users = users(match (&self.users[..], self.request.speech) {
            ([], None) => &USERS[..],
            ([], Some(_)) => &LISTENERS[..],
            (typed, _) => typed,
        })?;
        if users.iter().all(|users| *users < 2) {
            let failure = Failure::usage("--users needs at least one value above 1");
            return Err(failure.hint("such as --users 2,4"));
        }
        self.request.experiment(Axis::Concurrency(in_order(users)))
    }
}

impl MeasuringVerb for BatchArgs {
    fn experiment(&self, _: &MeasuringArgs) -> CliResult<Experiment> {
        self.request.experiment(Axis::Batch(users(&self.users)?))
    }
}

/// The fewest first: a server keeps the memory of its busiest moment, so only then does a peak belong to its own number of users.
fn in_order(mut users: Vec<usize>) -> Vec<usize> {
    users.sort_unstable();
    users.dedup();
    users
}

impl RequestArgs {
    fn experiment(&self, axis: Axis) -> CliResult<Experiment> {
        let workload = match self.speech {
            Some(text) => {
                let usual = Formats::First(SoundFormat::ALL.to_vec());
                Workload::Speech(self.voice.speech(&[text], usual, &[Streaming::Requested]))
            }
            None => Workload::Chat(ChatWorkload {
                shapes: vec![self.shape],
                thinking: self.thinking,
                prompts: Prompts::Cold,
            }),
        };
        Ok(Experiment { workload, axis, run_size: run_size(self.requests, 0)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::measuring::Measure;
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Measure<ConcurrencyArgs>,
    }

    #[test]
    fn chats_and_voices_have_usual_numbers_of_users() {
        for (line, expect) in [
            (&["hob"][..], &[1_usize, 2, 3, 4, 8][..]),
            (&["hob", "--speech"], &[1, 2, 4, 8]),
            (&["hob", "--speech", "--users", "8,2"], &[2, 8]),
        ] {
            let Line { args } = clap::Parser::parse_from(line.iter().copied());
            let axis = args.own.experiment(&args.measuring).expect("an experiment").axis;
            assert!(matches!(axis, Axis::Concurrency(users) if users == expect), "{line:?}");
        }
    }
}
