//! Many speech requests at the same time, with an engine of known speed and the test runtime's clock.
//! Compares `Retry-After` with the time when a slot is really free.

use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use hob_core::scripted::{SpeechOf, american_voice};
use hob_core::{
    Admission, ModelError, RegisteredModel, Registry, Speech, SpeechEvent, SpeechModel,
    SpeechRequest, SpeechStream, SpeechText,
};
use hob_server::ServerOptions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::client::Head;
use crate::server::Server;

const RATE_HZ: u32 = 8_000;
const WINDOW_S: f64 = 0.5;
const PLACES: usize = 16;
/// Answers before the queue fills. They teach the server the speed of this machine and of its voice.
const EARLIER_ANSWERS: usize = 10;

/// Speaks `WINDOW_S` at a time for the text that waited longest, and works on several texts concurrently. `rtf` is
/// seconds of work per second of sound. Also returns how many requests the server has admitted so far.
fn paced(
    rtf: f64,
    at_once: usize,
    chars_per_second: f64,
) -> (impl SpeechModel + 'static, watch::Receiver<usize>) {
    let [line, engine] = [at_once, 1].map(|places| Arc::new(Semaphore::new(places)));
    let (admitted, requests) = watch::channel(0);
    let model = SpeechOf::new(vec![american_voice("af_heart")], move |request: SpeechRequest| {
        admitted.send_modify(|admitted| *admitted += 1);
        let (line, engine) = (Arc::clone(&line), Arc::clone(&engine));
        async move {
            let text = match request.text {
                SpeechText::Whole(text) => text,
                SpeechText::Arriving(_) => String::new(),
            };
            let in_hand = line.acquire_owned().await.expect("open");
            let left_s = text.chars().count() as f64 / chars_per_second;
            let spoken = Spoken { left_s, rtf, engine, _in_hand: in_hand };
            Ok(SpeechStream::new(RATE_HZ, stream::unfold(spoken, Spoken::window)))
        }
    });
    (model, requests)
}

/// A text in progress, with its permit.
struct Spoken {
    left_s: f64,
    rtf: f64,
    engine: Arc<Semaphore>,
    _in_hand: OwnedSemaphorePermit,
}

impl Spoken {
    async fn window(mut self) -> Option<(Result<SpeechEvent, ModelError>, Spoken)> {
        let sound_s = self.left_s.min(WINDOW_S);
        if sound_s <= 0.0 {
            return None;
        }
        let turn = self.engine.acquire().await.expect("open");
        sleep(Duration::from_secs_f64(sound_s * self.rtf)).await;
        drop(turn);
        self.left_s -= sound_s;
        let samples = vec![0.1; (sound_s * f64::from(RATE_HZ)) as usize];
        Some((Ok(SpeechEvent::Audio(samples)), self))
    }
}

async fn server(model: impl SpeechModel + 'static) -> Server {
    let admission = Admission::new(PLACES, 0.4);
    let mut registry = Registry::default();
    registry.add(RegisteredModel::<Speech>::new("kokoro", Arc::new(model), admission));
    Server::start_registry(registry, ServerOptions::default()).await
}

fn body(chars: usize) -> String {
    let input = "a".repeat(chars);
    format!(r#"{{"model":"kokoro","input":"{input}","response_format":"wav","stream":false}}"#)
}

/// The head of an answer that is sent whole, after all of it was spoken.
async fn ask(server: &Server, chars: usize) -> Head {
    let mut client = server.speak(&body(chars)).await;
    client.read_head().await
}

/// A queue of 16, checked at several times: the `Retry-After` of request 17, and the time when a slot was free.
async fn check(rtf: f64, at_once: usize, chars_per_second: f64) {
    let (model, mut admitted) = paced(rtf, at_once, chars_per_second);
    let server = Arc::new(server(model).await);
    for _ in 0..EARLIER_ANSWERS {
        assert_eq!(ask(&server, 450).await.status, 200);
    }
    let begun = Instant::now();
    let mut answers = JoinSet::new();
    for at in 0..PLACES {
        let server = Arc::clone(&server);
        answers.spawn(async move {
            let head = ask(&server, 300 + 8 * at).await;
            (head.status, begun.elapsed().as_secs_f64())
        });
    }
    let all = EARLIER_ANSWERS + PLACES;
    admitted.wait_for(|admitted| *admitted == all).await.expect("the model lives");
    let mut reported = Vec::new();
    let mut free_at = None;
    while free_at.is_none() {
        let refused = ask(&server, 300).await;
        assert_eq!(refused.status, 503, "no place is free yet");
        let retry_after_s = refused.header("retry-after").and_then(|wait| wait.parse().ok());
        reported.push((begun.elapsed().as_secs_f64(), retry_after_s.expect("seconds")));
        // A tenth of the time that the first text takes alone, unless an answer comes earlier.
        let step = Duration::from_secs_f64(rtf * 300.0 / chars_per_second / 9.7);
        tokio::select! {
            answer = answers.join_next() => free_at = answer.map(|answer| answer.expect("no panic").1),
            () = sleep(step) => {}
        }
    }
    let free_at = free_at.expect("an answer");
    assert!(reported.len() >= 5, "{reported:?}");
    for (at, retry_after_s) in reported {
        let really_s: f64 = free_at - at;
        // `Retry-After` is in whole seconds, and progress is known per window.
        if really_s < 3.0 {
            continue;
        }
        let near = (really_s / 1.5).floor()..=(1.5 * really_s).ceil();
        let case = format!("pace {rtf}, {at_once} concurrent");
        assert!(
            near.contains(&retry_after_s),
            "{case}: reported {retry_after_s} s, true {really_s} s"
        );
    }
    while let Some(answer) = answers.join_next().await {
        assert_eq!(answer.expect("no panic").0, 200, "who waits in line is not given up");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_says_when_a_slot_is_free() {
    for (rtf, at_once, chars_per_second) in [(0.4, 1, 15.0), (0.3, 3, 12.0), (1.4, 1, 18.0)] {
        check(rtf, at_once, chars_per_second).await;
    }
}
