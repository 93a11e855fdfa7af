//! Which of an alias' targets are worth asking, and in which order.
//! Who cannot do what the request needs, or surely does not hold it, is not asked at all.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::PoisonError;
use std::time::Instant;

use hob_core::chat::{OutputFormat, Prompt};
use hob_core::routing::{Fit, Standing, TargetStanding, TargetView, order, tokens_of};
use hob_core::{ChatRequest, Fault, ModelError, ModelState};

use super::{Leg, Route};
use crate::target::Source;

/// Bytes of a conversation by which it is known again.
const BEGINNING_BYTES: usize = 2 << 10;

impl Route {
    /// # Errors
    /// Nobody is left, and why.
    pub(super) fn candidates(&self, request: &ChatRequest) -> Result<Vec<&Leg>, ModelError> {
        let needs = needs(request);
        let able: Vec<&Leg> = self.legs.iter().filter(|leg| leg.can(&needs)).collect();
        if able.is_empty() {
            let (alias, needs) = (self.options.name.clone(), needs.join(", "));
            return Err(ModelError::NoneCapable { alias, needs });
        }
        let fits = |leg: &&&Leg| Fit::of(request, leg.context_tokens()) != Fit::No;
        let fitting: Vec<&Leg> = able.iter().filter(fits).copied().collect();
        if fitting.is_empty() {
            return Err(self.too_long(request, &able));
        }
        Ok(fitting)
    }

    pub(super) fn embedders(&self) -> Result<Vec<&Leg>, ModelError> {
        let able: Vec<&Leg> = self.legs.iter().filter(|leg| leg.can(&["embeddings"])).collect();
        if able.is_empty() {
            let (alias, needs) = (self.options.name.clone(), "embeddings".to_owned());
            return Err(ModelError::NoneCapable { alias, needs });
        }
        Ok(able)
    }

    pub(super) fn ordered<'a>(&self, request: &ChatRequest, legs: Vec<&'a Leg>) -> Vec<&'a Leg> {
        let standings: Vec<Standing> = legs.iter().map(|leg| leg.standing()).collect();
        let places = order(self.options.pick, &standings, beginning(request), fastrand::f64());
        places.into_iter().map(|place| legs[place]).collect()
    }

    /// The numbers, and whoever holds most.
    fn too_long(&self, request: &ChatRequest, legs: &[&Leg]) -> ModelError {
        let largest = legs.iter().max_by_key(|leg| leg.context_tokens());
        let (least, _) = tokens_of(request);
        let needed = least.saturating_add(u64::from(request.tokens_max.unwrap_or(1)));
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        let available = largest.and_then(|leg| leg.context_tokens());
        let name = largest.map_or(self.options.name.as_str(), |leg| leg.target.name.as_str());
        let message = format!(
            "prompt and answer need at least {needed} tokens, and the largest of '{}' holds {}",
            self.options.name,
            available.unwrap_or_default()
        );
        let fault = Fault::TooLong { message, needed: Some(needed), available };
        ModelError::upstream(name, fault)
    }
}

impl Leg {
    fn standing(&self) -> Standing {
        Standing {
            is_warm: self.target.state() == ModelState::Ready,
            load: self.target.load(),
            failed_lately: self.target.failed_lately(),
            weight: self.weight,
        }
    }

    fn can(&self, needs: &[&str]) -> bool {
        let card = self.target.model().card();
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

/// One second try, if the server has any left.
pub(super) fn retry(leg: &Leg) -> bool {
    match &leg.target.source {
        Source::Upstream(chat) => {
            let mut budget = chat.upstream.budget.lock().unwrap_or_else(PoisonError::into_inner);
            budget.retry(Instant::now())
        }
        Source::Local(_) => true,
    }
}

/// As people look at them: the first that may be asked is the one that answers.
pub(super) fn views(legs: &[&Leg]) -> Vec<TargetView> {
    let mut has_answer = false;
    let view = |leg: &&Leg| {
        let mut view = leg.target.view();
        view.context_tokens = leg.context_tokens();
        let may_answer =
            matches!(view.standing, TargetStanding::StandsBy | TargetStanding::OnTrial);
        if may_answer && !has_answer {
            has_answer = true;
            view.standing = TargetStanding::Answers;
        }
        view
    };
    legs.iter().map(view).collect()
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
fn beginning(request: &ChatRequest) -> u64 {
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
