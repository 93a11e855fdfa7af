//! What a port serves, for the answer to `describe`: the model of this port first, because Home Assistant uses the first.
//! Clients that choose a program may use any other model or alias of the kind.

use std::sync::Arc;

use hob_core::{RegisteredModel, Speech, Transcription};
use hob_wire::{SpeechProgram, TranscriptionProgram, WyomingInfo};

use super::WyomingService;
use crate::context::RequestContext;
use crate::names::Named;

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
