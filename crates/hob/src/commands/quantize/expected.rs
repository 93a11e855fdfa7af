//! What a quantized chat model will be, before it is written: llama.cpp says the type of each tensor, and `hob fit`
//! the memory and the speed.

use std::path::Path;

use hob_core::fit::{FitOptions, Model, Use, assess};
use hob_core::machine::Machine;
use hob_engines::quantize::{QuantType, QuantizePlan};
use hob_models::{Gguf, retyped};

use super::MB;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Printer, count_text};
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
        let plan = plan.ok_or_else(|| Failure::new(Exit::Engine, "llama.cpp said no plan"))?;
        refuse_for_dense(kind, &plan)?;
        let failed = |error| Failure::new(Exit::Engine, error);
        let header = retyped(header, &plan.types).map_err(failed)?;
        let model = header.model(kind.name()).map_err(failed)?;
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

/// All parts of a split model.
pub(super) fn files_bytes(source: &Path) -> u64 {
    Gguf::open(source).map(|header| header.file_bytes()).unwrap_or_default()
}

/// # Errors
/// The disk has no room for so many bytes.
pub(super) fn check_room(target: &Path, needed_bytes: u64) -> CliResult<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    hob_models::room_for(folder, needed_bytes).map_err(|error| Failure::new(Exit::Internal, error))
}
