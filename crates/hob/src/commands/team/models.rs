//! The models of a running hob, as agents name them.
//! A run is a client, so that aliases, fallbacks, keys and the request log work as for any other.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use hob_agents::{AgentModels, AnswerFailure, AnswerStream, ModelPrice, Prices};
use hob_core::{ChatRequest, Trace};

use crate::config::ConfigFile;
use crate::failure::{CliResult, Failure};
use crate::remote::{Remote, RemoteModel};
use crate::teams::OtherMachines;
use crate::teams::local_models::{ListModels, ModelInMemory};

/// The silence after which a model may be loading.
const LOOK_AFTER: Duration = Duration::from_millis(500);

/// The chat models and aliases of a running hob. A name that it does not know means its default chat model, so that the
/// teams that hob brings work without aliases.
#[derive(Debug)]
pub(super) struct RemoteModels {
    remote: Remote,
    names: Vec<String>,
    /// Answers for other names. It is no team.
    default: Option<String>,
    prices: Prices,
    others: OtherMachines,
}

impl RemoteModels {
    /// # Errors
    /// No hob runs there, or it has no chat model.
    pub(super) async fn of(remote: Remote, config: &ConfigFile) -> CliResult<RemoteModels> {
        let models = remote.models().await?;
        let chats = models.iter().filter(|model| model.hob.kind == "chat");
        let default = chats.clone().find(|model| !model.is_team()).map(|model| model.id.clone());
        let names = chats.map(|model| model.id.clone()).collect();
        let (prices, others) = (Prices(config.price.clone()), OtherMachines::of(config));
        Ok(RemoteModels { remote, names, default, prices, others })
    }

    /// The names that agents use and the server does not have.
    pub(super) fn unknown<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        // A model of an upstream is not listed.
        names
            .iter()
            .copied()
            .filter(|name| !name.contains('/') && !self.names.iter().any(|known| known == name))
            .collect()
    }

    pub(super) fn default_name(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Asks the server once whether a model that is silent is loading, and notes it. Most answers begin earlier, and cost no
    /// such request.
    async fn note_loading<T>(&self, name: &str, trace: &Trace) -> T {
        tokio::time::sleep(LOOK_AFTER).await;
        let models = self.remote.models().await.unwrap_or_default();
        let is_cold = |model: &RemoteModel| matches!(&*model.hob.state, "cold" | "loading");
        if models.iter().any(|model| model.id == name && is_cold(model)) {
            trace.note(|data| data.is_warm = Some(false));
        }
        std::future::pending().await
    }
}

impl AgentModels for RemoteModels {
    fn chat<'m>(
        &'m self,
        name: &'m str,
        request: ChatRequest,
    ) -> BoxFuture<'m, Result<AnswerStream, AnswerFailure>> {
        async move {
            let is_unknown = !self.unknown(&[name]).is_empty();
            let model = if is_unknown { self.default_name().unwrap_or(name) } else { name };
            request.trace.asking(model, true);
            let remote = self.remote.asked_by(request.trace.snapshot().agent);
            let answer = tokio::select! {
                answer = remote.chat(model, &request) => answer,
                never = self.note_loading(model, &request.trace) => never,
            };
            let answer = answer.map_err(no_answer)?;
            Ok(answer.map(|event| event.map_err(no_answer)).boxed())
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

fn no_answer(failure: Failure) -> AnswerFailure {
    AnswerFailure { sentence: failure.sentence, is_permanent: failure.is_permanent }
}

impl ListModels for RemoteModels {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ModelInMemory>, String>> {
        async move {
            let models = self.remote.models().await.map_err(|failure| failure.sentence)?;
            // Another key may see the names alone.
            let residents = self.remote.residents().await.unwrap_or_default();
            let entry = |model: RemoteModel| {
                let held = residents.iter().find(|resident| resident.name == model.id);
                ModelInMemory {
                    name: model.id,
                    kind: model.hob.kind,
                    state: model.hob.state,
                    bytes: held.and_then(|held| held.resident_bytes.or(held.predicted_bytes)),
                    vram_bytes: held.map(|held| held.vram_bytes),
                    context_tokens: held.and_then(|held| held.context_length),
                }
            };
            Ok(models.into_iter().map(entry).collect())
        }
        .boxed()
    }
}
