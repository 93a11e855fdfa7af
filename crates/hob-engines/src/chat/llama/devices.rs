//! The devices that ggml finds, and a token that a model computes on each of them.
//! A broken driver ends the process, so each result is reported at once.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::{LlamaBackendDevice, LlamaBackendDeviceType, list_llama_ggml_backend_devices};
use serde::{Deserialize, Serialize};

use super::{CardUse, EngineDevice, Llama, LlamaError, LlamaOptions, start};
use crate::backends;
use crate::chat::decoder::{BatchToken, Decoder};

/// A token that every vocabulary has.
const TOKEN: u32 = 100;
/// Layers on a card: the output and one more, so that a model that is larger than the card can be tried, too.
const CARD_LAYERS: u32 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum DeviceReport {
    Found(EngineDevice),
    /// A library for graphics cards, such as `vulkan`, that found no device. Its driver may be missing.
    Unused {
        library: String,
    },
    /// The device computed a token. The time does not include loading the model.
    Computed {
        device: String,
        took_ms: u64,
    },
    Failed {
        device: String,
        reason: String,
    },
}

/// Reports all devices, then the libraries without devices, and then, if there is a model, its result on each device. Stops
/// when `report` says so.
///
/// # Errors
/// The engine does not start. A device that does not compute is a report, not an error.
pub fn try_devices(
    model: Option<&LlamaOptions>,
    report: &mut dyn FnMut(DeviceReport) -> ControlFlow<()>,
) -> Result<(), LlamaError> {
    let backend = start()?;
    let devices = list_llama_ggml_backend_devices();
    for device in &devices {
        if report(DeviceReport::Found(found(device))).is_break() {
            return Ok(());
        }
    }
    for library in backends::card_libraries() {
        let is_used = devices.iter().any(|device| device.backend.eq_ignore_ascii_case(&library));
        if !is_used && report(DeviceReport::Unused { library }).is_break() {
            return Ok(());
        }
    }
    let Some(options) = model else { return Ok(()) };
    for device in &devices {
        let name = device.name.clone();
        let reported = match token_on(&backend, options, device) {
            Ok(took) => DeviceReport::Computed { device: name, took_ms: took.as_millis() as u64 },
            Err(reason) => DeviceReport::Failed { device: name, reason },
        };
        if report(reported).is_break() {
            break;
        }
    }
    Ok(())
}

fn found(device: &LlamaBackendDevice) -> EngineDevice {
    EngineDevice {
        name: device.name.clone(),
        description: device.description.clone(),
        backend: device.backend.clone(),
        is_card: is_card(device),
        free_bytes: device.memory_free as u64,
        total_bytes: device.memory_total as u64,
    }
}

fn is_card(device: &LlamaBackendDevice) -> bool {
    use LlamaBackendDeviceType::{Gpu, IntegratedGpu};
    matches!(device.device_type, Gpu | IntegratedGpu)
}

/// The time of one token, of which a card computes the last layers.
fn token_on(
    backend: &Arc<LlamaBackend>,
    options: &LlamaOptions,
    device: &LlamaBackendDevice,
) -> Result<Duration, String> {
    let (card_use, gpu_layers) = match is_card(device) {
        true => (CardUse::Only(vec![device.name.clone()]), CARD_LAYERS),
        false => (CardUse::Avoided, 0),
    };
    let options = LlamaOptions { card_use, gpu_layers: Some(gpu_layers), ..options.clone() };
    let llama = Llama::load_with(Arc::clone(backend), options, |_| ());
    let llama = llama.map_err(|error| error.to_string())?;
    let mut decoder = llama.decoder().map_err(|error| error.to_string())?;
    let started = Instant::now();
    let token = BatchToken { id: TOKEN, position: 0, slot: 0, wants_logits: true };
    decoder.decode(&[token]).map_err(|error| error.to_string())?;
    let took = started.elapsed();
    match decoder.logits(0).iter().all(|logit| logit.is_finite()) {
        true => Ok(took),
        false => Err("it computed numbers that are not finite".to_owned()),
    }
}
