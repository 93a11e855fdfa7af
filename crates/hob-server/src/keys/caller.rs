//! The caller of a request: which names its key may use, and its limits.
//! Without keys, and on lists that need none, the caller may use everything.

use std::sync::Arc;

use hob_core::trace::LateTokens;
use hob_core::{Chat, RegisteredModel, Registry};
use hob_wire::is_tag_of;

use super::{KeyHolder, KeyRefusal, RateLimitGuard};
use crate::team_service::SpendTokens;

/// What Ollama's clients append to a name to mean any version.
const ANY_VERSION: &str = ":latest";

/// The name without `:latest`.
pub(crate) fn without_version(name: &str) -> &str {
    name.strip_suffix(ANY_VERSION).unwrap_or(name)
}

/// The name without its tag, and its model. The tag must be true for the model, and no model may have the whole name.
pub(crate) fn tagged<'a>(
    registry: &Registry,
    name: &'a str,
) -> Option<(&'a str, Arc<RegisteredModel<Chat>>)> {
    let (bare, tag) = name.rsplit_once(':')?;
    let model = registry.find::<Chat>(bare).ok()?;
    let is_tagged = is_tag_of(tag, model.model.card()) && registry.find::<Chat>(name).is_err();
    is_tagged.then_some((bare, model))
}

/// The holder of a key, or any client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    holder: Option<Arc<KeyHolder>>,
    /// Says which names mean the same model.
    registry: Arc<Registry>,
}

impl Caller {
    pub(crate) fn new(holder: Option<&Arc<KeyHolder>>, registry: &Arc<Registry>) -> Caller {
        Caller { holder: holder.cloned(), registry: Arc::clone(registry) }
    }

    /// The key's name in the request log.
    pub(crate) fn key(&self) -> Option<&str> {
        self.holder.as_deref().map(|holder| holder.key.name.as_str())
    }

    /// Whether the caller may use this name, which may be any name of a model, with or without a tag such as
    /// `:latest`. The targets of an alias are other names.
    pub(crate) fn allows(&self, name: &str) -> bool {
        let Some(aliases) = self.aliases() else { return true };
        let is_allowed = |name: &str| {
            let name = self.listed_name(name);
            aliases.iter().any(|alias| self.listed_name(alias) == name)
        };
        is_allowed(name) || tagged(&self.registry, name).is_some_and(|(bare, _)| is_allowed(bare))
    }

    /// The name by which lists show it.
    pub(crate) fn listed_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.registry.listed_name(without_version(name))
    }

    /// # Errors
    /// The caller may not use this name, whether it exists or not.
    pub(crate) fn check(&self, name: &str) -> Result<(), KeyRefusal> {
        if self.allows(name) {
            return Ok(());
        }
        let allowed = self.aliases().unwrap_or_default().to_vec();
        Err(KeyRefusal::NotAllowed { name: name.to_owned(), allowed })
    }

    /// The name of a model for this caller: its own, or one of the caller's aliases.
    pub(crate) fn shown_as<'a>(&self, registry: &'a Registry, model: &'a str) -> Option<&'a str> {
        if self.allows(model) {
            return Some(model);
        }
        let mut aliases = registry.aliases().filter(|(_, name)| *name == model);
        aliases.find(|(alias, _)| self.allows(alias)).map(|(alias, _)| alias)
    }

    /// Whether the caller may see requests with this key. A restricted key sees only its own.
    pub(crate) fn sees(&self, key: Option<&str>) -> bool {
        self.sees_all() || self.key() == key
    }

    /// # Errors
    /// The key is restricted to some names, and `what` is about all of them.
    pub(crate) fn check_sees_all(&self, what: &'static str) -> Result<(), KeyRefusal> {
        if self.sees_all() {
            return Ok(());
        }
        let allowed = self.aliases().unwrap_or_default().to_vec();
        Err(KeyRefusal::NotShown { what, allowed })
    }

    /// A team acts with the rights of hob, so changing one takes a key that is for all names, also where no request
    /// needs a key.
    ///
    /// # Errors
    /// The caller has no such key.
    pub(crate) fn check_changes_teams(&self) -> Result<(), KeyRefusal> {
        match &self.holder {
            Some(_) if self.sees_all() => Ok(()),
            _ => Err(KeyRefusal::MayNotChangeTeams),
        }
    }

    /// A key that sees a run of another key does not answer the questions of its agents.
    ///
    /// # Errors
    /// Another key started the run.
    pub(crate) fn check_decides(&self, owner: Option<&str>) -> Result<(), KeyRefusal> {
        match owner {
            Some(_) if owner != self.key() => Err(KeyRefusal::MayNotDecide),
            _ => Ok(()),
        }
    }

    /// Whether the tokens of a day are limited.
    pub(crate) fn has_daily_budget(&self) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.key.tokens_per_day.is_some())
    }

    /// Whether the key is for all names.
    pub(crate) fn sees_all(&self) -> bool {
        self.aliases().is_none()
    }

    /// Counts a request to a model. The guard belongs to the answer, and ends with it.
    ///
    /// # Errors
    /// A rate limit is exceeded, too many answers run, or no tokens are left.
    pub(crate) fn acquire(&self) -> Result<Option<RateLimitGuard>, KeyRefusal> {
        self.holder.as_ref().map(KeyHolder::acquire).transpose()
    }

    /// Counts a part of a realtime session. Only parts that answer count as requests.
    ///
    /// # Errors
    /// A rate limit is exceeded, or no tokens are left.
    pub(crate) fn acquire_part(
        &self,
        is_answer: bool,
    ) -> Result<Option<RateLimitGuard>, KeyRefusal> {
        self.holder.as_ref().map(|holder| holder.acquire_part(is_answer)).transpose()
    }

    /// Counts a request that loads or unloads a model, and has no answer.
    ///
    /// # Errors
    /// The rate limit is exceeded.
    pub(crate) fn count_request(&self) -> Result<(), KeyRefusal> {
        self.holder.as_ref().map_or(Ok(()), |holder| holder.take_request())
    }

    /// Counts a request that starts or continues a run of a team. What it returns counts the tokens of the run.
    ///
    /// # Errors
    /// The rate limit is exceeded, or no tokens are left.
    pub(crate) fn count_run(&self) -> Result<SpendTokens, KeyRefusal> {
        let Some(holder) = self.holder.clone() else { return Ok(Box::new(|_| ())) };
        holder.take_run()?;
        Ok(Box::new(move |tokens| holder.spend(tokens)))
    }

    /// Counts tokens that a request of the caller uses after its client has left.
    pub(crate) fn late_tokens(&self) -> LateTokens {
        let holder = self.holder.clone();
        holder.map(|holder| LateTokens::new(move |tokens| holder.spend(tokens))).unwrap_or_default()
    }

    /// The names that the caller may use; `None`: all.
    pub(crate) fn aliases(&self) -> Option<&[String]> {
        self.holder.as_deref()?.key.aliases.as_deref()
    }
}
