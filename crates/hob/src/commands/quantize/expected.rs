//! What a quantized model will be, before it is written. Chat: llama.cpp says the type of each tensor, and `hob fit` the
//! memory and the speed. Speech: the graphs say the size, and `hob fit` the memory.

use std::path::Path;

use hob_core::fit::{FitOptions, Model, Use, assess};
use hob_core::machine::Machine;
use hob_engines::quantize::{QuantType, QuantizePlan};
use hob_models::quantized_speech::{SpeechForm, SpeechSizes};
use hob_models::{DiskError, Gguf, retyped};

use super::MB;
use crate::failure::{CliResult, Failure};
use crate::printer::{Printer, count_text};
use crate::sink::folder_of;
use crate::wire_up::{QuantizeStep, run_quantize_worker};

/// The model that would be written.
pub(super) struct ExpectedModel {
    pub(super) model: Model,
    plan: QuantizePlan,
}

impl ExpectedModel {
    /// `header` is that of the file `source`.
    ///
    /// # Errors
    /// llama.cpp cannot quantize the model to this type, or no tensor would get it.
    pub(super) async fn of(
        header: Gguf,
        source: &Path,
        kind: QuantType,
    ) -> CliResult<ExpectedModel> {
        let words = ["quantize", "--plan", "--kind", kind.name(), "--source"].map(Into::into);
        let words = words.into_iter().chain([source.as_os_str().to_owned()]).collect();
        let mut plan = None;
        run_quantize_worker(words, |step| {
            if let QuantizeStep::Plan(planned) = step {
                plan = Some(planned);
            }
        })
        .await?;
        let plan = plan
            .ok_or_else(|| Failure::engine("llama.cpp did not say which type each tensor gets"))?;
        refuse_for_dense(kind, &plan)?;
        let header = retyped(header, &plan.types).map_err(Failure::engine)?;
        let model = header.model(kind.name()).map_err(Failure::engine)?;
        Ok(ExpectedModel { model: Model { quant: kind.name().to_owned(), ..model }, plan })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.model.shape.weights.bytes()
    }

    /// Says which tensors get another type than the one that is asked for.
    pub(super) fn note_replaced(&self, kind: QuantType, printer: &Printer) {
        let (replaced, all) = (self.plan.replaced, self.plan.types.len());
        if replaced > 0 {
            printer.note(format_args!(
                "{} does not fit the rows of {} ({all} in all): they get another type",
                kind.name(),
                count_text(replaced, "tensor"),
            ));
        }
    }
}

/// # Errors
/// The type is for experts, and the model has none.
fn refuse_for_dense(kind: QuantType, plan: &QuantizePlan) -> CliResult<()> {
    let has_experts = plan.types.iter().any(|(_, kind)| kind == "mxfp4");
    if kind.name() != "MXFP4_MOE" || has_experts {
        return Ok(());
    }
    Err(Failure::usage("MXFP4_MOE is for the experts of a model, and this model has no experts")
        .hint("take Q4_K_M, or Q8_0, which all its weights would get"))
}

/// Size, and what `hob fit` expects of it here.
pub(super) fn prediction(model: &Model, machine: &Machine) -> String {
    let megabytes = model.shape.weights.bytes() as f64 / MB;
    let assessed = assess(machine, model, &FitOptions::default());
    let plan = assessed.ok().and_then(|assessed| assessed.plans.into_iter().next());
    let plan = plan.map_or(String::new(), |plan| {
        let needs: u64 = plan.uses.iter().map(Use::kept_bytes).sum();
        let speed = plan.decode_requested.map_or(String::new(), |rate| {
            format!(
                ", about {:.0} tok/s with {} tokens of context",
                rate.tok_s, rate.context_tokens
            )
        });
        let fits =
            if plan.uses.iter().all(Use::fits) { "" } else { ", which this machine does not have" };
        format!(", {:.0} MB of memory{fits}{speed} (hob fit)", needs as f64 / MB)
    });
    format!("{}: {megabytes:.0} MB{plan}", model.quant)
}

/// Size and memory of a speech model in both forms, and what is known of the speed.
pub(super) fn speech_prediction(
    source: &str,
    form: SpeechForm,
    sizes: SpeechSizes,
    available_bytes: u64,
) -> [String; 3] {
    let megabytes = |bytes: u64| bytes as f64 / MB;
    let memory = |bytes: u64| {
        let fits = if bytes <= available_bytes { "" } else { ", which this machine does not have" };
        format!("{:.0} MB of memory{fits} (hob fit)", megabytes(bytes))
    };
    let (now, then) = (megabytes(sizes.now_bytes), megabytes(sizes.then_bytes));
    let (before, after) = (memory(sizes.now_memory_bytes), memory(sizes.then_memory_bytes));
    let speed = match form {
        SpeechForm::Packed(_) if sizes.integer_bytes > 0 => {
            "the speed stays, because the engine unpacks the weights into 8 bits when it loads them"
        }
        SpeechForm::Packed(_) => {
            "the speed stays, because the engine unpacks the weights into floats when it loads them"
        }
        SpeechForm::Float => {
            "no float weights are published with this model, so they are restored from its integers and are as exact \
             as those. The engine then computes in floats, which is slower on most processors; how much is measured \
             afterwards"
        }
    };
    [
        format!("from {source}: {now:.0} MB of weights on the disk, {before}"),
        format!("to {form}: about {then:.0} MB of weights on the disk, {after}"),
        speed.to_owned(),
    ]
}

/// All parts of a split model.
pub(super) fn files_bytes(source: &Path) -> u64 {
    Gguf::open(source).map(|header| header.file_bytes()).unwrap_or_default()
}

/// # Errors
/// The disk has no room for so many bytes.
pub(super) fn check_room(target: &Path, needed_bytes: u64) -> CliResult<()> {
    let folder = folder_of(target);
    hob_models::room_for(folder, needed_bytes).map_err(|error| match error {
        DiskError::TooSmall { needed_bytes, available_bytes, .. } => Failure::internal(format!(
            "{} has {:.0} MB free, and the model needs {:.0} MB",
            folder.display(),
            available_bytes as f64 / MB,
            needed_bytes as f64 / MB
        ))
        .hint("free some space, or name a file on another disk with --out"),
        error => Failure::internal(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_small_is_that_of_the_target() {
        let folder = tempfile::tempdir().expect("a folder");
        let failure = check_room(&folder.path().join("m.gguf"), u64::MAX).expect_err("no room");
        let begin = format!("{} has ", folder.path().display());
        assert!(failure.sentence.starts_with(&begin), "{failure}");
        assert!(failure.hint.is_some_and(|hint| hint.ends_with("another disk with --out")));
    }

    #[test]
    fn size_and_memory_of_a_speech_model_are_said_beforehand() {
        let sizes = SpeechSizes {
            now_bytes: 92_000_000,
            then_bytes: 326_000_000,
            integer_bytes: 78_000_000,
            now_memory_bytes: 397_000_000,
            then_memory_bytes: 546_000_000,
        };
        let [from, to, speed] = speech_prediction("kokoro", SpeechForm::Float, sizes, 500_000_000);
        let expected = "from kokoro: 92 MB of weights on the disk, 397 MB of memory (hob fit)";
        assert_eq!(from, expected);
        assert!(
            to.ends_with("546 MB of memory, which this machine does not have (hob fit)"),
            "{to}"
        );
        assert!(speed.ends_with("measured afterwards"), "{speed}");
        let four = SpeechForm::by_name("4-bit").expect("known");
        let [_, to, speed] = speech_prediction("kokoro", four, sizes, 600_000_000);
        assert!(to.ends_with("546 MB of memory (hob fit)"), "{to}");
        assert!(speed.contains("stays") && speed.contains("into 8 bits"), "{speed}");
    }
}
