//! The roster: which name leads to which model, and whether there is room.
//! Filled once at the start; which models there are is decided by whoever fills it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::routing::Switchboard;
use crate::{Admission, ChatModel, Residence, SpeechModel, nearest};

/// Every model that this hob answers for, by name and by alias.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    speech: BTreeMap<String, Arc<SpeechTarget>>,
    chat: BTreeMap<String, Arc<ChatTarget>>,
    aliases: BTreeMap<String, String>,
    /// Answers to every chat model's name that nobody else has.
    any_chat: Option<Arc<ChatTarget>>,
    /// Names that lead to other servers.
    elsewhere: Option<Arc<dyn Switchboard>>,
}

/// A speech model and the room it has.
pub struct SpeechTarget {
    pub name: String,
    pub model: Arc<dyn SpeechModel>,
    /// None for models that live elsewhere.
    pub residence: Option<Arc<dyn Residence>>,
    pub admission: Admission,
}

/// A chat model and the room it has; its work is counted in tokens.
pub struct ChatTarget {
    pub name: String,
    pub model: Arc<dyn ChatModel>,
    /// None for models that live elsewhere.
    pub residence: Option<Arc<dyn Residence>>,
    pub admission: Admission,
    pub clocks: Clocked,
}

/// Who notices that a model is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clocked {
    /// Whoever asks it.
    #[default]
    ByAsker,
    /// It itself: its times are its own, and longer for some requests.
    ByItself,
}

impl fmt::Debug for ChatTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTarget")
            .field("name", &self.name)
            .field("state", &self.model.state())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SpeechTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpeechTarget")
            .field("name", &self.name)
            .field("state", &self.model.state())
            .finish_non_exhaustive()
    }
}

/// No model has this name; `near` holds those that it may have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel {
    pub name: String,
    pub near: Vec<String>,
}

impl Roster {
    pub fn add_speech(&mut self, target: SpeechTarget) {
        self.speech.insert(target.name.clone(), Arc::new(target));
    }

    pub fn add_chat(&mut self, target: ChatTarget) {
        self.share_chat(Arc::new(target));
    }

    /// The same of one that another roster has too.
    pub fn share_chat(&mut self, target: Arc<ChatTarget>) {
        self.chat.insert(target.name.clone(), target);
    }

    /// Lets `target` answer to every name that no chat model has: for tests of clients.
    pub fn answer_unknown(&mut self, target: ChatTarget) {
        self.any_chat = Some(Arc::new(target));
    }

    /// Whether no name of a chat model is unknown.
    pub fn answers_unknown(&self) -> bool {
        self.any_chat.is_some()
    }

    /// Lets names that nobody here has lead to other servers.
    pub fn lead_elsewhere(&mut self, elsewhere: Arc<dyn Switchboard>) {
        self.elsewhere = Some(elsewhere);
    }

    /// Other servers, if there are any.
    pub fn elsewhere(&self) -> Option<&Arc<dyn Switchboard>> {
        self.elsewhere.as_ref()
    }

    /// Lets `alias` lead where `name` leads.
    pub fn add_alias(&mut self, alias: impl Into<String>, name: impl Into<String>) {
        self.aliases.insert(alias.into(), name.into());
    }

    /// # Errors
    /// [`UnknownModel`] with the nearest names.
    pub fn speech(&self, name: &str) -> Result<Arc<SpeechTarget>, UnknownModel> {
        let meant = self.aliases.get(name).map_or(name, String::as_str);
        self.speech.get(meant).cloned().ok_or_else(|| self.unknown(name))
    }

    /// # Errors
    /// [`UnknownModel`] with the nearest names.
    pub fn chat(&self, name: &str) -> Result<Arc<ChatTarget>, UnknownModel> {
        let meant = self.aliases.get(name).map_or(name, String::as_str);
        let here = self.chat.get(meant).cloned();
        let elsewhere = || self.elsewhere.as_ref()?.find_chat(meant);
        let found = here.or_else(elsewhere).or_else(|| self.any_chat.clone());
        found.ok_or_else(|| self.unknown(name))
    }

    /// Whether a model here has this name; those elsewhere are not asked.
    pub fn has(&self, name: &str) -> bool {
        self.chat.contains_key(name) || self.speech.contains_key(name)
    }

    /// The chat models, by name; aliases are not repeated.
    pub fn chat_targets(&self) -> impl Iterator<Item = &Arc<ChatTarget>> {
        self.chat.values()
    }

    /// The speech models, by name; aliases are not repeated.
    pub fn speech_targets(&self) -> impl Iterator<Item = &Arc<SpeechTarget>> {
        self.speech.values()
    }

    /// Aliases and the names they lead to, sorted.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, name)| (alias.as_str(), name.as_str()))
    }

    fn unknown(&self, name: &str) -> UnknownModel {
        let named = self.speech.keys().chain(self.chat.keys());
        let known = named.chain(self.aliases.keys()).map(String::as_str);
        UnknownModel { name: name.to_owned(), near: nearest(name, known, 3) }
    }
}
