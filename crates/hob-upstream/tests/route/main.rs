//! Aliases over scripted models: which are tried, in which order, and what a client receives.
//! Time is tokio's and paused, so a minute of silence takes no time.

mod choosing;
mod continuing;
mod fake_model;
mod falling;
mod naming;

use std::sync::Arc;
use std::time::Duration;

use fake_model::{FakeAnswer, FakeModel, locals};
use futures::StreamExt;
use hob_core::chat::{Conversation, FinishReason, Message, Prompt, Reading, Role, Usage};
use hob_core::{Chat, ChatEvent, ChatRequest, ModelError, RegisteredModel, Resolve};
use hob_upstream::{AliasOptions, AttemptTimeouts, Gateway, GatewayOptions, TargetOptions};

/// Local models as an alias sees them, and the alias `fast` over all of them in this order.
pub(crate) struct Stage {
    pub(crate) fakes: Vec<Arc<FakeModel>>,
    pub(crate) gateway: Gateway,
    alias: Arc<RegisteredModel<Chat>>,
}

impl Stage {
    pub(crate) fn new(answers: &[(&str, Vec<FakeAnswer>)]) -> Stage {
        Stage::with(answers, |_| {})
    }

    pub(crate) fn with(
        answers: &[(&str, Vec<FakeAnswer>)],
        change: impl FnOnce(&mut AliasOptions),
    ) -> Stage {
        Stage::under(AttemptTimeouts::default(), answers, change)
    }

    /// The same with these time limits.
    pub(crate) fn under(
        timeouts: AttemptTimeouts,
        answers: &[(&str, Vec<FakeAnswer>)],
        change: impl FnOnce(&mut AliasOptions),
    ) -> Stage {
        let fake =
            |(name, answers): &(&str, Vec<FakeAnswer>)| FakeModel::new(name, answers.clone());
        let fakes: Vec<Arc<FakeModel>> = answers.iter().map(fake).collect();
        let mut options = AliasOptions {
            targets: fakes.iter().map(|fake| TargetOptions::plain(&fake.name)).collect(),
            ..AliasOptions::plain("fast")
        };
        change(&mut options);
        let options =
            GatewayOptions { aliases: vec![options], timeouts, ..GatewayOptions::default() };
        let gateway = Gateway::new(options, &locals(&fakes), None).expect("a gateway");
        let alias = gateway.resolve("fast").expect("an alias");
        Stage { fakes, gateway, alias }
    }

    pub(crate) async fn ask(&self, request: ChatRequest) -> Heard {
        let trace = request.trace.clone();
        let mut heard = Heard::default();
        match self.alias.model.chat(request).await {
            Err(error) => heard.error = Some(error),
            Ok(mut events) => {
                while let Some(event) = events.next().await {
                    match event {
                        Ok(ChatEvent::Text(text)) => heard.text += &text,
                        Ok(ChatEvent::Reasoning(text)) => heard.thought += &text,
                        Ok(ChatEvent::Done(done)) => {
                            heard.finish = Some(done.finish);
                            heard.usage = Some(done.usage);
                        }
                        Ok(_) => {}
                        Err(error) => heard.error = Some(error),
                    }
                }
            }
        }
        let data = trace.snapshot();
        heard.target = data.target;
        heard.asked = data.asked;
        heard.paused = data.paused;
        heard.failed = data.failed.into_iter().map(|failed| (failed.target, failed.kind)).collect();
        heard.broken = data.broken.into_iter().map(|broken| broken.kind).collect();
        heard.repaired = data.repaired;
        heard
    }

    pub(crate) fn asked(&self) -> Vec<usize> {
        self.fakes.iter().map(|fake| fake.asked()).collect()
    }

    pub(crate) fn model(&self) -> &dyn hob_core::ChatModel {
        &*self.alias.model
    }
}

/// The result of a request.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) thought: String,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) error: Option<ModelError>,
    pub(crate) target: Option<String>,
    pub(crate) failed: Vec<(String, &'static str)>,
    pub(crate) asked: u32,
    pub(crate) paused: Duration,
    pub(crate) usage: Option<Usage>,
    pub(crate) broken: Vec<&'static str>,
    pub(crate) repaired: Vec<&'static str>,
}

impl Heard {
    pub(crate) fn kind(&self) -> &'static str {
        self.error.as_ref().map_or("none", ModelError::kind)
    }
}

pub(crate) fn streamed() -> ChatRequest {
    let messages = vec![Message::new(Role::User, "Hello.")];
    let conversation = Conversation { messages, ..Conversation::default() };
    ChatRequest { prompt: Prompt::Chat(conversation), ..ChatRequest::default() }
}

pub(crate) fn whole() -> ChatRequest {
    ChatRequest { reading: Reading::Whole, ..streamed() }
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
