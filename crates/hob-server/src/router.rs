//! The routes, each with and without `/v1`, and what stands before them.
//! What every handler may know is in [`App`]; nothing is global.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use hob_core::{Roster, SpeechTarget};
use hob_wire::is_default_speech_model;

use crate::failure::Refusal;
use crate::guard::{Guard, check_key, check_names};
use crate::metrics::Metrics;
use crate::requests::observe;
use crate::{ApiKey, ServerOptions, lists, page, speech};

/// What every request may know.
pub(crate) struct App {
    pub(crate) roster: Roster,
    pub(crate) guard: Guard,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    default_speech: Option<String>,
}

/// How much one request may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) text_chars_max: usize,
    pub(crate) body_bytes_max: usize,
    pub(crate) read_time_max: Duration,
    pub(crate) sound_time_max: Duration,
}

impl App {
    /// Where a name leads; none, or one of OpenAI's, to the default speech model.
    pub(crate) fn target(&self, name: Option<&str>) -> Result<Arc<SpeechTarget>, Refusal> {
        let Some(name) = name else { return self.default_target() };
        match self.roster.speech(name) {
            Ok(target) => Ok(target),
            Err(_) if is_default_speech_model(name) => self.default_target(),
            Err(unknown) => Err(Refusal::UnknownModel(unknown)),
        }
    }

    fn default_target(&self) -> Result<Arc<SpeechTarget>, Refusal> {
        match &self.default_speech {
            Some(name) => self.roster.speech(name).map_err(Refusal::UnknownModel),
            None => self.roster.speech_targets().next().cloned().ok_or(Refusal::NoSpeechModel),
        }
    }
}

/// All routes, as [`crate::serve`] answers them on the address `listen`.
pub fn router(roster: Roster, options: &ServerOptions, listen: IpAddr) -> Router {
    router_with(roster, options, listen, Arc::new(Metrics::new()))
}

pub(crate) fn router_with(
    roster: Roster,
    options: &ServerOptions,
    listen: IpAddr,
    metrics: Arc<Metrics>,
) -> Router {
    let app = Arc::new(App {
        roster,
        guard: Guard::new(listen, &options.allowed_hosts),
        api_key: options.api_key.clone(),
        limits: Limits {
            text_chars_max: options.text_chars_max,
            body_bytes_max: options.body_bytes_max,
            read_time_max: options.read_time_max,
            sound_time_max: options.sound_time_max,
        },
        metrics,
        default_speech: options.default_speech.clone(),
    });
    let api = open_routes().merge(keyed_routes(&app));
    Router::new()
        .merge(api.clone())
        .nest("/v1", api)
        .route("/", get(page::index))
        .fallback(page::asset)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), check_names))
        .layer(from_fn_with_state(Arc::clone(&app), observe))
        .with_state(app)
}

/// Open WebUI and probes ask these without a key.
fn open_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/models", get(lists::models))
        .route("/audio/models", get(lists::audio_models))
        .route("/audio/voices", get(lists::voices))
        .route("/health", get(lists::health))
        .route("/ready", get(lists::ready))
}

fn keyed_routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/models/{*id}", get(lists::model))
        .route("/audio/speech", post(speech::speak))
        .route("/metrics", get(lists::metrics))
        .route_layer(from_fn_with_state(Arc::clone(app), check_key))
}

async fn wrong_method(request: Request) -> Refusal {
    Refusal::WrongMethod {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    }
}
