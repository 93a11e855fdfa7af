//! The client with workers that die: while they compile a grammar, in the middle of an answer, and while they load. A worker
//! is a shell script that sends a real worker's frames up to that point.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use hob_core::budget::Bytes;
use hob_core::chat::{ChatEvent, OutputFormat, Prompt};
use hob_core::fit::Pool;
use hob_core::{
    ChatCard, ChatModel, ChatRequest, MemoryBroker, MemoryDecision, MemoryRequest, ModelError,
    ModelState, PoolUse, ReservedMemory,
};

use super::{ChatClient, ChatReport, ChatWorker, constraints_of, events};
use crate::frame::{Frame, FrameKind};
use crate::speech::SpeechWorkerOptions;
use crate::supervisor::session::{LoadedModel, WorkerSession};
use crate::supervisor::{Backoff, PlacedWorker, Placer, SupervisorOptions, WorkerCommand};
use crate::transcription::TranscriptionWorker;
use crate::worker::protocol::{CommonOrder, DeviceShortage, Report, hello};
use crate::worker::test_socket::printf;

fn shell(script: &str) -> WorkerCommand {
    WorkerCommand::new("/bin/sh").arg("-c").arg(script)
}

fn start(command: WorkerCommand, supervisor: SupervisorOptions) -> ChatWorker {
    let at_once = Duration::ZERO;
    let backoff = Backoff { first: at_once, longest: at_once, ..Backoff::default() };
    ChatWorker::start(ChatCard::default(), command, SupervisorOptions { backoff, ..supervisor })
}

/// A worker that always starts with this command.
fn alone(command: WorkerCommand) -> ChatWorker {
    start(command, SupervisorOptions::new(super::ENGINE))
}

fn request() -> ChatRequest {
    ChatRequest { prompt: Prompt::Text("a".to_owned()), ..ChatRequest::default() }
}

fn held_to(pattern: &str) -> ChatRequest {
    ChatRequest { output: OutputFormat::Regex(pattern.to_owned()), ..request() }
}

#[tokio::test]
async fn a_grammar_that_crashed_a_worker_crashes_no_other() {
    let compiling = Frame::new(FrameKind::Model, 1, &ChatReport::Compiling).expect("small");
    let (begin, end) = (printf(&[hello(), ready()]), printf(&[compiling]));
    let script = format!("{begin}head -c 9 <&0 >/dev/null\n{end}kill -ABRT $$\n");
    let worker = alone(shell(&script));
    let refused = worker.chat(held_to("a+")).await.err().expect("no answer");
    let ModelError::InvalidField { field: "regex", reason } = &refused else {
        panic!("{refused:?}");
    };
    assert!(reason.starts_with("crashed the chat worker during compilation"), "{reason}");
    worker.supervisor.unload().await;
    assert_eq!(worker.chat(held_to("a+")).await.err(), Some(refused));
    assert_eq!(worker.pid(), None, "the same grammar starts no worker");
    worker.shutdown().await;
}

#[tokio::test]
async fn only_a_grammar_whose_compilation_crashed_a_worker_is_refused() {
    let (compiling, compiled) = (ChatReport::Compiling, ChatReport::Compiled);
    for (reports, is_unloaded, is_refused) in [
        (vec![compiling.clone()], false, true),
        (vec![compiling.clone()], true, false),
        (vec![compiling, compiled], false, false),
        (Vec::new(), false, false),
    ] {
        let client = ChatClient::new(ChatCard::default());
        let (session, _to_write) =
            WorkerSession::new(super::ENGINE, LoadedModel::default(), None, 1);
        let mut stream = session.open().expect("room");
        for report in &reports {
            session.route(Frame::new(FrameKind::Model, 1, report).expect("small"));
        }
        let [killer, other] = ["a+", "b+"].map(|pattern| constraints_of(&held_to(pattern)));
        let accepted = client.accepted(&mut stream, &killer).now_or_never();
        assert_eq!(accepted, None, "its client leaves meanwhile");
        assert_eq!(client.check(&killer), Ok(()), "the worker may survive it");
        if is_unloaded {
            session.leave();
        }
        session.lose("killed by signal 11 (SIGSEGV)");
        assert_eq!(client.check(&killer).is_err(), is_refused, "{reports:?}");
        // A request with another grammar waited at the same time. It is not to blame, and may come again.
        let lost = client.accepted(&mut stream, &other).now_or_never();
        assert!(matches!(lost, Some(Err(ModelError::WorkerLost { .. }))), "{lost:?}");
        assert_eq!(client.check(&other), Ok(()));
    }
}

#[tokio::test]
async fn what_several_choices_ignore_is_named_once() {
    let request = request();
    let ignored = vec!["tools.add.not".to_owned()];
    let accepted = ChatReport::Accepted { ignored: ignored.clone() };
    let accepted = Frame::new(FrameKind::Model, 1, &accepted).expect("small");
    let (begin, accepts) = (printf(&[hello(), ready()]), printf(&[accepted]));
    let script = format!("{begin}head -c 9 <&0 >/dev/null\n{accepts}cat <&0 >/dev/null\n");
    for _ in 0..2 {
        let worker = alone(shell(&script));
        drop(worker.chat(request.clone()).await.expect("an answer"));
        assert_eq!(request.trace.snapshot().dropped, ignored);
        worker.shutdown().await;
    }
}

#[tokio::test]
async fn a_reader_that_stops_after_an_event_returns_no_credit_for_it() {
    let (session, _to_write) = WorkerSession::new(super::ENGINE, LoadedModel::default(), None, 1);
    let stream = session.open().expect("room");
    for piece in ["a", "b"] {
        let report = ChatReport::Event(text(piece));
        session.route(Frame::new(FrameKind::Model, 1, &report).expect("small"));
    }
    let mut read = events(stream, Duration::ZERO);
    assert_eq!(read.next().await, Some(Ok(text("a"))));
    assert!(session.take_urgent().is_empty(), "the next event may not be wanted");
    assert_eq!(read.next().await, Some(Ok(text("b"))));
    assert_eq!(session.take_urgent(), [(1, CommonOrder::Credit(1))]);
}

/// As documented: only the engine of a chat worker has longer, because one of its steps may take minutes.
#[test]
fn a_frozen_worker_of_each_kind_is_noticed_after_thirty_seconds() {
    let speech = SpeechWorkerOptions::default().supervisor;
    for options in [ChatWorker::options(), speech, TranscriptionWorker::options()] {
        assert_eq!(options.silence_limit, Duration::from_secs(30), "{}", options.engine);
    }
}

fn ready() -> Frame {
    Report::Ready { vram_bytes: 7, about: Vec::new() }.to_frame(0).expect("small")
}

/// Ready, and waits for its end.
fn stays() -> WorkerCommand {
    shell(&format!("{}cat <&0 >/dev/null\n", printf(&[hello(), ready()])))
}

fn loses_its_card() -> WorkerCommand {
    is_aborted("E ggml_vulkan: device lost on llvmpipe")
}

/// Answers "Hel", and is aborted as ggml is when the driver fails, after this line.
fn is_aborted(line: &str) -> WorkerCommand {
    let answer = [ChatReport::Accepted { ignored: Vec::new() }, ChatReport::Event(text("Hel"))];
    let answer = answer.map(|report| Frame::new(FrameKind::Model, 1, &report).expect("small"));
    let (begin, end) = (printf(&[hello(), ready()]), printf(&answer));
    shell(&format!("{begin}head -c 9 <&0 >/dev/null\n{end}echo '{line}' >&2\nkill -ABRT $$\n"))
}

/// A card without room.
fn finds_no_room() -> WorkerCommand {
    let report = Report::no_device_room("Vulkan0 has no room for 9 MB: 3 are free", shortage());
    let frames = [hello(), report.to_frame(0).expect("small")];
    shell(&format!("{}cat <&0 >/dev/null\n", printf(&frames)))
}

fn shortage() -> DeviceShortage {
    DeviceShortage { device: "Vulkan0".to_owned(), needed_bytes: 9, free_bytes: 3 }
}

fn text(text: &str) -> ChatEvent {
    ChatEvent::Text(text.to_owned())
}

/// Gives these commands, one after the other.
#[derive(Debug)]
struct StagedPlacer {
    commands: Vec<WorkerCommand>,
    at: AtomicUsize,
    shortages: Mutex<Vec<DeviceShortage>>,
}

impl StagedPlacer {
    fn new(commands: Vec<WorkerCommand>) -> Arc<StagedPlacer> {
        Arc::new(StagedPlacer { commands, at: AtomicUsize::new(0), shortages: Mutex::default() })
    }
}

impl Placer for StagedPlacer {
    fn place(&self) -> PlacedWorker {
        let at = self.at.load(Ordering::SeqCst);
        PlacedWorker {
            command: self.commands[at].clone(),
            predicted: Bytes::from([(Pool::Vram(0), 100)]),
            note: (at > 0).then(|| format!("place {at}")),
        }
    }

    fn move_from(&self, shortage: Option<&DeviceShortage>) -> Result<(), String> {
        self.shortages.lock().expect("not poisoned").extend(shortage.cloned());
        if self.at.load(Ordering::SeqCst) + 1 == self.commands.len() {
            return Err("gpu_layers = 3 fits".to_owned());
        }
        self.at.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn device_full(&self) -> String {
        "a shorter context needs less".to_owned()
    }

    fn device_lost(&self) -> String {
        "send it again".to_owned()
    }
}

fn placed(placer: &Arc<StagedPlacer>) -> SupervisorOptions {
    let placer = Some(Arc::clone(placer) as Arc<dyn Placer>);
    SupervisorOptions { placer, ..SupervisorOptions::new(super::ENGINE) }
}

#[tokio::test]
async fn a_card_that_fails_ends_its_answer_with_a_sentence_and_no_other_worker() {
    let full = || is_aborted("CUDA error: out of memory");
    let with_placer = |command| start(stays(), placed(&StagedPlacer::new(vec![command])));
    let other = alone(stays());
    other.load().await.expect("ready");
    let pid = other.pid();
    let was_lost = "was lost (ggml_vulkan: device lost on llvmpipe)";
    let was_full = "had no memory left (CUDA error: out of memory)";
    let again = "send the request again: hob loads the model again";
    for (worker, said, next) in [
        (with_placer(loses_its_card()), was_lost, "send it again"),
        (alone(loses_its_card()), was_lost, again),
        (with_placer(full()), was_full, "a shorter context needs less"),
        (alone(full()), was_full, again),
    ] {
        worker.load().await.expect("ready");
        let mut answer = worker.chat(request()).await.expect("accepted");
        assert_eq!(answer.next().await, Some(Ok(text("Hel"))));
        let detail = format!("the graphics card {said}; {next}");
        let lost = ModelError::WorkerLost { engine: "chat", detail };
        assert_eq!(answer.next().await, Some(Err(lost)));
        assert_eq!(answer.next().await, None);
        worker.shutdown().await;
    }
    assert_eq!((other.state(), other.pid()), (ModelState::Ready, pid));
    other.shutdown().await;
}

#[tokio::test]
async fn a_model_without_room_on_a_card_is_loaded_at_the_next_place() {
    let placer = StagedPlacer::new(vec![finds_no_room(), finds_no_room(), stays()]);
    let worker = start(stays(), placed(&placer));
    worker.load().await.expect("the third place has room");
    assert_eq!(*placer.shortages.lock().expect("not poisoned"), [shortage(), shortage()]);
    let taken = worker.memory_use();
    assert_eq!(taken.placement_note.as_deref(), Some("place 2"));
    let on_card = PoolUse { pool: Pool::Vram(0), predicted_bytes: 100, taken_bytes: None };
    assert_eq!((taken.pools, taken.vram_bytes), (vec![on_card], 7));
    worker.shutdown().await;
}

#[tokio::test]
async fn an_answer_says_that_its_model_is_at_another_place() {
    let placer = StagedPlacer::new(vec![finds_no_room(), loses_its_card()]);
    let worker = start(stays(), placed(&placer));
    worker.load().await.expect("the second place has room");
    let request = request();
    let trace = request.trace.clone();
    let mut answer = worker.chat(request).await.expect("accepted");
    assert_eq!(answer.next().await, Some(Ok(text("Hel"))));
    assert_eq!(trace.snapshot().placement_note.as_deref(), Some("place 1"));
    worker.shutdown().await;
}

#[tokio::test]
async fn without_another_place_the_error_says_what_would_fit() {
    let placer = StagedPlacer::new(vec![finds_no_room()]);
    let worker = start(stays(), placed(&placer));
    let error = worker.load().await.expect_err("no room");
    let detail = "it does not start: Vulkan0 has no room for 9 MB: 3 are free; gpu_layers = 3 fits";
    assert_eq!(error, ModelError::WorkerLost { engine: "chat", detail: detail.to_owned() });
    worker.shutdown().await;
}

/// Room for everything, on a card where a load takes 90 bytes. Counts the measurements.
#[derive(Clone, Debug, Default)]
struct MeasuredCard(Arc<AtomicUsize>);

impl MemoryBroker for MeasuredCard {
    fn check_room(&self) -> Result<(), ModelError> {
        Ok(())
    }

    fn queue(&self) -> Box<dyn MemoryRequest> {
        Box::new(self.clone())
    }

    fn admit_request(&self) -> bool {
        true
    }
}

impl MemoryRequest for MeasuredCard {
    fn try_reserve(&mut self) -> futures::future::BoxFuture<'_, MemoryDecision> {
        Box::pin(async { MemoryDecision::Granted(Box::new(self.clone())) })
    }
}

impl ReservedMemory for MeasuredCard {
    fn taken(&self) -> Bytes {
        self.0.fetch_add(1, Ordering::SeqCst);
        Bytes::from([(Pool::Vram(0), 90)])
    }
}

#[tokio::test]
async fn what_a_load_took_of_a_card_is_known_next_to_the_prediction() {
    let placer = StagedPlacer::new(vec![stays()]);
    let room = Some(Arc::new(MeasuredCard::default()) as Arc<dyn MemoryBroker>);
    let worker = start(stays(), SupervisorOptions { room, ..placed(&placer) });
    worker.load().await.expect("ready");
    while worker.memory_use().vram_bytes != 90 {
        tokio::task::yield_now().await;
    }
    let on_card = |taken_bytes| PoolUse { pool: Pool::Vram(0), predicted_bytes: 100, taken_bytes };
    assert_eq!(worker.memory_use().pools, [on_card(Some(90))]);
    worker.unload().await;
    let cold = worker.memory_use();
    assert_eq!((cold.pools, cold.vram_bytes), (vec![on_card(None)], 0));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_model_without_a_place_on_cards_takes_nothing_of_them() {
    let card = MeasuredCard::default();
    let room = Some(Arc::new(card.clone()) as Arc<dyn MemoryBroker>);
    let worker =
        start(stays(), SupervisorOptions { room, ..SupervisorOptions::new(super::ENGINE) });
    worker.load().await.expect("ready");
    // The test and the broker have one each. The third is the reservation's.
    while Arc::strong_count(&card.0) > 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(card.0.load(Ordering::SeqCst), 0, "other programs may use the card meanwhile");
    assert_eq!(worker.memory_use().vram_bytes, 7);
    worker.shutdown().await;
}
