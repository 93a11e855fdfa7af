//! What there is, what of it is in memory, and what one model can do. Nothing here waits for a model.
//! Speech models are not shown: Ollama has no word for them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hob_core::{ChatTarget, ModelState};
use hob_wire::{
    OllamaModel, OllamaResident, ollama_ps, ollama_show, ollama_tags, ollama_version,
    parse_ollama_named,
};

use super::{OllamaError, json};
use crate::asking::read_wish;
use crate::keys::Caller;
use crate::router::App;

/// `GET /api/version`: the release of Ollama that hob answers as; clients check that it is new enough.
pub(super) async fn version() -> Response {
    json(ollama_version())
}

/// `GET /api/tags`: the chat models, and every alias that leads to one; the default one first.
pub(super) async fn tags(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let registry = app.registry();
    let aliases = registry.aliases().filter_map(|(alias, _)| {
        let target = registry.chat(alias).ok()?;
        Some((alias, target))
    });
    let targets = registry.chat_targets().map(|target| (target.name.as_str(), target.clone()));
    let named = targets.chain(aliases).filter(|(name, _)| caller.allows(name));
    let mut named: Vec<(&str, Arc<ChatTarget>)> = named.collect();
    let default = app.default_chat_name();
    named.sort_by_key(|(name, _)| Some(*name) != default.as_deref());
    json(ollama_tags(named.iter().map(|(name, target)| model(name, target))))
}

/// `POST /api/show`.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, OllamaError> {
    let (caller, named) = read_wish(&app, request, parse_ollama_named).await?;
    caller.check(&app, &named.model)?;
    let target = app.chat_target(Some(&named.model))?;
    Ok(json(ollama_show(target.model.card())))
}

/// `GET /api/ps`: what hob itself holds in memory.
pub(super) async fn ps(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let registry = app.registry();
    let residents = registry.chat_targets().filter_map(|target| {
        let lifecycle = target.lifecycle.as_ref()?;
        let name = caller.shown_as(&registry, &target.name)?;
        let is_there = lifecycle.state() == ModelState::Ready;
        is_there.then(|| OllamaResident {
            model: model(name, target),
            memory_use: lifecycle.memory_use(),
        })
    });
    json(ollama_ps(residents))
}

fn model<'a>(name: &'a str, target: &'a ChatTarget) -> OllamaModel<'a> {
    OllamaModel { name, card: target.model.card() }
}
