//! The routes, each with and without `/v1`, and what stands before them.
//! What every handler may know is in [`App`]; nothing is global.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use hob_core::{ChatTarget, Registry, SpeechTarget, TranscriptTarget, UnknownModel};
use hob_wire::{
    is_default_speech_model, is_default_transcript_model, is_tag_of, local_speech_model,
};
use tokio_util::sync::CancellationToken;

use crate::asking::ReadLimits;
use crate::bodies::Bodies;
use crate::failure::ApiError;
use crate::guard::{Guard, check_key, check_names, notice_key};
use crate::ledger::Ledger;
use crate::live::ReloadableState;
use crate::metrics::Metrics;
use crate::now::{self, Now};
use crate::requests::observe;
use crate::{
    ServerOptions, benchmarks, chat, completions, embeddings, fit, lifecycle, lists, ollama, page,
    routes, speech, transcribe,
};

/// What every request may know.
pub(crate) struct App {
    pub(crate) live: ReloadableState,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) now: Arc<Now>,
    /// Cancelled when answers that still run are to end, and to say so.
    pub(crate) cut_off: CancellationToken,
    default_speech: Option<String>,
    default_chat: Option<String>,
    default_transcript: Option<String>,
    pub(crate) bodies: Bodies,
    pub(crate) give_back: fn(),
}

/// How much one request may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) text_chars_max: usize,
    pub(crate) body_bytes_max: usize,
    pub(crate) file_bytes_max: usize,
    pub(crate) read_time_max: Duration,
    pub(crate) sound_time_max: Duration,
    pub(crate) token_time_max: Duration,
    pub(crate) keep_alive_every: Duration,
    pub(crate) early_headers_after: Duration,
}

impl Limits {
    /// Of a body that is JSON.
    pub(crate) fn json(&self) -> ReadLimits {
        ReadLimits { bytes_max: self.body_bytes_max, time_max: self.read_time_max }
    }
}

/// What Ollama's clients write after a name when they mean any version of it.
const ANY_VERSION: &str = ":latest";

/// A name as the registry has it.
pub(crate) fn without_version(name: &str) -> &str {
    name.strip_suffix(ANY_VERSION).unwrap_or(name)
}

impl App {
    /// As it is in force now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.live.registry()
    }

    /// Where a name leads; none, or one of OpenAI's, to the default speech model.
    pub(crate) fn speech_target(&self, name: Option<&str>) -> Result<Arc<SpeechTarget>, ApiError> {
        let Some(name) = name else { return self.default_speech_target() };
        match self.registry().speech(self.own_speech_name(name)) {
            Ok(target) => Ok(target),
            Err(_) if is_default_speech_model(name) => self.default_speech_target(),
            Err(unknown) => Err(self.not_found(unknown, "speech")),
        }
    }

    /// The name under which the registry has a model that other servers offer under this one.
    pub(crate) fn own_speech_name<'a>(&self, name: &'a str) -> &'a str {
        let registry = self.registry();
        let is_here = |name: &&str| registry.speech(name).is_ok();
        let own = || local_speech_model(name).filter(is_here);
        Some(name).filter(is_here).or_else(own).unwrap_or(name)
    }

    /// The same of transcription models.
    pub(crate) fn transcript_target(
        &self,
        name: Option<&str>,
    ) -> Result<Arc<TranscriptTarget>, ApiError> {
        let Some(name) = name else { return self.default_transcript_target() };
        match self.registry().transcript(name) {
            Ok(target) => Ok(target),
            Err(_) if is_default_transcript_model(name) => self.default_transcript_target(),
            Err(unknown) => Err(self.not_found(unknown, "transcription")),
        }
    }

    /// Where a name leads, with or without a tag that is true of the model, such as `:latest` or `:135m`; none
    /// to the default chat model. No other name leads anywhere: a request for one model is not answered by another.
    pub(crate) fn chat_target(&self, name: Option<&str>) -> Result<Arc<ChatTarget>, ApiError> {
        let Some(name) = name else { return self.default_chat_target() };
        match self.named_chat(name) {
            Ok(target) => Ok(target),
            Err(unknown) => Err(self.not_found(unknown, "chat")),
        }
    }

    /// A name may be somebody's who does something else.
    fn not_found(&self, unknown: UnknownModel, wanted: &'static str) -> ApiError {
        let (name, registry) = (unknown.name.as_str(), self.registry());
        let kinds = [
            ("chat", self.named_chat(name).is_ok()),
            ("speech", registry.speech(name).is_ok()),
            ("transcription", registry.transcript(name).is_ok()),
        ];
        match kinds.into_iter().find(|(_, is_one)| *is_one) {
            Some((kind, _)) => ApiError::WrongKind { name: name.to_owned(), kind, wanted },
            None => ApiError::UnknownModel(unknown),
        }
    }

    fn named_chat(&self, name: &str) -> Result<Arc<ChatTarget>, UnknownModel> {
        let registry = self.registry();
        registry.chat(name).or_else(|unknown| {
            let tagged = name.rsplit_once(':').and_then(|(bare, tag)| {
                let target = registry.chat(bare).ok()?;
                is_tag_of(tag, target.model.card()).then_some(target)
            });
            tagged.ok_or(unknown)
        })
    }

    /// The name that requests without one mean; none where nothing speaks.
    pub(crate) fn default_speech_name(&self) -> Option<String> {
        let first = || self.registry().speech_targets().next().map(|target| target.name.clone());
        self.default_speech.clone().or_else(first)
    }

    /// The same of chat.
    pub(crate) fn default_chat_name(&self) -> Option<String> {
        self.default_chat.clone().or_else(|| self.only_chat_name())
    }

    /// Of several names, none is anybody's default: the first by its letters may cost money.
    fn only_chat_name(&self) -> Option<String> {
        let registry = self.registry();
        let mut names = registry.chat_targets().map(|target| &target.name);
        names.next().filter(|_| names.next().is_none()).cloned()
    }

    /// The same of transcription.
    pub(crate) fn default_transcript_name(&self) -> Option<String> {
        let first =
            || self.registry().transcript_targets().next().map(|target| target.name.clone());
        self.default_transcript.clone().or_else(first)
    }

    fn default_transcript_target(&self) -> Result<Arc<TranscriptTarget>, ApiError> {
        let name = self.default_transcript_name().ok_or(ApiError::NoTranscriptModel)?;
        self.registry().transcript(&name).map_err(ApiError::UnknownModel)
    }

    fn default_speech_target(&self) -> Result<Arc<SpeechTarget>, ApiError> {
        let name = self.default_speech_name().ok_or(ApiError::NoSpeechModel)?;
        self.registry().speech(&name).map_err(ApiError::UnknownModel)
    }

    fn default_chat_target(&self) -> Result<Arc<ChatTarget>, ApiError> {
        let name = self.default_chat_name().ok_or_else(|| {
            let is_empty = self.registry().chat_targets().next().is_none();
            if is_empty { ApiError::NoChatModel } else { ApiError::NotNamed }
        })?;
        self.registry().chat(&name).map_err(ApiError::UnknownModel)
    }
}

/// All routes, as [`crate::serve`] answers them on the address `listen`.
pub fn router(live: impl Into<ReloadableState>, options: &ServerOptions, listen: IpAddr) -> Router {
    router_with(live.into(), options, listen, Arc::new(Metrics::new()), CancellationToken::new())
}

pub(crate) fn router_with(
    live: ReloadableState,
    options: &ServerOptions,
    listen: IpAddr,
    metrics: Arc<Metrics>,
    cut_off: CancellationToken,
) -> Router {
    live.begin(&options.keys, options.ledger.clone());
    let app = Arc::new(App {
        live,
        guard: Guard::new(listen, &options.allowed_hosts),
        limits: Limits {
            text_chars_max: options.text_chars_max,
            body_bytes_max: options.body_bytes_max,
            file_bytes_max: options.file_bytes_max,
            read_time_max: options.read_time_max,
            sound_time_max: options.sound_time_max,
            token_time_max: options.token_time_max,
            keep_alive_every: options.keep_alive_every,
            early_headers_after: options.early_headers_after,
        },
        metrics,
        ledger: options.ledger.clone(),
        now: Arc::default(),
        cut_off,
        default_speech: options.default_speech.clone(),
        default_chat: options.default_chat.clone(),
        default_transcript: options.default_transcript.clone(),
        bodies: Bodies::new(options.bodies_bytes_max),
        give_back: options.give_back,
    });
    let api = open_routes(&app).merge(keyed_routes(&app));
    Router::new()
        .merge(api.clone())
        .nest("/v1", api)
        .merge(ollama::routes(&app))
        .merge(lifecycle::routes(&app))
        .merge(routes::routes(&app))
        .merge(now::routes(&app))
        .merge(fit::routes(&app, options.fit.as_ref()))
        .merge(benchmarks::routes(options.benchmarks.as_ref()))
        .fallback(page::asset)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), check_names))
        .layer(from_fn_with_state(Arc::clone(&app), observe))
        .with_state(app)
}

/// Open WebUI and probes ask these without a key. Who has one sees what it is for.
fn open_routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/models", get(lists::models))
        .route("/audio/models", get(lists::audio_models))
        .route("/audio/voices", get(lists::voices))
        .route_layer(from_fn_with_state(Arc::clone(app), notice_key))
        .route("/health", get(lists::health))
        .route("/ready", get(lists::ready))
}

fn keyed_routes(app: &Arc<App>) -> Router<Arc<App>> {
    let model = if app.registry().answers_unknown() {
        get(lists::model).delete(lists::delete_model)
    } else {
        get(lists::model)
    };
    Router::new()
        .route("/models/{*id}", model)
        .route("/audio/speech", post(speech::speak))
        .route("/audio/transcriptions", post(transcribe::transcribe))
        .route("/audio/translations", post(transcribe::translate))
        .route("/chat/completions", post(chat::complete))
        .route("/completions", post(completions::complete))
        .route("/embeddings", post(embeddings::embeddings))
        .route("/metrics", get(lists::metrics))
        .route_layer(from_fn_with_state(Arc::clone(app), check_key))
}

async fn wrong_method(request: Request) -> ApiError {
    ApiError::WrongMethod {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    }
}
