//! All routes, and the layers before them.
//! Handlers get what they need from the request's context; no handler imports this file.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use hob_core::Registry;
use hob_wire::operations;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::context::Services;
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::{Guard, KeyRule};
use crate::metrics::Metrics;
use crate::observe::Observe;
use crate::options::ServerOptions;
use crate::reloadable_state::ReloadableState;
use crate::tls::explanation_routes;
use crate::{
    benchmarks, chat, completions, embeddings, fit, lifecycle, lists, now, ollama, page, pipelines,
    realtime, responses, routes, speech, teams, transcription, voices,
};

/// All routes, as [`crate::serve`] answers them on the address `listen`.
pub fn router(
    state: impl Into<ReloadableState>,
    options: &ServerOptions,
    listen: IpAddr,
) -> Router {
    let (metrics, cut_off) = (Arc::new(Metrics::new()), CancellationToken::new());
    let services = Services::new(options.clone(), metrics, cut_off);
    router_with(state.into(), listen, Arc::new(services))
}

pub(crate) fn router_with(
    state: ReloadableState,
    listen: IpAddr,
    services: Arc<Services>,
) -> Router {
    let options = &services.options;
    state.begin(&options.keys, options.ledger.clone());
    let guard = Guard::new(listen, &options.allowed_hosts);
    Router::new()
        .merge(open_routes())
        .merge(keyed_routes(&state.config().registry))
        .merge(ollama::routes())
        .merge(lifecycle::routes())
        .merge(realtime::routes(state.clone()))
        .merge(responses::routes())
        .merge(routes::routes())
        .merge(now::routes())
        .merge(fit::routes(options.fit.as_ref()))
        .merge(teams::routes(options.teams.as_ref()))
        .merge(pipelines::routes(options.pipelines.as_ref()))
        .merge(benchmarks::routes(options.benchmarks.as_ref()))
        .merge(options.certificates.as_ref().map(explanation_routes).unwrap_or_default())
        .fallback(page::asset)
        .method_not_allowed_fallback(wrong_method)
        .layer(Observe::new(state, services, guard))
}

/// Open WebUI and probes call these without a key. With a key, they show what the key is for.
fn open_routes() -> Router {
    Router::new()
        .at(&operations::MODELS, lists::models)
        .at(&operations::AUDIO_MODELS, lists::audio_models)
        .at(&operations::VOICES, lists::voices)
        .route_layer(KeyRule::IfSent)
        .at(&operations::HEALTH, lists::health)
        .at(&operations::READY, lists::ready)
        .at(&operations::OPENAPI, lists::openapi)
}

fn keyed_routes(registry: &Registry) -> Router {
    let routes = Router::new()
        .at(&operations::MODEL, lists::model)
        .at(&operations::SPEECH, speech::speak)
        .at(&operations::CAPTIONED_SPEECH, speech::speak_captioned)
        .at(&operations::COMBINE_VOICES, voices::combine)
        .at(&operations::DELETE_VOICE, voices::forget)
        .at(&operations::TRANSCRIPTIONS, transcription::transcribe)
        .at(&operations::TRANSLATIONS, transcription::translate)
        .at(&operations::COMPLETIONS, completions::complete)
        .at(&operations::EMBEDDINGS, embeddings::embeddings)
        .at(&operations::METRICS, lists::metrics);
    let routes = match registry.answers_unknown() {
        true => routes.at(&operations::DELETE_MODEL, lists::delete_model),
        false => routes,
    };
    let chat = Router::new().at(&operations::CHAT, chat::complete);
    routes.route_layer(KeyRule::Required).merge(chat.route_layer(KeyRule::RequiredForChat))
}

async fn wrong_method(request: Request) -> ApiError {
    ApiError::WrongMethod {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    }
}
