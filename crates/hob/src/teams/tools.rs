//! The tools of this hob: those of `hob-agents`, and those that ask the running server or the machine.
//! `hob-agents` has no HTTP and does not know machines, so these are here.

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_agents::builtin::{ReadFile, Sandbox, Shell, SystemctlStatus, WriteFile, spec_of};
use hob_agents::{AgentTool, ToolClass, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::web::{GetUrl, HttpProbe};
use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::programs;
use crate::remote::Remote;

/// All tools.
pub(super) const NAMES: [&str; 8] = [
    "read_file",
    "write_file",
    "shell",
    "get_url",
    "http_probe",
    "systemctl_status",
    "list_local_models",
    "vram_status",
];

/// The tools for a run. Commands are refused with the reason where no sandbox works.
///
/// # Errors
/// The workspace cannot be opened.
pub(super) async fn all(
    workspace: &Path,
    remote: &Remote,
    app: &App<'_>,
) -> CliResult<Vec<Arc<dyn AgentTool>>> {
    let opened =
        |error| Failure::io(format!("cannot open the workspace {}", workspace.display()), &error);
    let bwrap = programs::find(Path::new("bwrap"), &app.environment.path);
    let sandbox = Sandbox::probe(bwrap, workspace).await;
    Ok(vec![
        Arc::new(ReadFile::new(workspace).map_err(opened)?),
        Arc::new(WriteFile::new(workspace).map_err(opened)?),
        Arc::new(Shell::new(sandbox)),
        Arc::new(GetUrl::default()),
        Arc::new(HttpProbe::new(upstream_hosts(app))),
        Arc::new(SystemctlStatus::default()),
        Arc::new(ListModels::new(remote.clone())),
        Arc::new(VramStatus::default()),
    ])
}

/// The hosts of the upstreams, with their ports.
fn upstream_hosts(app: &App<'_>) -> Vec<String> {
    let urls = app.written.config.upstream.values().filter_map(|upstream| upstream.url.as_deref());
    let authority = |url: &str| Some(url.split_once("://")?.1.split('/').next()?.to_owned());
    urls.filter_map(authority).collect()
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct NoArguments {}

/// `list_local_models`: the models of the running hob.
#[derive(Debug)]
struct ListModels {
    spec: ToolSpec,
    remote: Remote,
}

impl ListModels {
    fn new(remote: Remote) -> ListModels {
        let description =
            "List the models and aliases of this server, and whether they are loaded.";
        ListModels {
            spec: spec_of::<NoArguments>("list_local_models", description, ToolClass::Read),
            remote,
        }
    }
}

impl AgentTool for ListModels {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, _arguments: Value) -> BoxFuture<'_, ToolOutput> {
        async move {
            match self.remote.models().await {
                Ok(models) => {
                    let entry = |model: &crate::remote::RemoteModel| {
                        json!({ "name": model.id, "kind": model.hob.kind, "state": model.hob.state })
                    };
                    ToolOutput::ok(Value::from_iter(models.iter().map(entry)).to_string())
                }
                Err(failure) => ToolOutput::error(failure.sentence),
            }
        }
        .boxed()
    }
}

/// `vram_status`: the memory of the graphics cards.
#[derive(Debug)]
struct VramStatus {
    spec: ToolSpec,
}

impl Default for VramStatus {
    fn default() -> VramStatus {
        let description = "Show the memory of this machine's graphics cards together, in bytes.";
        VramStatus { spec: spec_of::<NoArguments>("vram_status", description, ToolClass::Read) }
    }
}

impl AgentTool for VramStatus {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, _arguments: Value) -> BoxFuture<'_, ToolOutput> {
        async move { ToolOutput::ok(cards()) }.boxed()
    }
}

fn cards() -> String {
    match hob_machine::vram() {
        Some(vram) => json!({ "total": vram.total_bytes, "used": vram.used_bytes }).to_string(),
        None => "no graphics card of this machine reports its memory".to_owned(),
    }
}
