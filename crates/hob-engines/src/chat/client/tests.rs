//! The client with a worker that dies while it compiles a grammar. The worker is a shell script that sends a real
//! worker's frames up to that point.

use hob_core::chat::{OutputFormat, Prompt};
use hob_core::{ChatCard, ChatModel, ChatRequest, ModelError};

use super::{ChatReport, ChatWorker, ChatWorkerOptions};
use crate::frame::{Frame, FrameKind};
use crate::supervisor::{Backoff, SupervisorOptions, WorkerCommand};
use crate::worker::protocol::{Report, hello};

/// `bytes` in printf's notation.
fn printf(frames: &[Frame]) -> String {
    let mut bytes = Vec::new();
    for frame in frames {
        frame.encode(&mut bytes).expect("small");
    }
    let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{octal}' >&0\n")
}

/// Sends the handshake and Ready. Once a request begins to arrive, sends Compiling of stream 1, and dies.
fn dies() -> String {
    let ready = Report::Ready { vram_bytes: 0, about: Vec::new() }.to_frame(0).expect("small");
    let compiling = Frame::new(FrameKind::Model, 1, &ChatReport::Compiling).expect("small");
    let (begin, end) = (printf(&[hello(), ready]), printf(&[compiling]));
    format!("{begin}head -c 9 <&0 >/dev/null\n{end}kill -ABRT $$\n")
}

fn worker() -> ChatWorker {
    let command = WorkerCommand::new("/bin/sh").arg("-c").arg(dies());
    let defaults = ChatWorkerOptions::default();
    let at_once = std::time::Duration::ZERO;
    let backoff = Backoff { first: at_once, longest: at_once, ..Backoff::default() };
    let supervisor = SupervisorOptions { backoff, ..defaults.supervisor.clone() };
    ChatWorker::start(ChatCard::default(), command, ChatWorkerOptions { supervisor, ..defaults })
}

fn held_to(pattern: &str) -> ChatRequest {
    let output = OutputFormat::Regex(pattern.to_owned());
    ChatRequest { prompt: Prompt::Text("a".to_owned()), output, ..ChatRequest::default() }
}

async fn refused(worker: &ChatWorker, request: ChatRequest) -> ModelError {
    worker.chat(request).await.err().expect("no answer")
}

#[tokio::test]
async fn a_grammar_that_ended_a_worker_ends_no_other() {
    let worker = worker();
    let killer = refused(&worker, held_to("a+")).await;
    let ModelError::InvalidField { field: "regex", reason } = &killer else {
        panic!("{killer:?}");
    };
    assert!(reason.starts_with("crashed the chat worker during compilation"), "{reason}");
    // A request without a grammar is not to blame, and may come again.
    let innocent = ChatRequest { output: OutputFormat::Text, ..held_to("") };
    let lost = refused(&worker, innocent).await;
    assert!(matches!(lost, ModelError::WorkerLost { .. }), "{lost:?}");
    // Nor is another grammar, before it was tried.
    worker.supervisor.unload().await;
    assert_eq!(refused(&worker, held_to("a+")).await, killer);
    assert_eq!(worker.pid(), None, "the same grammar starts no worker");
    worker.shutdown().await;
}
