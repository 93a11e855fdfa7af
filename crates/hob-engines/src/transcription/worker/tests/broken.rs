//! A worker whose graphics card fails.
//! It ends, so that the next one computes.

use super::*;

/// Its card fails at the first sound.
#[derive(Debug, Default)]
struct FailingCard {
    is_broken: bool,
}

impl Transcriber for FailingCard {
    fn languages(&self) -> Vec<String> {
        Vec::new()
    }

    fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn warm_up(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn transcribe(
        &mut self,
        _: &[f32],
        _: &WhisperOptions,
        _: &dyn Fn() -> bool,
    ) -> Result<WhisperText, String> {
        self.is_broken = true;
        Err("the card failed".to_owned())
    }
}

#[test]
fn a_worker_ends_when_its_card_computes_nothing_more() {
    let (socket, theirs) = FrameSocket::pair();
    let load = || Ok::<_, TranscriptionWorkerError>((FailingCard::default(), Level));
    let serving = thread::spawn(move || serve_transcription(theirs, load));
    let mut worker = Worker { socket, calls: Arc::default(), serving };
    let ready = worker.report().1;
    assert!(matches!(ready, WorkerMessage::Common(Report::Ready { .. })), "{ready:?}");
    worker.send(1, &[begin(None, false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    let (_, last) = worker.events(1);
    assert_eq!(last, WorkerMessage::Common(Report::failed("the card failed")));
    let ended = worker.serving.join().expect("no panic");
    assert!(matches!(ended, Err(TranscriptionWorkerError::Broken)), "{ended:?}");
}
