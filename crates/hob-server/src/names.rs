//! Which model a request means: resolved once, with the configuration that was in force when it arrived.
//! The rules are the same for every kind; [`Named`] has the differences.

use std::sync::Arc;

use hob_core::{
    Chat, Kind, Registered, RegisteredModel, Registry, Speech, Transcription, UnknownModel,
};
use hob_wire::{is_default_speech_model, is_default_transcript_model, local_speech_model};

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::keys::{KeyRefusal, tagged};
use crate::options::ServerOptions;

/// A model, and the name that the request used.
pub(crate) struct Resolved<T: Registered> {
    /// `None`: the request named none, and uses the default.
    pub(crate) name: Option<String>,
    pub(crate) model: Arc<RegisteredModel<T>>,
}

impl<T: Registered> Resolved<T> {
    /// The name for the client.
    pub(crate) fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.model.name)
    }
}

/// Naming rules of one kind.
pub(crate) trait Named: Registered {
    const NONE_HERE: ApiError;

    fn default(options: &ServerOptions) -> Option<&str>;

    /// Whether a request that names no model may mean this one.
    fn may_be_default(_model: &RegisteredModel<Self>) -> bool {
        true
    }

    /// The default if the configuration sets none.
    fn first(registry: &Registry) -> Option<&str> {
        registry.models::<Self>().next().map(|model| model.name.as_str())
    }

    /// Whether clients send this name of OpenAI's for any model of the kind.
    fn is_placeholder(_name: &str) -> bool {
        false
    }

    /// The local name of a model that other servers offer under this name.
    fn local_name(_name: &str) -> Option<&str> {
        None
    }

    fn find(registry: &Registry, name: &str) -> Result<Arc<RegisteredModel<Self>>, UnknownModel> {
        registry.find(name)
    }
}

impl Named for Chat {
    const NONE_HERE: ApiError = ApiError::NoChatModel;

    fn default(options: &ServerOptions) -> Option<&str> {
        options.default_chat.as_deref()
    }

    /// A team acts, so only its own name means it.
    fn may_be_default(model: &RegisteredModel<Chat>) -> bool {
        !model.model.card().is_team
    }

    /// Only if there is exactly one: the first of several may cost money.
    fn first(registry: &Registry) -> Option<&str> {
        let mut models = registry.models::<Chat>().filter(|model| Chat::may_be_default(model));
        models.next().filter(|_| models.next().is_none()).map(|model| model.name.as_str())
    }

    /// With or without a tag that is true for the model, such as `:latest` or `:135m`. Any other name is
    /// unknown: another model must not answer instead.
    fn find(registry: &Registry, name: &str) -> Result<Arc<RegisteredModel<Chat>>, UnknownModel> {
        let tagged = || tagged(registry, name).map(|(_, model)| model);
        registry.find(name).or_else(|unknown| tagged().ok_or(unknown))
    }
}

impl Named for Speech {
    const NONE_HERE: ApiError = ApiError::NoSpeechModel;

    fn default(options: &ServerOptions) -> Option<&str> {
        options.default_speech.as_deref()
    }

    fn is_placeholder(name: &str) -> bool {
        is_default_speech_model(name)
    }

    fn local_name(name: &str) -> Option<&str> {
        local_speech_model(name)
    }

    fn find(registry: &Registry, name: &str) -> Result<Arc<RegisteredModel<Speech>>, UnknownModel> {
        let local = || registry.find(Speech::local_name(name)?).ok();
        registry.find(name).or_else(|unknown| local().ok_or(unknown))
    }
}

impl Named for Transcription {
    const NONE_HERE: ApiError = ApiError::NoTranscriptModel;

    fn default(options: &ServerOptions) -> Option<&str> {
        options.default_transcript.as_deref()
    }

    fn is_placeholder(name: &str) -> bool {
        is_default_transcript_model(name)
    }
}

impl RequestContext {
    /// The model that this caller means by this name.
    ///
    /// # Errors
    /// No model has the name, the caller may not use it, or there is no default.
    pub(crate) fn resolve<T: Named>(&self, asked: Option<String>) -> Result<Resolved<T>, ApiError> {
        let asked = asked.map(|name| self.local_name::<T>(name));
        let name = match asked {
            Some(name) if self.caller.allows(&name) || !self.is_placeholder::<T>(&name) => {
                self.caller.check(&name)?;
                Some(name)
            }
            asked => self.callers_default::<T>()?.or(asked),
        };
        let model = self.find::<T>(name.as_deref())?;
        Ok(Resolved { name, model })
    }

    /// The model behind a name, or the default, for any caller.
    ///
    /// # Errors
    /// No model has the name, or there is no default.
    pub(crate) fn find<T: Named>(
        &self,
        name: Option<&str>,
    ) -> Result<Arc<RegisteredModel<T>>, ApiError> {
        let registry = self.registry();
        match name {
            None => self.default_model(),
            Some(name) => T::find(registry, name).or_else(|unknown| {
                if T::is_placeholder(name) {
                    return self.default_model();
                }
                Err(self.not_found::<T>(unknown))
            }),
        }
    }

    /// The model of this hob that answers under a resolved name: the model itself, or the only target of an alias. `None`:
    /// another server may answer.
    pub(crate) fn own_model<T: Named>(
        &self,
        model: &Arc<RegisteredModel<T>>,
    ) -> Option<Arc<RegisteredModel<T>>> {
        if model.lifecycle.is_some() {
            return Some(Arc::clone(model));
        }
        let route = self.registry().upstreams()?.route(&model.name)?;
        let [target] = &route.targets[..] else { return None };
        self.registry().find::<T>(&target.name).ok().filter(|target| target.lifecycle.is_some())
    }

    /// The name for requests without one.
    pub(crate) fn default_name<T: Named>(&self) -> Option<&str> {
        T::default(self.options()).or_else(|| T::first(self.registry()))
    }

    /// The name that lists show for what this caller means without a name.
    pub(crate) fn callers_default_name<T: Named>(&self) -> Option<String> {
        let own = self.callers_default::<T>().ok().flatten();
        let own = own.map(|name| self.caller.listed_name(&name).to_owned());
        own.or_else(|| self.default_name::<T>().map(str::to_owned))
    }

    fn default_model<T: Named>(&self) -> Result<Arc<RegisteredModel<T>>, ApiError> {
        let name = self.default_name::<T>().ok_or_else(|| {
            let is_empty = self.registry().models::<T>().next().is_none();
            if is_empty { T::NONE_HERE } else { ApiError::NotNamed }
        })?;
        self.registry().find(name).map_err(ApiError::UnknownModel)
    }

    fn local_name<T: Named>(&self, name: String) -> String {
        let is_here = |name: &str| self.registry().find::<T>(name).is_ok();
        let local = || T::local_name(&name).filter(|name| is_here(name)).map(str::to_owned);
        if is_here(&name) { name } else { local().unwrap_or(name) }
    }

    /// A placeholder that is not the name of an existing model.
    fn is_placeholder<T: Named>(&self, name: &str) -> bool {
        T::is_placeholder(name) && self.registry().find::<T>(name).is_err()
    }

    /// `None` if the server's default can be used; otherwise the first of the caller's names that exists and is no team.
    fn callers_default<T: Named>(&self) -> Result<Option<String>, ApiError> {
        let Some(aliases) = self.caller.aliases() else { return Ok(None) };
        if self.default_name::<T>().is_none_or(|name| self.caller.allows(name)) {
            return Ok(None);
        }
        let may_be_meant = |name: &&String| {
            self.find::<T>(Some(name)).is_ok_and(|model| T::may_be_default(&model))
        };
        if let Some(first) = aliases.iter().find(may_be_meant) {
            return Ok(Some(first.clone()));
        }
        let (kind, allowed) = (T::KIND.name(), aliases.to_vec());
        Err(KeyRefusal::NoneAllowed { kind, allowed }.into())
    }

    /// The name may belong to a model of another kind.
    fn not_found<T: Named>(&self, unknown: UnknownModel) -> ApiError {
        let (name, registry) = (unknown.name.as_str(), self.registry());
        let is_of = |kind: &Kind| match kind {
            Kind::Chat => Chat::find(registry, name).is_ok(),
            Kind::Speech | Kind::Transcription => registry.find_any(*kind, name).is_some(),
        };
        match Kind::ALL.into_iter().find(is_of) {
            Some(kind) => {
                let (kind, wanted) = (kind.name(), T::KIND.name());
                ApiError::WrongKind { name: name.to_owned(), kind, wanted }
            }
            None => ApiError::UnknownModel(unknown),
        }
    }
}
