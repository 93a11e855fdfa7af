//! Finds a model for `hob fit` and `hob pull`: in the store, Ollama's folder, Hugging Face and Ollama's registry.
//! Both commands use this, so that a name means the same for both. `hob-models` does the search.

use std::path::PathBuf;
use std::time::Duration;

use hob_models::find::OLLAMA_REGISTRY;
use hob_models::{FetchLimits, FindError, Finder, FoundModel, QuantMix, Store};

use crate::app::App;
use crate::failure::{CliResult, Exit, Failure};

const HUB: &str = "https://huggingface.co";
/// A server that sends no header for this long is given up.
const SILENCE: Duration = Duration::from_secs(20);

/// # Errors
/// One sentence on why the model was not found.
pub(crate) fn found(asked: &str, quant: Option<QuantMix>, app: &App<'_>) -> CliResult<FoundModel> {
    finder(app).find(asked, quant).map_err(failure)
}

pub(crate) fn finder(app: &App<'_>) -> Finder {
    let environment = &app.environment;
    let ollama = environment.ollama_models.clone().or_else(|| usual_ollama(app));
    let registry = environment.ollama_registry.as_deref().unwrap_or(OLLAMA_REGISTRY);
    Finder {
        hub: environment.hf_endpoint.clone().unwrap_or_else(|| HUB.to_owned()),
        token: environment.hf_token.as_ref().map(|token| token.expose().to_owned()),
        registry: Some(registry.to_owned()),
        ollama: ollama.filter(|folder| folder.is_dir()),
        store: Some(Store::open(&app.settings.home)),
        limits: FetchLimits { silence: SILENCE, ..FetchLimits::default() },
    }
}

fn usual_ollama(app: &App<'_>) -> Option<PathBuf> {
    Some(app.environment.folders.home.as_ref()?.join(".ollama/models"))
}

pub(crate) fn failure(error: FindError) -> Failure {
    match error {
        error if error.is_network_error() => Failure::new(Exit::Source, error),
        FindError::Private { .. } | FindError::Gated { .. } => Failure::new(Exit::Source, error)
            .hint("set HF_TOKEN; it is sent to Hugging Face and to no other host"),
        FindError::Closed { .. } => Failure::new(Exit::Source, error),
        error => Failure::usage(error),
    }
}
