//! Kokoro-82M on `rten`: the front runs on the whole unit, the vocoder in windows of frames.
//! It loads a stored model, which `hob-models` has transformed.

mod contours;
mod crop;
mod graphs;
mod residual;
mod seam;
mod statistics;
#[cfg(test)]
mod tests;
mod time_compression;
mod voices;
mod window_plan;
mod word_times;

use std::collections::HashMap;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::{Speed, WordTiming};
use hob_models::{StoreError, check_changed};
use hob_speech::SpokenUnit;

use super::distance::SpokenSound;
use super::synthesiser::{SynthesisError, Synthesiser};
use crate::onnx_graph::Cores;
use contours::Contours;
use graphs::{Front, Vocoder};
use seam::Seam;
use statistics::{RunningStatistics, VoiceStatistics};
use time_compression::TimeCompression;
use voices::Voices;
use window_plan::{PlannedWindow, WindowPlan};
use word_times::word_times;

pub use voices::voice_list;

pub const SAMPLE_RATE_HZ: u32 = 24_000;
/// One frame is 25 ms: what the front's durations count.
pub const SAMPLES_PER_FRAME: usize = 600;
/// Ids between the two boundary tokens.
const TOKENS_MAX: usize = 510;
/// At higher rates the model mumbles, and is slower than requested: at 2 it reaches only 1.75.
const MODEL_RATE_MAX: f32 = 1.5;
const FRAMES_PER_SECOND: f32 = SAMPLE_RATE_HZ as f32 / SAMPLES_PER_FRAME as f32;

/// The model's files inside its folder.
pub mod files {
    pub use hob_models::kokoro::{FRONT, VOCODER};

    pub const VOCABULARY: &str = "vocab.json";
    pub const VOICES: &str = "voices";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KokoroOptions {
    /// Cores that one window may use.
    pub threads: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum KokoroLoadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is damaged: {reason}; pull the model again with `hob pull`")]
    Damaged { path: PathBuf, reason: String },
}

impl KokoroLoadError {
    fn damaged(path: &Path, reason: impl ToString) -> KokoroLoadError {
        KokoroLoadError::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// The loaded model.
#[derive(Debug)]
pub struct Kokoro {
    front: Front,
    vocoder: Vocoder,
    vocabulary: HashMap<char, i32>,
    voices: Voices,
}

/// One unit between its front and its last window.
#[derive(Debug)]
pub struct Utterance {
    contours: Contours,
    style: Vec<f32>,
    /// See [`Vocoder::block_styles`].
    block_styles: Vec<f32>,
    plan: WindowPlan,
    statistics: RunningStatistics,
    seam: Seam,
    /// `None` at rates that the model reaches itself.
    time_compression: Option<TimeCompression>,
    words: Vec<WordTiming>,
}

impl Kokoro {
    /// # Errors
    /// A file is missing, unreadable or damaged.
    pub fn load(folder: &Path, options: KokoroOptions) -> Result<Kokoro, KokoroLoadError> {
        check_changed(folder)?;
        // Each load takes a good part of a cold start, and uses one core.
        let (front, vocoder) = thread::scope(|scope| {
            let front = scope.spawn(|| Front::load(folder, options.threads));
            let vocoder = Vocoder::load(folder, options.threads);
            (front.join(), vocoder)
        });
        let front = front.unwrap_or_else(|panic| panic::resume_unwind(panic))?;
        let vocoder = vocoder?;
        let vocabulary = voices::read_vocabulary(&folder.join(files::VOCABULARY))?;
        Ok(Kokoro { front, vocoder, vocabulary, voices: Voices::new(folder) })
    }

    /// The characters that can be spoken.
    pub fn vocabulary(&self) -> impl Iterator<Item = char> {
        self.vocabulary.keys().copied()
    }

    /// Measures the statistics that a voice's utterances start from, as they stand in
    /// `voice_statistics.bin`. About twenty seconds of speech are synthesised for it.
    ///
    /// # Errors
    /// The voice is unknown, or the graph failed.
    pub fn calibrate(&mut self, voice: &str) -> Result<Vec<u8>, SynthesisError> {
        Ok(self.measure(voice)?.to_bytes())
    }

    fn measure(&mut self, voice: &str) -> Result<VoiceStatistics, SynthesisError> {
        let mut statistics = VoiceStatistics::empty(self.vocoder.channels());
        for (part, texts) in statistics::CALIBRATION.iter().enumerate() {
            for phonemes in *texts {
                let tokens = self.tokens(phonemes)?;
                let style = self.voices.style(voice, tokens.len() - 2)?;
                let whole = self.front.run(&tokens, &style, Speed::NORMAL)?.whole();
                let own = RunningStatistics::empty(self.vocoder.channels());
                let rendered = self.vocoder.run(&whole, &style, &own)?;
                statistics.push(part, (&rendered.mean, &rendered.variance), whole.frames);
            }
        }
        Ok(statistics)
    }

    /// The whole unit in one window that is normalised by itself, as the published graph does:
    /// the reference that windows are compared with. Nothing is trimmed.
    fn whole(&self, contours: &Contours, style: &[f32]) -> Result<Vec<f32>, SynthesisError> {
        let own = RunningStatistics::empty(self.vocoder.channels());
        Ok(self.vocoder.run(&contours.whole(), style, &own)?.samples)
    }

    fn tokens(&self, phonemes: &str) -> Result<Vec<i32>, SynthesisError> {
        let ids = phonemes.chars().map(|symbol| {
            self.vocabulary.get(&symbol).copied().ok_or(SynthesisError::UnknownPhoneme(symbol))
        });
        let ids: Vec<i32> = ids.collect::<Result<_, _>>()?;
        if ids.len() > TOKENS_MAX {
            return Err(SynthesisError::TooLong { phonemes: ids.len(), phonemes_max: TOKENS_MAX });
        }
        Ok([&[0], &ids[..], &[0]].concat())
    }
}

/// The lengths of windows that [`crate::speech::WindowLengths`] chooses for one listener; the last one repeats.
const WINDOWS_S: [f32; 6] = [0.15, 0.15, 0.25, 0.5, 1.0, 2.0];

impl Kokoro {
    /// Speaks one unit as for one listener, and says what the model decided. Also returns the time to the first window.
    ///
    /// # Errors
    /// As [`Synthesiser::begin`].
    pub fn sound(
        &mut self,
        unit: &SpokenUnit,
        voice: &str,
    ) -> Result<(SpokenSound, Duration), SynthesisError> {
        let started = Instant::now();
        let mut utterance = self.begin(unit, voice, Speed::NORMAL)?;
        let mut heard = self.render(&mut utterance, WINDOWS_S[0])?;
        let first = started.elapsed();
        for seconds in WINDOWS_S[1..].iter().chain(std::iter::repeat(&WINDOWS_S[5])) {
            let window = self.render(&mut utterance, *seconds)?;
            if window.is_empty() {
                break;
            }
            heard.extend(window);
        }
        let Utterance { contours, style, .. } = utterance;
        let whole = self.whole(&contours, &style)?;
        let (durations, pitch) = (contours.durations().to_vec(), contours.pitch().to_vec());
        Ok((SpokenSound { heard, whole, durations, pitch }, first))
    }
}

impl Synthesiser for Kokoro {
    type Utterance = Utterance;

    fn sample_rate_hz(&self) -> u32 {
        SAMPLE_RATE_HZ
    }

    fn begin(
        &mut self,
        unit: &SpokenUnit,
        voice: &str,
        speed: Speed,
    ) -> Result<Utterance, SynthesisError> {
        let tokens = self.tokens(&unit.phonemes)?;
        let ids = tokens.len() - 2;
        let style = self.voices.style(voice, ids)?;
        let statistics = VoiceStatistics::of(voice, self.vocoder.channels())
            .ok_or_else(|| SynthesisError::UnknownVoice(voice.to_owned()))?;
        let block_styles = self.vocoder.block_styles(&style)?;
        let contours = self.front.run(&tokens, &style, within_model(speed))?;
        let plan = WindowPlan::new(contours.durations(), &unit.phonemes);
        let mut words = word_times(unit, &contours, plan.frames());
        let time_compression = match speed.rate() > 1.0 {
            true => self.time_compression((&tokens, &unit.phonemes), &style, (speed, &plan))?,
            false => None,
        };
        if let Some(compression) = &time_compression {
            for word in &mut words {
                word.change_times(|time_s| time_s / compression.factor() as f32);
            }
        }
        let (statistics, seam) = (statistics.running(plan.silent_share()), Seam::default());
        Ok(Utterance {
            contours,
            style,
            block_styles,
            plan,
            statistics,
            seam,
            time_compression,
            words,
        })
    }

    fn words(&self, utterance: &Utterance) -> Vec<WordTiming> {
        utterance.words.clone()
    }

    fn seconds_left(&self, utterance: &Utterance) -> f32 {
        match &utterance.time_compression {
            Some(compression) => compression.left() as f32 / SAMPLE_RATE_HZ as f32,
            None => utterance.plan.frames_left() as f32 / FRAMES_PER_SECOND,
        }
    }

    fn render(
        &mut self,
        utterance: &mut Utterance,
        seconds: f32,
    ) -> Result<Vec<f32>, SynthesisError> {
        utterance.render(&self.vocoder, Cores::All, seconds)
    }

    fn can_pair(&self) -> bool {
        self.vocoder.can_pair()
    }

    fn render_pair(
        &mut self,
        [first, second]: [(&mut Utterance, f32); 2],
    ) -> [Result<Vec<f32>, SynthesisError>; 2] {
        let vocoder = &self.vocoder;
        thread::scope(|scope| {
            let other = scope.spawn(|| second.0.render(vocoder, Cores::SecondHalf, second.1));
            let first = first.0.render(vocoder, Cores::FirstHalf, first.1);
            [first, other.join().unwrap_or_else(|panic| panic::resume_unwind(panic))]
        })
    }
}

/// The rate that the model computes.
fn within_model(speed: Speed) -> Speed {
    Speed::new(speed.rate().min(MODEL_RATE_MAX)).unwrap_or(speed)
}

impl Kokoro {
    /// Shortens the finished sound, if the model speaks audibly slower than `speed`. The unit should take its length at the
    /// voice's own rate divided by `speed`.
    fn time_compression(
        &self,
        (tokens, phonemes): (&[i32], &str),
        style: &[f32],
        (speed, plan): (Speed, &WindowPlan),
    ) -> Result<Option<TimeCompression>, SynthesisError> {
        let normal = self.front.run(tokens, style, Speed::NORMAL)?;
        let normal =
            WindowPlan::new(normal.durations(), phonemes).frames_left() * SAMPLES_PER_FRAME;
        let samples_out = (normal as f32 / speed.rate()).round() as usize;
        let samples_in = plan.frames_left() * SAMPLES_PER_FRAME;
        let is_audible = samples_in as f32 > 1.02 * samples_out as f32;
        Ok(is_audible.then(|| TimeCompression::new(samples_in, samples_out)))
    }
}

impl Utterance {
    /// The next window, at the rate that was asked for.
    fn render(
        &mut self,
        vocoder: &Vocoder,
        cores: Cores,
        seconds: f32,
    ) -> Result<Vec<f32>, SynthesisError> {
        let Some(mut compression) = self.time_compression.take() else {
            return self.window(vocoder, cores, seconds);
        };
        let mut samples = Vec::new();
        // A short window may not make a piece of shortened sound.
        while samples.is_empty() && compression.left() > 0 {
            let window = self.window(vocoder, cores, seconds * compression.factor() as f32)?;
            samples = compression.push(&window, self.plan.frames_left() == 0);
        }
        self.time_compression = Some(compression);
        Ok(samples)
    }

    /// About `seconds` of sound as the model makes it.
    fn window(
        &mut self,
        vocoder: &Vocoder,
        cores: Cores,
        seconds: f32,
    ) -> Result<Vec<f32>, SynthesisError> {
        let target_frames = (seconds * FRAMES_PER_SECOND).round() as usize;
        let Some(window) = self.plan.next(target_frames, self.contours.pitch()) else {
            return Ok(Vec::new());
        };
        let PlannedWindow { played, computed } = window;
        let cut = self.contours.cut(computed, played.clone());
        let styles = (&self.style[..], &self.block_styles[..]);
        let result = vocoder.run_on(cores, &cut, styles, &self.statistics)?;
        self.statistics.add(&result.mean, &result.variance, played.len());
        let last = result.kept_from + played.len() * SAMPLES_PER_FRAME;
        let is_last = self.plan.frames_left() == 0;
        Ok(self.seam.join(&result.samples, result.kept_from..last, is_last))
    }
}
