//! Lists of models, of loaded models, and the abilities of one model. Nothing here waits for a model.
//! Speech models are not listed, because Ollama has none.

use axum::extract::Request;
use axum::response::Response;
use hob_core::{Chat, ModelState, RegisteredModel};
use hob_wire::{
    OllamaModel, OllamaResident, ollama_ps, ollama_show, ollama_tags, ollama_version,
    parse_ollama_named,
};

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::headers::json;
use crate::lists::chat_models;
use crate::request_body::read_command;

/// `GET /api/version`: the release of Ollama that hob answers as; clients check that it is new enough.
pub(super) async fn version() -> Response {
    json(ollama_version())
}

/// `GET /api/tags`: the chat models, and every alias that leads to one; the default one first.
pub(super) async fn tags(context: RequestContext) -> Response {
    let models = chat_models(context.registry());
    let mut named: Vec<_> = models.filter(|(name, _)| context.caller.allows(name)).collect();
    let default = context.callers_default_name::<Chat>();
    named.sort_by_key(|(name, model)| {
        (Some(*name) != default.as_deref(), model.model.card().is_team)
    });
    json(ollama_tags(named.iter().map(|(name, model)| entry(name, model))))
}

/// `POST /api/show`.
pub(super) async fn show(request: Request) -> Result<Response, ApiError> {
    let (context, named) = read_command(request, parse_ollama_named).await?;
    context.caller.check(&named.model)?;
    let model = context.find::<Chat>(Some(&named.model))?;
    Ok(json(ollama_show(model.model.card())))
}

/// `GET /api/ps`: the models that hob itself has loaded.
pub(super) async fn ps(context: RequestContext) -> Response {
    let registry = context.registry();
    let residents = registry.models::<Chat>().filter_map(|model| {
        let lifecycle = model.lifecycle.as_ref()?;
        let name = context.caller.shown_as(registry, &model.name)?;
        let is_there = lifecycle.state() == ModelState::Ready;
        is_there.then(|| OllamaResident {
            model: entry(name, model),
            memory_use: lifecycle.memory_use(),
        })
    });
    json(ollama_ps(residents))
}

fn entry<'a>(name: &'a str, model: &'a RegisteredModel<Chat>) -> OllamaModel<'a> {
    OllamaModel { name, card: model.model.card() }
}
