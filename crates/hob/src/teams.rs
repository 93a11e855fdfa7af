//! Team files: those of the user's folder, and the two that hob brings.
//! A file of the user replaces the team of the same name that hob brings.

mod ask_user;
mod client_calls;
mod detached;
mod ignored;
pub(crate) mod local_models;
pub(crate) mod mcp;
mod model;
mod other_machines;
mod pipelines;
mod registry_models;
mod runs;
pub(crate) mod stored_run;
pub(crate) mod tools;
pub(crate) mod tree;
mod valves;
mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use hob_agents::Team;
use hob_core::{locked, nearest};

use crate::app::App;
use crate::bounded_file::read_text;
use crate::config::{Fingerprint, fingerprint};
use crate::failure::{CliResult, Failure};

pub(crate) use model::TeamModels;
pub(crate) use other_machines::OtherMachines;
pub(crate) use pipelines::TeamFiles;
pub(crate) use registry_models::{RegistryModels, unknown_models};
pub(crate) use runs::TeamRuns;
pub(crate) use tools::sandbox_programs;

/// The team of runs that name none.
pub(crate) const DEFAULT: &str = "agent_team";

const FILE_BYTES_MAX: u64 = 1 << 20;
const BUILT_IN: [(&str, &str); 2] = [
    ("agent_team", include_str!("../teams/agent_team.toml")),
    ("devops", include_str!("../teams/devops.toml")),
];

/// Teams that an error names.
const IDS_SHOWN_MAX: usize = 20;

/// How often the folder is read: a change takes effect within a second.
const EVERY: Duration = Duration::from_millis(300);

/// A mistake in a team file, or why the file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TeamMistake {
    path: PathBuf,
    /// Line and column, from 1.
    place: Option<(usize, usize)>,
    reason: String,
    hint: Option<String>,
}

impl fmt::Display for TeamMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, reason) = (self.path.display(), &self.reason);
        match self.place {
            Some((line, column)) => write!(f, "{path}:{line}:{column}: {reason}"),
            None => write!(f, "{path}: {reason}"),
        }
    }
}

impl From<TeamMistake> for Failure {
    fn from(mistake: TeamMistake) -> Failure {
        Failure { hint: mistake.hint.clone(), ..Failure::usage(mistake) }
    }
}

/// A team of a server: as its file says now, or as it said before it got a mistake.
#[derive(Debug)]
pub(crate) struct ListedTeam {
    /// The team's id, or the file's name if no version of it was read.
    pub(crate) id: String,
    /// `None`: hob brings the team.
    pub(crate) path: Option<PathBuf>,
    pub(crate) team: Option<Team>,
    pub(crate) mistake: Option<TeamMistake>,
}

/// Where teams are found.
#[derive(Debug)]
pub(crate) struct Teams {
    folder: PathBuf,
    /// Teams that were read without a mistake, by their files.
    good: Mutex<BTreeMap<PathBuf, Team>>,
    /// The files as they were when they were read for the server.
    seen: Mutex<Vec<(PathBuf, Option<Fingerprint>)>>,
}

impl Teams {
    /// The folder `teams` in the folder of `hob.toml`, or in the working folder.
    pub(crate) fn of(app: &App<'_>) -> Teams {
        let beside = app.written.path.as_deref().and_then(Path::parent);
        Teams::in_folder(beside.unwrap_or(&app.environment.folders.working).join("teams"))
    }

    fn in_folder(folder: PathBuf) -> Teams {
        Teams { folder, good: Mutex::default(), seen: Mutex::default() }
    }

    /// The teams of the user's folder, for a server, and the mistakes in their files. A file that has got a mistake is
    /// served as it was before.
    pub(crate) fn served(&self) -> (Vec<Team>, Vec<TeamMistake>) {
        // Taken before the files are read: a change in between is then seen as one.
        self.look();
        let mut good = locked(&self.good);
        let (mut kept, mut mistakes) = (BTreeMap::new(), Vec::new());
        for (path, team) in self.read_files() {
            match team {
                Ok(team) => {
                    kept.insert(path, team);
                }
                Err(mistake) => {
                    mistakes.push(mistake);
                    good.remove(&path).map(|team| kept.insert(path, team));
                }
            }
        }
        // Also where a file is served as it was before.
        let mut ids = BTreeSet::new();
        kept.retain(|_, team| ids.insert(team.id.clone()));
        *good = kept;
        (good.values().cloned().collect(), mistakes)
    }

    /// Resolves when a file of the folder was added, changed or removed since [`Teams::served`] or since the last time.
    pub(crate) async fn changed(&self) {
        while !self.look() {
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Whether the files differ from those that were seen. They then count as seen.
    fn look(&self) -> bool {
        let now = self.fingerprints();
        let mut seen = locked(&self.seen);
        now != std::mem::replace(&mut *seen, now.clone())
    }

    /// Files of valves are among them.
    fn fingerprints(&self) -> Vec<(PathBuf, Option<Fingerprint>)> {
        let all = self.toml_files().into_iter();
        all.map(|path| (path.clone(), fingerprint(&path))).collect()
    }

    /// The team files of the folder, in order.
    fn files(&self) -> Vec<PathBuf> {
        let is_team = |path: &PathBuf| !path.to_string_lossy().ends_with(valves::SUFFIX);
        self.toml_files().into_iter().filter(is_team).collect()
    }

    /// The teams of the folder. If two files have one id, the first of them counts.
    fn read_files(&self) -> Vec<(PathBuf, Result<Team, TeamMistake>)> {
        let mut ids: BTreeMap<String, PathBuf> = BTreeMap::new();
        let read_next = |path: PathBuf| {
            let team = read(&path).and_then(|team| match ids.get(&team.id) {
                None => {
                    ids.insert(team.id.clone(), path.clone());
                    Ok(team)
                }
                Some(first) => Err(TeamMistake {
                    path: path.clone(),
                    place: None,
                    reason: format!("the team '{}' is in {} already", team.id, first.display()),
                    hint: Some("give it another id, or remove one of the files".to_owned()),
                }),
            });
            (path, team)
        };
        self.files().into_iter().map(read_next).collect()
    }

    fn toml_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok);
        let is_toml = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_toml).collect();
        files.sort();
        files
    }

    /// Writes a team file that is not there yet. It appears whole, because the folder is read at any time.
    fn write_new(&self, path: &Path, text: &str) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(text.as_bytes())?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// The team of this file, or of this id. The name of its file without `.toml` counts, too.
    ///
    /// # Errors
    /// No team has this id, or its file is wrong; the error has the place in the file.
    pub(crate) fn find(&self, name: &str) -> CliResult<Team> {
        if name.ends_with(".toml") {
            return Ok(read(Path::new(name))?);
        }
        let path = self.folder.join(format!("{name}.toml"));
        if path.is_file() {
            return Ok(read(&path)?);
        }
        // A file may have another name than its team.
        let mut own = self.files().into_iter().filter_map(|path| read(&path).ok());
        if let Some(team) = own.find(|team| team.id == name) {
            return Ok(team);
        }
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok(parse(text, name, Path::new(name))?);
        }
        let ids: Vec<String> = self.listed().into_iter().map(|listed| listed.id).collect();
        let all = ids.iter().take(IDS_SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let near = nearest(name, ids.iter().map(String::as_str), 3);
        let meant = match &near[..] {
            [] => String::new(),
            near => format!("did you mean {}? ", near.join(", ")),
        };
        Err(Failure::usage(format!("there is no team '{name}'"))
            .hint(format!("{meant}The teams are {all}")))
    }

    /// All teams by their names, also those whose file is wrong.
    pub(crate) fn all(&self) -> Vec<(String, Result<Team, TeamMistake>)> {
        let named = |(name, _, team)| (name, team);
        self.found().into_iter().map(named).collect()
    }

    /// All teams for the clients of a server.
    pub(crate) fn listed(&self) -> Vec<ListedTeam> {
        let good = locked(&self.good);
        let listed = |(name, path, team): FoundTeam| {
            let (team, mistake) = match team {
                Ok(team) => (Some(team), None),
                Err(mistake) => {
                    (path.as_ref().and_then(|path| good.get(path)).cloned(), Some(mistake))
                }
            };
            let id = team.as_ref().map_or(name, |team| team.id.clone());
            ListedTeam { id, path, team, mistake }
        };
        let mut teams: Vec<ListedTeam> = self.found().into_iter().map(listed).collect();
        let own = teams.iter().filter(|listed| listed.path.is_some());
        let own: Vec<String> = own.map(|listed| listed.id.clone()).collect();
        // A file may have the id of a team that hob brings, and another name.
        teams.retain(|listed| listed.path.is_some() || !own.contains(&listed.id));
        teams
    }

    /// The teams that hob brings, and those of the folder, which replace them.
    fn found(&self) -> Vec<FoundTeam> {
        let built_in = BUILT_IN
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (None, parse(text, name, Path::new(name)))));
        let mut teams: BTreeMap<String, _> = built_in.collect();
        for (path, team) in self.read_files() {
            teams.insert(stem(&path), (Some(path), team));
        }
        teams.into_iter().map(|(name, (path, team))| (name, path, team)).collect()
    }
}

/// A team with its name and its file.
type FoundTeam = (String, Option<PathBuf>, Result<Team, TeamMistake>);

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A team with its valves.
fn read(path: &Path) -> Result<Team, TeamMistake> {
    let team = read_own(path)?;
    let file = valves::file_of(path, &team.id);
    valves::applied(team, &file).map_err(|reason| TeamMistake {
        path: file,
        place: None,
        reason,
        hint: Some("correct the file, or remove it".to_owned()),
    })
}

/// A team as its own file says.
fn read_own(path: &Path) -> Result<Team, TeamMistake> {
    let text = read_text(path, FILE_BYTES_MAX).map_err(|error| TeamMistake {
        path: path.to_owned(),
        place: None,
        reason: format!("cannot be read: {error}"),
        hint: None,
    })?;
    parse(&text, &stem(path), path)
}

fn parse(text: &str, name: &str, path: &Path) -> Result<Team, TeamMistake> {
    let mistake = |place, reason, hint| TeamMistake {
        path: path.to_owned(),
        place,
        reason,
        hint: Some(hint),
    };
    let team = Team::parse(text, name).map_err(|error| {
        let hint = "`hob team schema` says what a team file takes".to_owned();
        mistake(Some((error.line, error.column)), error.reason, hint)
    })?;
    let named = team.agents.iter().flat_map(|agent| &agent.tools);
    // Tools of MCP servers are only known when the servers run.
    let is_known = |name: &str| name.contains("__") || tools::NAMES.contains(&name);
    match named.into_iter().find(|name| !is_known(name)) {
        None => Ok(team),
        Some(unknown) => {
            let hint = format!("tools are {}", tools::NAMES.join(", "));
            let place = Team::place_of(text, unknown);
            Err(mistake(place, format!("there is no tool '{unknown}'"), hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_teams_that_hob_brings_are_sound() {
        let teams = Teams::in_folder(PathBuf::from("nowhere"));
        for (name, team) in teams.all() {
            let team = team.expect(&name);
            assert_eq!(team.id, name);
        }
        let devops = teams.find("devops").expect("a team");
        for tool in [
            "vram_status",
            "list_local_models",
            "http_probe",
            "container_run",
            "write_file",
            "systemctl_status",
        ] {
            assert!(devops.agents[0].has_tool(tool), "{tool}");
        }
        let missing = teams.find("devop").expect_err("no such team");
        let hint = "did you mean devops? The teams are agent_team, devops";
        assert_eq!(missing.hint.as_deref(), Some(hint));
    }

    #[test]
    fn a_team_is_found_by_its_id_and_by_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = |id: &str| {
            format!("id = \"{id}\"\nentry = \"a\"\n[[agent]]\nname = \"a\"\nmodel = \"m\"\n")
        };
        std::fs::write(folder.path().join("file.toml"), text("builders")).expect("a file");
        std::fs::write(folder.path().join("mine.toml"), text("devops")).expect("a file");
        std::fs::write(folder.path().join("broken.toml"), "entry = 1").expect("a file");
        let teams = Teams::in_folder(folder.path().to_owned());
        for (name, id) in [("builders", "builders"), ("file", "builders"), ("mine", "devops")] {
            assert_eq!(teams.find(name).expect(name).id, id, "{name}");
        }
        let devops = teams.find("devops").expect("a team");
        assert_eq!(devops.agents[0].name, "a", "the user's file replaces the team that hob brings");
        assert!(teams.find("broken").is_err());
        std::fs::write(folder.path().join("second.toml"), text("builders")).expect("a file");
        let (served, mistakes) = teams.served();
        let ids: Vec<&str> = served.iter().map(|team| team.id.as_str()).collect();
        assert_eq!(ids, ["builders", "devops"]);
        let said: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert!(said[1].contains("second.toml: the team 'builders' is in "), "{said:?}");
        let checked = teams.all().into_iter().find(|(name, _)| name == "second");
        assert!(checked.is_some_and(|(_, team)| team.is_err()));
        // The served team is now the mistake, and has the same id.
        std::fs::write(folder.path().join("a.toml"), text("builders")).expect("a file");
        let ids: Vec<String> = teams.served().0.into_iter().map(|team| team.id).collect();
        assert_eq!(ids, ["builders", "devops"]);
        for name in ["a.toml", "second.toml"] {
            std::fs::remove_file(folder.path().join(name)).expect("removed");
        }
        let missing = teams.find("x").expect_err("no such team");
        let hint = missing.hint.expect("a hint");
        assert_eq!(hint, "The teams are agent_team, broken, builders, devops");
    }
}
