//! Chooses who answers: a model in a worker of this command, or a hob that is already running.
//! A running hob comes first, because its model is already loaded.

use std::fmt;
use std::sync::Arc;

use clap::Args;
use futures::StreamExt;
use hob_core::{ChatModel, ChatRequest, ModelLifecycle};
use hob_models::catalog::names::canonical;

use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::model_store::ModelStore;
use crate::remote::{ChatAnswer, Remote, RemoteModel};
use crate::settings::ModelChoice;
use crate::wire_up::Chat;

/// What the user asked for.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceOptions {
    /// A name that `hob models` lists, or a GGUF file
    #[arg(short, long)]
    pub(crate) model: Option<String>,
    /// Use this server [default: the hob that runs on this machine; if none runs, this command loads the model]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

pub(crate) enum Source {
    Here { name: String, model: Arc<dyn ChatModel>, lifecycle: Arc<dyn ModelLifecycle> },
    There { remote: Remote, model: String },
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Here { name, .. } => write!(f, "Here({name})"),
            Source::There { remote, model } => write!(f, "There({model}, {remote:?})"),
        }
    }
}

impl Source {
    /// Finds a source. A model of this command is loaded when this returns.
    ///
    /// # Errors
    /// The named server does not answer, or no such model is installed or can be loaded.
    pub(crate) async fn find(options: &SourceOptions, app: &App<'_>) -> CliResult<Source> {
        if let Some(address) = &options.server {
            let remote = Remote::at(address, app.settings.server.api_key.read()?);
            return there(remote, options.model.as_deref()).await;
        }
        match running(options, app).await {
            Some(source) => Ok(source),
            None => here(app).await,
        }
    }

    /// Switches to another model. If that fails, this one stays in use.
    pub(crate) async fn switch(&mut self, model: &str, app: &App<'_>) -> CliResult<()> {
        let next = match self {
            Source::There { remote, .. } => there(remote.clone(), Some(model)).await?,
            Source::Here { .. } => here(&app.with_chat_model(model)).await?,
        };
        std::mem::replace(self, next).leave().await;
        Ok(())
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Source::Here { name, .. } => name,
            Source::There { model, .. } => model,
        }
    }

    /// The model's name, and the server if it is not this command.
    pub(crate) fn place(&self) -> String {
        match self {
            Source::Here { name, .. } => name.clone(),
            Source::There { remote, model } => format!("{model} at {}", remote.base()),
        }
    }

    pub(crate) async fn ask(&self, request: ChatRequest) -> CliResult<ChatAnswer> {
        match self {
            Source::Here { model, .. } => {
                let answer = model.chat(request).await?;
                Ok(answer.map(|event| event.map_err(Failure::from)).boxed())
            }
            Source::There { remote, model } => remote.chat(model, &request).await,
        }
    }

    /// Frees the memory that this command took.
    pub(crate) async fn leave(self) {
        if let Source::Here { lifecycle, .. } = self {
            lifecycle.unload().await;
        }
    }
}

async fn there(remote: Remote, wanted: Option<&str>) -> CliResult<Source> {
    let models = remote.models().await?;
    // The server may serve names that it does not list. It reports an unknown name itself.
    match chosen(&models, wanted).or_else(|| wanted.map(str::to_owned)) {
        Some(model) => Ok(Source::There { model, remote }),
        None => Err(Failure::model_missing(format!("{} has no chat model", remote.base()))),
    }
}

/// The hob that runs at the configured address, if it has the requested model.
async fn running(options: &SourceOptions, app: &App<'_>) -> Option<Source> {
    let configured = match &app.settings.chat.model {
        ModelChoice::Named(name) => Some(name.as_str()),
        // A file on the command line is used directly. A file in `hob.toml` is what the server has loaded.
        ModelChoice::File(_) if options.model.is_some() => return None,
        ModelChoice::File(_) => None,
    };
    let key = app.settings.server.api_key.read().ok()?;
    let remote = Remote::here(app.settings.server.listen.0, key);
    let models = remote.models().await.ok()?;
    let model = match &options.model {
        Some(wanted) => chosen(&models, Some(wanted))
            .or_else(|| chosen(&models, Some(&ModelStore::open(app).stored_name(wanted)))),
        None => chosen(&models, configured).or_else(|| chosen(&models, None)),
    };
    Some(Source::There { model: model?, remote })
}

/// The requested model, or the first chat model that is no team.
fn chosen(models: &[RemoteModel], wanted: Option<&str>) -> Option<String> {
    let mut chats = models.iter().filter(|model| model.hob.kind == "chat");
    let is_meant = |id: &str, wanted: &str| id == wanted || id == canonical(wanted);
    let found = chats.find(|model| match wanted {
        Some(wanted) => is_meant(&model.id, wanted),
        None => !model.is_team(),
    });
    found.map(|model| model.id.clone())
}

async fn here(app: &App<'_>) -> CliResult<Source> {
    let Chat { name, worker, .. } = Chat::start(&app.settings.chat, app)?;
    let lifecycle: Arc<dyn ModelLifecycle> = Arc::clone(&worker) as _;
    app.load(&name, &*lifecycle).await?;
    Ok(Source::Here { name, model: worker, lifecycle })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::RemoteState;

    #[test]
    fn the_first_model_that_chats_is_meant_when_none_is_named() {
        let model = |(id, kind): (&str, &str)| RemoteModel {
            id: id.to_owned(),
            hob: RemoteState { kind: kind.to_owned(), state: "warm".to_owned() },
            pipeline: (id == "builders").then(|| serde_json::json!({ "type": "pipe" })),
        };
        let models =
            [("kokoro", "speech"), ("builders", "chat"), ("smollm2", "chat"), ("qwen3", "chat")];
        let models = models.map(model);
        assert_eq!(chosen(&models, None).as_deref(), Some("smollm2"));
        assert_eq!(chosen(&models, Some("qwen3")).as_deref(), Some("qwen3"));
        assert_eq!(chosen(&models, Some("builders")).as_deref(), Some("builders"));
        assert_eq!(chosen(&models, Some("kokoro")), None, "it only speaks");
        assert_eq!(chosen(&models[..2], None), None, "a team acts");
    }
}
