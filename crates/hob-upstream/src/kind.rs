//! The three kinds of models, and what has to be known of each to ask one of them in turn with others.
//! Everything that is the same for all three is written once, for any of them.

use std::fmt;
use std::sync::Arc;

use hob_core::{
    Admission, ChatModel, ChatTarget, ModelState, SpeechModel, SpeechTarget, TranscriptModel,
    TranscriptTarget,
};

use crate::chat::UpstreamChat;
use crate::served::Served;
use crate::speech::UpstreamSpeech;
use crate::transcript::UpstreamTranscript;

/// What a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Chat,
    Speech,
    Transcript,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Chat => "chat",
            Kind::Speech => "speech",
            Kind::Transcript => "transcription",
        }
    }
}

/// A model of our own, as aliases reach it.
pub struct Local<M: ?Sized = dyn ChatModel> {
    pub name: String,
    pub model: Arc<M>,
    pub admission: Admission,
}

/// The models of our own that aliases may lead to.
#[derive(Clone, Debug, Default)]
pub struct Locals {
    pub chat: Vec<Local>,
    pub speech: Vec<Local<dyn SpeechModel>>,
    pub transcript: Vec<Local<dyn TranscriptModel>>,
}

impl Locals {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let chat = self.chat.iter().map(|local| local.name.as_str());
        let speech = self.speech.iter().map(|local| local.name.as_str());
        chat.chain(speech).chain(self.transcript.iter().map(|local| local.name.as_str()))
    }
}

impl<M: ?Sized> Clone for Local<M> {
    fn clone(&self) -> Local<M> {
        let (name, admission) = (self.name.clone(), self.admission.clone());
        Local { name, model: Arc::clone(&self.model), admission }
    }
}

impl<M: ?Sized> fmt::Debug for Local<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("name", &self.name).finish_non_exhaustive()
    }
}

impl From<Vec<Local>> for Locals {
    fn from(chat: Vec<Local>) -> Locals {
        Locals { chat, ..Locals::default() }
    }
}

impl From<&ChatTarget> for Local {
    fn from(target: &ChatTarget) -> Local {
        let (name, admission) = (target.name.clone(), target.admission.clone());
        Local { name, model: Arc::clone(&target.model), admission }
    }
}

impl From<&SpeechTarget> for Local<dyn SpeechModel> {
    fn from(target: &SpeechTarget) -> Local<dyn SpeechModel> {
        let (name, admission) = (target.name.clone(), target.admission.clone());
        Local { name, model: Arc::clone(&target.model), admission }
    }
}

impl From<&TranscriptTarget> for Local<dyn TranscriptModel> {
    fn from(target: &TranscriptTarget) -> Local<dyn TranscriptModel> {
        let (name, admission) = (target.name.clone(), target.admission.clone());
        Local { name, model: Arc::clone(&target.model), admission }
    }
}

/// A model of our own, of whichever kind.
#[derive(Clone, Debug)]
pub(crate) enum AnyLocal {
    Chat(Local),
    Speech(Local<dyn SpeechModel>),
    Transcript(Local<dyn TranscriptModel>),
}

impl AnyLocal {
    pub(crate) fn name(&self) -> &str {
        match self {
            AnyLocal::Chat(local) => &local.name,
            AnyLocal::Speech(local) => &local.name,
            AnyLocal::Transcript(local) => &local.name,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            AnyLocal::Chat(_) => Kind::Chat,
            AnyLocal::Speech(_) => Kind::Speech,
            AnyLocal::Transcript(_) => Kind::Transcript,
        }
    }

    pub(crate) fn admission(&self) -> &Admission {
        match self {
            AnyLocal::Chat(local) => &local.admission,
            AnyLocal::Speech(local) => &local.admission,
            AnyLocal::Transcript(local) => &local.admission,
        }
    }

    pub(crate) fn state(&self) -> ModelState {
        match self {
            AnyLocal::Chat(local) => local.model.state(),
            AnyLocal::Speech(local) => local.model.state(),
            AnyLocal::Transcript(local) => local.model.state(),
        }
    }

    /// Only what chats has one.
    pub(crate) fn context_tokens(&self) -> Option<u32> {
        match self {
            AnyLocal::Chat(local) => Some(local.model.card().context_tokens),
            AnyLocal::Speech(_) | AnyLocal::Transcript(_) => None,
        }
    }

    pub(crate) fn is_same(&self, other: &AnyLocal) -> bool {
        match (self, other) {
            (AnyLocal::Chat(one), AnyLocal::Chat(other)) => Arc::ptr_eq(&one.model, &other.model),
            (AnyLocal::Speech(one), AnyLocal::Speech(other)) => {
                Arc::ptr_eq(&one.model, &other.model)
            }
            (AnyLocal::Transcript(one), AnyLocal::Transcript(other)) => {
                Arc::ptr_eq(&one.model, &other.model)
            }
            _ => false,
        }
    }
}

/// One of the three traits, as something that targets can be asked as.
pub(crate) trait OfKind: Send + Sync + 'static {
    const KIND: Kind;

    fn of_upstream(served: &Arc<Served>) -> Arc<Self>;

    /// None: it is of another kind.
    fn of_local(local: &AnyLocal) -> Option<Arc<Self>>;
}

impl OfKind for dyn ChatModel {
    const KIND: Kind = Kind::Chat;

    fn of_upstream(served: &Arc<Served>) -> Arc<dyn ChatModel> {
        Arc::new(UpstreamChat::new(Arc::clone(served)))
    }

    fn of_local(local: &AnyLocal) -> Option<Arc<dyn ChatModel>> {
        let AnyLocal::Chat(local) = local else { return None };
        Some(Arc::clone(&local.model))
    }
}

impl OfKind for dyn SpeechModel {
    const KIND: Kind = Kind::Speech;

    fn of_upstream(served: &Arc<Served>) -> Arc<dyn SpeechModel> {
        Arc::new(UpstreamSpeech(Arc::clone(served)))
    }

    fn of_local(local: &AnyLocal) -> Option<Arc<dyn SpeechModel>> {
        let AnyLocal::Speech(local) = local else { return None };
        Some(Arc::clone(&local.model))
    }
}

impl OfKind for dyn TranscriptModel {
    const KIND: Kind = Kind::Transcript;

    fn of_upstream(served: &Arc<Served>) -> Arc<dyn TranscriptModel> {
        Arc::new(UpstreamTranscript(Arc::clone(served)))
    }

    fn of_local(local: &AnyLocal) -> Option<Arc<dyn TranscriptModel>> {
        let AnyLocal::Transcript(local) = local else { return None };
        Some(Arc::clone(&local.model))
    }
}
