//! Team files for clients that manage them over HTTP: add, delete, and change valves.
//! A file gets the id of its team as its name, and an id has no `/` or `.`, so no client chooses a path.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_agents::{SandboxMode, SandboxNetwork, Team};
use hob_core::locked;
use hob_server::{PipelineService, RunRefusal};
use hob_upstream::{GuardOptions, guarded_fetch};
use hob_wire::{Valve, ValveChange};

use super::tools::RESTART;
use super::{FILE_BYTES_MAX, ListedTeam, TeamMistake, TeamModels, parse, read_own, valves};

const DOWNLOAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Deleted copies of one file that may exist.
const DISABLED_MAX: usize = 100;

/// The team files of this hob.
#[derive(Debug)]
pub(crate) struct TeamFiles {
    models: Arc<TeamModels>,
    /// Held while files are changed.
    writing: Mutex<()>,
}

impl TeamFiles {
    pub(crate) fn new(models: Arc<TeamModels>) -> TeamFiles {
        TeamFiles { models, writing: Mutex::default() }
    }

    fn listed(&self) -> Vec<ListedTeam> {
        self.models.teams().listed()
    }

    /// The file of a team, and the team as it is served.
    fn found(&self, id: &str) -> Result<(PathBuf, Option<Team>), RunRefusal> {
        let listed = self.listed().into_iter().find(|listed| listed.id == id);
        let listed = listed.ok_or_else(|| RunRefusal::NoTeam { name: id.to_owned() })?;
        let path = listed.path.ok_or_else(|| {
            let reason = "hob brings this team; copy its file into the folder `teams` to change it";
            RunRefusal::Conflict(reason.to_owned())
        })?;
        Ok((path, listed.team))
    }
}

impl PipelineService for TeamFiles {
    fn teams(&self) -> Vec<String> {
        let is_served = |listed: &ListedTeam| listed.path.is_some() && listed.team.is_some();
        self.listed().into_iter().filter(is_served).map(|listed| listed.id).collect()
    }

    fn mistakes(&self) -> Vec<String> {
        self.listed().into_iter().filter_map(|listed| listed.mistake.map(short)).collect()
    }

    fn valves(&self, id: &str) -> Result<Vec<Valve>, RunRefusal> {
        let (path, team) = self.found(id)?;
        let base = read_own(&path).map_err(broken)?;
        Ok(valves::valves(team.as_ref().unwrap_or(&base), &base))
    }

    fn set_valves(&self, id: &str, changes: &[ValveChange]) -> Result<(), RunRefusal> {
        let _alone = locked(&self.writing);
        let (path, _) = self.found(id)?;
        let base = read_own(&path).map_err(broken)?;
        valves::store(&base, &valves::file_of(&path, id), changes).map_err(RunRefusal::BrokenTeam)
    }

    fn add(&self, name: &str, text: &[u8]) -> Result<String, RunRefusal> {
        check_name(name)?;
        let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
        let text = str::from_utf8(text);
        let text =
            text.map_err(|_| RunRefusal::BrokenTeam("the team file is not UTF-8".to_owned()))?;
        let team = parse(text, &stem, Path::new("team.toml")).map_err(broken)?;
        if let Some(what) = forbidden(&team) {
            return Err(RunRefusal::BrokenTeam(format!(
                "a team that comes over HTTP {what}; put its file into the folder `teams`"
            )));
        }
        let _alone = locked(&self.writing);
        let taken = || RunRefusal::Conflict(format!("there is a team '{}' already", team.id));
        if self.listed().iter().any(|listed| listed.id == team.id) {
            return Err(taken());
        }
        let path = self.models.teams().folder.join(format!("{}.toml", team.id));
        if path.exists() {
            return Err(taken());
        }
        self.models.teams().write_new(&path, text).map_err(|error| {
            RunRefusal::Failed(format!("the team file cannot be written: {error}"))
        })?;
        Ok(team.id)
    }

    fn download<'s>(
        &'s self,
        url: &'s str,
    ) -> BoxFuture<'s, Result<(String, Vec<u8>), RunRefusal>> {
        async move {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            check_name(&name)?;
            let options = GuardOptions {
                allow_hosts: Vec::new(),
                is_public_allowed: true,
                bytes_max: FILE_BYTES_MAX as usize,
                time_max: DOWNLOAD_TIME_MAX,
            };
            let fetched = guarded_fetch(url, false, &options).await;
            let fetched = fetched.map_err(|error| RunRefusal::BrokenTeam(error.to_string()))?;
            match fetched.status {
                _ if fetched.is_cut => Err(RunRefusal::TooLarge(format!(
                    "the file has more than {FILE_BYTES_MAX} bytes"
                ))),
                200 => Ok((name, fetched.body)),
                status => Err(RunRefusal::BrokenTeam(format!("{url} answers {status}"))),
            }
        }
        .boxed()
    }

    fn delete(&self, id: &str) -> Result<(), RunRefusal> {
        let _alone = locked(&self.writing);
        let (path, _) = self.found(id)?;
        let valves = Some(valves::file_of(&path, id)).filter(|file| file.exists());
        for file in std::iter::once(path).chain(valves) {
            disable(&file).map_err(|error| {
                RunRefusal::Failed(format!("the team file cannot be renamed: {error}"))
            })?;
        }
        Ok(())
    }
}

/// What keeps a team from being added over HTTP: it would act outside the sandbox.
fn forbidden(team: &Team) -> Option<&'static str> {
    let policy = &team.policy;
    let has_network =
        policy.sandbox == SandboxMode::DangerFullAccess || policy.network == SandboxNetwork::On;
    let restarts = team.agents.iter().any(|agent| agent.has_tool(RESTART));
    [
        // They are programs outside the sandbox, or get secrets of the environment.
        (!team.mcp.is_empty(), "may have no MCP servers"),
        // Their commands are outside the sandbox, with the files and the network of the container.
        (!team.containers.is_empty(), "may have no `containers`"),
        (!team.probe_allow.is_empty(), "may have no `probe_allow`"),
        (restarts, "may not restart units"),
        // Commands could reach what `get_url` refuses.
        (has_network, "needs a sandbox without network"),
    ]
    .into_iter()
    .find_map(|(is_so, what)| is_so.then_some(what))
}

/// Renames a file so that it is read no more. Files that were deleted before stay.
fn disable(file: &Path) -> std::io::Result<()> {
    let named = |number: usize| {
        let end = if number == 1 { String::new() } else { format!("-{number}") };
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".disabled{end}"));
        PathBuf::from(name)
    };
    let free = (1..=DISABLED_MAX).map(named).find(|name| !name.exists());
    let full = || {
        let reason = format!("there are {DISABLED_MAX} deleted copies of it already; remove some");
        std::io::Error::other(reason)
    };
    let free = free.ok_or_else(full)?;
    fs::rename(file, free)
}

/// Pipelines of Open WebUI are Python programs, and users may try to add one.
fn check_name(name: &str) -> Result<(), RunRefusal> {
    match Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("py")) {
        true => Err(RunRefusal::BrokenTeam(
            "hob runs no Python pipelines; add a team as a TOML file, which docs/guides/teams.md describes"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

fn broken(mistake: TeamMistake) -> RunRefusal {
    let hint = mistake.hint.clone();
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    RunRefusal::BrokenTeam(short(mistake) + &hint)
}

/// A mistake without the path of the folder, which is not for clients.
fn short(mistake: TeamMistake) -> String {
    let name = mistake.path.file_name().map(PathBuf::from);
    TeamMistake { path: name.unwrap_or_default(), ..mistake }.to_string()
}
