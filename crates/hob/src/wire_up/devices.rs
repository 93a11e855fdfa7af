//! Asks a worker for the engine's devices: which there are, and for `hob doctor`, which of them compute.
//! Drivers of graphics cards run in that process alone, so a broken one ends no other.

use std::path::Path;
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;

use hob_core::locked;
use hob_engines::chat::{DeviceReport, EngineDevice, has_card_kernels};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{Instant, timeout_at};

use super::memory::aside;
use super::own_program;
use super::worker_process::{next_report, reporting_process};
use crate::app::App;
use crate::failure::{CliResult, Failure};

/// Longer than a driver needs to compile its kernels, and a model to load from a slow disk, on a few devices.
const DEVICES_TIME_MAX: Duration = Duration::from_secs(180);
/// Longer than a driver needs to start and to list its devices.
const LIST_TIME_MAX: Duration = Duration::from_secs(20);
/// After a list without cards. Drivers that are slow when a machine starts may answer later.
const LIST_PAUSE: Duration = Duration::from_secs(60);

/// Variables with which ggml takes system memory for what a card cannot or should not hold, without an error.
const SPILLS: [&str; 3] = [
    "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
    "GGML_VK_ALLOW_SYSMEM_FALLBACK",
    "GGML_VK_PREFER_HOST_MEMORY",
];

/// What the worker reported, and how it ended if it did not end well.
#[derive(Clone, Debug, Default)]
pub(crate) struct TriedDevices {
    pub(crate) reports: Vec<DeviceReport>,
    pub(crate) failed: Option<String>,
}

/// Lists the engine's devices. With a model, each computes a token.
///
/// # Errors
/// The worker does not start.
pub(crate) async fn run_devices_worker(model: Option<&Path>) -> CliResult<TriedDevices> {
    run_within(DEVICES_TIME_MAX, model).await
}

async fn run_within(time_max: Duration, model: Option<&Path>) -> CliResult<TriedDevices> {
    let mut command = reporting_process(&own_program()?);
    command.args(["worker", "devices"]);
    if let Some(model) = model {
        command.arg("--model").arg(model);
    }
    let failed = |error| Failure::io("the worker for devices does not start", &error);
    let mut child = command.spawn().map_err(failed)?;
    let mut tried = TriedDevices::default();
    let until = Instant::now() + time_max;
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout).split(b'\n');
        while let Ok(Some(report)) = timeout_at(until, next_report(&mut lines)).await {
            tried.reports.push(report);
        }
    }
    tried.failed = match timeout_at(until, child.wait()).await {
        Ok(Ok(status)) => (!status.success()).then(|| status.to_string()),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no result within {} s", time_max.as_secs())),
    };
    Ok(tried)
}

/// The graphics cards that the engine lists. It is asked in a process of its own, while another thread takes over this thread's
/// tasks. Empty if it does not answer; then it is asked again after a minute.
pub(crate) fn listed_cards() -> Vec<EngineDevice> {
    static LISTED: Mutex<Option<(Instant, Vec<EngineDevice>)>> = Mutex::new(None);
    if !has_card_kernels() {
        return Vec::new();
    }
    // Another caller may be asking, and this one then waits for it.
    aside(|| {
        let mut listed = locked(&LISTED);
        let is_known = |(asked_at, cards): &(Instant, Vec<EngineDevice>)| {
            !cards.is_empty() || asked_at.elapsed() < LIST_PAUSE
        };
        if !listed.as_ref().is_some_and(is_known) {
            *listed = Some((Instant::now(), ask_for_cards()));
        }
        listed.as_ref().map(|(_, cards)| cards.clone()).unwrap_or_default()
    })
}

/// Callers may or may not be in an asynchronous runtime, so this one has its own thread.
fn ask_for_cards() -> Vec<EngineDevice> {
    let asking = thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(run_within(LIST_TIME_MAX, None)).ok()
    });
    let tried = asking.join().ok().flatten().unwrap_or_default();
    let card = |report| match report {
        DeviceReport::Found(device) => Some(device).filter(|device| device.is_card),
        DeviceReport::Unused { .. }
        | DeviceReport::Computed { .. }
        | DeviceReport::Failed { .. } => None,
    };
    tried.reports.into_iter().filter_map(card).collect()
}

/// Warns, once for all models, that workers inherit a variable with which cards spill.
pub(super) fn warn_of_spills(app: &App<'_>) {
    static CHECKED: Once = Once::new();
    let variables = &app.environment.secrets;
    CHECKED.call_once(|| {
        if let Some(note) = allowed_spill(|name| variables.contains_key(name), has_card_kernels()) {
            tracing::warn!("{note}");
        }
    });
}

/// `None`: no such variable is set, or this build has no kernels for cards.
fn allowed_spill(is_set: impl Fn(&str) -> bool, has_kernels: bool) -> Option<String> {
    let name = SPILLS.into_iter().find(|&name| has_kernels && is_set(name))?;
    Some(format!(
        "{name} is set, so layers on a graphics card may be in system memory without an error, and \
         every token then waits for the bus: unset it to get an error with numbers instead"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_with_which_cards_spill_is_named() {
        for name in SPILLS {
            let note = allowed_spill(|set| set == name, true).expect("a note");
            assert!(note.starts_with(name), "{note}");
            assert_eq!(allowed_spill(|set| set == name, false), None);
        }
        assert_eq!(allowed_spill(|set| set == "GGML_VK_VISIBLE_DEVICES", true), None);
    }
}
