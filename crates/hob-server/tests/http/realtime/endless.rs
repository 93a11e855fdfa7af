//! A voice that never ends, and makes sound as fast as it is read. It reports how much it has made, and when it was
//! dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream;
use hob_core::{ModelError, SpeechEvent, SpeechModel, SpeechRequest, SpeechStream, Voice};
use tokio::sync::Notify;

const RATE_HZ: u32 = 24_000;

pub(super) struct EndlessSpeech {
    voices: Vec<Voice>,
    seconds: Arc<AtomicUsize>,
    dropped: Arc<Notify>,
}

struct StreamEnd(Arc<Notify>);

impl Drop for StreamEnd {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl EndlessSpeech {
    pub(super) fn new() -> EndlessSpeech {
        let voices = hob_wire::openai_voices();
        EndlessSpeech { voices, seconds: Arc::default(), dropped: Arc::default() }
    }

    /// Sound so far.
    pub(super) fn seconds(&self) -> usize {
        self.seconds.load(Ordering::Relaxed)
    }

    /// Resolves when a stream was dropped.
    pub(super) async fn dropped(&self) {
        self.dropped.notified().await;
    }
}

impl SpeechModel for EndlessSpeech {
    fn voices(&self) -> &[Voice] {
        &self.voices
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        let seconds = Arc::clone(&self.seconds);
        let held = (request.text, StreamEnd(Arc::clone(&self.dropped)));
        let sound = stream::repeat_with(move || {
            // The session fails an answer if the voice does not take its text.
            let _text_is_taken = &held;
            seconds.fetch_add(1, Ordering::Relaxed);
            Ok(SpeechEvent::Audio(vec![0.25; RATE_HZ as usize]))
        });
        let spoken = SpeechStream::new(RATE_HZ, sound);
        async move { Ok(spoken) }.boxed()
    }
}
