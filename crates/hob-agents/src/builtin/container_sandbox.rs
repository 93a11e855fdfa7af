//! A container of podman or docker as a sandbox, a new one for each command. It has the image's files and the workspace.
//! A container goes on when the program that started it is killed, so hob removes the container itself.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::limits;
use super::protected::guarded;
use super::sandbox_access::SandboxAccess;
use crate::team::{SandboxMode, SandboxNetwork};

/// How long an engine may take to remove a container.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);
/// How often hob looks whether the removal has ended.
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// A container with a name of its own. Dropping it removes the container, with everything that runs in it.
#[derive(Debug)]
pub(super) struct Container {
    engine: PathBuf,
    name: String,
    is_removed: bool,
}

impl Container {
    pub(super) fn new(engine: &Path) -> Container {
        let name = format!("hob-{:016x}", fastrand::u64(..));
        Container { engine: engine.to_owned(), name, is_removed: false }
    }

    /// Begins to remove the container.
    pub(super) fn remove(mut self) -> ContainerRemoval {
        self.begin_removal()
    }

    fn begin_removal(&mut self) -> ContainerRemoval {
        self.is_removed = true;
        let mut remove = std::process::Command::new(&self.engine);
        remove.args(["rm", "--force", &self.name]);
        remove.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in a terminal is for hob alone: a second one would end the removal, and the container would stay.
        remove.process_group(0);
        // An error is no problem where the container has ended: `run --rm` has removed it.
        ContainerRemoval(remove.spawn().ok())
    }

    /// The call of the engine that starts the container; the caller adds the command. The engine does not fetch the
    /// image, because a model's command must not start a download.
    pub(super) fn run(
        &self,
        image: &str,
        workspace: &Path,
        folder: &Path,
        access: SandboxAccess,
    ) -> Command {
        let mut command = Command::new(&self.engine);
        // Removing the container kills a command that is still running, without a grace period.
        command.args(["run", "--rm", "--pull=never", "--stop-timeout=0"]);
        if access.network == SandboxNetwork::Off {
            command.arg("--network=none");
        }
        command.args(["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]);
        command.args(limits::container_limits());
        // Without this, SELinux keeps the container out of the workspace.
        command.arg("--security-opt=label=disable");
        if self.engine.file_stem().is_some_and(|name| name == "docker") {
            // So files that a command writes belong to the user of hob. Podman without root does this by itself.
            let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
            command.arg(format!("--user={}:{}", user.as_raw(), group.as_raw()));
        }
        command.args(["--tmpfs", "/tmp", "--env", "HOME=/tmp", "--name", &self.name]);
        let rights = match access.mode {
            SandboxMode::ReadOnly => "ro",
            SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess => "rw",
        };
        command.arg("--volume").arg(volume(workspace, rights));
        for path in guarded(workspace) {
            command.arg("--volume").arg(volume(&path, "ro"));
        }
        command.arg("--workdir").arg(workspace.join(folder)).args(["--entrypoint", ""]).arg(image);
        command
    }
}

/// The value of `--volume` for a file or folder that has the same path in the container.
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
        if !self.is_removed {
            let removal = self.begin_removal();
            std::thread::spawn(move || removal.wait());
        }
    }
}

/// The engine's process that removes a container. `None`: it could not be started.
#[derive(Debug)]
pub(super) struct ContainerRemoval(Option<Child>);

impl ContainerRemoval {
    /// Waits until the container is gone, at most [`REMOVAL_LIMIT`].
    pub(super) fn wait(self) {
        let Some(mut engine) = self.0 else { return };
        let begun = Instant::now();
        // An error means that the engine has ended.
        while matches!(engine.try_wait(), Ok(None)) {
            if begun.elapsed() > REMOVAL_LIMIT {
                let _ended = engine.kill();
                let _status = engine.wait();
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, getpgid};
    use serde_json::json;

    use super::*;
    use crate::builtin::{SandboxPrograms, Shell};
    use crate::executable::write_executable;
    use crate::tool::AgentTool as _;

    /// Seconds after which a command is ended. They are enough for the scripts here to begin on a busy machine.
    const LIMIT_SECONDS: u64 = 5;

    /// An engine that runs the command, which follows the image's name, on this machine, and notes its own arguments.
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
        let (shell, workspace) = shell_with(folder.path(), ENGINE);
        std::fs::create_dir(workspace.join("teams")).expect("a folder");
        let output = shell.call(json!({ "command": "echo hello" })).await;
        assert_eq!(output.text, "hello\n");
        let made = shell.call(json!({ "command": "echo x > hob.toml" })).await;
        assert!(made.is_error && made.text.contains("hob.toml.from-a-command-1"), "{}", made.text);
        assert!(!workspace.join("hob.toml").exists());
        let slow = json!({ "command": "sleep 600", "timeout_s": LIMIT_SECONDS });
        let slow = shell.call(slow).await;
        let ended = format!("after {LIMIT_SECONDS} s");
        assert!(slow.is_error && slow.text.contains(&ended), "{}", slow.text);
        let path = folder.path().join("podman.calls");
        // hob starts four containers, for the probe and three commands, and removes each by its name.
        let calls = loop {
            let calls = std::fs::read_to_string(&path).expect("calls");
            if calls.lines().count() >= 8 {
                break calls;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let started: Vec<&str> = calls.lines().filter(|call| call.starts_with("run ")).collect();
        let name = |call: &str| call.split_once("--name ").map(|(_, rest)| rest[..20].to_owned());
        for call in &started {
            let removed = format!("rm --force {}", name(call).expect("a name"));
            assert!(calls.lines().any(|call| call == removed), "{removed} in {calls}");
            assert!(call.contains("--network=none --read-only --cap-drop=all"), "{call}");
            let limits = "--pids-limit=512 --ulimit=core=0 --ulimit=fsize=536870912 \
                          --ulimit=data=4294967296 --ulimit=cpu=600:605";
            assert!(call.contains(limits), "{call}");
            assert!(call.contains("teams:ro"), "team files stay as they are: {call}");
        }
        assert_eq!(started.len(), 4);
    }

    /// The engine enforces the limits. The exit codes are those of the other sandboxes.
    #[tokio::test]
    async fn a_limit_of_a_container_has_the_same_sentence() {
        let folder = tempfile::tempdir().expect("a folder");
        let (shell, _) = shell_with(folder.path(), ENGINE);
        for (command, part) in [
            ("exit 153", "a file would have become larger than 512 MiB"),
            ("exit 137", "memory runs out"),
        ] {
            let output = shell.call(json!({ "command": command })).await;
            assert!(output.is_error && output.text.contains(part), "{command}: {}", output.text);
        }
        let description = &shell.spec().description;
        assert!(description.contains("may take 120 s and print 64 MiB"), "{description}");
        assert!(description.contains("512 processes"), "{description}");
    }

    /// The tool `shell` with this engine, in a new workspace.
    fn shell_with(folder: &Path, script: &str) -> (Shell, PathBuf) {
        let (engine, workspace) = (folder.join("podman"), folder.join("work"));
        std::fs::create_dir_all(&workspace).expect("a folder");
        write_executable(&engine, script);
        let programs = SandboxPrograms {
            container_engine: Some(engine),
            image: Some("busy".to_owned()),
            ..SandboxPrograms::default()
        };
        (Shell::new(programs, &workspace), workspace)
    }

    /// An engine with a container that goes on after its client has ended. The container makes `hob.toml` again and again
    /// until it is removed, and once more during its removal.
    #[cfg(target_os = "linux")]
    const STUBBORN: &str = r#"#!/bin/sh
if [ "$1" = rm ]; then
  touch "$0.$3.stop"
  while [ -e "$0.$3.alive" ]; do sleep 0.01; done
  exit
fi
while [ "$1" != busy ]; do
  case "$1" in --name) name=$2 ;; --workdir) folder=$2 ;; esac
  shift
done
[ "$4" = true ] && exit
touch "$0.$name.alive"
setsid sh -c 'while [ ! -e "$1.stop" ]; do echo x > "$2/hob.toml"; sleep 0.01; done
  sleep 0.1; echo x > "$2/hob.toml"; rm "$1.alive"' sh "$0.$name" "$folder" > /dev/null 2>&1 &
wait
"#;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_a_container_makes_until_it_is_gone_does_not_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let (shell, workspace) = shell_with(folder.path(), STUBBORN);
        let made = workspace.join("hob.toml");
        let cut = shell.call(json!({ "command": "work", "timeout_s": LIMIT_SECONDS })).await;
        assert!(cut.is_error && cut.text.contains("'hob.toml' decides"), "{}", cut.text);
        assert!(!made.exists(), "the container ended before the files were looked at");
        // The run is cancelled while its command works.
        {
            let mut call = shell.call(json!({ "command": "work" }));
            while !made.exists() {
                let _works = tokio::time::timeout(Duration::from_millis(5), &mut call).await;
            }
        }
        let is_alive = || {
            let mut entries = std::fs::read_dir(folder.path()).expect("a folder");
            entries.any(|entry| entry.expect("a file").path().extension() == Some("alive".as_ref()))
        };
        let begun = Instant::now();
        while is_alive() || made.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} stays", made.display());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn commands_at_the_same_time_hide_nothing_of_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let (shell, workspace) = shell_with(folder.path(), ENGINE);
        // The second command begins when the first has made the file. It makes the file again when hob has removed it.
        let first = "echo x > hob.toml; until [ -e second ]; do sleep 0.01; done";
        let second = "touch second; while [ -e hob.toml ]; do sleep 0.01; done; echo y > hob.toml; touch end";
        let call = |command: &str| shell.call(json!({ "command": command, "timeout_s": 60 }));
        let begun = async {
            while !workspace.join("hob.toml").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            call(second).await
        };
        let (first, second) = futures::join!(call(first), begun);
        assert!(workspace.join("end").exists(), "{}", second.text);
        for output in [first, second] {
            assert!(output.is_error && output.text.contains("'hob.toml' decides"), "{output:?}");
        }
        assert!(!workspace.join("hob.toml").exists());
    }

    #[test]
    fn ctrl_c_does_not_reach_a_removal() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = folder.path().join("podman");
        write_executable(&engine, "#!/bin/sh\nexec sleep 1000\n");
        let mut removal = Container::new(&engine).remove().0.expect("it runs");
        let id = i32::try_from(removal.id()).ok().and_then(Pid::from_raw);
        let group = getpgid(id).ok();
        removal.kill().expect("it runs");
        removal.wait().expect("it ended");
        assert_eq!(group, id, "a group of its own");
    }

    #[test]
    fn a_container_has_what_the_team_wants() {
        let container = Container::new(Path::new("/nowhere/podman"));
        let args = |mode, network| {
            let access = SandboxAccess { mode, network };
            let command = container.run("busy", Path::new("/w"), Path::new(""), access);
            let args = command.as_std().get_args().map(|arg| arg.to_string_lossy().into_owned());
            args.collect::<Vec<_>>().join(" ")
        };
        let open = args(SandboxMode::WorkspaceWrite, SandboxNetwork::On);
        assert!(open.contains("/w:/w:rw") && !open.contains("--network=none"), "{open}");
        let closed = args(SandboxMode::ReadOnly, SandboxNetwork::Off);
        assert!(closed.contains("/w:/w:ro") && closed.contains("--network=none"), "{closed}");
    }

    #[tokio::test]
    async fn an_image_needs_an_engine() {
        let programs =
            SandboxPrograms { image: Some("busy".to_owned()), ..SandboxPrograms::default() };
        let output = Shell::new(programs, Path::new(".")).call(json!({ "command": "true" })).await;
        assert!(output.is_error && output.text.contains("podman or docker"), "{}", output.text);
    }
}
