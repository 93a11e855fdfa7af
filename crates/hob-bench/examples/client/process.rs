//! The mock server and the client as processes of their own, so that the work of one does not count as the other's.
//! A client can be held back, so that it runs a tenth of the time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long a client that is held back runs in each tenth of a second, and how long it is stopped.
const AWAKE: Duration = Duration::from_millis(10);
const ASLEEP: Duration = Duration::from_millis(90);

/// A mock server. Dropping this value ends its process.
pub(crate) struct Mock {
    process: Child,
    pub(crate) url: String,
}

impl Mock {
    pub(crate) fn start(script: &str) -> Result<Mock> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["mock", "--script", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        let said = process.stdout.take().context("its output")?;
        BufReader::new(said).read_line(&mut url)?;
        Ok(Mock { process, url: url.trim().to_owned() })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // The process ends when its input ends.
        drop(self.process.stdin.take());
        let _ended = self.process.wait();
    }
}

/// How much of a processor's time the client may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    All,
    ATenth,
}

/// The figures that a client in its own process prints.
pub(crate) fn measured(mock: &Mock, allowance: Allowance, arguments: &[&str]) -> Result<Value> {
    let mut client = Command::new(std::env::current_exe()?)
        .args(["measure", "--url", &mock.url])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()?;
    if allowance == Allowance::ATenth {
        hold_back(&mut client)?;
    }
    let done = client.wait_with_output()?;
    ensure!(done.status.success(), "the client failed");
    Ok(serde_json::from_slice(&done.stdout)?)
}

/// Stops the client and lets it go on, again and again until it ends. This works on every Unix and needs no rights.
fn hold_back(client: &mut Child) -> Result<()> {
    let pid = Pid::from_child(client);
    while client.try_wait()?.is_none() {
        kill_process(pid, Signal::STOP)?;
        thread::sleep(ASLEEP);
        kill_process(pid, Signal::CONT)?;
        thread::sleep(AWAKE);
    }
    Ok(())
}
