//! What a port serves, as the answer to `describe` lists it: the model of this port first, because Home Assistant uses the first.
//! Clients that choose a program may use any other model or alias of this hob.

use std::sync::Arc;

use hob_core::{RegisteredModel, Speech, Transcription, UnknownModel};
use hob_wire::{SpeechProgram, TranscriptionProgram, WyomingInfo};

use super::WyomingService;
use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::names::{Named, Resolved};

/// The model for a request.
pub(super) struct AskedModel {
    pub(super) context: RequestContext,
    pub(super) name: Option<String>,
    /// The model of the port.
    pub(super) own: Option<String>,
}

impl AskedModel {
    /// # Errors
    /// The name is one of another server. Its models may cost money, and a Wyoming client has no key.
    pub(super) fn resolve<T: Named>(self) -> Result<(RequestContext, Resolved<T>), ApiError> {
        let AskedModel { context, name, own } = self;
        let resolved = context.resolve::<T>(name)?;
        // `describe` does not list aliases of other servers' models only, because they may be of any kind.
        if let Some(name) = resolved.name.as_deref().filter(|name| !context.registry().has(name)) {
            let is_it =
                |(listed, model): &Served<T>| listed == name || Arc::ptr_eq(model, &resolved.model);
            if !find_served::<T>(&context, own.as_deref()).iter().any(is_it) {
                let unknown = UnknownModel { name: name.to_owned(), near: Vec::new() };
                return Err(ApiError::UnknownModel(unknown));
            }
        }
        Ok((context, resolved))
    }
}

pub(super) fn info(
    service: WyomingService,
    context: &RequestContext,
    model: Option<&str>,
) -> WyomingInfo {
    match service {
        WyomingService::Speech => {
            let served = find_served::<Speech>(context, model);
            WyomingInfo::speech(
                served
                    .iter()
                    .map(|(name, model)| SpeechProgram { name, voices: model.model.voices() }),
            )
        }
        WyomingService::Transcription => {
            let served = find_served::<Transcription>(context, model);
            WyomingInfo::transcription(served.iter().map(|(name, model)| TranscriptionProgram {
                name,
                languages: model.model.languages(),
            }))
        }
    }
}

type Served<T> = (String, Arc<RegisteredModel<T>>);

/// Models and aliases by name: the port's own first, then aliases, then the other models.
fn find_served<T: Named>(context: &RequestContext, own: Option<&str>) -> Vec<Served<T>> {
    let registry = context.registry();
    let own = own.or_else(|| context.default_name::<T>());
    let models: Vec<&str> = registry.models::<T>().map(|model| model.name.as_str()).collect();
    let aliases = registry.aliases().filter(|(_, name)| models.contains(name));
    let others = aliases.map(|(alias, _)| alias).chain(models.iter().copied());
    let names = own.into_iter().chain(others.filter(|name| Some(*name) != own));
    let found = names.filter_map(|name| Some((name.to_owned(), T::find(registry, name).ok()?)));
    found.collect()
}
