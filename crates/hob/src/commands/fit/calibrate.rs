//! `hob fit calibrate`: times the embedded engine on this machine, in half a minute.
//! Times memory, then kernels, then stored models on the CPU and on the card. Keeps the result unless the machine was
//! too busy.

mod fitting;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hob_core::fit::{ComputeSite, Model};
use hob_core::machine::{Basis, Gpu, GpuMemory};
use hob_engines::chat::EngineDevice;
use hob_engines::timing::{EngineTiming, engine_version};
use hob_machine::profile::MachineFile;
use hob_machine::{FactRow, MachineFacts, Stamp};
use hob_models::Gguf;
use serde_json::json;
use tokio::time::Instant;

use super::machine::facts;
use crate::app::{App, run_until_stopped};
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::machine::{here, machine_store, measure};
use crate::model_store::{ModelStore, StoreState};
use crate::printer::{Printer, table};
use crate::settings::Overrides;
use crate::wire_up::{
    CALIBRATION_TIME_MAX, CARD_TIME_MAX, TimingJob, decoding_threads, listed_cards,
    run_timing_worker, used_cards,
};
use fitting::{CalibrationFigures, Checked};

/// Time the embedded engine on this machine, so that predictions for it are more accurate
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CalibrateArgs {
    /// Time only the most common quants, and one model
    #[arg(long)]
    quick: bool,
    /// Keep the result even if the machine was busy
    // Its earlier name is still read.
    #[arg(long, alias = "anyway")]
    force: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Takes up to half a minute and uses all cores; with a graphics card, up to a minute more. Let nothing
else run. The result is stored in machine.toml of hob's home, for this processor, this card and this
version of the engine.";

/// Quants to time.
const QUANTS: usize = 22;
const QUANTS_QUICK: usize = 6;
const MODELS_MAX: usize = 2;
/// The remaining time is for models.
const KERNELS_TIME: Duration = Duration::from_secs(16);
const CONTEXT_TOKENS: u32 = 1_536;
/// Larger models take too long to read.
const MODEL_BYTES_MAX: u64 = 6_000_000_000;

/// A stored model, and the bytes of its weights.
struct Installed {
    path: PathBuf,
    model: Model,
    bytes: u64,
}

pub(crate) fn run(args: &CalibrateArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let app = App::open(globals, Overrides::default(), printer)?;
    let (known, figures) = run_until_stopped(timed(args, &app))?;
    let (known, checked) = figures
        .fitted(&known)
        .map_err(|error| Failure::engine(error).hint("run it again when the machine is quiet"))?;
    let doubts = figures.doubts(&checked);
    for doubt in &doubts {
        printer.note(doubt);
    }
    let is_kept = doubts.is_empty() || args.force;
    if is_kept {
        let keeping = machine_store(&app);
        keeping.keep(&known).map_err(Failure::internal)?;
        printer.note(format_args!("kept in {}", keeping.path().display()));
    } else {
        printer.note(
            "the result is not stored: run it again when the machine is quiet, or with --force",
        );
    }
    let machine = MachineFile::of(&known);
    let json = json!({ "kept": is_kept, "doubts": doubts, "machine": machine, "checked": checked });
    printer.report(args.json, &json, || calibration_text(&known, &checked))
}

async fn timed(
    args: &CalibrateArgs,
    app: &App<'_>,
) -> CliResult<(MachineFacts, CalibrationFigures)> {
    let begun = Instant::now();
    let until = begun + CALIBRATION_TIME_MAX;
    let mut known = here(app);
    let memory = measure(&mut known, app.printer)?;
    let spinner = app.printer.spinner("timing kernels");
    let types = if args.quick { QUANTS_QUICK } else { QUANTS };
    let kernels =
        run_timing_worker(&TimingJob::Kernels { quant_count: types }, begun + KERNELS_TIME).await?;
    let missing = types.saturating_sub(count_of_types(&kernels));
    if missing > 0 {
        app.printer.note(format_args!("there was no time for {missing} of {types} quants"));
    }
    let mut figures = CalibrationFigures::new(memory, kernels, decoding_threads());
    let count = if args.quick { 1 } else { MODELS_MAX };
    for Installed { path, model, .. } in installed(app, count, MODEL_BYTES_MAX) {
        spinner.set_message(format!("timing {}", model.name));
        let site = ComputeSite::Cpu;
        let job = TimingJob::Model { path: &path, context_tokens: CONTEXT_TOKENS, site };
        figures.add(site, model, run_timing_worker(&job, until).await?);
    }
    let date = jiff::Zoned::now().date().to_string();
    let stamp = Stamp { engine_version: engine_version(), date };
    let used: Vec<(usize, &Gpu)> = used_cards(&known.machine.gpus).collect();
    if let Some((number, room_bytes)) = card(&used, listed_cards, app.printer) {
        for Installed { path, model, .. } in installed(app, count, room_bytes.min(MODEL_BYTES_MAX))
        {
            spinner.set_message(format!("timing {} on the card", model.name));
            let site = ComputeSite::Gpu(number);
            let job = TimingJob::Model { path: &path, context_tokens: CONTEXT_TOKENS, site };
            figures.add(
                site,
                model,
                run_timing_worker(&job, Instant::now() + CARD_TIME_MAX).await?,
            );
        }
        if figures.has_model_on(ComputeSite::Gpu(number)) {
            known.gpu_stamps[number] = Some(stamp.clone());
        }
    }
    spinner.finish_and_clear();
    known.cpu_stamp = Some(stamp);
    Ok((known, figures))
}

/// The card on which the engine computes, and the largest model that certainly fits on it, in bytes. Without a card in the
/// engine's list, the speed of the processor would be stored as that of the card.
fn card(
    used: &[(usize, &Gpu)],
    listed: impl FnOnce() -> Vec<EngineDevice>,
    printer: &Printer,
) -> Option<(usize, u64)> {
    let (number, gpu) = match *used {
        [] => return None,
        [one] => one,
        _ => {
            printer.note("the cards are not timed: models are spread over all of them, so one alone cannot be timed");
            return None;
        }
    };
    if gpu.device.bandwidth.is_none() {
        printer.note(format_args!(
            "{} is not timed, because its memory bandwidth is unknown: state it in machine.toml",
            gpu.name
        ));
        return None;
    }
    if listed().is_empty() {
        printer.note(format_args!(
            "{} is not timed, because the engine does not find it: `hob doctor` says what its driver lacks",
            gpu.name
        ));
        return None;
    }
    let free_bytes = match gpu.memory {
        GpuMemory::Own { free_bytes, .. } => free_bytes,
        GpuMemory::Unified { limit_bytes } => limit_bytes,
    };
    Some((number, free_bytes / 2))
}

fn count_of_types(kernels: &[EngineTiming]) -> usize {
    let name = |timed: &EngineTiming| match timed {
        EngineTiming::Kernel { quant, .. } => Some(quant.clone()),
        _ => None,
    };
    kernels.iter().filter_map(name).collect::<BTreeSet<_>>().len()
}

/// The smallest and the largest model of at most `bytes_max`.
fn installed(app: &App<'_>, count: usize, bytes_max: u64) -> Vec<Installed> {
    let store = ModelStore::open(app);
    let entries = store.entries().unwrap_or_default();
    let here = entries.iter().filter(|entry| entry.condition == StoreState::Stored);
    let files =
        here.filter_map(|entry| Some((entry.name.clone(), store.chat_file(&entry.name).ok()?.0)));
    let mut models: Vec<Installed> = files
        .filter_map(|(name, path)| {
            let model = Gguf::open(&path).ok()?.model(&name).ok()?;
            let bytes = model.shape.weights.bytes();
            (bytes <= bytes_max).then_some(Installed { path, model, bytes })
        })
        .collect();
    models.sort_by_key(|one| one.bytes);
    if models.len() > count {
        models.drain(1..=models.len() - count);
    }
    models
}

fn calibration_text(known: &MachineFacts, checked: &[Checked]) -> String {
    let is_timed = |row: &FactRow| {
        let of_card = row.name.starts_with("gpu") && row.basis == Some(Basis::Calibrated);
        row.name.starts_with("processor ") || row.name.contains("bandwidth") || of_card
    };
    let facts = facts(known.rows().into_iter().filter(is_timed));
    if checked.is_empty() {
        return format!(
            "{facts}\nno model is stored to check the result with: `hob pull` fetches one"
        );
    }
    let mut table = table(["MODEL", "ON", "CONTEXT", "TIMED TOK/S", "PREDICTED", "BEFORE"]);
    for Checked { model, device, context_tokens, timed, predicted, before } in checked {
        let percent = |rate: f64| format!("{rate:.1} ({:+.0} %)", 100.0 * (rate / timed - 1.0));
        let context = context_tokens.to_string();
        table.add_row([
            model,
            device,
            &context,
            &format!("{timed:.1}"),
            &percent(*predicted),
            &percent(*before),
        ]);
    }
    format!("{facts}\n\n{table}")
}

#[cfg(test)]
mod tests {
    use hob_machine::profile;

    use super::*;
    use crate::printer::Volume;

    #[test]
    fn a_card_that_the_engine_does_not_find_is_not_timed() {
        let gpu = profile::builtin("ryzen-5800u").expect("a profile").machine.gpus.remove(0);
        let device = EngineDevice {
            name: "Vulkan0".to_owned(),
            description: gpu.name.clone(),
            backend: "Vulkan".to_owned(),
            is_card: true,
            free_bytes: 0,
            total_bytes: 0,
        };
        let printer = Printer::new(Volume::ErrorsOnly);
        let timed = |listed: Vec<EngineDevice>| card(&[(3, &gpu)], || listed, &printer);
        assert_eq!(timed(vec![device]).map(|(number, _)| number), Some(3));
        assert_eq!(timed(Vec::new()), None);
    }
}
