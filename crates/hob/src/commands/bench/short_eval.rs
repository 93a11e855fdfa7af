//! The same few items for two model files, each on a hob of its own. `hob quantize` reports the scores.
//! Nothing is stored; `hob eval` measures results that are.

use std::path::Path;

use hob_bench::eval::TaskName;
use hob_bench::record::{EvalFigures, RecordStore};
use hob_models::Gguf;
use serde::Serialize;
use tempfile::TempDir;

use super::eval_report::EvalReport;
use super::measuring::{Keep, Measure, MeasuringVerb as _, measured};
use super::{BoundsArgs, EvalArgs, Verb};
use crate::failure::{CliResult, Failure};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::signals::interrupted;

/// The answers of two models to the same items.
#[derive(Debug, Serialize)]
pub(crate) struct ShortEval {
    pub(crate) source: Option<EvalFigures>,
    pub(crate) target: Option<EvalFigures>,
    /// The second model compared with the first; one sentence each.
    pub(crate) sentences: Vec<String>,
}

/// Asks both models so many items of each task, without thinking.
///
/// # Errors
/// A server does not start or fails, or the work was stopped.
pub(crate) fn short_eval(
    models: [&Path; 2],
    asked: (&[TaskName], u32),
    (globals, printer): (&Globals, &Printer),
) -> CliResult<ShortEval> {
    let folder = TempDir::new().map_err(|error| Failure::io("no folder for answers", &error))?;
    let mut records = Vec::new();
    // A base model has no chat template: it only continues a text.
    let is_base = Gguf::open(models[0]).map_err(Failure::usage)?.chat_template().is_none();
    for model in models {
        let Measure { mut measuring, own } = eval_args(model, asked, is_base, folder.path())?;
        measuring.seed = own.usual_seed();
        let experiment = own.experiment(&measuring)?;
        let keep: Keep =
            |out, record, samples, _| RecordStore::new(out).put(record, samples).map(drop);
        let (done, _) = measured(&measuring, (experiment, keep), None, (globals, printer))?;
        if done.was_stopped {
            return Err(interrupted());
        }
        done.exit(|record| done.is_spoilt_by(record))?;
        records.extend(done.records.into_iter().next());
    }
    let store = RecordStore::new(folder.path());
    let report = EvalReport::of(&store, &records, BoundsArgs::default())?;
    let sentences = report.differences(["the source", "the quantized model"]);
    let mut figures = records.into_iter().map(|record| record.eval);
    Ok(ShortEval { source: figures.next().flatten(), target: figures.next().flatten(), sentences })
}

/// The arguments of `hob eval`, as a person would type them.
fn eval_args(
    model: &Path,
    (tasks, per_task): (&[TaskName], u32),
    is_base: bool,
    folder: &Path,
) -> CliResult<Measure<EvalArgs>> {
    let model = std::path::absolute(model).map_err(|error| Failure::io("no such path", &error))?;
    let (file, folder) = (model.display().to_string(), folder.display().to_string());
    let items = per_task.to_string();
    let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    let mut words = vec!["hob", "eval", "--items", &items];
    words.extend(["--model", &file, "--out", &folder]);
    words.extend(tasks.iter().flat_map(|task| ["--tasks", task]));
    words.extend(if is_base { &["--completion"][..] } else { &["--thinking", "off"] });
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    match Verb::parse(words.iter()) {
        Ok(Verb::Eval(args)) => Ok(*args),
        Ok(_) => Err(Failure::internal("this is not an evaluation")),
        Err(error) => Err(Failure::internal(error)),
    }
}
