//! The process that tries grammars for a chat worker: it compiles each once, with limits of memory and time, and
//! reports whether it can be compiled. A grammar that crashes the compiler ends only this process.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use hob_core::ChatRequest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::request_reader::{answer_rules, refusal};
use crate::chat::constraint::{Constrainer, ConstraintError, STACK_BYTES, Vocabulary};
use crate::chat::dialect::{TOOL_DIALECTS, ToolDialect};
use crate::chat::protocol::Refusal;
use crate::chat::tokens::Token;
use crate::frame::{Frame, FrameKind};
use crate::memory;
use crate::worker::frame_socket::FrameSocket;

/// How long a grammar may take to compile. The grammars of real clients take less than a second.
pub(super) const COMPILE_TIME_MAX: Duration = Duration::from_secs(10);

/// Memory of one compilation. The grammars of real clients take less than a tenth of it.
const COMPILE_BYTES_MAX: usize = 512 << 20;

/// What the process needs to know of the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TrialModel {
    pub(super) tokens: Vec<Token>,
    /// The form of its tool calls, as its place in [`TOOL_DIALECTS`].
    pub(super) tool_dialect: Option<u8>,
}

/// From the process. The first report is `Ready`; the others follow one request each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum TrialReport {
    Ready,
    Compiles,
    Refused(Refusal),
    /// The process ends after this report, and the compilation with it.
    TooSlow,
}

/// One end of the socket between a chat worker and its trial process.
pub(super) struct TrialSocket(FrameSocket);

impl TrialSocket {
    pub(super) fn new(socket: UnixStream) -> TrialSocket {
        TrialSocket(FrameSocket::new(socket))
    }

    /// How long the other side may take to read or to write.
    pub(super) fn set_limit(&self, limit: Duration) -> io::Result<()> {
        self.0.stream.set_read_timeout(Some(limit))?;
        self.0.stream.set_write_timeout(Some(limit))
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let frame = Frame::new(FrameKind::Model, 0, message).map_err(io::Error::other)?;
        self.0.send([frame])
    }

    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the other side has closed the socket.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        self.0.receive()?.decode().map_err(io::Error::other)
    }
}

/// Tries the grammars that a chat worker sends. Returns when the worker closes the socket, or when a grammar takes too
/// long: the end of the process ends its compilation.
///
/// # Errors
/// The socket fails, or the compiler panics.
pub fn try_grammars(socket: UnixStream) -> io::Result<()> {
    let mut socket = TrialSocket::new(socket);
    let model: TrialModel = socket.receive()?;
    let compiler = Arc::new(TrialCompiler::new(&model).map_err(io::Error::other)?);
    socket.send(&TrialReport::Ready)?;
    loop {
        let request: ChatRequest = match socket.receive() {
            Ok(request) => request,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let compiler = Arc::clone(&compiler);
        let report = report_within(COMPILE_TIME_MAX, move || compiler.try_compiling(&request))?;
        socket.send(&report)?;
        if report == TrialReport::TooSlow {
            return Ok(());
        }
    }
}

/// Compiles on a thread that can be left behind.
fn report_within(
    limit: Duration,
    compile: impl FnOnce() -> Result<(), ConstraintError> + Send + 'static,
) -> io::Result<TrialReport> {
    let (said, report) = sync_channel(1);
    let compiling = thread::Builder::new().name("grammar".to_owned()).stack_size(STACK_BYTES);
    compiling.spawn(move || {
        let tried = memory::limited("a grammar", COMPILE_BYTES_MAX, compile);
        // Without a receiver, the time is over.
        drop(said.send(tried));
    })?;
    match report.recv_timeout(limit) {
        Ok(Ok(())) => Ok(TrialReport::Compiles),
        Ok(Err(error)) => Ok(TrialReport::Refused(refusal(error))),
        Err(RecvTimeoutError::Timeout) => Ok(TrialReport::TooSlow),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the compiler panicked")),
    }
}

struct TrialCompiler {
    constrainer: Constrainer,
    tool_dialect: Option<&'static ToolDialect>,
}

impl TrialCompiler {
    fn new(model: &TrialModel) -> Result<TrialCompiler, ConstraintError> {
        let vocabulary = Vocabulary::new(&model.tokens)?;
        let constrainer = Constrainer::new(vocabulary)?;
        let dialect = model.tool_dialect.and_then(|at| TOOL_DIALECTS.get(usize::from(at)));
        Ok(TrialCompiler { constrainer, tool_dialect: dialect })
    }

    fn try_compiling(&self, request: &ChatRequest) -> Result<(), ConstraintError> {
        self.constrainer.try_compiling(&answer_rules(request, self.tool_dialect))
    }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::OutputFormat;

    use super::super::tests::byte_tokens;
    use super::*;

    /// The reports about these grammars, in order, until the process would end.
    fn reports(grammars: &[&str]) -> Vec<TrialReport> {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let process = thread::spawn(move || try_grammars(theirs));
        let mut socket = TrialSocket::new(ours);
        let tokens = byte_tokens().all().to_vec();
        socket.send(&TrialModel { tokens, tool_dialect: None }).expect("it reads");
        assert_eq!(socket.receive::<TrialReport>().expect("a report"), TrialReport::Ready);
        let mut reports = Vec::new();
        for grammar in grammars {
            let output = OutputFormat::Lark((*grammar).to_owned());
            socket.send(&ChatRequest { output, ..ChatRequest::default() }).expect("it reads");
            reports.push(socket.receive().expect("a report"));
        }
        drop(socket);
        process.join().expect("no panic").expect("a good end");
        reports
    }

    #[test]
    fn grammars_are_tried_one_after_another() {
        let reports = reports(&["start: \"a\"", "start: start", "start: \"b\""]);
        let [TrialReport::Compiles, TrialReport::Refused(refused), TrialReport::Compiles] =
            reports.as_slice()
        else {
            panic!("{reports:?}");
        };
        let Refusal::Field { field, reason } = refused else { panic!("{refused:?}") };
        assert_eq!(field, "grammar");
        assert!(reason.contains("no text can begin with it"), "{reason}");
    }

    #[test]
    fn a_grammar_that_is_not_done_in_time_is_too_slow() {
        let (release, held) = sync_channel::<()>(0);
        let compile = move || {
            let _released = held.recv();
            Ok(())
        };
        let report = report_within(Duration::from_millis(1), compile).expect("a thread");
        assert_eq!(report, TrialReport::TooSlow);
        drop(release);
    }
}
