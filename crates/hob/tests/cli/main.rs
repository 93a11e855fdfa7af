//! The program as users see it: arguments, files and environment in; text and an exit code out.
//! Most tests need no models. Some use a scripted model behind a real server; a few use the real small models.

mod bench;
mod bench_import;
mod bench_plan;
mod bench_stt;
mod chat;
mod chat_real_model;
mod client_requests;
mod config;
mod endurance;
mod eval_real_model;
mod eval_server;
#[path = "../../../hob-models/tests/sources/executable.rs"]
mod executable;
mod fit;
#[path = "../../../hob-bench/src/launch/free_port.rs"]
mod free_port;
mod gateway;
mod gateway_reports;
mod hear_real_model;
mod hear_server;
mod heard_languages;
mod help;
#[path = "../../../hob-models/tests/sources/located/hub.rs"]
#[expect(dead_code, reason = "the tests of hob-models use more of it")]
mod hub;
mod ledger;
mod limits;
mod listened;
#[path = "../../../hob-models/tests/sources/loopback.rs"]
#[expect(dead_code, reason = "the tests of hob-models use more of it")]
mod loopback;
mod memory;
mod models;
mod packaging;
mod pulled;
mod quantize_real_model;
mod real_server;
mod realtime_real_model;
mod say;
mod say_real_model;
#[path = "../../../hob-bench/tests/eval/scripted_server.rs"]
mod scripted_server;
mod serve;
mod shallow_model;
mod talk;
mod talk_real_model;
mod team;
mod team_http;
mod team_pipelines;
mod team_sandbox;
mod team_scenes;
mod team_tools;
mod terminal;
mod timed_words;
#[cfg(feature = "vulkan")]
mod vulkan;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;
use tempfile::TempDir;

/// Waits until another process has done something that it does not print. After `seconds_max` the test fails with `failure`.
#[track_caller]
pub(crate) fn until(seconds_max: u64, failure: &str, mut is_so: impl FnMut() -> bool) {
    until_ok(seconds_max, || is_so().then_some(()).ok_or(failure));
}

/// Waits for what another process makes, and returns it. After `seconds_max` the test fails with the last error.
#[track_caller]
pub(crate) fn until_ok<T, E: Display>(
    seconds_max: u64,
    mut get: impl FnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + Duration::from_secs(seconds_max);
    loop {
        match get() {
            Ok(found) => return found,
            Err(failure) => assert!(Instant::now() < end, "{failure}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until hob has begun its work. It must not end before.
#[track_caller]
pub(crate) fn until_begun(hob: &mut Child, has_begun: impl Fn() -> bool) {
    while !has_begun() {
        assert_eq!(hob.try_wait().expect("a process"), None, "hob ended before it began");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until hob or its program reads this FIFO, and returns the other end. The reader waits for bytes while it is open.
#[track_caller]
pub(crate) fn until_read(hob: &mut Child, fifo: &Path) -> OwnedFd {
    // With these flags, a FIFO opens only if it has a reader.
    let (writer, flags) = (OnceCell::new(), OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC);
    until_begun(hob, || {
        let opened = open(fifo, flags, Mode::empty());
        opened.is_ok_and(|opened| writer.set(opened).is_ok())
    });
    writer.into_inner().expect("an open FIFO")
}

/// Waits until hob has ended, and returns its exit code.
#[track_caller]
pub(crate) fn exit_code(hob: &mut Child) -> Option<i32> {
    let mut ended = None;
    until(60, "hob did not end", || {
        ended = hob.try_wait().expect("a process");
        ended.is_some()
    });
    ended?.code()
}

/// Sends a signal, such as `-INT`, to a process.
#[track_caller]
pub(crate) fn kill(signal: &str, process_id: impl Display) {
    let id = process_id.to_string();
    let sent = std::process::Command::new("/bin/kill").args([signal, &id]).status();
    assert!(sent.expect("kill runs").success());
}

/// The words of a command: a line as a user types it, with quotes around a word that has spaces, or the words themselves.
pub(crate) struct Words(Vec<String>);

impl From<&str> for Words {
    fn from(line: &str) -> Words {
        Words(shlex::split(line).expect("quotes that are closed"))
    }
}

impl From<&String> for Words {
    fn from(line: &String) -> Words {
        line.as_str().into()
    }
}

impl From<String> for Words {
    fn from(line: String) -> Words {
        line.as_str().into()
    }
}

impl From<&[&str]> for Words {
    fn from(words: &[&str]) -> Words {
        Words(words.iter().map(|word| (*word).to_owned()).collect())
    }
}

impl<const N: usize> From<&[&str; N]> for Words {
    fn from(words: &[&str; N]) -> Words {
        words.as_slice().into()
    }
}

/// A new user: an empty home, no configuration and no models.
pub(crate) struct User {
    folder: TempDir,
    /// Further variables of the commands.
    environment: Vec<(&'static str, OsString)>,
}

impl User {
    pub(crate) fn new() -> User {
        let folder = tempfile::tempdir().expect("a folder");
        let user = User { folder, environment: Vec::new() };
        for folder in ["home", "work", "programs"] {
            std::fs::create_dir(user.path(folder)).expect("a folder");
        }
        user
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the working folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path("work").join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Writes the configuration in the working folder.
    pub(crate) fn configure(&self, text: &str) {
        self.write("hob.toml", text);
    }

    /// With this configuration in the working folder.
    pub(crate) fn configured(self, text: &str) -> User {
        self.configure(text);
        self
    }

    /// Reads a file of the working folder.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path("work").join(name)).expect("a file")
    }

    /// With a variable for all commands.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> User {
        self.environment.push((name, value.into()));
        self
    }

    /// With this folder of models in the user's folder.
    pub(crate) fn with_home(self, name: &str) -> User {
        let home = self.path(name);
        self.with("HOB_HOME", home)
    }

    pub(crate) fn hob(&self, words: impl Into<Words>) -> Command {
        let mut command = Command::from(self.process(words));
        command.timeout(Duration::from_secs(300));
        command
    }

    /// Runs hob, which succeeds, and returns what it prints on stdout.
    #[track_caller]
    pub(crate) fn prints(&self, words: impl Into<Words>) -> String {
        stdout(&self.hob(words).assert().success())
    }

    /// The same for JSON.
    #[track_caller]
    pub(crate) fn json(&self, words: impl Into<Words>) -> Value {
        json_stdout(&self.hob(words).assert().success())
    }

    /// Runs hob, which succeeds, and returns what it says on stderr.
    #[track_caller]
    pub(crate) fn notes(&self, words: impl Into<Words>) -> String {
        stderr(&self.hob(words).assert().success())
    }

    /// Runs hob, which ends with this code, and returns what it says on stderr.
    #[track_caller]
    pub(crate) fn refusal(&self, words: impl Into<Words>, code: i32) -> String {
        stderr(&self.hob(words).assert().code(code))
    }

    /// Runs hob, which ends with this code and says this on stderr.
    #[track_caller]
    pub(crate) fn fails(&self, words: impl Into<Words>, code: i32, part: &str) {
        let Words(words) = words.into();
        let line = words.join(" ");
        let said = self.refusal(Words(words), code);
        assert!(said.contains(part), "{line} gave:\n{said}");
    }

    /// A command in a clean environment. Unless its `hob.toml` has an address, it looks for a running hob at an
    /// address where no program can listen, because a developer's own hob may use the default port.
    pub(crate) fn process(&self, words: impl Into<Words>) -> std::process::Command {
        let Words(words) = words.into();
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("hob"));
        command
            .args(words)
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            // Tests never use the network outside this machine.
            .env("HF_ENDPOINT", "http://127.0.0.1:1")
            .env("HOB_OLLAMA_REGISTRY", "http://127.0.0.1:1")
            .env("PATH", self.path("programs"))
            .envs(self.environment.iter().cloned());
        let config = std::fs::read_to_string(self.path("work/hob.toml")).unwrap_or_default();
        if !config.contains("listen") {
            command.env("HOB_LISTEN", "127.0.0.1:1");
        }
        command
    }
}

pub(crate) fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("UTF-8")
}

pub(crate) fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("UTF-8")
}

/// The result of a command with `--json`.
pub(crate) fn json_stdout(assert: &Assert) -> Value {
    serde_json::from_str(&stdout(assert)).expect("JSON")
}

/// Checks of what hob prints.
pub(crate) trait Has {
    /// Checks that the text has all these parts.
    fn has(&self, parts: &[&str]);
}

impl Has for str {
    #[track_caller]
    fn has(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.contains(part), "{part:?} is not in:\n{self}");
        }
    }
}

/// The names of the files in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
