//! Errors of the priors on published devices, for fitted and held-back devices.
//! Rows come from `bench/published/decode.csv`; classes are those of the priors.

use hob_core::fit::error_pct;
use hob_core::machine::{GpuApi, GpuMemory};
use hob_core::statistics::Sample;
use serde::Serialize;

use crate::printer::{self, Column};
use crate::published::{Row, rows, sources};

/// Rows with one prior, or all held-back rows.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) devices: usize,
    pub(super) rows: usize,
    /// Median error, and the error that 95 % of the rows do not exceed.
    pub(super) median_pct: f64,
    pub(super) p95_pct: Option<f64>,
    /// Share of rows whose measured speed is within the predicted range.
    pub(super) within_pct: f64,
}

/// One row and its prior's prediction.
struct PredictedRow {
    class: String,
    device: String,
    is_held_back: bool,
    off_pct: f64,
    is_within: bool,
}

/// Errors by class, then of all fitted rows and of all held-back rows.
///
/// # Errors
/// A row is invalid.
pub(super) fn classes() -> Result<Vec<Class>, String> {
    let predicted: Vec<PredictedRow> = rows()?.iter().filter_map(predicted_row).collect();
    let mut names: Vec<&str> = predicted.iter().map(|one| one.class.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let of_class = |name: &str| class(name, predicted.iter().filter(|one| one.class == name));
    let mut classes: Vec<Class> = names.into_iter().filter_map(of_class).collect();
    classes
        .extend(class("all that were fitted to", predicted.iter().filter(|one| !one.is_held_back)));
    classes
        .extend(class("all that were held back", predicted.iter().filter(|one| one.is_held_back)));
    Ok(classes)
}

fn predicted_row(row: &Row) -> Option<PredictedRow> {
    let timed = row.timed();
    let rate = timed.estimate.decode(timed.context_tokens)?;
    let gpu = row.gpu();
    let api = match gpu.api {
        GpuApi::Cuda => "CUDA",
        GpuApi::Rocm => "ROCm",
        GpuApi::Vulkan => "Vulkan",
        GpuApi::Metal => "Metal",
    };
    let memory = match gpu.memory {
        GpuMemory::Own { .. } => "own memory",
        GpuMemory::Unified { .. } => "unified memory",
    };
    Some(PredictedRow {
        class: format!("{api}, {memory}"),
        device: gpu.name.clone(),
        is_held_back: row.is_held_back(),
        off_pct: error_pct(rate.tok_s, row.tok_s),
        is_within: (rate.low..=rate.high).contains(&row.tok_s),
    })
}

fn class<'t>(name: &str, predicted: impl Iterator<Item = &'t PredictedRow>) -> Option<Class> {
    let predicted: Vec<&PredictedRow> = predicted.collect();
    let off = Sample::new(predicted.iter().map(|one| one.off_pct.abs()));
    let mut devices: Vec<&str> = predicted.iter().map(|one| one.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    let within = predicted.iter().filter(|one| one.is_within).count();
    Some(Class {
        name: name.to_owned(),
        devices: devices.len(),
        rows: predicted.len(),
        median_pct: off.median()?,
        p95_pct: off.p95(),
        within_pct: within as f64 / predicted.len() as f64 * 100.0,
    })
}

pub(super) fn class_table(classes: &[Class]) -> String {
    let columns: &[Column<'_, Class>] = &[
        ("priors", &|class| class.name.clone()),
        ("devices", &|class| class.devices.to_string()),
        ("rows", &|class| class.rows.to_string()),
        ("off by, median", &|class| format!("{:.1} %", class.median_pct)),
        ("95 % within", &|class| class.p95_pct.map_or(String::new(), |pct| format!("{pct:.1} %"))),
        ("within the predicted range", &|class| format!("{:.0} %", class.within_pct)),
    ];
    let sources: Vec<String> = sources().map(|(name, at)| format!("{name}: {at}")).collect();
    format!("{}\n\n{}", printer::rows(columns, classes).trim_fmt(), sources.join("\n"))
}
