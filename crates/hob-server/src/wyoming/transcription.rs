//! Transcription over Wyoming: raw sound is heard while the speaker speaks, and its text is sent as it grows.
//! The client decides when the speaker has finished.

use std::time::Duration;

use futures::StreamExt;
use hob_core::chat::Reading;
use hob_core::{LiveSound, PcmLayout, Sound, TranscriptEvent, TranscriptRequest, Transcription};
use hob_speech::decode::{DecodeError, PcmDecoder};
use hob_wire::{WyomingAnswer, WyomingEvent, WyomingTranscribe};
use tokio::time::{Instant, sleep_until};

use super::programs::AskedModel;
use super::request::{Answers, RequestInput};
use crate::api_error::ApiError;
use crate::arriving_input::{ArrivingInput, InputSender, arriving};
use crate::generic_answer::Answer;
use crate::in_flight::Endpoint;
use crate::request_body::RequestGuards;
use crate::tracker::RequestStart;
use crate::transcription::{LIVE_SOUND, language};

/// Pieces of at most one second that wait for the model.
const PIECES_MAX: usize = 4;
/// Maximum sound of one request.
const SOUND_S_MAX: f64 = 600.0;
/// Sound that comes faster than it was spoken reaches the model at most this far ahead of the clock. The
/// engine rejects live sound when it falls a minute behind.
const LEAD_S_MAX: f64 = 30.0;

/// Takes the sound as it arrives, in any sample format, and converts it.
pub(super) struct SoundInput {
    /// `None`: the sound is complete.
    input: Option<InputSender<Vec<f32>>>,
    decoder: Option<PcmDecoder>,
    samples: u64,
    started_at: Instant,
    silence_max: Duration,
}

impl SoundInput {
    pub(super) fn new(silence_max: Duration) -> (SoundInput, ArrivingInput<Vec<f32>>) {
        let (sender, sound) = arriving(PIECES_MAX);
        let input = SoundInput {
            input: Some(sender),
            decoder: None,
            samples: 0,
            started_at: Instant::now(),
            silence_max,
        };
        (input, sound)
    }

    /// Prepares for sound in this layout. A change of layout ends the sound in the old one.
    async fn expect(&mut self, layout: PcmLayout) -> Result<(), ApiError> {
        if self.decoder.as_ref().is_some_and(|decoder| decoder.layout() == layout) {
            return Ok(());
        }
        let decoder = PcmDecoder::new(layout)?;
        self.flush().await?;
        self.decoder = Some(decoder);
        Ok(())
    }

    async fn add(&mut self, sound: &[u8]) -> Result<(), ApiError> {
        let Some(bytes_per_s) = self.decoder.as_ref().map(PcmDecoder::bytes_per_s) else {
            return Ok(());
        };
        for second in sound.chunks(bytes_per_s) {
            let Some(decoder) = &mut self.decoder else { break };
            let samples = decoder.push(second)?;
            self.send(samples).await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ApiError> {
        match self.decoder.take() {
            Some(decoder) => self.send(decoder.finish()?).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, samples: Vec<f32>) -> Result<(), ApiError> {
        let Some(input) = &self.input else { return Ok(()) };
        self.samples += samples.len() as u64;
        let sound_s = self.samples as f64 / f64::from(Sound::RATE_HZ);
        if sound_s > SOUND_S_MAX {
            return Err(DecodeError::TooLong { seconds_max: SOUND_S_MAX }.into());
        }
        let early_s = (sound_s - LEAD_S_MAX).max(0.0);
        sleep_until(self.started_at + Duration::from_secs_f64(early_s)).await;
        // A model that takes no more sound reports why.
        if !samples.is_empty() {
            input.pieces.send(samples).await.ok();
        }
        Ok(())
    }
}

impl RequestInput for SoundInput {
    async fn take(&mut self, event: WyomingEvent) -> Result<(), ApiError> {
        match event {
            WyomingEvent::AudioStart(layout) => self.expect(layout).await?,
            WyomingEvent::AudioChunk { layout, sound } => {
                self.expect(layout).await?;
                self.add(&sound).await?;
            }
            WyomingEvent::AudioStop => {
                self.flush().await?;
                self.input = None;
            }
            other => {
                let why = "the sound of a transcription is not complete";
                return Err(ApiError::UnexpectedEvent { event: other.kind(), why });
            }
        }
        Ok(())
    }

    fn silence_max(&self) -> Option<Duration> {
        self.input.is_some().then_some(self.silence_max)
    }
}

/// Transcribes a sound to its end.
///
/// # Errors
/// The request is rejected, or its answer fails.
pub(super) async fn hear(
    asked: AskedModel,
    (settings, sound): (WyomingTranscribe, ArrivingInput<Vec<f32>>),
    answers: Answers,
) -> Result<(), ApiError> {
    let (context, resolved) = asked.resolve::<Transcription>()?;
    let (pieces, input) = sound.split();
    let language = language(&context, settings.language.as_deref())?;
    let request = TranscriptRequest {
        sound: Sound::Live(LiveSound::new(pieces.boxed())),
        language: language.clone(),
        prompt: settings.prompt,
        reading: Reading::Streamed,
        ..TranscriptRequest::default()
    };
    let start = RequestStart {
        context,
        guards: RequestGuards::default(),
        endpoint: Endpoint::TRANSCRIPTION,
        name: resolved.name,
        is_streamed: true,
    };
    let (model, requests) = (&resolved.model, vec![request]);
    let mut answer = Answer::start_with(start, model, LIVE_SOUND, requests, input).await?;
    let language = language.as_deref();
    let mut text = String::new();
    while let Some((_, event)) = answer.next().await? {
        if let TranscriptEvent::Delta(piece) = event
            && !piece.is_empty()
        {
            if text.is_empty() {
                answers.send(WyomingAnswer::TranscriptStart { language }).await;
            }
            answers.send(WyomingAnswer::TranscriptChunk { text: &piece }).await;
            text.push_str(&piece);
        }
    }
    if text.is_empty() {
        answers.send(WyomingAnswer::TranscriptStart { language }).await;
    }
    answers.send(WyomingAnswer::Transcript { text: text.trim(), language }).await;
    answers.send(WyomingAnswer::TranscriptStop).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic_answer::Input;

    /// Sends so many seconds of sound at once to a model that takes all of it. Returns how long it took.
    async fn sent(seconds: usize) -> Result<Duration, ApiError> {
        let (mut input, sound) = SoundInput::new(Duration::from_secs(30));
        let (mut pieces, Input::Arriving(complete)) = sound.split() else { panic!("it arrives") };
        let layout = PcmLayout { rate_hz: 16_000, bytes: 2, channels: 1 };
        let begun = Instant::now();
        let client = async {
            for _ in 0..seconds {
                let sound = vec![0; 32_000].into();
                input.take(WyomingEvent::AudioChunk { layout, sound }).await?;
            }
            input.take(WyomingEvent::AudioStop).await?;
            assert!(complete.is_cancelled());
            Ok(begun.elapsed())
        };
        let model = async { while pieces.next().await.is_some() {} };
        tokio::select! {
            result = client => result,
            () = model => Err(ApiError::Stopping),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_recording_that_is_sent_at_once_reaches_the_model_at_the_pace_of_speech() {
        let took_s = sent(50).await.expect("within the limits").as_secs_f64();
        assert!((19.9..20.1).contains(&took_s), "30 s of 50 s are ahead of the clock: {took_s}");
    }

    #[tokio::test(start_paused = true)]
    async fn sound_without_an_end_is_refused() {
        sent(600).await.expect("within the limits");
        let error = sent(601).await.expect_err("too long");
        assert_eq!(error.summary(), "the sound is longer than 600 s: send it in parts");
    }
}
