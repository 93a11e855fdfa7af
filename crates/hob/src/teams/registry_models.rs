//! The models of this server, as agents name them.
//! Requests of agents are admitted like those of clients, so that a team cannot crowd them out.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use hob_agents::{AgentModels, AnswerStream};
use hob_core::{AnyModel, ChatRequest, RegisteredModel, Registry, Tokens, task};
use serde_json::{Value, json};

use super::tools::ListModels;

/// The chat models, aliases and upstreams of a registry.
#[derive(Debug)]
pub(super) struct RegistryModels {
    registry: Arc<Registry>,
    /// Answers for names that do not exist, so that teams work without aliases.
    default: Option<String>,
}

impl RegistryModels {
    pub(super) fn new(registry: Arc<Registry>, default: Option<String>) -> RegistryModels {
        RegistryModels { registry, default }
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
    ) -> BoxFuture<'m, Result<AnswerStream, String>> {
        async move {
            let registered = self.find(name)?;
            let permit = registered.admission.admit(Tokens(EXPECTED_TOKENS)).map_err(|busy| {
                format!(
                    "'{name}' is busy; a place will be free in {:.0} s",
                    busy.retry_after.as_secs_f64()
                )
            })?;
            let answer = registered.model.chat(request).await.map_err(|error| error.to_string())?;
            // The permit ends with the answer.
            let answer = answer.map(move |event| {
                let _held = &permit;
                event.map_err(|error| error.to_string())
            });
            Ok(answer.boxed())
        }
        .boxed()
    }
}

/// Tokens of a usual answer of an agent.
const EXPECTED_TOKENS: f64 = 256.0;

impl ListModels for RegistryModels {
    fn list(&self) -> BoxFuture<'_, Result<Value, String>> {
        let entry =
            |model: &dyn AnyModel| json!({ "name": model.name(), "kind": model.kind().name() });
        let models = self.registry.all().map(entry).collect();
        async move { Ok(models) }.boxed()
    }
}
