//! The worker that quantizes a chat model, or compares two. It reports line by line, and can be stopped at any time.
//! Both sides of the pipe use one type, [`QuantizeStep`], so that they cannot disagree. The study of speech models uses it, too.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use hob_engines::quantize::{
    Importance, QuantType, QuantizeError, QuantizeJob, QuantizePlan, TextPair, TokenCount,
    check_text, planned, quantize,
};
use hob_eval::distance::{DistanceReport, Distances};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use super::chat::threads;
use super::own_program;
use super::spoken_sentence::{SpeechCost, SpokenSentence};
use super::worker_process::{next_report, reporting_process};
use crate::bounded_file::read_text;
use crate::failure::{CliResult, Failure};
use crate::printer::worker_line;
use crate::worker_args::{DistanceWorkerArgs, QuantizeWorkerArgs};

/// Maximum bytes of a text for the importance of weights, or for a distance.
pub(crate) const QUANTIZE_TEXT_BYTES_MAX: u64 = 64 << 20;
/// Maximum bytes of a dead worker's stderr of which the last line is shown.
const SAID_BYTES_MAX: usize = 2_000;

/// A line of the worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuantizeStep {
    /// Tokens of the text that shows which weights matter.
    Importance {
        done: usize,
        all: usize,
    },
    /// Tensors that are written.
    Tensors {
        done: usize,
        all: usize,
    },
    /// Tokens of the text on which two models are compared.
    Tokens {
        done: usize,
        all: usize,
    },
    /// What would be written.
    Plan(QuantizePlan),
    Distance(Box<DistanceReport>),
    Spoken(Box<SpokenSentence>),
    SpeechCost(SpeechCost),
    Failed {
        reason: String,
    },
    Done,
}

/// Starts a worker and calls `see` with each step until it ends. Dropping the future kills the worker.
///
/// # Errors
/// The worker does not start, fails, or dies.
pub(crate) async fn run_quantize_worker(
    words: Vec<std::ffi::OsString>,
    mut see: impl FnMut(QuantizeStep),
) -> CliResult<()> {
    let mut command = reporting_process(&own_program()?);
    command.arg("worker").args(words).stderr(Stdio::piped());
    let failed = |error| Failure::io("the worker does not start", &error);
    let mut child = command.spawn().map_err(failed)?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Failure::internal("the worker has no output"));
    };
    let (mut lines, mut is_done, mut failure) = (BufReader::new(stdout).split(b'\n'), false, None);
    let steps = async {
        while let Some(step) = next_report(&mut lines).await {
            match step {
                QuantizeStep::Failed { reason } => failure = Some(reason),
                QuantizeStep::Done => is_done = true,
                step => see(step),
            }
        }
    };
    // llama.cpp writes much to stderr. Unread, it would stop the worker.
    let (_, said) = futures::join!(steps, last_bytes(stderr));
    if let Some(reason) = failure {
        return Err(Failure::engine(reason));
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() && is_done {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(Failure::engine(format!("the worker ended ({status}): {last}")))
}

/// Reads to the end, and keeps the last [`SAID_BYTES_MAX`] bytes.
async fn last_bytes(mut input: impl AsyncRead + Unpin) -> Vec<u8> {
    let (mut last, mut piece) = (Vec::new(), vec![0; 4096]);
    while let Ok(count @ 1..) = input.read(&mut piece).await {
        last.extend_from_slice(&piece[..count]);
        last.drain(..last.len().saturating_sub(SAID_BYTES_MAX));
    }
    last
}

/// Entry point of `hob worker quantize`.
pub(crate) fn work_quantize(args: &QuantizeWorkerArgs) -> CliResult<()> {
    finish(quantized(args))
}

fn quantized(args: &QuantizeWorkerArgs) -> Result<(), String> {
    let text_of = |error: QuantizeError| error.to_string();
    let kind = QuantType::by_name(&args.kind).ok_or("there is no such type")?;
    if args.plan {
        say(&QuantizeStep::Plan(planned(&args.source, kind).map_err(text_of)?));
        return Ok(());
    }
    // Before the work, which can take hours.
    if let Some((file, context)) = args.text.as_ref().zip(args.context) {
        let text = read_text(file, QUANTIZE_TEXT_BYTES_MAX).map_err(|error| error.to_string())?;
        check_text(&args.source, &text, context).map_err(text_of)?;
    }
    let (_, many) = threads(0);
    let importance = match &args.importance {
        Some(file) => importance(args, file, many as usize)?,
        None => Importance::default(),
    };
    let job = QuantizeJob {
        source: args.source.clone(),
        target: args.target.clone().unwrap_or_default(),
        kind,
        importance,
        threads: many as usize,
        header: header(&args.header),
    };
    quantize(&job, |done, all| say(&QuantizeStep::Tensors { done, all })).map_err(text_of)
}

/// The importance matrix of a model for a text. The file `keep` has it for the next time that the model is quantized.
fn importance(
    args: &QuantizeWorkerArgs,
    file: &Path,
    threads: usize,
) -> Result<Importance, String> {
    if let Some(kept) = read_kept(&args.keep) {
        return Ok(kept);
    }
    let text = read_text(file, QUANTIZE_TEXT_BYTES_MAX).map_err(|error| error.to_string())?;
    let progress = |TokenCount { done, all }| say(&QuantizeStep::Importance { done, all });
    let found = Importance::of_text(&args.source, &text, args.pieces, threads, progress);
    let found = found.map_err(|error| error.to_string())?;
    if let Some(keep) = &args.keep {
        let json = serde_json::to_vec(&found).map_err(|error| error.to_string())?;
        fs_err::write(keep, json).map_err(|error| error.to_string())?;
    }
    Ok(found)
}

fn read_kept(keep: &Option<PathBuf>) -> Option<Importance> {
    serde_json::from_slice(&fs_err::read(keep.as_ref()?).ok()?).ok()
}

/// `KEY=TEXT`
fn header(words: &[String]) -> Vec<(String, String)> {
    let pair = |word: &String| {
        let (key, text) = word.split_once('=')?;
        Some((key.to_owned(), text.to_owned()))
    };
    words.iter().filter_map(pair).collect()
}

/// Entry point of `hob worker distance`.
pub(crate) fn work_distance(args: &DistanceWorkerArgs) -> CliResult<()> {
    finish(compared(args))
}

fn compared(args: &DistanceWorkerArgs) -> Result<(), String> {
    let text = read_text(&args.text, QUANTIZE_TEXT_BYTES_MAX).map_err(|error| error.to_string())?;
    let (_, many) = threads(0);
    let pair = TextPair {
        reference: &args.reference,
        other: &args.model,
        text: &text,
        context_tokens: args.context,
        pieces_max: args.pieces,
        threads: many as usize,
    };
    let mut distances = Distances::default();
    let scored = pair.score(
        |token| distances.push(token.reference, token.other, token.token),
        |TokenCount { done, all }| say(&QuantizeStep::Tokens { done, all }),
    );
    scored.map_err(|error| error.to_string())?;
    let report = distances.finish().ok_or("no token of the text was scored")?;
    say(&QuantizeStep::Distance(Box::new(report)));
    Ok(())
}

pub(super) fn finish(result: Result<(), String>) -> CliResult<()> {
    match result {
        Ok(()) => say(&QuantizeStep::Done),
        Err(reason) => say(&QuantizeStep::Failed { reason }),
    }
    Ok(())
}

/// Prints a step on its own line. A reader that is gone has killed this process already.
pub(super) fn say(step: &QuantizeStep) {
    let _unread = worker_line(step);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_words_of_a_worker_are_kept() {
        let said = ["a".repeat(1 << 20), "b".repeat(SAID_BYTES_MAX)].concat();
        assert_eq!(last_bytes(said.as_bytes()).await, "b".repeat(SAID_BYTES_MAX).as_bytes());
        assert_eq!(last_bytes(&b"few"[..]).await, b"few");
    }
}
