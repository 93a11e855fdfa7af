//! Which of an alias' targets are worth asking to chat.
//! Who cannot do what the request needs, or surely does not hold it, is not asked at all.

use std::hash::{DefaultHasher, Hash, Hasher};

use hob_core::chat::{OutputFormat, Prompt};
use hob_core::routing::{Fit, tokens_of};
use hob_core::{ChatModel, ChatRequest, Fault, ModelError};

use super::{Leg, Route};

type ChatLeg = Leg<dyn ChatModel>;

/// Bytes of a conversation by which it is known again.
const BEGINNING_BYTES: usize = 2 << 10;

impl Route {
    /// # Errors
    /// Nobody is left, and why.
    pub(super) fn candidates(&self, request: &ChatRequest) -> Result<Vec<&ChatLeg>, ModelError> {
        let needs = needs(request);
        let able: Vec<&ChatLeg> = self.alias.legs.iter().filter(|leg| leg.can(&needs)).collect();
        if able.is_empty() {
            let (alias, needs) = (self.alias.options.name.clone(), needs.join(", "));
            return Err(ModelError::NoneCapable { alias, needs });
        }
        let fits = |leg: &&&ChatLeg| Fit::of(request, leg.context_tokens()) != Fit::No;
        let fitting: Vec<&ChatLeg> = able.iter().filter(fits).copied().collect();
        if fitting.is_empty() {
            return Err(self.too_long(request, &able));
        }
        Ok(fitting)
    }

    pub(super) fn embedders(&self) -> Result<Vec<&ChatLeg>, ModelError> {
        let able: Vec<&ChatLeg> =
            self.alias.legs.iter().filter(|leg| leg.can(&["embeddings"])).collect();
        if able.is_empty() {
            let (alias, needs) = (self.alias.options.name.clone(), "embeddings".to_owned());
            return Err(ModelError::NoneCapable { alias, needs });
        }
        Ok(able)
    }

    /// The numbers, and whoever holds most.
    fn too_long(&self, request: &ChatRequest, legs: &[&ChatLeg]) -> ModelError {
        let largest = legs.iter().max_by_key(|leg| leg.context_tokens());
        let (least, _) = tokens_of(request);
        let needed = least.saturating_add(u64::from(request.tokens_max.unwrap_or(1)));
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        let available = largest.and_then(|leg| leg.context_tokens());
        let name = largest.map_or(self.alias.options.name.as_str(), |leg| leg.target.name.as_str());
        let message = format!(
            "the maximum context length is {} tokens in the largest target of '{}', and prompt and answer need at least {needed} tokens: ask for less",
            available.unwrap_or_default(),
            self.alias.options.name
        );
        let fault = Fault::TooLong { message, needed: Some(needed), available };
        ModelError::upstream(name, fault)
    }
}

impl ChatLeg {
    fn can(&self, needs: &[&str]) -> bool {
        let card = self.model.card();
        let said = self.target.said().unwrap_or_default();
        needs.iter().all(|need| {
            let built = match *need {
                "tools" => card.calls_tools && said.calls_tools != Some(false),
                "images" => card.sees && said.sees != Some(false),
                _ => true,
            };
            built && self.capabilities.as_ref().is_none_or(|can| can.iter().any(|c| c == need))
        })
    }
}

fn needs(request: &ChatRequest) -> Vec<&'static str> {
    let mut needs = Vec::new();
    if let Prompt::Chat(conversation) = &request.prompt {
        if !conversation.tools.is_empty() {
            needs.push("tools");
        }
        if conversation.messages.iter().any(|message| !message.images.is_empty()) {
            needs.push("images");
        }
    }
    match request.output {
        OutputFormat::Text => {}
        OutputFormat::JsonObject
        | OutputFormat::JsonSchema(_)
        | OutputFormat::Regex(_)
        | OutputFormat::Lark(_) => needs.push("json_schema"),
    }
    needs
}

/// Conversations with the same beginning have the same one.
pub(super) fn beginning(request: &ChatRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut left = BEGINNING_BYTES;
    let mut take = |text: &str| {
        let bytes = &text.as_bytes()[..text.len().min(left)];
        left -= bytes.len();
        bytes.hash(&mut hasher);
    };
    match &request.prompt {
        Prompt::Chat(conversation) => {
            conversation.messages.iter().for_each(|message| take(&message.text));
        }
        Prompt::Text(text) => take(text),
        Prompt::Infill { prefix, .. } => take(prefix),
        Prompt::Tokens(tokens) => {
            tokens.iter().take(BEGINNING_BYTES / 4).for_each(|t| take(&t.to_string()))
        }
    }
    hasher.finish()
}
