//! What there is and whether it is ready: models, voices, health, readiness, metrics.
//! Nothing here waits for a model: each answers at once, whatever the worker is doing.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use hob_core::{ChatTarget, ModelState, SpeechTarget, TranscriptTarget, UnknownModel, Voice};
use hob_wire::{ModelEntry, ModelKind};

use crate::failure::{ApiError, whole_seconds};
use crate::keys::Caller;
use crate::requests::NamePath;
use crate::router::App;

type Json = ([(HeaderName, &'static str); 1], String);

/// `GET /models`: the models, and every alias that leads to one. Clients such as Open WebUI chat with the
/// first, so models that chat stand before those that speak or listen, and the default one before all.
pub(crate) async fn models(State(app): State<Arc<App>>, caller: Caller) -> Json {
    json(hob_wire::models(&shown_to(&caller, entries(&app))))
}

/// `GET /models/{id}`, where the id may hold slashes.
pub(crate) async fn model(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json, ApiError> {
    let Ok(Path(id)) = id else {
        return Err(ApiError::UnknownModel(UnknownModel { name: String::new(), near: Vec::new() }));
    };
    Ok(json(hob_wire::model(&entry(&app, &caller, &id)?)))
}

/// Of whichever kind. A name of OpenAI's is that of the model which it leads to.
fn entry(app: &App, caller: &Caller, id: &str) -> Result<ModelEntry, ApiError> {
    if let Ok(target) = app.chat_target(Some(id))
        && caller.allows(id)
    {
        return Ok(chat_entry(id, &target));
    }
    if app.transcript_target(Some(id)).is_ok() {
        let name = caller.transcript_name(app, Some(id.to_owned()))?;
        return Ok(transcript_entry(id, &*app.transcript_target(name.as_deref())?));
    }
    let name = caller.speech_name(app, Some(id.to_owned()))?;
    Ok(speech_entry(id, &*app.speech_target(name.as_deref())?))
}

/// `DELETE /models/{id}`, which only tests of clients find: models are on the disk of hob's owner, who
/// has `hob models rm`.
pub(crate) async fn delete_model(NamePath(id): NamePath) -> Json {
    json(hob_wire::deleted_model(&id))
}

/// `GET /audio/models`.
pub(crate) async fn audio_models(State(app): State<Arc<App>>, caller: Caller) -> Json {
    json(hob_wire::audio_models(&shown_to(&caller, speech_entries(&app))))
}

/// `GET /audio/voices`: those of the default model that hob can read aloud, so that nobody picks a
/// voice from a menu to be told that it cannot speak.
pub(crate) async fn voices(
    State(app): State<Arc<App>>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Json, ApiError> {
    let target = app.speech_target(caller.speech_name(&app, None)?.as_deref())?;
    let spoken = target.model.voices().iter().filter(|voice: &&Voice| voice.language.is_spoken());
    let legacy = query.is_some_and(|query| query.split('&').any(|pair| pair == "legacy=true"));
    Ok(json(if legacy { hob_wire::voice_ids(spoken) } else { hob_wire::voices(spoken) }))
}

/// `GET /health`: the server answers; whether a model does is `/ready`'s question.
pub(crate) async fn health() -> Json {
    json(format!(r#"{{"status":"ok","version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
}

/// `GET /ready`: 200 once the default speech model would speak at once, or, in a hob that does not
/// speak, the default chat model would answer.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let (name, state) = match (app.speech_target(None), app.chat_target(None)) {
        (Ok(target), _) => (target.name.clone(), target.model.state()),
        (Err(_), Ok(target)) => (target.name.clone(), target.model.state()),
        (Err(refusal), Err(_)) => {
            return (StatusCode::SERVICE_UNAVAILABLE, refusal).into_response();
        }
    };
    let body = json(hob_wire::readiness(&name, &state));
    match state {
        ModelState::Ready => body.into_response(),
        ModelState::Loading { ready_in } => {
            let wait = [(RETRY_AFTER, whole_seconds(ready_in).to_string())];
            (StatusCode::SERVICE_UNAVAILABLE, wait, body).into_response()
        }
        ModelState::Cold | ModelState::Down { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Arc<App>>, caller: Caller) -> Result<Json, ApiError> {
    caller.check_sees_all(&app, "metrics, which are about all models and keys")?;
    Ok((
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        app.metrics.render(&app.registry(), app.ledger.as_deref()),
    ))
}

/// What it is theirs to ask for.
fn shown_to(caller: &Caller, mut entries: Vec<ModelEntry>) -> Vec<ModelEntry> {
    entries.retain(|entry| caller.allows(&entry.id));
    entries
}

/// Models that chat, then those that speak, then those that listen: each by name, then its aliases.
fn entries(app: &App) -> Vec<ModelEntry> {
    let registry = app.registry();
    let targets = registry.chat_targets().map(|target| chat_entry(&target.name, target));
    let aliases = registry.aliases().filter_map(|(alias, _)| {
        let target = registry.chat(alias).ok()?;
        Some(chat_entry(alias, &target))
    });
    let elsewhere = registry.elsewhere().map(|elsewhere| elsewhere.listed()).unwrap_or_default();
    let elsewhere = elsewhere.into_iter().map(|model| {
        let kind = ModelKind::elsewhere(model.context_tokens);
        ModelEntry { id: model.name, state: model.state, kind }
    });
    let heard = transcript_entries(app);
    let default = app.default_chat_name();
    let mut chat: Vec<ModelEntry> = targets.chain(aliases).chain(elsewhere).collect();
    chat.sort_by_key(|entry| Some(&entry.id) != default.as_ref());
    chat.into_iter().chain(speech_entries(app)).chain(heard).collect()
}

fn transcript_entries(app: &App) -> Vec<ModelEntry> {
    let registry = app.registry();
    let targets = registry.transcript_targets();
    let targets = targets.map(|target| transcript_entry(&target.name, target));
    let aliases = registry.aliases().filter_map(|(alias, name)| {
        let target = registry.transcript_targets().find(|target| target.name == name)?;
        Some(transcript_entry(alias, target))
    });
    targets.chain(aliases).collect()
}

fn speech_entries(app: &App) -> Vec<ModelEntry> {
    let registry = app.registry();
    let targets = registry.speech_targets().map(|target| speech_entry(&target.name, target));
    let aliases = registry.aliases().filter_map(|(alias, name)| {
        let target = registry.speech_targets().find(|target| target.name == name)?;
        Some(speech_entry(alias, target))
    });
    targets.chain(aliases).collect()
}

fn speech_entry(id: &str, target: &SpeechTarget) -> ModelEntry {
    let state = target.model.state();
    ModelEntry { id: id.to_owned(), state, kind: ModelKind::Speech }
}

fn transcript_entry(id: &str, target: &TranscriptTarget) -> ModelEntry {
    let state = target.model.state();
    ModelEntry { id: id.to_owned(), state, kind: ModelKind::Transcription }
}

fn chat_entry(id: &str, target: &ChatTarget) -> ModelEntry {
    let kind = ModelKind::of_chat(target.model.card());
    ModelEntry { id: id.to_owned(), state: target.model.state(), kind }
}

fn json(body: String) -> Json {
    ([(CONTENT_TYPE, "application/json")], body)
}
