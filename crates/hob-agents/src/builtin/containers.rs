//! Containers that the team file lists: `container_run` runs a command in one, without a shell, and `write_file` writes a file.
//! The engine is the first of podman, docker and incus that has the container. hob looks for it before each command.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{Permissions, set_permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::locked;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;

use super::limits::{self, SECONDS_MAX};
use super::{process, run_checked, spec_of};
use crate::tool::{AgentTool, CommandArgument, ToolClass, ToolOutput, ToolSpec};

/// How long an engine may take to say whether it has a container, and whether that has the program `timeout`.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// How long an engine may take for each part of writing a file.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
/// `timeout` in the container ends a command this much later than hob stops waiting for it.
const GRACE_SECONDS: u64 = 1;

/// A program that runs containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerEngine {
    Podman(PathBuf),
    Docker(PathBuf),
    Incus(PathBuf),
}

impl ContainerEngine {
    fn name(&self) -> &'static str {
        match self {
            ContainerEngine::Podman(_) => "podman",
            ContainerEngine::Docker(_) => "docker",
            ContainerEngine::Incus(_) => "incus",
        }
    }

    /// A command of the engine. incus takes other words than podman and docker.
    fn command(&self, words: &[&str], incus_words: &[&str]) -> Command {
        let (program, words) = match self {
            ContainerEngine::Podman(program) | ContainerEngine::Docker(program) => (program, words),
            ContainerEngine::Incus(program) => (program, incus_words),
        };
        let mut command = Command::new(program);
        command.args(words);
        command
    }

    /// The command that succeeds if the engine has the container.
    fn probe(&self, container: &str) -> Command {
        self.command(&["container", "inspect", container], &["info", container])
    }

    fn exec(&self, container: &str, argv: &[impl AsRef<OsStr>]) -> Command {
        let mut command = self.command(&["exec", container], &["exec", container, "--"]);
        command.args(argv);
        command
    }

    /// Copies a file of this machine into the container.
    fn copy(&self, file: &Path, container: &str, path: &str) -> Command {
        let mut command = self.command(&["cp"], &["file", "push"]);
        let between = if matches!(self, ContainerEngine::Incus(_)) { "" } else { ":" };
        command.arg(file).arg(format!("{container}{between}{path}"));
        command
    }

    /// Why the engine cannot run commands in the container. `None`: it can.
    async fn missing_reason(&self, container: &str) -> Option<String> {
        let said = match process::run(&mut self.probe(container), PROBE_LIMIT).await {
            Ok(output) if output.is_error => output.text,
            Ok(_) => return None,
            Err(reason) => reason,
        };
        let line = said.lines().skip_while(|line| *line != "[stderr]").nth(1);
        Some(format!("{}: {}", self.name(), line.or(said.lines().next()).unwrap_or_default()))
    }
}

/// The containers that a team file lists, and the engines that may have them.
#[derive(Debug)]
pub(super) struct TeamContainers {
    /// hob uses the first one that has the container.
    engines: Vec<ContainerEngine>,
    names: Vec<String>,
}

#[derive(Debug)]
pub struct ContainerRun {
    spec: ToolSpec,
    containers: TeamContainers,
    /// Names of the containers that have the program `timeout`.
    with_timeout: Mutex<BTreeSet<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContainerArguments {
    /// The name of a container
    container: String,
    /// The program and its arguments, without a shell
    #[schemars(length(min = 1, max = 64))]
    argv: Vec<String>,
    #[serde(default)]
    #[schemars(range(min = 1, max = 120))]
    timeout_s: Option<u64>,
}

impl ContainerRun {
    /// A tool for these containers alone.
    pub fn new(engines: Vec<ContainerEngine>, containers: &[String]) -> ContainerRun {
        let names = if containers.is_empty() { "none".to_owned() } else { containers.join(", ") };
        let limits = limits::sentence();
        let description = format!(
            "Run a command in a running container, without a shell. Containers: {names}. {limits} Its memory, processes, \
             processor time, disk and network have the limits of the container, and hob adds none."
        );
        let spec = spec_of::<ContainerArguments>("container_run", &description, ToolClass::Execute);
        let command = Some(CommandArgument::Words("container", "argv"));
        // What a container prints may come from anywhere.
        let spec = ToolSpec { command, is_foreign: true, ..spec };
        let containers = TeamContainers::new(engines, containers);
        ContainerRun { spec, containers, with_timeout: Mutex::default() }
    }

    async fn run(&self, asked: ContainerArguments) -> Result<ToolOutput, String> {
        let ContainerArguments { container, mut argv, timeout_s } = asked;
        let engine = self.containers.engine_of(&container).await?;
        let seconds = timeout_s.unwrap_or(SECONDS_MAX).min(SECONDS_MAX);
        // The engines do not pass on the end of their client, and take no limit for a command.
        let end = if self.has_timeout(engine, &container).await {
            let limit = (seconds + GRACE_SECONDS).to_string();
            let before = ["timeout", "-s", "KILL", &limit].map(str::to_owned);
            argv = before.into_iter().chain(argv).collect();
            "it ends in the container, too"
        } else {
            "the container has no program `timeout`, so it may still run there"
        };
        let limit = Duration::from_secs(seconds);
        let ran = process::run(&mut engine.exec(&container, &argv), limit).await;
        ran.map_err(|reason| format!("{reason}; {end}"))
    }

    /// Whether the container can end a command that takes too long.
    async fn has_timeout(&self, engine: &ContainerEngine, container: &str) -> bool {
        let known = || locked(&self.with_timeout);
        if known().contains(container) {
            return true;
        }
        let mut probe = engine.exec(container, &["timeout", "-s", "KILL", "1", "true"]);
        let has_it = process::run(&mut probe, PROBE_LIMIT).await.is_ok_and(|said| !said.is_error);
        if has_it {
            known().insert(container.to_owned());
        }
        has_it
    }
}

impl TeamContainers {
    pub(super) fn new(engines: Vec<ContainerEngine>, names: &[String]) -> TeamContainers {
        TeamContainers { engines, names: names.to_vec() }
    }

    /// Replaces a file of a container, and makes its folder where that is missing. A reader sees the old file or the new one.
    ///
    /// # Errors
    /// For the model: the team file does not list the container, or the file cannot be written.
    pub(super) async fn write(
        &self,
        container: &str,
        path: &str,
        content: &str,
    ) -> Result<(), String> {
        let folder = folder_of(path)?;
        let engine = self.engine_of(container).await?;
        let failed = |error: io::Error| format!("the file cannot be prepared: {error}");
        let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
        file.write_all(content.as_bytes()).map_err(failed)?;
        // Other users of the container read it, too.
        set_permissions(file.path(), Permissions::from_mode(0o644)).map_err(failed)?;
        let part = format!("{path}.hob-{:016x}.part", fastrand::u64(..));
        run_to_end(engine.exec(container, &["mkdir", "-p", "--", folder])).await?;
        let mut written = run_to_end(engine.copy(file.path(), container, &part)).await;
        if written.is_ok() {
            written = run_to_end(engine.exec(container, &["mv", "-fT", "--", &part, path])).await;
        }
        if written.is_err() {
            // A file that stays does no harm, and the model needs the first reason.
            let _removed = run_to_end(engine.exec(container, &["rm", "-f", "--", &part])).await;
        }
        written
    }

    /// The engine that has this container.
    ///
    /// # Errors
    /// The team file does not list it, or no engine has it.
    async fn engine_of(&self, container: &str) -> Result<&ContainerEngine, String> {
        if !self.names.iter().any(|name| name == container) {
            let listed = self.names.join(", ");
            return Err(format!("the team file does not list '{container}'; it lists [{listed}]"));
        }
        if self.engines.is_empty() {
            return Err("there is no container engine: install podman, docker or incus".to_owned());
        }
        let mut reasons = Vec::new();
        for engine in &self.engines {
            match engine.missing_reason(container).await {
                None => return Ok(engine),
                Some(reason) => reasons.push(reason),
            }
        }
        Err(format!("no engine has the container '{container}': {}", reasons.join("; ")))
    }
}

/// The folder of a file in a container.
fn folder_of(path: &str) -> Result<&str, String> {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let parts = Path::new(path);
    let is_file = parts.is_absolute() && parts.components().all(is_plain) && !path.ends_with('/');
    let folder = parts.parent().and_then(Path::to_str).filter(|_| is_file);
    folder.ok_or_else(|| {
        "in a container, the path must be that of a file, absolute and without '..'".to_owned()
    })
}

/// Runs a command of an engine to its end.
///
/// # Errors
/// What the engine or the program in the container said.
async fn run_to_end(mut command: Command) -> Result<(), String> {
    let output = process::run(&mut command, WRITE_LIMIT).await?;
    if output.is_error { Err(output.text) } else { Ok(()) }
}

impl AgentTool for ContainerRun {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        run_checked(value, |asked| self.run(asked)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::WriteFile;
    use crate::executable::write_executable;

    /// A program that has the container `web`, and shows the arguments of a command.
    const ENGINE: &str = r#"#!/bin/sh
case "$1 $2" in
  'container inspect'|info*) for last; do :; done; [ "$last" = web ] || { echo "no $last here" >&2; exit 1; } ;;
  exec*) case "$*" in *'timeout -s KILL 1 true') [ ! -e "$0.bare" ] || exit 127; exit ;; *slow*) sleep 60 & echo $! > "$0.pid"; wait ;; *greedy*) exit 137 ;; esac; printf '<%s>' "$@" ;;
esac
"#;

    /// Seconds after which a command is ended: enough for `ENGINE` to begin on a machine that does much else.
    const LIMIT_SECONDS: u64 = 5;

    fn engine(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        write_executable(&path, ENGINE);
        path
    }

    #[tokio::test]
    async fn a_command_reaches_the_engine_word_by_word() {
        let folder = tempfile::tempdir().expect("a folder");
        for (engine, expected) in [
            (
                ContainerEngine::Podman(engine(folder.path(), "podman")),
                "<exec><web><timeout><-s><KILL><121><echo><a b><$(rm x)>",
            ),
            (
                ContainerEngine::Incus(engine(folder.path(), "incus")),
                "<exec><web><--><timeout><-s><KILL><121><echo><a b><$(rm x)>",
            ),
        ] {
            let tool = ContainerRun::new(vec![engine], &["web".to_owned(), "gone".to_owned()]);
            let run = async |container: &str| {
                let argv = ["echo", "a b", "$(rm x)"];
                tool.call(json!({ "container": container, "argv": argv })).await
            };
            assert_eq!(run("web").await, ToolOutput::ok(expected));
            for (container, part) in [("gone", "no gone here"), ("other", "does not list")] {
                let output = run(container).await;
                assert!(output.is_error && output.text.contains(part), "{}", output.text);
            }
        }
    }

    #[tokio::test]
    async fn a_slow_command_is_ended_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = engine(folder.path(), "docker");
        let tool = ContainerRun::new(vec![ContainerEngine::Docker(path)], &["web".to_owned()]);
        let arguments = json!({ "container": "web", "argv": ["slow"], "timeout_s": LIMIT_SECONDS });
        let output = tool.call(arguments).await;
        let expected = format!("after {LIMIT_SECONDS} s; it ends in the container, too");
        assert!(output.is_error && output.text.contains(&expected), "{}", output.text);
        let id = std::fs::read_to_string(folder.path().join("docker.pid")).expect("an id");
        let stat = format!("/proc/{}/stat", id.trim());
        let begun = std::time::Instant::now();
        // A process that was ended and not reaped yet is a zombie.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(begun.elapsed() < Duration::from_secs(60), "the child {id} still runs");
            tokio::task::yield_now().await;
        }
    }

    /// No flag of `exec` limits a command, so what cannot be limited is said.
    #[tokio::test]
    async fn a_container_without_timeout_gets_the_bare_command_and_the_model_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = engine(folder.path(), "docker");
        std::fs::write(folder.path().join("docker.bare"), "").expect("a file");
        let tool = ContainerRun::new(vec![ContainerEngine::Docker(path)], &["web".to_owned()]);
        let run = async |argv: &[&str]| {
            let arguments = json!({ "container": "web", "argv": argv, "timeout_s": LIMIT_SECONDS });
            tool.call(arguments).await
        };
        assert_eq!(run(&["echo"]).await, ToolOutput::ok("<exec><web><echo>"));
        let output = run(&["slow"]).await;
        assert!(output.is_error && output.text.contains("may still run there"), "{}", output.text);
        let description = &tool.spec().description;
        assert!(description.contains("have the limits of the container"), "{description}");
    }

    #[tokio::test]
    async fn limits_have_the_same_words_as_in_a_sandbox() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = engine(folder.path(), "podman");
        let tool = ContainerRun::new(vec![ContainerEngine::Podman(path)], &["web".to_owned()]);
        assert!(tool.spec().description.contains("It may take 120 s and print 64 MiB."));
        let output = tool.call(json!({ "container": "web", "argv": ["greedy"] })).await;
        assert!(output.is_error && output.text.contains("memory runs out"), "{}", output.text);
    }

    /// A program that notes how it was called, and keeps what it copies. It cannot replace `/denied`.
    const WRITER: &str = r#"#!/bin/sh
echo "$@" >> "$0.calls"
case "$1" in cp) cat "$2" > "$0.copied" ;; file) cat "$3" > "$0.copied" ;; esac
case "$*" in *mv*/denied) echo "no room" >&2; exit 1 ;; esac
"#;

    #[tokio::test]
    async fn a_file_of_a_container_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("podman");
        write_executable(&path, WRITER);
        let names = ["web".to_owned()];
        for (engine, place) in [
            (ContainerEngine::Podman(path.clone()), "web:/etc/app/a.conf.hob-"),
            (ContainerEngine::Incus(path.clone()), "web/etc/app/a.conf.hob-"),
        ] {
            let tool = WriteFile::new(folder.path()).expect("open");
            let tool = tool.with_containers(vec![engine], &names);
            let write = async |container: &str, path: &str, mode: &str| {
                let arguments =
                    json!({ "container": container, "path": path, "content": "é=1", "mode": mode });
                tool.call(arguments).await
            };
            let output = write("web", "/etc/app/a.conf", "replace").await;
            assert_eq!(output, ToolOutput::ok("4 bytes written to /etc/app/a.conf in web"));
            let calls = std::fs::read_to_string(folder.path().join("podman.calls")).expect("calls");
            let calls: Vec<&str> = calls.lines().collect();
            let [.., folder_made, copied, moved] = &calls[..] else { panic!("{calls:?}") };
            assert!(folder_made.ends_with("mkdir -p -- /etc/app"), "{folder_made}");
            assert!(copied.contains(place) && copied.ends_with(".part"), "{copied}");
            assert!(moved.ends_with(".part /etc/app/a.conf"), "{moved}");
            let content = std::fs::read_to_string(folder.path().join("podman.copied"));
            assert_eq!(content.expect("a file"), "é=1");
            for (container, path, mode, part) in [
                ("db", "/a", "replace", "does not list 'db'"),
                ("web", "a", "replace", "absolute"),
                ("web", "/a/../b", "replace", "absolute"),
                ("web", "/", "replace", "absolute"),
                ("web", "/a", "append", "replaced as a whole"),
                ("web", "/denied", "replace", "no room"),
            ] {
                let output = write(container, path, mode).await;
                assert!(output.is_error && output.text.contains(part), "{path}: {}", output.text);
            }
        }
        let calls = std::fs::read_to_string(folder.path().join("podman.calls")).expect("calls");
        assert!(calls.lines().last().is_some_and(|call| call.contains("rm -f -- /denied.hob-")));
    }

    #[tokio::test]
    async fn without_an_engine_the_reason_is_given() {
        let tool = ContainerRun::new(Vec::new(), &["web".to_owned()]);
        let output = tool.call(json!({ "container": "web", "argv": ["ls"] })).await;
        assert!(output.is_error && output.text.contains("install podman"), "{}", output.text);
    }
}
