//! Lists of models and voices, health, readiness and metrics.
//! No handler here waits for a model.

use std::sync::{Arc, LazyLock};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use hob_core::{
    AnyModel, Chat, ModelState, Registered, RegisteredModel, Registry, Speech, Transcription,
    UnknownModel,
};
use hob_wire::{ModelEntry, ModelKind};

use crate::api_error::{ApiError, retry_seconds};
use crate::context::RequestContext;
use crate::headers::json;
use crate::observe::NamePath;

/// `GET /models`: the models, and every alias. Clients such as Open WebUI chat with the first one, so chat
/// models stand before the others, the caller's default before all, and teams, which act, behind other chat models.
pub(crate) async fn models(context: RequestContext) -> Response {
    let entries = shown_to(&context, entries(&context));
    json(match context.options().pipelines.is_some() {
        true => hob_wire::models_of_pipelines(&entries),
        false => hob_wire::models(&entries),
    })
}

/// `GET /models/{id}`, where the id may hold slashes.
pub(crate) async fn model(
    context: RequestContext,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let Ok(Path(id)) = id else {
        return Err(ApiError::UnknownModel(UnknownModel { name: String::new(), near: Vec::new() }));
    };
    Ok(json(hob_wire::model(&entry(&context, &id)?)))
}

/// A model of any kind. One of OpenAI's names stands for the local model that serves it.
fn entry(context: &RequestContext, id: &str) -> Result<ModelEntry, ApiError> {
    if let Ok(model) = context.find::<Chat>(Some(id))
        && context.caller.allows(id)
    {
        return Ok(chat_entry(id, &model));
    }
    if context.find::<Transcription>(Some(id)).is_ok() {
        let resolved = context.resolve::<Transcription>(Some(id.to_owned()))?;
        return Ok(plain_entry(id, &*resolved.model, transcription(&resolved.model)));
    }
    let resolved = context.resolve::<Speech>(Some(id.to_owned()))?;
    Ok(plain_entry(id, &*resolved.model, ModelKind::Speech))
}

/// `DELETE /models/{id}`, only for test suites of clients. Users delete models with `hob models rm`.
pub(crate) async fn delete_model(NamePath(id): NamePath) -> Response {
    json(hob_wire::deleted_model(&id))
}

/// `GET /audio/models`.
pub(crate) async fn audio_models(context: RequestContext) -> Response {
    let entries = entries_of::<Speech>(&context, |_| ModelKind::Speech);
    json(hob_wire::audio_models(&shown_to(&context, entries)))
}

/// `GET /audio/voices`: the voices of the default model, kept ones too, in languages that hob can speak. Requests for other
/// voices would be rejected, so menus must not show them.
pub(crate) async fn voices(
    context: RequestContext,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let model = context.resolve::<Speech>(None)?.model;
    let own = model.model.voices();
    let kept = context.options().kept_voices.among(own);
    let spoken = own.iter().chain(&kept);
    let legacy = query.is_some_and(|query| query.split('&').any(|pair| pair == "legacy=true"));
    Ok(json(if legacy { hob_wire::voice_ids(spoken) } else { hob_wire::voices(spoken) }))
}

/// `GET /health`: whether the server answers. `/ready` says whether a model does.
pub(crate) async fn health() -> Response {
    json(format!(r#"{{"status":"ok","version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
}

/// `GET /openapi.json`. The document never changes while the server runs.
pub(crate) async fn openapi() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| hob_wire::openapi().to_string());
    json(DOCUMENT.clone())
}

/// `GET /ready`: 200 once the default speech model can answer at once. A server without one waits for its default
/// chat model, or else for its default transcription model, or else for any chat model.
pub(crate) async fn ready(context: RequestContext) -> Response {
    let speech = context.find::<Speech>(None).map(|model| (model.name.clone(), model.state()));
    let chat = || context.find::<Chat>(None).map(|model| (model.name.clone(), model.state()));
    let hearing =
        || context.find::<Transcription>(None).map(|model| (model.name.clone(), model.state()));
    // Several aliases have no default.
    let any = || {
        let mut models = context
            .registry()
            .models::<Chat>()
            .filter(|model| !model.model.card().is_team && context.caller.allows(&model.name));
        let ready = models.find(|model| model.state() == ModelState::Ready)?;
        Some((ready.name.clone(), ModelState::Ready))
    };
    let found =
        speech.or_else(|missing| chat().or_else(|_| hearing()).or_else(|_| any().ok_or(missing)));
    let (name, state) = match found {
        Ok(found) => found,
        Err(error) => return (StatusCode::SERVICE_UNAVAILABLE, error).into_response(),
    };
    let body = json(hob_wire::readiness(&name, &state));
    match state {
        ModelState::Ready => body,
        ModelState::Loading { ready_in } => {
            let wait = [(RETRY_AFTER, retry_seconds(ready_in).to_string())];
            (StatusCode::SERVICE_UNAVAILABLE, wait, body).into_response()
        }
        ModelState::Cold | ModelState::Down { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

/// `GET /metrics`.
pub(crate) async fn metrics(context: RequestContext) -> Result<Response, ApiError> {
    context.caller.check_sees_all("metrics, which are about all models and keys")?;
    let services = &context.services;
    let text = services.metrics.render(context.registry(), services.options.ledger.as_deref());
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// The models that this caller may use.
fn shown_to(context: &RequestContext, mut entries: Vec<ModelEntry>) -> Vec<ModelEntry> {
    entries.retain(|entry| context.caller.allows(&entry.id));
    entries
}

/// The chat models, and every alias that leads to one.
pub(crate) fn chat_models(
    registry: &Registry,
) -> impl Iterator<Item = (&str, Arc<RegisteredModel<Chat>>)> {
    let models = registry.models::<Chat>().map(|model| (model.name.as_str(), Arc::clone(model)));
    let aliases = registry.aliases().filter_map(move |(alias, _)| {
        let model = registry.find::<Chat>(alias).ok()?;
        Some((alias, model))
    });
    models.chain(aliases)
}

/// Chat, then speech, then transcription models: each kind by name, then its aliases.
fn entries(context: &RequestContext) -> Vec<ModelEntry> {
    let registry = context.registry();
    let models = chat_models(registry).map(|(name, model)| chat_entry(name, &model));
    let listed = registry.upstreams().map(|upstreams| upstreams.listed()).unwrap_or_default();
    let listed = listed.into_iter().map(|model| {
        let kind = ModelKind::elsewhere(model.context_tokens);
        ModelEntry { id: model.name, state: model.state, kind }
    });
    let default = context.callers_default_name::<Chat>();
    let mut chat: Vec<ModelEntry> = models.chain(listed).collect();
    chat.sort_by_key(|entry| {
        let is_team = matches!(entry.kind, ModelKind::Chat { is_team: true, .. });
        (Some(&entry.id) != default.as_ref(), is_team)
    });
    let speech = entries_of::<Speech>(context, |_| ModelKind::Speech);
    let transcription = entries_of::<Transcription>(context, transcription);
    chat.into_iter().chain(speech).chain(transcription).collect()
}

/// The models of one kind and their aliases.
fn entries_of<T: Registered>(
    context: &RequestContext,
    kind: impl Fn(&RegisteredModel<T>) -> ModelKind,
) -> Vec<ModelEntry> {
    let registry = context.registry();
    let entry = |id: &str, model: &RegisteredModel<T>| plain_entry(id, model, kind(model));
    let models = registry.models::<T>().map(|model| entry(&model.name, model));
    let aliases = registry.aliases().filter_map(|(alias, name)| {
        let model = registry.models::<T>().find(|model| model.name == name)?;
        Some(entry(alias, model))
    });
    models.chain(aliases).collect()
}

fn plain_entry(id: &str, model: &dyn AnyModel, kind: ModelKind) -> ModelEntry {
    ModelEntry { id: id.to_owned(), state: model.state(), kind }
}

fn transcription(model: &RegisteredModel<Transcription>) -> ModelKind {
    ModelKind::Transcription { languages: model.model.languages().to_vec() }
}

fn chat_entry(id: &str, model: &RegisteredModel<Chat>) -> ModelEntry {
    plain_entry(id, model, ModelKind::of_chat(model.model.card()))
}
