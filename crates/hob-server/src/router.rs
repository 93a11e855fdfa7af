//! All routes, each with and without `/v1`, and the layers before them.
//! Handlers get what they need from the request's context; no handler imports this file.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use hob_core::Registry;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::context::Services;
use crate::guard::{Guard, check_key, check_names};
use crate::metrics::Metrics;
use crate::observe::observe;
use crate::options::ServerOptions;
use crate::reloadable_state::ReloadableState;
use crate::{
    benchmarks, chat, completions, embeddings, fit, lifecycle, lists, now, ollama, page, routes,
    speech, transcription,
};

/// All routes, as [`crate::serve`] answers them on the address `listen`.
pub fn router(
    state: impl Into<ReloadableState>,
    options: &ServerOptions,
    listen: IpAddr,
) -> Router {
    let (metrics, cut_off) = (Arc::new(Metrics::new()), CancellationToken::new());
    router_with(state.into(), options, listen, Services::new(options, metrics, cut_off))
}

pub(crate) fn router_with(
    state: ReloadableState,
    options: &ServerOptions,
    listen: IpAddr,
    services: Services,
) -> Router {
    state.begin(&options.keys, options.ledger.clone());
    let guard = Arc::new(Guard::new(listen, &options.allowed_hosts));
    let api = open_routes().merge(keyed_routes(&state.config().registry));
    Router::new()
        .merge(api.clone())
        .nest("/v1", api)
        .merge(ollama::routes())
        .merge(lifecycle::routes())
        .merge(routes::routes())
        .merge(now::routes())
        .merge(fit::routes(options.fit.as_ref()))
        .merge(benchmarks::routes(options.benchmarks.as_ref()))
        .fallback(page::asset)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(guard, check_names))
        .layer(from_fn_with_state((state, Arc::new(services)), observe))
}

/// Open WebUI and probes call these without a key. With a key, they show what the key is for.
fn open_routes() -> Router {
    Router::new()
        .route("/models", get(lists::models))
        .route("/audio/models", get(lists::audio_models))
        .route("/audio/voices", get(lists::voices))
        .route("/health", get(lists::health))
        .route("/ready", get(lists::ready))
}

fn keyed_routes(registry: &Registry) -> Router {
    let model = if registry.answers_unknown() {
        get(lists::model).delete(lists::delete_model)
    } else {
        get(lists::model)
    };
    Router::new()
        .route("/models/{*id}", model)
        .route("/audio/speech", post(speech::speak))
        .route("/audio/transcriptions", post(transcription::transcribe))
        .route("/audio/translations", post(transcription::translate))
        .route("/chat/completions", post(chat::complete))
        .route("/completions", post(completions::complete))
        .route("/embeddings", post(embeddings::embeddings))
        .route("/metrics", get(lists::metrics))
        .route_layer(from_fn(check_key))
}

async fn wrong_method(request: Request) -> ApiError {
    ApiError::WrongMethod {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    }
}
