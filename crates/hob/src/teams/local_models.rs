//! `list_local_models` and `vram_status`: the models that this hob serves, and where they are in memory.
//! A team that looks after the machine decides with these which model to load or to leave out.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_agents::builtin::spec_of;
use hob_agents::{AgentTool, ToolClass, ToolOutput, ToolSpec};
use hob_core::machine::{Gpu, GpuMemory};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The state of a model that is in memory.
const LOADED: &str = "warm";

/// A model or alias of the running hob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ModelInMemory {
    pub(crate) name: String,
    pub(crate) kind: String,
    /// `warm`, `cold`, `loading` or `down`.
    pub(crate) state: String,
    /// Memory of the model now, or the estimate of what it would take. `None`: another server holds it, or it is an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// The part of `bytes` on graphics cards; the rest is main memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vram_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<u32>,
}

/// Lists the models that a team can use.
pub(crate) trait ListModels: Send + Sync {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ModelInMemory>, String>>;
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct NoArguments {}

/// The tool `list_local_models` or `vram_status`.
pub(super) struct ModelTool {
    spec: ToolSpec,
    models: Arc<dyn ListModels>,
    subject: Subject,
}

/// What a call reports.
#[derive(Clone, Copy)]
enum Subject {
    /// Each model and alias.
    Models,
    /// Each graphics card, and the models in it.
    Cards,
}

impl ModelTool {
    pub(super) fn list_local_models(models: Arc<dyn ListModels>) -> ModelTool {
        let description = "List the models and aliases of this server: whether they are loaded, their context, their size in memory, and the part of it on graphics cards.";
        let spec = spec_of::<NoArguments>("list_local_models", description, ToolClass::Read);
        ModelTool { spec, models, subject: Subject::Models }
    }

    pub(super) fn vram_status(models: Arc<dyn ListModels>) -> ModelTool {
        let description = "Show the memory of each graphics card of this machine in bytes, and which loaded models use how much of it.";
        let spec = spec_of::<NoArguments>("vram_status", description, ToolClass::Read);
        ModelTool { spec, models, subject: Subject::Cards }
    }

    async fn models(&self) -> ToolOutput {
        match self.models.list().await {
            Ok(models) => ToolOutput::ok(json!(models).to_string()),
            Err(reason) => ToolOutput::error(reason),
        }
    }

    async fn cards(&self) -> ToolOutput {
        // The programs of the drivers take a moment.
        let cards = tokio::task::spawn_blocking(|| hob_machine::probe().machine.gpus).await;
        let Ok(cards) = cards else {
            return ToolOutput::error("the graphics cards could not be asked");
        };
        if cards.is_empty() {
            return ToolOutput::ok("no graphics card of this machine reports its memory");
        }
        // The cards alone are an answer, too.
        let models = self.models.list().await.unwrap_or_default();
        ToolOutput::ok(report(&cards, &models).to_string())
    }
}

impl AgentTool for ModelTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, _arguments: Value) -> BoxFuture<'_, ToolOutput> {
        match self.subject {
            Subject::Models => self.models().boxed(),
            Subject::Cards => self.cards().boxed(),
        }
    }
}

fn report(cards: &[Gpu], models: &[ModelInMemory]) -> Value {
    let card = |card: &Gpu| match card.memory {
        GpuMemory::Own { total_bytes, free_bytes } => json!({
            "name": card.name, "total_bytes": total_bytes, "free_bytes": free_bytes,
            "used_bytes": total_bytes.saturating_sub(free_bytes),
        }),
        GpuMemory::Unified { limit_bytes } => json!({
            "name": card.name, "total_bytes": limit_bytes, "memory": "shared with the processor",
        }),
    };
    let model = |model: &ModelInMemory| {
        let bytes = model.vram_bytes.filter(|bytes| *bytes > 0 && model.state == LOADED)?;
        Some(json!({ "name": model.name, "vram_bytes": bytes }))
    };
    let cards: Vec<Value> = cards.iter().map(card).collect();
    let models: Vec<Value> = models.iter().filter_map(model).collect();
    json!({ "cards": cards, "models": models })
}

#[cfg(test)]
mod tests {
    use hob_core::machine::{GpuApi, Vendor};

    use super::*;

    fn card(name: &str, memory: GpuMemory) -> Gpu {
        Gpu::new(name, Vendor::Nvidia, GpuApi::Cuda, memory)
    }

    fn model(name: &str, state: &str, vram_bytes: Option<u64>) -> ModelInMemory {
        let (name, state) = (name.to_owned(), state.to_owned());
        let kind = "chat".to_owned();
        ModelInMemory { name, kind, state, bytes: Some(9), vram_bytes, context_tokens: None }
    }

    #[test]
    fn each_card_has_its_memory_and_each_loaded_model_its_share() {
        let cards = [
            card("RTX 4070", GpuMemory::Own { total_bytes: 8, free_bytes: 3 }),
            card("Vega 8", GpuMemory::Unified { limit_bytes: 32 }),
        ];
        let models = [
            model("a", "warm", Some(5)),
            model("b", "cold", Some(4)),
            model("c", "warm", Some(0)),
            model("d", "warm", None),
        ];
        let expected = json!({
            "cards": [
                { "name": "RTX 4070", "total_bytes": 8, "used_bytes": 5, "free_bytes": 3 },
                { "name": "Vega 8", "total_bytes": 32, "memory": "shared with the processor" },
            ],
            "models": [{ "name": "a", "vram_bytes": 5 }],
        });
        assert_eq!(report(&cards, &models), expected);
    }

    #[test]
    fn what_is_not_known_of_a_model_is_left_out() {
        let alias = ModelInMemory { bytes: None, ..model("fast", "warm", None) };
        assert_eq!(json!(alias), json!({ "name": "fast", "kind": "chat", "state": "warm" }));
        let cold = json!(model("b", "cold", Some(4)));
        assert_eq!((&cold["bytes"], &cold["vram_bytes"]), (&json!(9), &json!(4)));
    }
}
