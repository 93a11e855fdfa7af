//! Memory that several models share: idle models are unloaded, others wait for room, and no request is cut off.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use hob_core::budget::{Holder, KeptBy};
use hob_core::fit::Pool;
use hob_core::{MemoryBroker, MemoryDecision, MemoryRequest, ModelState, Shortage, SpeechModel};
use hob_engines::speech::scripted::expected;

use super::*;

/// Gives the scripted answers in order, and repeats the last one.
#[derive(Debug, Default)]
struct StagedRoom {
    says: Mutex<Vec<Says>>,
    /// Number of models that wait for memory.
    queued: AtomicUsize,
    /// Whether the loaded model has had its turn, so that it may begin no other request.
    has_had_its_turn: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
enum Says {
    Granted,
    Soon,
    Later,
    Never,
}

fn shortage() -> Shortage {
    let held = vec![Holder { name: "other".to_owned(), bytes: 7, kept_by: KeptBy::Answering }];
    Shortage { pool: Pool::Ram, needed_bytes: 9, available_bytes: 3, held }
}

fn too_large() -> ModelError {
    ModelError::OutOfMemory { needed_bytes: 9, available_bytes: 3, what_fits: None }
}

fn no_room() -> ModelError {
    let retry_after = options().supervisor.load_guess + Duration::from_secs(1);
    ModelError::NoRoom { shortage: shortage(), retry_after: Some(retry_after) }
}

impl StagedRoom {
    fn new(says: &[Says]) -> Arc<StagedRoom> {
        let says = Mutex::new(says.iter().rev().copied().collect());
        Arc::new(StagedRoom { says, ..StagedRoom::default() })
    }

    fn say(&self, says: Says) {
        *self.says.lock().expect("not poisoned") = vec![says];
    }

    fn next(&self) -> Says {
        let mut says = self.says.lock().expect("not poisoned");
        let last = says.last().copied().expect("something to say");
        if says.len() > 1 {
            says.pop();
        }
        last
    }
}

#[derive(Debug)]
struct StagedRequest(Arc<StagedRoom>);

/// The model's part in the room, which the supervisor gets.
#[derive(Debug)]
struct StagedBroker(Arc<StagedRoom>);

impl MemoryBroker for StagedBroker {
    fn check_room(&self) -> Result<(), ModelError> {
        let says = self.0.says.lock().expect("not poisoned").last().copied();
        if matches!(says, Some(Says::Never)) { Err(too_large()) } else { Ok(()) }
    }

    fn queue(&self) -> Box<dyn MemoryRequest> {
        self.0.queued.fetch_add(1, Ordering::SeqCst);
        Box::new(StagedRequest(Arc::clone(&self.0)))
    }

    fn admit_request(&self) -> bool {
        !self.0.has_had_its_turn.load(Ordering::SeqCst)
    }
}

impl MemoryRequest for StagedRequest {
    fn try_reserve(&mut self) -> BoxFuture<'_, MemoryDecision> {
        let asked = match self.0.next() {
            Says::Granted => MemoryDecision::Granted(Box::new(())),
            Says::Soon => MemoryDecision::Soon,
            Says::Later => MemoryDecision::Later(shortage()),
            Says::Never => MemoryDecision::Never(too_large()),
        };
        async { asked }.boxed()
    }
}

impl Drop for StagedRequest {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::SeqCst);
    }
}

fn in_room(room: &Arc<StagedRoom>) -> SpeechWorker {
    let mut options = options();
    options.supervisor.room = Some(Arc::new(StagedBroker(Arc::clone(room))));
    start(options)
}

async fn refused(worker: &SpeechWorker) -> ModelError {
    worker.speak(request("Hello.", "af_plain")).await.expect_err("no room")
}

#[tokio::test]
async fn an_idle_worker_leaves_when_asked_and_gives_its_memory_back() {
    let worker = ready(options()).await;
    let pid = worker.pid().expect("loaded");
    assert!(worker.idle_for().is_some());
    assert!(worker.unload_if_idle().await);
    assert!(!is_alive(pid), "the process ends before the answer");
    assert_eq!((worker.state(), worker.idle_for()), (ModelState::Cold, None));
    assert!(worker.unload_if_idle().await, "it takes no memory");
    worker.load().await.expect("it comes back");
}

#[tokio::test]
async fn a_worker_that_answers_stays_and_the_answer_is_whole() {
    let worker = ready(SpeechWorkerOptions { unread_s_max: 0.5, ..options() }).await;
    let text = long_unit(3000);
    let mut stream = worker.speak(request(&text, "af_plain")).await.expect("accepted");
    let mut samples = first_sound(&mut stream).await;
    assert!(!worker.unload_if_idle().await);
    assert_eq!((worker.in_flight(), worker.idle_for()), (1, None));
    samples.extend(read(stream).await.samples);
    assert_eq!(samples, expected(&text, "af_plain", Speed::NORMAL));
    assert!(worker.unload_if_idle().await);
}

#[tokio::test]
async fn a_worker_that_is_being_loaded_stays() {
    let worker = start(options());
    let (loaded, left) = futures::join!(worker.load(), async {
        while !matches!(worker.state(), ModelState::Loading { .. }) {
            tokio::task::yield_now().await;
        }
        worker.unload_if_idle().await
    });
    loaded.expect("it loads");
    assert!(
        !left || worker.state() == ModelState::Cold,
        "a worker that says it has left is {:?}",
        worker.state()
    );
}

/// Requests and evictions, all at the same time: every request gets a whole answer or a time to try again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_request_is_lost_to_an_eviction() {
    let worker = Arc::new(ready(options()).await);
    let is_over = AtomicBool::new(false);
    let expect = expected("Hello there.", "af_plain", Speed::NORMAL);
    let ask = async |asker: u64| {
        let (mut answered, mut refused) = (0, 0);
        while answered < 12 {
            match worker.speak(request("Hello there.", "af_plain")).await {
                Ok(stream) => {
                    let whole = read(stream).await;
                    assert_eq!((whole.error, &whole.samples), (None, &expect));
                    answered += 1;
                    // A moment in which the model may be idle.
                    tokio::time::sleep(Duration::from_millis(answered * asker % 11)).await;
                }
                Err(ModelError::Loading { .. }) => {
                    refused += 1;
                    worker.load().await.expect("it comes back");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        refused
    };
    let asking = async {
        let refused: u64 = join_all((1..9).map(ask)).await.into_iter().sum();
        is_over.store(true, Ordering::SeqCst);
        refused
    };
    let evicting = async {
        let mut evicted = 0;
        while !is_over.load(Ordering::SeqCst) {
            let was_loaded = worker.pid().is_some();
            evicted += u64::from(worker.unload_if_idle().await && was_loaded);
            tokio::task::yield_now().await;
        }
        evicted
    };
    let (refused, evicted) = futures::join!(asking, evicting);
    assert!(evicted > 0 && refused > 0, "{evicted} evictions, {refused} refused with a retry time");
}

#[tokio::test]
async fn a_model_is_loaded_when_there_is_room_and_not_before() {
    let room = StagedRoom::new(&[Says::Soon, Says::Soon, Says::Granted]);
    let worker = in_room(&room);
    worker.load().await.expect("there was room in a moment");
    assert_eq!(worker.state(), ModelState::Ready);
    assert_eq!(room.queued.load(Ordering::SeqCst), 0, "it waits no more");
}

#[tokio::test]
async fn what_can_never_fit_is_refused_at_once_with_the_numbers() {
    let room = StagedRoom::new(&[Says::Never]);
    let worker = in_room(&room);
    assert_eq!(refused(&worker).await, too_large());
    assert_eq!(worker.load().await, Err(too_large()));
    assert_eq!((worker.state(), worker.pid()), (ModelState::Cold, None));
    room.say(Says::Granted);
    worker.load().await.expect("there is room now");
}

#[tokio::test]
async fn a_model_that_waits_for_others_names_them_and_loads_after_them() {
    let room = StagedRoom::new(&[Says::Later]);
    let worker = in_room(&room);
    assert_eq!(worker.load().await, Err(no_room()));
    assert_eq!(refused(&worker).await, no_room());
    assert_eq!(room.queued.load(Ordering::SeqCst), 1);
    assert!(matches!(worker.state(), ModelState::Loading { .. }));
    assert!(worker.unload_if_idle().await, "it takes no memory");
    room.say(Says::Granted);
    until(&worker, |state| *state == ModelState::Ready).await;
    assert_eq!(say(&worker, "Hello.", "af_plain").await.error, None);
}

#[tokio::test]
async fn a_model_that_gives_up_waiting_leaves_the_queue() {
    let room = StagedRoom::new(&[Says::Later]);
    let worker = in_room(&room);
    assert_eq!(worker.load().await, Err(no_room()));
    worker.unload().await;
    assert_eq!((worker.state(), room.queued.load(Ordering::SeqCst)), (ModelState::Cold, 0));
}

#[tokio::test]
async fn a_model_that_has_had_its_turn_is_asked_again_after_the_others() {
    let room = StagedRoom::new(&[Says::Granted]);
    let worker = in_room(&room);
    worker.load().await.expect("there is room");
    room.has_had_its_turn.store(true, Ordering::SeqCst);
    assert!(matches!(refused(&worker).await, ModelError::Loading { .. }));
    room.has_had_its_turn.store(false, Ordering::SeqCst);
    assert_eq!(say(&worker, "Hello.", "af_plain").await.error, None);
}
