//! A container of podman or docker as a sandbox: a new one for each command, which sees the workspace and its image.
//! The engines do not pass on the end of their client, so hob removes the container itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::files::PROTECTED;

/// Processes of one container, so that a command cannot fill the machine with them.
const PROCESSES_MAX: &str = "--pids-limit=512";

/// A container with a name of its own. Dropping it removes the container, with everything that runs in it.
#[derive(Debug)]
pub(super) struct Container {
    engine: PathBuf,
    name: String,
}

impl Container {
    pub(super) fn new(engine: &Path) -> Container {
        let name = format!("hob-{:016x}", fastrand::u64(..));
        Container { engine: engine.to_owned(), name }
    }

    /// Starts the container; the command follows. The image is not fetched: a download is not what a model asks for.
    pub(super) fn run(&self, image: &str, workspace: &Path, folder: &Path) -> Command {
        let mut command = Command::new(&self.engine);
        command.args(["run", "--rm", "--pull=never", "--network=none", "--read-only"]);
        command.args(["--cap-drop=all", "--security-opt=no-new-privileges", PROCESSES_MAX]);
        // Without this, SELinux keeps the container out of the workspace.
        command.arg("--security-opt=label=disable");
        if self.engine.file_stem().is_some_and(|name| name == "docker") {
            // Files that a command writes belong to the user. Podman without root does so by itself.
            let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
            command.arg(format!("--user={}:{}", user.as_raw(), group.as_raw()));
        }
        command.args(["--tmpfs", "/tmp", "--env", "HOME=/tmp", "--name", &self.name]);
        command.arg("--volume").arg(volume(workspace, "rw"));
        for protected in PROTECTED {
            let path = workspace.join(protected);
            if path.exists() {
                command.arg("--volume").arg(volume(&path, "ro"));
            }
        }
        command.arg("--workdir").arg(workspace.join(folder)).args(["--entrypoint", ""]).arg(image);
        command
    }
}

/// A folder that has the same path inside.
fn volume(path: &Path, access: &str) -> OsString {
    let mut volume = path.as_os_str().to_owned();
    volume.push(":");
    volume.push(path);
    volume.push(":");
    volume.push(access);
    volume
}

impl Drop for Container {
    fn drop(&mut self) {
        let mut remove = std::process::Command::new(&self.engine);
        remove.args(["rm", "--force", &self.name]);
        remove.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A container that has ended is gone already, and so is the engine's interest in it.
        if let Ok(mut child) = remove.spawn() {
            std::thread::spawn(move || child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::{SandboxPrograms, Shell};
    use crate::executable::write_executable;
    use crate::tool::AgentTool as _;

    /// A program that runs the command behind the image on this machine, and notes how it was called.
    const ENGINE: &str = r#"#!/bin/sh
echo "$@" >> "$0.calls"
[ "$1" = run ] || exit 0
while [ "$1" != busy ]; do [ "$1" != --workdir ] || cd "$2"; shift; done
shift
exec "$@"
"#;

    #[tokio::test]
    async fn a_container_lives_no_longer_than_its_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().join("work");
        std::fs::create_dir_all(workspace.join("teams")).expect("a folder");
        let engine = folder.path().join("podman");
        write_executable(&engine, ENGINE);
        let programs = SandboxPrograms {
            containers: Some(engine.clone()),
            image: Some("busy".to_owned()),
            ..SandboxPrograms::default()
        };
        let shell = Shell::new(programs, &workspace);
        let output = shell.call(json!({ "command": "echo hello" })).await;
        assert_eq!(output.text, "hello\n");
        let made = shell.call(json!({ "command": "echo x > hob.toml" })).await;
        assert!(made.is_error && made.text.contains("was deleted"), "{}", made.text);
        assert!(!workspace.join("hob.toml").exists());
        let slow = shell.call(json!({ "command": "sleep 30", "timeout_s": 1 })).await;
        assert!(slow.is_error && slow.text.contains("after 1 s"), "{}", slow.text);
        let path = engine.with_extension("calls");
        // The probe and three commands: each container is started, and removed by its name.
        let calls = loop {
            let calls = std::fs::read_to_string(&path).expect("calls");
            if calls.lines().count() >= 8 {
                break calls;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        let started: Vec<&str> = calls.lines().filter(|call| call.starts_with("run ")).collect();
        let name = |call: &str| call.split_once("--name ").map(|(_, rest)| rest[..20].to_owned());
        for call in &started {
            let removed = format!("rm --force {}", name(call).expect("a name"));
            assert!(calls.lines().any(|call| call == removed), "{removed} in {calls}");
            assert!(call.contains("--network=none --read-only --cap-drop=all"), "{call}");
            assert!(call.contains("teams:ro"), "team files stay as they are: {call}");
        }
        assert_eq!(started.len(), 4);
    }

    #[tokio::test]
    async fn an_image_needs_an_engine() {
        let programs =
            SandboxPrograms { image: Some("busy".to_owned()), ..SandboxPrograms::default() };
        let output = Shell::new(programs, Path::new(".")).call(json!({ "command": "true" })).await;
        assert!(output.is_error && output.text.contains("podman or docker"), "{}", output.text);
    }
}
