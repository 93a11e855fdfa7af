//! The registry: finds a model by name, and limits the requests of each model.
//! It is built once for each configuration, and replaced as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::routing::{ListedModel, RouteView, UpstreamView};
use crate::task::{Chat, Kind, Speech, Task, Transcription};
use crate::{Admission, ModelLifecycle, ModelState, nearest};

/// Every model that this hob serves, by name and by alias.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    chat: Models<Chat>,
    speech: Models<Speech>,
    transcription: Models<Transcription>,
    aliases: BTreeMap<String, String>,
    /// Further names of models, in lower case. Lists do not show them.
    unlisted_aliases: BTreeMap<String, String>,
    /// Serves every chat model name that is unknown otherwise.
    catch_all_chat: Option<Arc<RegisteredModel<Chat>>>,
    upstreams: Option<Arc<dyn UpstreamResolver>>,
}

/// The models of one kind, by name.
pub type Models<T> = BTreeMap<String, Arc<RegisteredModel<T>>>;

/// A model under its name, with its limit of requests.
pub struct RegisteredModel<T: Task> {
    pub name: String,
    pub model: Arc<T::Model>,
    /// `None` for models of other servers.
    pub lifecycle: Option<Arc<dyn ModelLifecycle>>,
    pub admission: Admission<T::Work>,
    pub timeouts: Timeouts,
}

/// Which part of hob ends an answer that has been silent for too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timeouts {
    /// `hob-server`, with its stall timeout.
    #[default]
    ByServer,
    /// The model itself: an alias has its own time limits, which are longer for some requests.
    ByModel,
}

/// No model has this name; `near` lists the nearest existing names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel {
    pub name: String,
    pub near: Vec<String>,
}

impl<T: Task> RegisteredModel<T> {
    /// A model of another server, or a model for tests.
    pub fn new(name: &str, model: Arc<T::Model>, admission: Admission<T::Work>) -> Self {
        let (name, timeouts) = (name.to_owned(), Timeouts::ByServer);
        RegisteredModel { name, model, lifecycle: None, admission, timeouts }
    }

    pub fn state(&self) -> ModelState {
        T::state(&self.model)
    }
}

impl<T: Task> fmt::Debug for RegisteredModel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredModel")
            .field("name", &self.name)
            .field("kind", &T::KIND)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// What all kinds of registered models have in common, for lists, metrics and views.
pub trait AnyModel: fmt::Debug + Send + Sync {
    fn name(&self) -> &str;

    fn kind(&self) -> Kind;

    fn state(&self) -> ModelState;

    fn lifecycle(&self) -> Option<&Arc<dyn ModelLifecycle>>;

    /// For models that count in tokens.
    fn context_tokens(&self) -> Option<u32>;

    fn in_flight(&self) -> usize;

    /// The limit of [`AnyModel::in_flight`].
    fn in_flight_max(&self) -> usize;

    /// Remaining work of the requests in flight, in the unit of the kind.
    fn backlog(&self) -> f64;

    /// Equal for two entries of the same model.
    fn address(&self) -> *const ();
}

impl<T: Task> AnyModel for RegisteredModel<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> Kind {
        T::KIND
    }

    fn state(&self) -> ModelState {
        T::state(&self.model)
    }

    fn lifecycle(&self) -> Option<&Arc<dyn ModelLifecycle>> {
        self.lifecycle.as_ref()
    }

    fn context_tokens(&self) -> Option<u32> {
        T::context_tokens(&self.model)
    }

    fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    fn in_flight_max(&self) -> usize {
        self.admission.requests_max()
    }

    fn backlog(&self) -> f64 {
        self.admission.backlog()
    }

    fn address(&self) -> *const () {
        Arc::as_ptr(&self.model).cast()
    }
}

/// Finds models of other servers and aliases of one kind.
pub trait Resolve<T: Task> {
    /// `name` is `upstream/model`, or an alias.
    fn resolve(&self, name: &str) -> Option<Arc<RegisteredModel<T>>>;
}

/// Names of models on other servers, and what is known about those servers.
pub trait UpstreamResolver:
    Resolve<Chat> + Resolve<Speech> + Resolve<Transcription> + fmt::Debug + Send + Sync
{
    /// The known models of other servers. Sends no request.
    fn listed(&self) -> Vec<ListedModel>;

    /// The targets of an alias or of `upstream/model`, in the order in which they would be tried now.
    fn route(&self, name: &str) -> Option<RouteView>;

    fn upstreams(&self) -> Vec<UpstreamView>;
}

/// A kind of work whose models the registry holds.
pub trait Registered: Task {
    fn models(registry: &Registry) -> &Models<Self>;

    fn models_mut(registry: &mut Registry) -> &mut Models<Self>;

    fn resolve(upstreams: &dyn UpstreamResolver, name: &str) -> Option<Arc<RegisteredModel<Self>>>;

    /// A model that serves unknown names.
    fn catch_all(_registry: &Registry) -> Option<&Arc<RegisteredModel<Self>>> {
        None
    }
}

/// The field with the models of a kind, and the one with the model that serves unknown names.
macro_rules! registered {
    ($task:ident: $models:ident $(, $catch_all:ident)?) => {
        impl Registered for $task {
            fn models(registry: &Registry) -> &Models<$task> {
                &registry.$models
            }

            fn models_mut(registry: &mut Registry) -> &mut Models<$task> {
                &mut registry.$models
            }

            fn resolve(
                upstreams: &dyn UpstreamResolver,
                name: &str,
            ) -> Option<Arc<RegisteredModel<$task>>> {
                upstreams.resolve(name)
            }

            $(fn catch_all(registry: &Registry) -> Option<&Arc<RegisteredModel<$task>>> {
                registry.$catch_all.as_ref()
            })?
        }
    };
}

registered!(Chat: chat, catch_all_chat);
registered!(Speech: speech);
registered!(Transcription: transcription);

impl Registry {
    /// A model that several registries share keeps its state in all of them.
    pub fn add<T: Registered>(&mut self, model: impl Into<Arc<RegisteredModel<T>>>) {
        let model = model.into();
        T::models_mut(self).insert(model.name.clone(), model);
    }

    /// Lets `model` serve every unknown chat model name. For tests of clients.
    pub fn answer_unknown(&mut self, model: RegisteredModel<Chat>) {
        self.catch_all_chat = Some(Arc::new(model));
    }

    /// Whether every name of a chat model is served.
    pub fn answers_unknown(&self) -> bool {
        self.catch_all_chat.is_some()
    }

    /// Names without a local model are looked up in `upstreams`.
    pub fn set_upstreams(&mut self, upstreams: Arc<dyn UpstreamResolver>) {
        self.upstreams = Some(upstreams);
    }

    pub fn upstreams(&self) -> Option<&Arc<dyn UpstreamResolver>> {
        self.upstreams.as_ref()
    }

    /// Makes `alias` another name of `name`. Lists show both.
    pub fn add_alias(&mut self, alias: impl Into<String>, name: impl Into<String>) {
        self.aliases.insert(alias.into(), name.into());
    }

    /// Makes `other` another name of `name`, in upper and lower case, unless a model has it. Lists do not show it.
    pub fn also_called(&mut self, other: &str, name: impl Into<String>) {
        self.unlisted_aliases.insert(other.to_ascii_lowercase(), name.into());
    }

    /// The listed name of the model that a request finds by this unlisted name. Other names are returned unchanged,
    /// also those of aliases.
    pub fn listed_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.by_unlisted(name).filter(|_| !self.is_listed(name)).unwrap_or(name)
    }

    fn by_unlisted(&self, name: &str) -> Option<&str> {
        self.unlisted_aliases.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// Whether an alias, a local model or a model of another server has exactly this name.
    fn is_listed(&self, name: &str) -> bool {
        let is_elsewhere = |upstreams: &Arc<dyn UpstreamResolver>| {
            Chat::resolve(&**upstreams, name).is_some()
                || Speech::resolve(&**upstreams, name).is_some()
                || Transcription::resolve(&**upstreams, name).is_some()
        };
        self.aliases.contains_key(name)
            || self.has(name)
            || self.upstreams.as_ref().is_some_and(is_elsewhere)
    }

    /// # Errors
    /// [`UnknownModel`] with the nearest names.
    pub fn find<T: Registered>(&self, name: &str) -> Result<Arc<RegisteredModel<T>>, UnknownModel> {
        let models = T::models(self);
        let target = self.aliases.get(name).map_or(name, String::as_str);
        let upstream = || T::resolve(&**self.upstreams.as_ref()?, target);
        let also = || models.get(self.by_unlisted(target)?).cloned();
        let known = models.get(target).cloned().or_else(upstream).or_else(also);
        known.or_else(|| T::catch_all(self).cloned()).ok_or_else(|| self.unknown(name))
    }

    /// Finds a model of this kind by name.
    pub fn find_any(&self, kind: Kind, name: &str) -> Option<Arc<dyn AnyModel>> {
        match kind {
            Kind::Chat => self.find::<Chat>(name).ok().map(|model| model as _),
            Kind::Speech => self.find::<Speech>(name).ok().map(|model| model as _),
            Kind::Transcription => self.find::<Transcription>(name).ok().map(|model| model as _),
        }
    }

    /// Whether a local model has this name. Other servers are not included.
    pub fn has(&self, name: &str) -> bool {
        self.all().any(|model| model.name() == name)
    }

    /// The models of one kind, by name; aliases are not repeated.
    pub fn models<T: Registered>(&self) -> impl Iterator<Item = &Arc<RegisteredModel<T>>> {
        T::models(self).values()
    }

    /// The models of all kinds: first speech, then chat, then transcription.
    pub fn all(&self) -> impl Iterator<Item = &dyn AnyModel> {
        let speech = self.speech.values().map(|model| &**model as &dyn AnyModel);
        let chat = self.chat.values().map(|model| &**model as &dyn AnyModel);
        speech.chain(chat).chain(self.transcription.values().map(|model| &**model as _))
    }

    /// The models of all kinds, to be shared.
    pub fn all_shared(&self) -> impl Iterator<Item = Arc<dyn AnyModel>> {
        let speech = self.speech.values().map(|model| Arc::clone(model) as Arc<dyn AnyModel>);
        let chat = self.chat.values().map(|model| Arc::clone(model) as _);
        speech.chain(chat).chain(self.transcription.values().map(|model| Arc::clone(model) as _))
    }

    /// Aliases and the names they lead to, sorted.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, name)| (alias.as_str(), name.as_str()))
    }

    fn unknown(&self, name: &str) -> UnknownModel {
        let aliases = self.aliases.keys().map(String::as_str);
        let known = self.all().map(AnyModel::name).chain(aliases);
        UnknownModel { name: name.to_owned(), near: nearest(name, known, 3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{ScriptedChat, ScriptedSpeech, ScriptedTranscript};
    use crate::{ChatModel, SpeechModel, TranscriptModel};

    fn speech_model(name: &str) -> Arc<RegisteredModel<Speech>> {
        let model: Arc<dyn SpeechModel> = Arc::new(ScriptedSpeech::new([]));
        Arc::new(RegisteredModel::new(name, model, Admission::new(1, 0.0)))
    }

    fn transcript_model(name: &str) -> Arc<RegisteredModel<Transcription>> {
        let model: Arc<dyn TranscriptModel> = Arc::new(ScriptedTranscript::new([]));
        Arc::new(RegisteredModel::new(name, model, Admission::new(1, 0.0)))
    }

    fn chat_model(name: &str) -> Arc<RegisteredModel<Chat>> {
        let model: Arc<dyn ChatModel> = Arc::new(ScriptedChat::new([]));
        Arc::new(RegisteredModel::new(name, model, Admission::new(1, 0.0)))
    }

    /// Serves every name of the server `gpu`, for every kind.
    #[derive(Debug)]
    struct Gpu;

    impl Resolve<Chat> for Gpu {
        fn resolve(&self, name: &str) -> Option<Arc<RegisteredModel<Chat>>> {
            name.starts_with("gpu/").then(|| chat_model(name))
        }
    }

    impl Resolve<Speech> for Gpu {
        fn resolve(&self, name: &str) -> Option<Arc<RegisteredModel<Speech>>> {
            name.starts_with("gpu/").then(|| speech_model(name))
        }
    }

    impl Resolve<Transcription> for Gpu {
        fn resolve(&self, name: &str) -> Option<Arc<RegisteredModel<Transcription>>> {
            name.starts_with("gpu/").then(|| transcript_model(name))
        }
    }

    impl UpstreamResolver for Gpu {
        fn listed(&self) -> Vec<ListedModel> {
            Vec::new()
        }

        fn route(&self, _alias: &str) -> Option<RouteView> {
            None
        }

        fn upstreams(&self) -> Vec<UpstreamView> {
            Vec::new()
        }
    }

    #[test]
    fn local_names_win_over_upstream_names() {
        let mut registry = Registry::default();
        registry.add(speech_model("kokoro"));
        registry.add(transcript_model("whisper"));
        registry.add(chat_model("smol"));
        registry.add_alias("ears", "whisper");
        registry.add_alias("far", "gpu/any");
        assert!(registry.find::<Speech>("gpu/tts").is_err(), "no upstream is set");
        registry.set_upstreams(Arc::new(Gpu));
        for (asked, found) in [("kokoro", "kokoro"), ("gpu/tts", "gpu/tts"), ("far", "gpu/any")] {
            assert_eq!(registry.find::<Speech>(asked).expect(asked).name, found);
        }
        for (asked, found) in [("whisper", "whisper"), ("ears", "whisper"), ("gpu/w", "gpu/w")] {
            assert_eq!(registry.find::<Transcription>(asked).expect(asked).name, found);
        }
        registry.also_called("smol:135m", "smol");
        registry.also_called("gpu/q", "smol");
        let rows =
            [("smol", "smol"), ("gpu/q", "gpu/q"), ("smol:135m", "smol"), ("Smol:135M", "smol")];
        for (asked, found) in rows {
            assert_eq!(registry.find::<Chat>(asked).expect(asked).name, found);
        }
        for (asked, listed) in [("Smol:135M", "smol"), ("far", "far"), ("gpu/q", "gpu/q")] {
            assert_eq!(registry.listed_name(asked), listed);
        }
        let unknown = registry.find::<Transcription>("wisper").expect_err("no such name");
        assert_eq!(unknown.near, ["whisper"]);
    }
}
