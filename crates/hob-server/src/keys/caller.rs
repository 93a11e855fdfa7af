//! Who asks, as handlers see them: which names they may use, and whether it is their turn. Without
//! keys, and on lists that need none, it is somebody who may use everything.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use hob_core::Registry;
use hob_wire::{is_default_speech_model, is_default_transcript_model};

use super::{KeyHolder, KeyRefusal, Turn};
use crate::failure::ApiError;
use crate::router::{App, without_version};

/// The holder of a key, or anybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller(Option<Arc<KeyHolder>>);

impl Caller {
    /// Whom the guard put among a request's extensions.
    pub(crate) fn of(extensions: &Extensions) -> Caller {
        Caller(extensions.get::<Arc<KeyHolder>>().cloned())
    }

    /// What the ledger calls them.
    pub(crate) fn key(&self) -> Option<&str> {
        self.0.as_deref().map(|holder| holder.name.as_str())
    }

    /// Whether they may ask for this name, with or without `:latest`.
    pub(crate) fn allows(&self, name: &str) -> bool {
        let Some(aliases) = self.aliases() else { return true };
        let bare = without_version(name);
        aliases.iter().any(|alias| without_version(alias) == bare)
    }

    /// # Errors
    /// It is no name that they may ask for, whether or not it is anybody's.
    pub(crate) fn check(&self, app: &App, name: &str) -> Result<(), ApiError> {
        if self.allows(name) {
            return Ok(());
        }
        let allowed = self.aliases().unwrap_or_default().to_vec();
        Err(self.refused(app, KeyRefusal::NotAllowed { name: name.to_owned(), allowed }))
    }

    /// The chat model's name that is asked for; none is hob's default, if they may use that.
    ///
    /// # Errors
    /// As [`Caller::check`], or there is none that they may use.
    pub(crate) fn chat_name(
        &self,
        app: &App,
        asked: Option<String>,
    ) -> Result<Option<String>, ApiError> {
        if let Some(name) = asked {
            self.check(app, &name)?;
            return Ok(Some(name));
        }
        self.default_name(app, Kind::Chat)
    }

    /// The same of speech, where OpenAI's names mean the default too, unless they are somebody's
    /// own here.
    ///
    /// # Errors
    /// As [`Caller::chat_name`].
    pub(crate) fn speech_name(
        &self,
        app: &App,
        asked: Option<String>,
    ) -> Result<Option<String>, ApiError> {
        let asked = asked.map(|name| app.own_speech_name(&name).to_owned());
        if let Some(name) = &asked
            && (self.allows(name) || !is_any_speech_model(app, name))
        {
            self.check(app, name)?;
            return Ok(asked);
        }
        Ok(self.default_name(app, Kind::Speech)?.or(asked))
    }

    /// The same of transcription.
    ///
    /// # Errors
    /// As [`Caller::chat_name`].
    pub(crate) fn transcript_name(
        &self,
        app: &App,
        asked: Option<String>,
    ) -> Result<Option<String>, ApiError> {
        if let Some(name) = &asked
            && (self.allows(name) || !is_any_transcript_model(app, name))
        {
            self.check(app, name)?;
            return Ok(asked);
        }
        Ok(self.default_name(app, Kind::Transcript)?.or(asked))
    }

    /// The name under which they see a model: its own, or that of an alias of theirs.
    pub(crate) fn shown_as<'a>(&self, registry: &'a Registry, model: &'a str) -> Option<&'a str> {
        if self.allows(model) {
            return Some(model);
        }
        let mut aliases = registry.aliases().filter(|(_, name)| *name == model);
        aliases.find(|(alias, _)| self.allows(alias)).map(|(alias, _)| alias)
    }

    /// Whether they may look at requests that came with this key. Who may use some names only looks
    /// at their own.
    pub(crate) fn sees(&self, key: Option<&str>) -> bool {
        self.sees_all() || self.key() == key
    }

    /// # Errors
    /// Their key is for some names only, and this is about all of them.
    pub(crate) fn check_sees_all(&self, app: &App, what: &'static str) -> Result<(), ApiError> {
        if self.sees_all() {
            return Ok(());
        }
        let allowed = self.aliases().unwrap_or_default().to_vec();
        Err(self.refused(app, KeyRefusal::NotShown { what, allowed }))
    }

    /// Whether their key is for all names.
    pub(crate) fn sees_all(&self) -> bool {
        self.aliases().is_none()
    }

    /// Lets them ask a model. What is returned belongs to the answer, and ends with it.
    ///
    /// # Errors
    /// They have asked too much, have too many answers at once, or no tokens left.
    pub(crate) fn take_turn(&self, app: &App) -> Result<Option<Turn>, ApiError> {
        let turn = self.0.as_ref().map(KeyHolder::take_turn).transpose();
        turn.map_err(|refusal| self.refused(app, refusal))
    }

    /// Keeps tokens of the day for an answer. Returns how many it may take at most; `None`: there is no limit.
    ///
    /// # Errors
    /// None are left.
    pub(crate) fn reserve(
        &self,
        app: &App,
        turn: Option<&mut Turn>,
        tokens: u64,
    ) -> Result<Option<u64>, ApiError> {
        let Some(turn) = turn else { return Ok(None) };
        turn.reserve(tokens).map_err(|refusal| self.refused(app, refusal))
    }

    /// Lets them have a model loaded or unloaded, which is a request, and no answer.
    ///
    /// # Errors
    /// They have asked too much.
    pub(crate) fn take_request(&self, app: &App) -> Result<(), ApiError> {
        let taken = self.0.as_ref().map_or(Ok(()), |holder| holder.take_request());
        taken.map_err(|refusal| self.refused(app, refusal))
    }

    /// None: all of them.
    fn aliases(&self) -> Option<&[String]> {
        self.0.as_deref()?.aliases.as_deref()
    }

    /// None where hob's own default will do. Otherwise the first of theirs that leads somewhere.
    fn default_name(&self, app: &App, kind: Kind) -> Result<Option<String>, ApiError> {
        let Some(aliases) = self.aliases() else { return Ok(None) };
        if kind.default(app).is_none_or(|name| self.allows(&name)) {
            return Ok(None);
        }
        if let Some(first) = aliases.iter().find(|name| kind.has(app, name)) {
            return Ok(Some(first.clone()));
        }
        let (kind, allowed) = (kind.name(), aliases.to_vec());
        Err(self.refused(app, KeyRefusal::NoneAllowed { kind, allowed }))
    }

    /// Every refusal of a key's holder is counted here.
    fn refused(&self, app: &App, refusal: KeyRefusal) -> ApiError {
        app.metrics.key_refused(self.key().unwrap_or_default(), refusal.code());
        ApiError::Key(refusal)
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Infallible> {
        Ok(Caller::of(&parts.extensions))
    }
}

/// What a request without a name asks for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Chat,
    Speech,
    Transcript,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Chat => "chat",
            Kind::Speech => "speech",
            Kind::Transcript => "transcription",
        }
    }

    fn default(self, app: &App) -> Option<String> {
        match self {
            Kind::Chat => app.default_chat_name(),
            Kind::Speech => app.default_speech_name(),
            Kind::Transcript => app.default_transcript_name(),
        }
    }

    fn has(self, app: &App, name: &str) -> bool {
        match self {
            Kind::Chat => app.chat_target(Some(name)).is_ok(),
            Kind::Speech => app.speech_target(Some(name)).is_ok(),
            Kind::Transcript => app.transcript_target(Some(name)).is_ok(),
        }
    }
}

/// One of OpenAI's names that is no model's own.
fn is_any_speech_model(app: &App, name: &str) -> bool {
    is_default_speech_model(name) && app.registry().speech(name).is_err()
}

fn is_any_transcript_model(app: &App, name: &str) -> bool {
    is_default_transcript_model(name) && app.registry().transcript(name).is_err()
}
