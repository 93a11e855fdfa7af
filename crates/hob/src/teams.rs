//! Team files: those of the user's folder, and the two that hob brings.
//! A file of the user replaces the team of the same name that hob brings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hob_agents::Team;
use hob_core::nearest;

use super::tools;
use crate::app::App;
use crate::bounded_file::read_text;
use crate::failure::{CliResult, Failure};

const FILE_BYTES_MAX: u64 = 1 << 20;
const BUILT_IN: [(&str, &str); 2] = [
    ("agent_team", include_str!("../../../teams/agent_team.toml")),
    ("devops", include_str!("../../../teams/devops.toml")),
];

/// Where teams are found.
#[derive(Debug)]
pub(super) struct Teams {
    folder: PathBuf,
}

impl Teams {
    /// The folder `teams` in the folder of `hob.toml`, or in the working folder.
    pub(super) fn of(app: &App<'_>) -> Teams {
        let beside = app.written.path.as_deref().and_then(Path::parent);
        Teams { folder: beside.unwrap_or(&app.environment.folders.working).join("teams") }
    }

    /// The team of this name, or of this file.
    ///
    /// # Errors
    /// No team has this name, or its file is wrong; the error has the place in the file.
    pub(super) fn find(&self, name: &str) -> CliResult<Team> {
        if name.ends_with(".toml") {
            return read(Path::new(name));
        }
        let path = self.folder.join(format!("{name}.toml"));
        if path.is_file() {
            return read(&path);
        }
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return parse(text, name, Path::new(name));
        }
        let all = self.all();
        let near = nearest(name, all.iter().map(|(name, _)| name.as_str()), 3);
        let failure = Failure::usage(format!("there is no team '{name}'"));
        Err(match &near[..] {
            [] => failure.hint("`hob team list` lists them"),
            near => failure.hint(format!("did you mean {}?", near.join(", "))),
        })
    }

    /// All teams by their names, also those whose file is wrong.
    pub(super) fn all(&self) -> Vec<(String, CliResult<Team>)> {
        let mut teams: BTreeMap<String, CliResult<Team>> = BUILT_IN
            .iter()
            .map(|(name, text)| ((*name).to_owned(), parse(text, name, Path::new(name))))
            .collect();
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok);
        for path in entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            teams.insert(name, read(&path));
        }
        teams.into_iter().collect()
    }

    /// Tools that agents name and hob does not have.
    pub(super) fn unknown_tools(&self, team: &Team) -> Vec<String> {
        let named = team.agents.iter().flat_map(|agent| &agent.tools);
        named.filter(|name| !tools::NAMES.contains(&name.as_str())).cloned().collect()
    }
}

fn read(path: &Path) -> CliResult<Team> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |error| Failure::io(format!("cannot read {}", path.display()), &error);
    parse(&read_text(path, FILE_BYTES_MAX).map_err(failed)?, &name, path)
}

fn parse(text: &str, name: &str, path: &Path) -> CliResult<Team> {
    Team::parse(text, name).map_err(|error| {
        let place = format!("{}:{}:{}", path.display(), error.line, error.column);
        Failure::usage(format!("{place}: {}", error.reason))
            .hint("`hob team schema` says what a team file takes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_teams_that_hob_brings_are_sound() {
        let teams = Teams { folder: PathBuf::from("nowhere") };
        for (name, team) in teams.all() {
            let team = team.expect(&name);
            assert_eq!((team.id.as_str(), teams.unknown_tools(&team)), (name.as_str(), Vec::new()));
        }
        let missing = teams.find("devop").expect_err("no such team");
        assert_eq!(missing.hint.as_deref(), Some("did you mean devops?"));
    }
}
