//! A transcription worker as a `TranscriptModel`. It refuses invalid requests before they reach the worker.
//! Dropping the answer cancels it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Fuse};
use futures::stream::{self, Stream};
use futures::{FutureExt, StreamExt};
use hob_core::{
    ModelError, ModelState, Sound, TranscriptEvent, TranscriptModel, TranscriptRequest,
    TranscriptStream, nearest, nearest_hint,
};
use tokio::sync::Semaphore;

use super::protocol::{
    AboutTranscription, BeginTranscript, FILE_BYTES_MAX, LIVE_UNREAD_SAMPLES_MAX, SAMPLES_MAX,
    TranscriptOrder, TranscriptReport,
};
use crate::supervisor::session::{OpenStream, OrderSender, StreamReport};
use crate::supervisor::{ModelWorker, Supervisor, SupervisorOptions, WorkerCommand};

pub(super) const ENGINE: &str = "transcription";

/// A transcription model in a worker process.
pub type TranscriptionWorker = ModelWorker<TranscriptionClient>;

/// What is known about a transcription model without its process.
#[derive(Debug)]
pub struct TranscriptionClient {
    languages: Vec<String>,
}

impl ModelWorker<TranscriptionClient> {
    /// Starts the supervisor, but no process. `languages` are the codes that lists show. Must be called inside a tokio runtime.
    pub fn start(
        command: WorkerCommand,
        options: SupervisorOptions,
        languages: Vec<String>,
    ) -> TranscriptionWorker {
        let supervisor = Supervisor::start(command, options);
        ModelWorker { supervisor, client: TranscriptionClient { languages } }
    }

    /// Options with this engine's name. A large model takes minutes to load from a slow disk, and for half a minute of
    /// sound on a busy CPU.
    pub fn options() -> SupervisorOptions {
        let slow = Duration::from_secs(600);
        SupervisorOptions { load_limit: slow, stall_limit: slow, ..SupervisorOptions::new(ENGINE) }
    }

    async fn begin(&self, request: TranscriptRequest) -> Result<TranscriptStream, ModelError> {
        let (session, stream, _) = self.supervisor.open_loaded().await?;
        let about: AboutTranscription = postcard::from_bytes(&session.model.about)
            .map_err(|error| failed(format!("its description cannot be read: {error}")))?;
        check_language(request.language.as_deref(), &about)?;
        request.trace.note(|data| data.placement_note = self.supervisor.placement_note());
        let is_live = matches!(request.sound, Sound::Live(_));
        let begin = BeginTranscript {
            task: request.task,
            language: request.language.as_deref().map(own_code).map(str::to_owned),
            prompt: request.prompt,
            temperature: request.temperature,
            segments: request.timestamps.segments,
            words: request.timestamps.words,
            chunking: request.chunking,
            is_live,
        };
        let room = Arc::new(Semaphore::new(LIVE_UNREAD_SAMPLES_MAX));
        let sending = send(stream.orders(), begin, request.sound, Arc::clone(&room));
        let sending = sending.boxed().fuse();
        let mut transcript = Transcript { stream, sending, room, events: Vec::new().into_iter() };
        // The worker starts when sound arrives, and a person may speak only after this stream is returned.
        if !is_live {
            transcript.started().await?;
        }
        Ok(transcript.events().boxed())
    }
}

impl TranscriptModel for ModelWorker<TranscriptionClient> {
    fn state(&self) -> ModelState {
        self.supervisor.state()
    }

    fn languages(&self) -> &[String] {
        &self.client.languages
    }

    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        self.begin(request).boxed()
    }
}

/// Whisper's code of a language for which ISO 639-1 has another one: Norwegian (Bokmål) and Javanese.
fn own_code(asked: &str) -> &str {
    match asked {
        "nb" => "no",
        "jv" => "jw",
        other => other,
    }
}

fn check_language(asked: Option<&str>, about: &AboutTranscription) -> Result<(), ModelError> {
    let Some(asked) = asked else { return Ok(()) };
    if about.languages.iter().any(|known| known == own_code(asked)) {
        return Ok(());
    }
    let known = about.languages.iter().map(String::as_str);
    let reason = match &about.languages[..] {
        [only] => format!("is '{asked}', and this model understands '{only}' only"),
        _ => {
            let hint = nearest_hint(&nearest(asked, known, 3));
            format!("is '{asked}', which this model does not know{hint}")
        }
    };
    Err(ModelError::InvalidField { field: "language", reason })
}

fn failed(detail: String) -> ModelError {
    ModelError::EngineFailed { engine: ENGINE, detail }
}

/// One transcript on the server's side. All work happens while it is polled.
struct Transcript {
    stream: OpenStream,
    /// Sends the sound.
    sending: Fuse<BoxFuture<'static, Result<(), ModelError>>>,
    /// One permit for each sample of live sound that may still be sent before the worker reads more.
    room: Arc<Semaphore>,
    /// Events of the last report that were not returned yet.
    events: std::vec::IntoIter<TranscriptEvent>,
}

impl Transcript {
    /// Sends the sound, and returns when the worker begins with it. Other requests may come first.
    async fn started(&mut self) -> Result<(), ModelError> {
        match self.report().await? {
            StreamReport::Model(TranscriptReport::Started) => Ok(()),
            StreamReport::Model(TranscriptReport::Refused(reason)) => Err(undecodable(reason)),
            other => Err(self.stream.unexpected(&other)),
        }
    }

    fn events(self) -> impl Stream<Item = Result<TranscriptEvent, ModelError>> {
        stream::try_unfold(self, async |mut transcript| {
            let event = transcript.next_event().await;
            event.map(|event| event.map(|event| (event, transcript)))
        })
    }

    async fn next_event(&mut self) -> Result<Option<TranscriptEvent>, ModelError> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(Some(event));
            }
            match self.report().await? {
                StreamReport::Model(TranscriptReport::Started) => {}
                StreamReport::Model(TranscriptReport::Read(samples)) => {
                    self.room.add_permits(samples as usize);
                }
                StreamReport::Model(TranscriptReport::Events(events)) => {
                    self.events = events.into_iter();
                }
                StreamReport::Model(TranscriptReport::Refused(reason)) => {
                    return Err(undecodable(reason));
                }
                StreamReport::Done => return Ok(None),
                other => return Err(self.stream.unexpected(&other)),
            }
        }
    }

    /// The next report, while the sound is sent.
    async fn report(&mut self) -> Result<StreamReport<TranscriptReport>, ModelError> {
        loop {
            tokio::select! {
                biased;
                report = self.stream.report() => return report,
                sent = &mut self.sending => sent?,
            }
        }
    }
}

fn undecodable(reason: String) -> ModelError {
    ModelError::InvalidField { field: "file", reason: format!("cannot be decoded: {reason}") }
}

/// Sends the order to begin, the sound in pieces, and its end.
async fn send(
    orders: OrderSender,
    begin: BeginTranscript,
    sound: Sound,
    room: Arc<Semaphore>,
) -> Result<(), ModelError> {
    orders.send(&TranscriptOrder::Begin(begin)).await?;
    match sound {
        Sound::File(file) => {
            for piece in file.bytes.chunks(FILE_BYTES_MAX) {
                orders.send(&TranscriptOrder::File(piece.to_vec())).await?;
            }
        }
        Sound::Samples(samples) => send_samples(&orders, &samples).await?,
        Sound::Live(live) => {
            let can_wait = live.can_wait();
            let Some(mut pieces) = live.take() else {
                return Err(failed("the live sound was sent to another model before".to_owned()));
            };
            while let Some(samples) = pieces.next().await {
                for piece in samples.chunks(SAMPLES_MAX) {
                    if can_wait {
                        take_room(&room, piece.len()).await?;
                    }
                    send_samples(&orders, piece).await?;
                }
            }
        }
    }
    orders.send(&TranscriptOrder::EndSound).await
}

/// Waits until the worker has room for these samples.
async fn take_room(room: &Semaphore, samples: usize) -> Result<(), ModelError> {
    let permits = room.acquire_many(samples as u32).await;
    permits.map_err(|closed| failed(closed.to_string()))?.forget();
    Ok(())
}

async fn send_samples(orders: &OrderSender, samples: &[f32]) -> Result<(), ModelError> {
    for piece in samples.chunks(SAMPLES_MAX) {
        orders.send(&TranscriptOrder::Samples(piece.to_vec())).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_that_the_model_does_not_know_is_refused_with_the_nearest() {
        let about = |languages: &[&str]| AboutTranscription {
            languages: languages.iter().map(|code| (*code).to_owned()).collect(),
        };
        let all = about(&["en", "de", "fr"]);
        assert_eq!(check_language(None, &all), Ok(()));
        assert_eq!(check_language(Some("de"), &all), Ok(()));
        assert_eq!(check_language(Some("nb"), &about(&["en", "no"])), Ok(()));
        assert_eq!(["nb", "jv", "nn"].map(own_code), ["no", "jw", "nn"]);
        for (asked, end) in [
            ("dee", "is 'dee', which this model does not know; the nearest are de"),
            ("xx", "is 'xx', which this model does not know"),
        ] {
            let unknown = check_language(Some(asked), &all).expect_err("unknown").to_string();
            assert!(unknown.ends_with(end), "{unknown}");
        }
        let english = check_language(Some("de"), &about(&["en"])).expect_err("English only");
        assert!(english.to_string().ends_with("understands 'en' only"), "{english}");
    }

    #[test]
    fn live_sound_waits_for_a_worker_that_is_behind() {
        let room = Semaphore::new(LIVE_UNREAD_SAMPLES_MAX);
        for _ in 0..LIVE_UNREAD_SAMPLES_MAX / SAMPLES_MAX {
            assert_eq!(take_room(&room, SAMPLES_MAX).now_or_never(), Some(Ok(())));
        }
        assert_eq!(take_room(&room, SAMPLES_MAX).now_or_never(), None);
        room.add_permits(SAMPLES_MAX);
        assert_eq!(take_room(&room, SAMPLES_MAX).now_or_never(), Some(Ok(())));
    }
}
