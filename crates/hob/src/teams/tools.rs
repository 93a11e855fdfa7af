//! The tools of this hob: those of `hob-agents`, and those that ask the running server or the machine.
//! `hob-agents` has no HTTP and does not know machines, so these are here.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;

use hob_agents::builtin::{
    ContainerEngine, ContainerRun, ReadFile, SandboxAccess, SandboxPrograms, Shell, Systemctl,
    WriteFile,
};
use hob_agents::{AgentTool, Redaction, Team};

use super::local_models::{ListModels, ModelTool};
use super::mcp::{McpTools, ServerEnvironment};
use super::web::{GetUrl, HttpProbe};
use crate::app::App;
use crate::programs;

/// Acts on this machine, outside every sandbox.
pub(super) const RESTART: &str = "systemctl_restart";
/// All tools.
pub(crate) const NAMES: [&str; 10] = [
    "read_file",
    "write_file",
    "shell",
    "container_run",
    "get_url",
    "http_probe",
    "systemctl_status",
    RESTART,
    "list_local_models",
    "vram_status",
];

/// Endings of the names of environment variables that hold keys.
const KEY_NAMES: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// What tools need of this hob and of its machine.
#[derive(Clone, Debug)]
pub(crate) struct ToolSetup {
    sandboxes: SandboxPrograms,
    engines: Vec<ContainerEngine>,
    servers: ServerEnvironment,
    /// Hosts that `http_probe` may reach besides this machine and those that a team lists.
    probe_hosts: Vec<String>,
}

impl ToolSetup {
    pub(crate) fn of(app: &App<'_>) -> ToolSetup {
        let environment = &app.environment;
        let find = |name: &str| programs::find(Path::new(name), &environment.path);
        let engines = [
            find("podman").map(ContainerEngine::Podman),
            find("docker").map(ContainerEngine::Docker),
            find("incus").map(ContainerEngine::Incus),
        ];
        let servers = ServerEnvironment {
            path: environment.path.clone(),
            variables: Arc::new(environment.secrets.clone()),
            redaction: Redaction::new(known_keys(app)),
        };
        let home = environment.folders.home.clone().map(|home| ("HOME", home.into_os_string()));
        let unsandboxed = [("PATH", environment.path.clone())].into_iter().chain(home);
        ToolSetup {
            sandboxes: SandboxPrograms {
                unsandboxed: app.settings.allow_danger.then(|| unsandboxed.collect()),
                ..sandbox_programs(&environment.path)
            },
            engines: engines.into_iter().flatten().collect(),
            servers,
            probe_hosts: upstream_hosts(app),
        }
    }

    /// The programs that can make a sandbox for commands.
    pub(crate) fn sandboxes(&self) -> &SandboxPrograms {
        &self.sandboxes
    }

    /// Runs a command in the sandbox that the team wants, if an agent runs commands.
    ///
    /// # Errors
    /// Why commands are refused.
    pub(crate) async fn check_sandbox(&self, team: &Team) -> Result<(), String> {
        if !team.agents.iter().any(|agent| agent.has_tool("shell")) {
            return Ok(());
        }
        // A temporary folder, because the workspace of the run is not known yet.
        let workspace = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.sandboxes_of(team).working(workspace.path()).await.map(|_| ())
    }

    fn sandboxes_of(&self, team: &Team) -> SandboxPrograms {
        let access = SandboxAccess { mode: team.policy.sandbox, network: team.policy.network };
        SandboxPrograms { image: team.policy.image.clone(), access, ..self.sandboxes.clone() }
    }

    /// The tools for a run. Commands are refused with the reason where no sandbox works.
    ///
    /// # Errors
    /// The workspace cannot be opened.
    pub(crate) fn tools(
        &self,
        team: &Team,
        workspace: &Path,
        models: Arc<dyn ListModels>,
    ) -> io::Result<Vec<Arc<dyn AgentTool>>> {
        Ok(vec![
            Arc::new(ReadFile::new(workspace)?),
            Arc::new(
                WriteFile::new(workspace)?.with_containers(self.engines.clone(), &team.containers),
            ),
            Arc::new(Shell::new(self.sandboxes_of(team), workspace)),
            Arc::new(ContainerRun::new(self.engines.clone(), &team.containers)),
            Arc::new(GetUrl::default()),
            Arc::new(HttpProbe::new(self.probe_hosts.clone(), &team.probe_allow)),
            Arc::new(Systemctl::status()),
            Arc::new(Systemctl::restart()),
            Arc::new(ModelTool::list_local_models(Arc::clone(&models))),
            Arc::new(ModelTool::vram_status(models)),
        ])
    }

    /// Removes the known keys from events of runs.
    pub(crate) fn redaction(&self) -> Redaction {
        self.servers.redaction.clone()
    }

    /// The tools of the team's MCP servers, none of which is started yet.
    pub(crate) fn mcp(&self, team: &Team) -> McpTools {
        McpTools::new(team, &self.servers)
    }
}

/// The programs of this machine that can make a sandbox. `path` is the list of folders with programs.
pub(crate) fn sandbox_programs(path: &OsStr) -> SandboxPrograms {
    let find = |name: &str| programs::find(Path::new(name), path);
    SandboxPrograms {
        bwrap: find("bwrap"),
        restrict: restrict(),
        container_engine: find("podman").or_else(|| find("docker")),
        ..SandboxPrograms::default()
    }
}

/// `hob worker supervise -- hob worker restrict`, by the path of this program.
fn restrict() -> Vec<OsString> {
    let Ok(program) = programs::own_program() else { return Vec::new() };
    let worker =
        |verb: &str| -> [OsString; 3] { [program.clone().into(), "worker".into(), verb.into()] };
    worker("supervise").into_iter().chain(["--".into()]).chain(worker("restrict")).collect()
}

/// The keys in the environment: those of upstreams, and all variables with such a name.
fn known_keys(app: &App<'_>) -> Vec<String> {
    let keys = app.written.config.upstream.values().filter_map(|upstream| upstream.key.as_deref());
    let named: Vec<&str> = keys.filter_map(|key| key.strip_prefix("env:")).collect();
    let is_key = |name: &str| {
        let upper = name.to_ascii_uppercase();
        named.contains(&name) || KEY_NAMES.iter().any(|end| upper.ends_with(end))
    };
    let variables = app.environment.secrets.iter().filter(|(name, _)| is_key(name));
    variables.map(|(_, key)| key.expose().to_owned()).collect()
}

/// The hosts of the upstreams, with their ports.
fn upstream_hosts(app: &App<'_>) -> Vec<String> {
    let urls = app.written.config.upstream.values().filter_map(|upstream| upstream.url.as_deref());
    let authority = |url: &str| Some(url.split_once("://")?.1.split('/').next()?.to_owned());
    urls.filter_map(authority).collect()
}
