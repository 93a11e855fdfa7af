//! A spoken answer on its way: samples from the model, bytes to the client, and an account of both.
//! Nothing is made ahead of the client here: a piece is asked of the model when the last has left.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use hob_core::{ModelError, SpeechEvent, SpeechStream};
use hob_speech::encode::{AudioFormat, EncodeError, Encoder, Length};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::account::Account;
use crate::failure::ApiError;
use crate::ledger::RequestRecord;
use crate::plan::WHOLE_SOUND_S_MAX;

/// Samples that are encoded in one go on an async thread: half a second at 24 kHz, which costs a few
/// milliseconds in the slowest format. Handing every piece to another thread would cost more, and
/// between pieces the runtime can turn to somebody else.
const ENCODED_AT_ONCE: usize = 12_000;

/// The account of one spoken answer; dropping it writes it down.
pub(crate) struct SpeechAccount {
    pub(crate) answer: Account,
    pub(crate) sample_rate_hz: u32,
    samples: u64,
}

impl SpeechAccount {
    pub(crate) fn new(answer: Account, sample_rate_hz: u32) -> SpeechAccount {
        SpeechAccount { answer, sample_rate_hz, samples: 0 }
    }

    fn sound_s(&self) -> f64 {
        self.samples as f64 / f64::from(self.sample_rate_hz)
    }

    fn made(&mut self, samples: usize) {
        self.samples += samples as u64;
        self.answer.made(samples as f64 / f64::from(self.sample_rate_hz));
    }

    /// The first of the answer is in hand; later calls change nothing.
    fn begun(&mut self) {
        if let Some(ttfa) = self.answer.begun() {
            self.answer.metrics.first_audio(&self.answer.label, ttfa);
        }
    }
}

impl Drop for SpeechAccount {
    fn drop(&mut self) {
        let sound_s = self.sound_s();
        self.answer.entry.audio_ms = sound_s * 1e3;
        if self.answer.first().is_none() {
            // Who heard nothing of a text does not pay for it.
            self.answer.entry.prompt_tokens = 0;
        }
        let Account { metrics, label: model, entry: RequestRecord { outcome, .. }, .. } =
            &self.answer;
        metrics.answer(model, *outcome, sound_s);
    }
}

/// Samples as the model makes them, at the volume that was asked for.
pub(crate) struct Sound {
    pub(crate) events: SpeechStream,
    pub(crate) account: SpeechAccount,
    pub(crate) volume: f32,
    /// For the model to make its next piece.
    pub(crate) sound_time_max: Duration,
    pub(crate) cut_off: CancellationToken,
}

impl Sound {
    /// The next samples, never none of them; `None` when everything was said.
    async fn next(&mut self) -> Result<Option<Vec<f32>>, ApiError> {
        loop {
            match self.next_event().await? {
                Some(SpeechEvent::Audio(samples)) if !samples.is_empty() => {
                    self.account.made(samples.len());
                    return Ok(Some(self.at_volume(samples)));
                }
                // Timings are for other routes.
                Some(SpeechEvent::Audio(_) | SpeechEvent::Words(_)) => {}
                // A text of nothing but what is not spoken.
                None if self.account.samples == 0 => return Err(ModelError::EmptyText.into()),
                None => return Ok(None),
            }
        }
    }

    async fn next_event(&mut self) -> Result<Option<SpeechEvent>, ApiError> {
        let asked = Instant::now();
        let time_max = self.sound_time_max;
        let event = timeout(time_max, self.events.next());
        let event = self.cut_off.run_until_cancelled(event).await;
        self.account.answer.waited(asked.elapsed());
        let event =
            event.ok_or(ApiError::Stopping)?.map_err(|_| ApiError::ModelStalled { time_max })?;
        Ok(event.transpose()?)
    }

    fn at_volume(&self, mut samples: Vec<f32>) -> Vec<f32> {
        if self.volume != 1.0 {
            samples.iter_mut().for_each(|sample| *sample *= self.volume);
        }
        samples
    }

    /// The finished file, with exact headers. Encoding it takes a while, so it leaves the async
    /// threads.
    pub(crate) async fn into_file(mut self, format: AudioFormat) -> Result<WholeFile, ApiError> {
        let file = self.collect_and_encode(format).await;
        match &file {
            Ok(_) => self.account.answer.complete(),
            Err(refusal) => self.account.answer.failed(refusal),
        }
        Ok(WholeFile { bytes: file?, ttfa: self.account.answer.first().unwrap_or_default() })
    }

    async fn collect_and_encode(&mut self, format: AudioFormat) -> Result<Vec<u8>, ApiError> {
        let rate = self.account.sample_rate_hz;
        let samples_max = WHOLE_SOUND_S_MAX as usize * rate as usize;
        let mut all = Vec::new();
        while let Some(samples) = self.next().await? {
            self.account.begun();
            all.extend(samples);
            if all.len() > samples_max {
                let sound_s = self.account.sound_s() as u64;
                return Err(ApiError::WholeTooLong { sound_s, sound_s_max: WHOLE_SOUND_S_MAX });
            }
        }
        let encoded = spawn_blocking(move || encode_whole(format, rate, &all)).await;
        let encoded = encoded.map_err(|error| ModelError::EngineFailed {
            engine: "encoder",
            detail: error.to_string(),
        })?;
        Ok(encoded?)
    }
}

/// An answer that is not streamed.
pub(crate) struct WholeFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ttfa: Duration,
}

fn encode_whole(format: AudioFormat, rate: u32, samples: &[f32]) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::new(format, rate, Length::Samples(samples.len() as u64))?;
    let mut bytes = encoder.encode(samples)?;
    bytes.extend(encoder.finish()?);
    Ok(bytes)
}

/// The bytes of one file, as they come to be.
pub(crate) struct Encoded {
    sound: Sound,
    /// None once the file is finished.
    encoder: Option<Encoder>,
    samples: Vec<f32>,
    taken: usize,
}

impl Encoded {
    pub(crate) fn new(sound: Sound, format: AudioFormat) -> Result<Encoded, ApiError> {
        let encoder = Encoder::new(format, sound.account.sample_rate_hz, Length::Unknown)?;
        Ok(Encoded { sound, encoder: Some(encoder), samples: Vec::new(), taken: 0 })
    }

    /// The next bytes, never none of them; `None` when the file is complete.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let bytes = self.make_bytes().await;
        match &bytes {
            Ok(Some(_)) => self.sound.account.begun(),
            Ok(None) => self.sound.account.answer.complete(),
            Err(refusal) => self.sound.account.answer.failed(refusal),
        }
        bytes
    }

    pub(crate) fn ttfa(&self) -> Duration {
        self.sound.account.answer.first().unwrap_or_default()
    }

    /// Twentieths of a second made so far.
    pub(crate) fn twentieths(&self) -> u64 {
        (self.sound.account.sound_s() * 20.0).round() as u64
    }

    async fn make_bytes(&mut self) -> Result<Option<Bytes>, ApiError> {
        while let Some(encoder) = &mut self.encoder {
            let bytes = if self.taken < self.samples.len() {
                let end = self.samples.len().min(self.taken + ENCODED_AT_ONCE);
                let piece = self.taken..end;
                self.taken = end;
                encoder.encode(&self.samples[piece])?
            } else if let Some(samples) = self.sound.next().await? {
                (self.samples, self.taken) = (samples, 0);
                continue;
            } else {
                self.finish()?
            };
            if !bytes.is_empty() {
                return Ok(Some(bytes.into()));
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<Vec<u8>, EncodeError> {
        self.encoder.take().map_or(Ok(Vec::new()), Encoder::finish)
    }
}
