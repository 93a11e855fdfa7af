//! The registry: which name leads to which model, and whether there is room.
//! Filled once at the start; which models there are is decided by whoever fills it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::routing::UpstreamResolver;
use crate::{Admission, ChatModel, ModelLifecycle, SpeechModel, TranscriptModel, nearest};

/// Every model that this hob answers for, by name and by alias.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    speech: BTreeMap<String, Arc<SpeechTarget>>,
    chat: BTreeMap<String, Arc<ChatTarget>>,
    transcript: BTreeMap<String, Arc<TranscriptTarget>>,
    aliases: BTreeMap<String, String>,
    /// Further names of models, which no list repeats.
    also_called: BTreeMap<String, String>,
    /// Answers to every chat model's name that nobody else has.
    any_chat: Option<Arc<ChatTarget>>,
    /// Names that lead to other servers.
    elsewhere: Option<Arc<dyn UpstreamResolver>>,
}

/// A speech model and the room it has.
pub struct SpeechTarget {
    pub name: String,
    pub model: Arc<dyn SpeechModel>,
    /// None for models that live elsewhere.
    pub lifecycle: Option<Arc<dyn ModelLifecycle>>,
    pub admission: Admission,
}

/// A chat model and the room it has; its work is counted in tokens.
pub struct ChatTarget {
    pub name: String,
    pub model: Arc<dyn ChatModel>,
    /// None for models that live elsewhere.
    pub lifecycle: Option<Arc<dyn ModelLifecycle>>,
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

/// A transcription model and the room it has; its work is counted in seconds of sound.
pub struct TranscriptTarget {
    pub name: String,
    pub model: Arc<dyn TranscriptModel>,
    /// None for models that live elsewhere.
    pub lifecycle: Option<Arc<dyn ModelLifecycle>>,
    pub admission: Admission,
}

impl fmt::Debug for TranscriptTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TranscriptTarget")
            .field("name", &self.name)
            .field("state", &self.model.state())
            .finish_non_exhaustive()
    }
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

impl Registry {
    pub fn add_speech(&mut self, target: SpeechTarget) {
        self.share_speech(Arc::new(target));
    }

    /// The same of one that another registry has too.
    pub fn share_speech(&mut self, target: Arc<SpeechTarget>) {
        self.speech.insert(target.name.clone(), target);
    }

    pub fn add_chat(&mut self, target: ChatTarget) {
        self.share_chat(Arc::new(target));
    }

    /// The same of one that another registry has too.
    pub fn share_chat(&mut self, target: Arc<ChatTarget>) {
        self.chat.insert(target.name.clone(), target);
    }

    pub fn add_transcript(&mut self, target: TranscriptTarget) {
        self.transcript.insert(target.name.clone(), Arc::new(target));
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
    pub fn lead_elsewhere(&mut self, elsewhere: Arc<dyn UpstreamResolver>) {
        self.elsewhere = Some(elsewhere);
    }

    /// Other servers, if there are any.
    pub fn elsewhere(&self) -> Option<&Arc<dyn UpstreamResolver>> {
        self.elsewhere.as_ref()
    }

    /// Lets `alias` lead where `name` leads.
    pub fn add_alias(&mut self, alias: impl Into<String>, name: impl Into<String>) {
        self.aliases.insert(alias.into(), name.into());
    }

    /// Lets `other` lead to the chat model `name`, if nothing else is called so. Lists do not show it.
    pub fn also_called(&mut self, other: impl Into<String>, name: impl Into<String>) {
        self.also_called.insert(other.into(), name.into());
    }

    /// # Errors
    /// [`UnknownModel`] with the nearest names.
    pub fn speech(&self, name: &str) -> Result<Arc<SpeechTarget>, UnknownModel> {
        let meant = self.meant(name);
        let elsewhere = || self.elsewhere.as_ref()?.find_speech(meant);
        let known = self.speech.get(meant).cloned().or_else(elsewhere);
        known.ok_or_else(|| self.unknown(name))
    }

    /// # Errors
    /// [`UnknownModel`] with the nearest names.
    pub fn transcript(&self, name: &str) -> Result<Arc<TranscriptTarget>, UnknownModel> {
        let meant = self.meant(name);
        let elsewhere = || self.elsewhere.as_ref()?.find_transcript(meant);
        let known = self.transcript.get(meant).cloned().or_else(elsewhere);
        known.ok_or_else(|| self.unknown(name))
    }

    /// # Errors
    /// [`UnknownModel`] with the nearest names.
    pub fn chat(&self, name: &str) -> Result<Arc<ChatTarget>, UnknownModel> {
        let meant = self.meant(name);
        let elsewhere = || self.elsewhere.as_ref()?.find_chat(meant);
        let also = || self.chat.get(self.also_called.get(meant)?).cloned();
        let known = self.chat.get(meant).cloned().or_else(elsewhere).or_else(also);
        known.or_else(|| self.any_chat.clone()).ok_or_else(|| self.unknown(name))
    }

    /// Whether a model here has this name; those elsewhere are not asked.
    pub fn has(&self, name: &str) -> bool {
        let has_voice = self.speech.contains_key(name) || self.transcript.contains_key(name);
        has_voice || self.chat.contains_key(name)
    }

    /// The chat models, by name; aliases are not repeated.
    pub fn chat_targets(&self) -> impl Iterator<Item = &Arc<ChatTarget>> {
        self.chat.values()
    }

    /// The speech models, by name; aliases are not repeated.
    pub fn speech_targets(&self) -> impl Iterator<Item = &Arc<SpeechTarget>> {
        self.speech.values()
    }

    /// The transcription models, by name; aliases are not repeated.
    pub fn transcript_targets(&self) -> impl Iterator<Item = &Arc<TranscriptTarget>> {
        self.transcript.values()
    }

    /// Aliases and the names they lead to, sorted.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, name)| (alias.as_str(), name.as_str()))
    }

    fn meant<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    fn unknown(&self, name: &str) -> UnknownModel {
        let named = self.speech.keys().chain(self.chat.keys()).chain(self.transcript.keys());
        let known = named.chain(self.aliases.keys()).map(String::as_str);
        UnknownModel { name: name.to_owned(), near: nearest(name, known, 3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{ListedModel, RouteView, UpstreamView};
    use crate::scripted::{ScriptedChat, ScriptedSpeech, ScriptedTranscript};

    fn speaker(name: &str) -> SpeechTarget {
        let model = Arc::new(ScriptedSpeech::new([]));
        let admission = Admission::new(1, 0.0);
        SpeechTarget { name: name.to_owned(), model, lifecycle: None, admission }
    }

    fn listener(name: &str) -> TranscriptTarget {
        let model = Arc::new(ScriptedTranscript::new([]));
        let admission = Admission::new(1, 0.0);
        TranscriptTarget { name: name.to_owned(), model, lifecycle: None, admission }
    }

    fn chatter(name: &str) -> ChatTarget {
        let model = Arc::new(ScriptedChat::new([]));
        let admission = Admission::new(1, 0.0);
        let clocks = Clocked::ByAsker;
        ChatTarget { name: name.to_owned(), model, lifecycle: None, admission, clocks }
    }

    /// Has every name of the server `gpu`, for everything.
    #[derive(Debug)]
    struct Gpu;

    impl UpstreamResolver for Gpu {
        fn find_chat(&self, name: &str) -> Option<Arc<ChatTarget>> {
            name.starts_with("gpu/").then(|| Arc::new(chatter(name)))
        }

        fn find_speech(&self, name: &str) -> Option<Arc<SpeechTarget>> {
            name.starts_with("gpu/").then(|| Arc::new(speaker(name)))
        }

        fn find_transcript(&self, name: &str) -> Option<Arc<TranscriptTarget>> {
            name.starts_with("gpu/").then(|| Arc::new(listener(name)))
        }

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
    fn a_name_leads_here_before_it_leads_elsewhere() {
        let mut registry = Registry::default();
        registry.add_speech(speaker("kokoro"));
        registry.add_transcript(listener("whisper"));
        registry.add_chat(chatter("smol"));
        registry.add_alias("ears", "whisper");
        registry.add_alias("far", "gpu/any");
        assert!(registry.speech("gpu/tts").is_err(), "nobody is connected");
        registry.lead_elsewhere(Arc::new(Gpu));
        for (asked, found) in [("kokoro", "kokoro"), ("gpu/tts", "gpu/tts"), ("far", "gpu/any")] {
            assert_eq!(registry.speech(asked).expect(asked).name, found);
        }
        for (asked, found) in [("whisper", "whisper"), ("ears", "whisper"), ("gpu/w", "gpu/w")] {
            assert_eq!(registry.transcript(asked).expect(asked).name, found);
        }
        registry.also_called("smol:135m", "smol");
        registry.also_called("gpu/q", "smol");
        let rows = [("smol", "smol"), ("gpu/q", "gpu/q"), ("smol:135m", "smol")];
        for (asked, found) in rows {
            assert_eq!(registry.chat(asked).expect(asked).name, found);
        }
        let unknown = registry.transcript("wisper").expect_err("nobody");
        assert_eq!(unknown.near, ["whisper"]);
    }
}
