//! Tries grammars in a process of its own before the worker compiles them. A crash, a compilation without an end and a
//! need for all memory cannot be caught in the worker, where they would end all its answers.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hob_core::ChatRequest;

use super::request_reader::{RequestReader, answer_rules, refused};
use super::trial_process::{COMPILE_TIME_MAX, TrialModel, TrialReport, TrialSocket};
use crate::chat::dialect::{TOOL_DIALECTS, ToolDialect};
use crate::chat::failures::RecentFailures;
use crate::chat::protocol::{Refusal, constraints_of};
use crate::supervisor::WorkerCommand;

/// How long the process may take to read the vocabulary.
const START_TIME_MAX: Duration = Duration::from_secs(30);
/// A process that has reported nothing after this time is ended.
const REPORT_TIME_MAX: Duration = Duration::from_secs(15);
/// Grammars that failed are remembered, so that a client that retries does not take the time of others again.
const FAILED_TIME: Duration = Duration::from_secs(600);
/// The process is ended after this time without a grammar, because its vocabulary takes memory.
pub(super) const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

pub(super) struct GrammarTrials<'a> {
    reader: &'a RequestReader,
    /// `None`: grammars are not tried.
    command: Option<&'a WorkerCommand>,
    process: Option<TrialProcess>,
    /// When no process could be started.
    start_failed_at: Option<Instant>,
    failed: RecentFailures<Refusal>,
}

impl<'a> GrammarTrials<'a> {
    pub(super) fn new(
        reader: &'a RequestReader,
        command: Option<&'a WorkerCommand>,
    ) -> GrammarTrials<'a> {
        GrammarTrials {
            reader,
            command,
            process: None,
            start_failed_at: None,
            failed: RecentFailures::new(FAILED_TIME),
        }
    }

    pub(super) fn reader(&self) -> &'a RequestReader {
        self.reader
    }

    /// Ends the process until it is needed again.
    pub(super) fn rest(&mut self) {
        self.process = None;
    }

    /// Returns when the worker may compile the grammar of this request.
    ///
    /// # Errors
    /// The grammar cannot be compiled, or it ended the process that tried.
    pub(super) fn pass(&mut self, request: &ChatRequest) -> Result<(), Refusal> {
        if self.command.is_none() || !self.reader.must_compile(request) {
            return Ok(());
        }
        let constraints = constraints_of(request);
        if let Some(refusal) = self.failed.known(&constraints) {
            return Err(refusal);
        }
        let Some(process) = self.running() else { return Ok(()) };
        let reason = match process.report_on(&constraints) {
            Ok(TrialReport::Ready | TrialReport::Compiles) => return Ok(()),
            Ok(TrialReport::Refused(refusal)) => return Err(refusal),
            Ok(TrialReport::TooSlow) => too_slow(),
            Err(error) if is_timeout(&error) => too_slow(),
            Err(_) => "crashes the grammar compiler, or needs too much memory".to_owned(),
        };
        self.process = None;
        let rules = answer_rules(request, self.reader.tool_dialect());
        let refusal = refused(rules.field(), reason);
        self.failed.remember(&constraints, refusal.clone());
        Err(refusal)
    }

    /// The process, which is started if it does not run. `None` if it cannot be started: the worker then compiles untried
    /// grammars, and the server refuses those that crash it.
    fn running(&mut self) -> Option<&mut TrialProcess> {
        if self.start_failed_at.is_some_and(|since| since.elapsed() < FAILED_TIME) {
            return None;
        }
        if self.process.as_mut().is_none_or(TrialProcess::has_ended) {
            let started = TrialProcess::start(self.command?, &trial_model(self.reader));
            if let Err(error) = &started {
                let message = format!("grammars are not tried before they are compiled: {error}");
                // Without a reader of standard error, the message is lost.
                drop(writeln!(io::stderr(), "{message}"));
                self.start_failed_at = Some(Instant::now());
            }
            self.process = started.ok();
        }
        self.process.as_mut()
    }
}

/// The running process. Dropping it ends it.
struct TrialProcess {
    child: Child,
    socket: TrialSocket,
}

impl TrialProcess {
    fn start(command: &WorkerCommand, model: &TrialModel) -> io::Result<TrialProcess> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(&command.program)
            .args(&command.args)
            .envs(command.envs.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // The server reads the worker's standard error until all who write to it have ended.
            .stderr(Stdio::null())
            .spawn()?;
        let mut process = TrialProcess { child, socket: TrialSocket::new(ours) };
        process.socket.set_limit(START_TIME_MAX)?;
        process.socket.send(model)?;
        match process.socket.receive::<TrialReport>()? {
            TrialReport::Ready => {}
            other => return Err(io::Error::other(format!("it began with {other:?}"))),
        }
        process.socket.set_limit(REPORT_TIME_MAX)?;
        Ok(process)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn report_on(&mut self, constraints: &ChatRequest) -> io::Result<TrialReport> {
        self.socket.send(constraints)?;
        self.socket.receive()
    }
}

impl Drop for TrialProcess {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(super) fn trial_model(reader: &RequestReader) -> TrialModel {
    let place = |dialect: &ToolDialect| TOOL_DIALECTS.iter().position(|known| known == dialect);
    let tool_dialect = reader.tool_dialect().and_then(place).and_then(|at| u8::try_from(at).ok());
    TrialModel { tokens: reader.tokens().to_vec(), tool_dialect }
}

fn too_slow() -> String {
    format!("takes more than {} s to compile", COMPILE_TIME_MAX.as_secs())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
