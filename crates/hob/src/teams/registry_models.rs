//! The models of this server, as agents name them.
//! Requests of agents are admitted like those of clients, so that a team cannot crowd them out.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use hob_agents::{AgentModels, AnswerFailure, AnswerStream, ModelPrice, Prices, Team};
use hob_core::{
    AnyModel, ChatRequest, ModelState, RegisteredModel, Registry, Tokens, UnknownModel, task,
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

    /// The model for small jobs: the alias `fast`, else this one.
    ///
    /// # Errors
    /// Neither exists.
    pub(super) fn fast_or(&self, name: &str) -> Result<Arc<RegisteredModel<task::Chat>>, String> {
        self.registry.find::<task::Chat>(FAST).or_else(|_| self.find(name))
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
            let answer = registered.model.chat(request).await?;
            // The permit ends with the answer.
            let answer = answer.map(move |event| {
                let _held = &permit;
                event.map_err(AnswerFailure::from)
            });
            Ok(answer.boxed())
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
