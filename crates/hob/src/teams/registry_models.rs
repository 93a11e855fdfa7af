//! The models of this server, as agents name them.
//! Requests of agents are admitted like those of clients, so that a team cannot crowd them out.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use hob_agents::{AgentModels, AnswerFailure, AnswerStream, ModelPrice, Prices, Team};
use hob_core::{
    AnyModel, Busy, ChatRequest, ChatStream, ModelError, ModelState, Permit, RegisteredModel,
    Registry, Tokens, UnknownModel, task,
};
use tokio::time::sleep;

use super::OtherMachines;
use super::local_models::{ListModels, ModelInMemory};

/// The alias for small jobs.
const FAST: &str = "fast";

/// The models of a team that the registry does not have, a sentence each. The first chat model answers for them.
pub(crate) fn unknown_models(team: &Team, registry: &Registry) -> Vec<String> {
    let unknown = |model| registry.find::<task::Chat>(model).err();
    let sentence = |UnknownModel { name, near }| {
        let near = match &near[..] {
            [] => String::new(),
            near => format!(" (did you mean {}?)", near.join(", ")),
        };
        format!("{}: there is no chat model or alias '{name}'{near}", team.id)
    };
    team.models().into_iter().filter_map(unknown).map(sentence).collect()
}

/// The chat models, aliases and upstreams of a registry.
#[derive(Debug, Default)]
pub(crate) struct RegistryModels {
    registry: Arc<Registry>,
    /// Answers for names that do not exist, so that teams work without aliases.
    default: Option<String>,
    prices: Prices,
    others: OtherMachines,
}

impl RegistryModels {
    pub(super) fn new(
        registry: Arc<Registry>,
        default: Option<String>,
        prices: Prices,
        others: OtherMachines,
    ) -> RegistryModels {
        RegistryModels { registry, default, prices, others }
    }

    /// Does a small job, such as a title for a chat, with the alias `fast`, else with this model.
    ///
    /// # Errors
    /// Neither exists, or the model is busy or fails.
    pub(super) async fn small_job(
        &self,
        name: &str,
        request: ChatRequest,
    ) -> Result<ChatStream, ModelError> {
        let found = self.registry.find::<task::Chat>(FAST).or_else(|_| self.find(name));
        let missing = |reason| ModelError::InvalidField { field: "messages", reason };
        let registered = found.map_err(missing)?;
        let busy = |Busy { retry_after }| ModelError::Busy { retry_after };
        let permit = registered.admission.admit(Tokens(EXPECTED_TOKENS)).map_err(busy)?;
        Ok(with_permit(registered.model.chat(request).await?, permit))
    }

    fn find(&self, name: &str) -> Result<Arc<RegisteredModel<task::Chat>>, String> {
        let found = self.registry.find::<task::Chat>(name);
        let default = || self.registry.find::<task::Chat>(self.default.as_deref()?).ok();
        found.ok().or_else(default).ok_or_else(|| format!("there is no chat model '{name}'"))
    }
}

impl AgentModels for RegistryModels {
    fn chat<'m>(
        &'m self,
        name: &'m str,
        request: ChatRequest,
    ) -> BoxFuture<'m, Result<AnswerStream, AnswerFailure>> {
        async move {
            let unknown = |sentence| AnswerFailure { sentence, is_permanent: true };
            let registered = self.find(name).map_err(unknown)?;
            // The driver limits the wait.
            let permit = loop {
                match registered.admission.admit(Tokens(EXPECTED_TOKENS)) {
                    Ok(permit) => break permit,
                    Err(busy) => sleep(busy.retry_after.clamp(RETRY_MIN, RETRY_MAX)).await,
                }
            };
            // An alias names its targets itself.
            let is_warm = registered.model.state() == ModelState::Ready;
            request.trace.asking(&registered.name, is_warm);
            let answer = with_permit(registered.model.chat(request).await?, permit);
            Ok(answer.map(|event| event.map_err(AnswerFailure::from)).boxed())
        }
        .boxed()
    }

    fn is_remote(&self, name: &str) -> bool {
        self.others.answers(name)
    }

    fn price(&self, target: &str) -> Option<ModelPrice> {
        self.prices.of(target)
    }
}

/// An answer whose permit ends with it.
fn with_permit(answer: ChatStream, permit: Permit<Tokens>) -> ChatStream {
    let held = answer.inspect(move |_| {
        let _held = &permit;
    });
    held.boxed()
}

/// Between two tries to ask a busy model: a place is often free earlier or later than expected.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// Tokens of a usual answer of an agent.
const EXPECTED_TOKENS: f64 = 256.0;

impl ListModels for RegistryModels {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ModelInMemory>, String>> {
        let entry = |model: &dyn AnyModel| {
            let memory = model.lifecycle().map(|lifecycle| lifecycle.memory_use());
            ModelInMemory {
                name: model.name().to_owned(),
                kind: model.kind().name().to_owned(),
                state: hob_wire::state_name(&model.state()).to_owned(),
                bytes: memory.as_ref().and_then(|m| m.resident_bytes.or(m.predicted_bytes)),
                vram_bytes: memory.as_ref().map(|memory| memory.vram_bytes),
                context_tokens: model.context_tokens(),
            }
        };
        let models = self.registry.all().map(entry).collect();
        async move { Ok(models) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use hob_agents::ScriptModel;
    use hob_core::{Admission, ChatModel};

    use super::*;

    #[tokio::test]
    async fn a_small_job_takes_a_place_of_its_model() {
        let script = r#"{"reply": {"content": "A title."}, "repeat": true}"#;
        let script = ScriptModel::parse("lead", script).expect("a script");
        let model: Arc<dyn ChatModel> = Arc::new(script);
        let mut registry = Registry::default();
        registry.add(RegisteredModel::<task::Chat>::new("lead", model, Admission::new(1, 0.0)));
        let models = RegistryModels { registry: Arc::new(registry), ..RegistryModels::default() };
        let job = || models.small_job("lead", ChatRequest::default());
        let first = job().await.expect("a place");
        let second = job().await.err();
        assert!(matches!(second, Some(ModelError::Busy { .. })), "{second:?}");
        drop(first);
        assert!(job().await.is_ok());
    }
}
