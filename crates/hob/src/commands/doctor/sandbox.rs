//! Checks the sandbox in which agents of teams run commands, by running one in it.
//! Without a sandbox, hob refuses the commands of agents, and everything else works.

use std::path::Path;

use hob_agents::builtin::SandboxPrograms;

use super::{Check, tools};
use crate::app::App;
use crate::teams::tools::ToolSetup;

const PART: &str = "sandbox";
/// Only Linux has bubblewrap and Landlock.
const IS_LINUX: bool = cfg!(target_os = "linux");

pub(super) async fn check(app: &App<'_>) -> Check {
    found(ToolSetup::of(app).sandboxes()).await
}

async fn found(programs: &SandboxPrograms) -> Check {
    // An empty folder, because Landlock does not work in one with team files.
    let workspace = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            return Check::warn(PART, format!("cannot make a folder: {error}"), "free some space");
        }
    };
    let works = programs.working(workspace.path()).await;
    let engine = match &programs.container_engine {
        Some(engine) => Some(container_engine(engine).await),
        None => None,
    };
    let of_image = match &engine {
        Some(Ok(name)) => format!("; {name} for teams that name an image"),
        Some(Err(reason)) => format!("; {reason}"),
        None => String::new(),
    };
    match works {
        Ok(name) => Check::ok(PART, format!("agents run commands in {name}{of_image}")),
        Err(reason) => {
            let has_engine = matches!(engine, Some(Ok(_)));
            Check::warn(PART, format!("{reason}{of_image}"), to_do(has_engine, IS_LINUX))
        }
    }
}

/// What the user can do for a sandbox.
fn to_do(has_engine: bool, is_linux: bool) -> &'static str {
    match (has_engine, is_linux) {
        (true, true) => "name an image in [policy] of the team file, or install bubblewrap",
        (false, true) => {
            "install bubblewrap, or podman and name an image in [policy] of the team file"
        }
        (true, false) => "name an image in [policy] of the team file",
        (false, false) => "install podman, and name an image in [policy] of the team file",
    }
}

/// The name of podman or docker if it answers, else the reason.
async fn container_engine(program: &Path) -> Result<String, String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // `docker --version` answers also without its service.
    match tools::output(program, &["ps", "--quiet"]).await {
        Ok(_) => Ok(name),
        Err(error) => Err(format!("{name} does not work: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;
    use crate::executable::write_executable;

    #[tokio::test]
    async fn what_runs_a_command_is_the_sandbox() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = |name: &str, script: &str| {
            let path = folder.path().join(name);
            write_executable(&path, &format!("#!/bin/sh\n{script}\n"));
            path
        };
        let works = program("works", "exit 0");
        let fails = program("fails", "echo no namespaces >&2; exit 1");
        let podman = program("podman", "exit 0");
        let bare = SandboxPrograms::default();
        let bwrap = SandboxPrograms { bwrap: Some(works), ..bare.clone() };
        let broken = SandboxPrograms { bwrap: Some(fails), ..bare.clone() };
        let images = SandboxPrograms { container_engine: Some(podman), ..broken.clone() };
        for (programs, verdict, parts) in [
            (bare, Verdict::Warn, ["is not installed", to_do(false, IS_LINUX)]),
            (bwrap, Verdict::Ok, ["commands in bubblewrap", "ok"]),
            (broken, Verdict::Warn, ["no namespaces", to_do(false, IS_LINUX)]),
            (images, Verdict::Warn, ["podman for teams", "name an image"]),
        ] {
            let check = found(&programs).await;
            let text = check.to_string();
            assert_eq!(check.verdict, verdict, "{text}");
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        for has_engine in [true, false] {
            assert!(to_do(has_engine, true).contains("install bubblewrap"));
            assert!(!to_do(has_engine, false).contains("bubblewrap"), "only Linux has it");
        }
    }
}
