//! A spoken answer: samples from the model become bytes for the client.
//! Samples are requested from the model only when the last piece was sent.

use std::time::Duration;

use axum::http::HeaderName;
use bytes::Bytes;
use hob_core::{ModelError, SoundSeconds, Speech, SpeechEvent, Task};
use hob_speech::decode::Resampler;
use hob_speech::encode::{AudioFormat, EncodeError, Encoder, Length, encode_whole};
use hob_wire::CaptionWord;
use tokio::task::spawn_blocking;

use crate::api_error::ApiError;
use crate::captions::Captions;
use crate::generic_answer::{Answer, AnswerTask};
use crate::headers::TTFA_MS;
use crate::ledger::{Outcome, RequestRecord};
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::speech_plan::{AnswerShape, WHOLE_SOUND_S_MAX};

/// Samples that are encoded in one step on an async thread: half a second at 24 kHz, which costs a few
/// milliseconds in the slowest format. Moving every piece to another thread would cost more. Between
/// pieces the runtime can run other tasks.
pub(crate) const ENCODED_AT_ONCE: usize = 12_000;

/// The rate of `pcm`, whose bytes do not say it, as in OpenAI's API.
const RAW_RATE_HZ: u32 = 24_000;

impl AnswerTask for Speech {
    const NAME: &'static str = "speech";
    const FIRST_MS: HeaderName = TTFA_MS;

    /// Seconds of sound so far.
    type Totals = f64;

    fn event_time_max(options: &ServerOptions) -> Duration {
        options.sound_time_max
    }

    fn timed_out(time_max: Duration) -> ApiError {
        ApiError::ModelStalled { time_max }
    }

    fn add(
        sound_s: &mut f64,
        _record: &mut RequestRecord,
        sample_rate_hz: u32,
        event: &SpeechEvent,
    ) -> SoundSeconds {
        let work = Speech::work_of(sample_rate_hz, event);
        *sound_s += work.0;
        work
    }

    fn count_first(metrics: &Metrics, model: &str, first: Duration) {
        metrics.first_audio(model, first);
    }

    fn complete_record(sound_s: &f64, record: &mut RequestRecord, has_begun: bool) {
        record.audio_ms = sound_s * 1e3;
        if !has_begun {
            // A text without any spoken sound costs no tokens.
            record.prompt_tokens = 0;
        }
    }

    fn count(metrics: &Metrics, model: &str, outcome: Outcome, sound_s: &f64) {
        metrics.speech_answer(model, outcome, *sound_s);
    }
}

/// Samples from the model, at the requested volume and at the rate of the file.
pub(crate) struct Sound {
    answer: Answer<Speech>,
    volume: f32,
    captions: Captions,
    rate_hz: u32,
    /// `None` after the last sample.
    resampler: Option<Resampler>,
}

/// A complete file, and the words in it.
pub(crate) struct WholeFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) words: Vec<CaptionWord>,
    pub(crate) answer: Answer<Speech>,
}

impl Sound {
    pub(crate) fn new(
        mut answer: Answer<Speech>,
        captions: Captions,
        shape: &AnswerShape,
    ) -> Result<Sound, ApiError> {
        let rate_hz = file_rate_hz(shape.format, answer.head);
        let resampler = Resampler::live(answer.head, rate_hz).map_err(ApiError::from);
        let resampler = Some(resampler.inspect_err(|error| answer.tracker.failed(error))?);
        Ok(Sound { answer, volume: shape.volume, captions, rate_hz, resampler })
    }

    /// The next samples, at least one; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<f32>>, ApiError> {
        while let Some(resampler) = &mut self.resampler {
            let mut samples = Vec::new();
            match self.answer.next().await? {
                Some((_, SpeechEvent::Audio(heard))) => resampler.push(&heard, &mut samples)?,
                Some((_, SpeechEvent::Words(words))) => self.captions.add(&words),
                // The text contains nothing that can be spoken.
                None if self.answer.totals == 0.0 => return Err(ModelError::EmptyText.into()),
                None => {
                    if let Some(resampler) = self.resampler.take() {
                        resampler.finish(&mut samples)?;
                    }
                }
            }
            if !samples.is_empty() {
                return Ok(Some(self.at_volume(samples)));
            }
        }
        Ok(None)
    }

    fn at_volume(&self, mut samples: Vec<f32>) -> Vec<f32> {
        if self.volume != 1.0 {
            samples.iter_mut().for_each(|sample| *sample *= self.volume);
        }
        samples
    }

    /// The whole file, with exact headers. Encoding takes a while, so it runs on a blocking thread.
    pub(crate) async fn into_file(mut self, format: AudioFormat) -> Result<WholeFile, ApiError> {
        let file = self.collect_and_encode(format).await;
        match &file {
            Ok(_) => self.answer.tracker.complete(),
            Err(error) => self.answer.tracker.failed(error),
        }
        Ok(WholeFile { bytes: file?, words: self.captions.take(), answer: self.answer })
    }

    async fn collect_and_encode(&mut self, format: AudioFormat) -> Result<Vec<u8>, ApiError> {
        let mut all = Vec::new();
        while let Some(samples) = self.next().await? {
            self.answer.content_started();
            all.extend(samples);
            let sound_s = self.answer.totals;
            if sound_s > WHOLE_SOUND_S_MAX as f64 {
                let (sound_s, sound_s_max) = (sound_s as u64, WHOLE_SOUND_S_MAX);
                return Err(ApiError::WholeTooLong { sound_s, sound_s_max });
            }
        }
        let rate = self.rate_hz;
        let encoded = spawn_blocking(move || encode_whole(format, rate, &all)).await;
        let encoded = encoded.map_err(|error| ModelError::EngineFailed {
            engine: "encoder",
            detail: error.to_string(),
        })?;
        Ok(encoded?)
    }
}

/// The model's rate, if the format has it and its bytes say it.
fn file_rate_hz(format: AudioFormat, model_hz: u32) -> u32 {
    let keeps = format != AudioFormat::Pcm && format.sample_rates_hz().contains(&model_hz);
    if keeps { model_hz } else { RAW_RATE_HZ }
}

/// The bytes of one file while it is encoded.
pub(crate) struct EncodedSound {
    sound: Sound,
    /// `None` once the file is finished.
    encoder: Option<Encoder>,
    samples: Vec<f32>,
    taken: usize,
}

impl EncodedSound {
    pub(crate) fn new(mut sound: Sound, format: AudioFormat) -> Result<EncodedSound, ApiError> {
        let encoder = Encoder::new(format, sound.rate_hz, Length::Unknown).map_err(ApiError::from);
        let encoder = encoder.inspect_err(|error| sound.answer.tracker.failed(error))?;
        Ok(EncodedSound { sound, encoder: Some(encoder), samples: Vec::new(), taken: 0 })
    }

    /// The next bytes, at least one; `None` when the file is complete.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let bytes = self.encode_next().await;
        let answer = &mut self.sound.answer;
        match &bytes {
            Ok(Some(_)) => answer.content_started(),
            Ok(None) => answer.tracker.complete(),
            Err(error) => answer.tracker.failed(error),
        }
        bytes
    }

    pub(crate) fn answer(&self) -> &Answer<Speech> {
        &self.sound.answer
    }

    /// The words that begin in the bytes of the last [`EncodedSound::next`].
    pub(crate) fn take_words(&mut self) -> Vec<CaptionWord> {
        self.sound.captions.take()
    }

    /// Twentieths of a second of sound so far.
    pub(crate) fn twentieths(&self) -> u64 {
        (self.sound.answer.totals * 20.0).round() as u64
    }

    async fn encode_next(&mut self) -> Result<Option<Bytes>, ApiError> {
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
