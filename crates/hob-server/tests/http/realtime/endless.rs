//! A voice that never ends, and makes sound as fast as it is read. It reports how much it has made, and when it was
//! dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::ready;
use futures::stream;
use hob_core::scripted::SpeechOf;
use hob_core::{SpeechEvent, SpeechModel, SpeechRequest, SpeechStream};
use tokio::sync::Notify;

const RATE_HZ: u32 = 24_000;

#[derive(Default)]
pub(super) struct EndlessSpeech {
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
    pub(super) fn model(&self) -> impl SpeechModel + 'static {
        let (seconds, dropped) = (Arc::clone(&self.seconds), Arc::clone(&self.dropped));
        SpeechOf::new(hob_wire::openai_voices(), move |request: SpeechRequest| {
            let seconds = Arc::clone(&seconds);
            let held = (request.text, StreamEnd(Arc::clone(&dropped)));
            let sound = stream::repeat_with(move || {
                // The session fails an answer if the voice does not take its text.
                let _text_is_taken = &held;
                seconds.fetch_add(1, Ordering::Relaxed);
                Ok(SpeechEvent::Audio(vec![0.25; RATE_HZ as usize]))
            });
            ready(Ok(SpeechStream::new(RATE_HZ, sound)))
        })
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
