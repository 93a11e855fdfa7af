//! Whisper on ggml: up to 30 s of sound in, text with times out.
//! The encoder computes only the window that the sound needs. If a result is doubtful, it computes the sound again with
//! 30 s, the window of the model's training.

mod convert;
mod decoder;
mod drafts;
mod encoder;
mod file;
mod ggml;
mod loops;
pub(crate) mod mel;
mod noise;
mod passes;
mod rules;
mod segments;
mod tokens;
mod weights;
mod words;

use std::path::Path;

use hob_core::{HeardWord, Segment, Sound, TranscriptTask};

use crate::chat::CardUse;
use file::{Sizes, WhisperFile};
use ggml::Backends;
use mel::{HOP, Mel};
use passes::{Pass, PassPlan};
use tokens::{TIMESTAMP_S, Tokens};
use weights::Weights;

pub use file::WhisperFileError;
pub use ggml::NoBackend;
pub use tokens::{language_name, languages};
pub use weights::WhisperLoadError;

const RATE_HZ: usize = Sound::RATE_HZ as usize;
/// Longest sound of one call in seconds: the window with which Whisper was trained.
const SOUND_S_MAX: usize = 30;
/// Shortest window in seconds. With shorter ones the model repeats words.
const WINDOW_S_MIN: f64 = 10.0;
/// Seconds of silence in the window after the sound.
const MARGIN_S: f64 = 3.0;
/// The number of positions is rounded up to a multiple of this, because ggml's kernels compute such sizes faster.
const POSITIONS_STEP: usize = 16;
/// Seed of the random numbers of passes at higher temperatures.
const SEED: u64 = 0;
/// Sound longer than this in seconds is decoded with times. Without them Whisper leaves out sentences where speakers change.
const UNTIMED_S_MAX: f64 = 10.0;
/// A text that has no room goes on no earlier than this, in seconds, so that each further pass hears less sound.
const REST_FROM_S_MIN: f64 = 1.0;
/// Samples of one position: two frames.
const POSITION_SAMPLES: usize = 2 * HOP;
/// Temperatures of the further passes, if the first one is doubtful.
const TEMPERATURES: [f32; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];

/// A loaded model. One thread uses it.
#[derive(Debug)]
pub struct Whisper {
    // Dropped before the backends that hold their memory.
    weights: Weights,
    backends: Backends,
    sizes: Sizes,
    mel: Mel,
    tokens: Tokens,
    /// Seeded for each sound, so that the same sound gives the same text, whatever was heard before it.
    random: fastrand::Rng,
}

/// How to transcribe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhisperOptions {
    pub task: TranscriptTask,
    /// One of [`Whisper::languages`]. `None`: detected.
    pub language: Option<String>,
    /// Text that might have come before.
    pub prompt: Option<String>,
    /// 0 to 1, for the first pass. `None`: 0.
    pub temperature: Option<f32>,
    pub words: bool,
    pub segments: bool,
    /// [`WhisperText::tokens`] of the beginning of the same sound, if it was transcribed before. It only saves time.
    pub draft: Vec<u32>,
    /// [`WhisperText::language`] of that beginning. It only saves time, too.
    pub likely_language: Option<String>,
}

/// The text of one part of the sound, with times from its beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhisperText {
    /// Code of the language.
    pub language: String,
    /// At least one if there is text.
    pub segments: Vec<Segment>,
    pub words: Vec<HeardWord>,
    /// The model's tokens, or the first of them if the sound was transcribed in pieces.
    pub tokens: Vec<u32>,
}

impl WhisperText {
    /// Adds the text of sound that begins at `from_s`.
    fn append(&mut self, next: WhisperText, from_s: f64) {
        self.segments.extend(next.segments.into_iter().map(|segment| Segment {
            start_s: segment.start_s + from_s,
            end_s: segment.end_s + from_s,
            ..segment
        }));
        self.words.extend(next.words.into_iter().map(|word| HeardWord {
            start_s: word.start_s + from_s,
            end_s: word.end_s + from_s,
            ..word
        }));
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TranscribeError {
    #[error("the model does not know the language '{0}'")]
    UnknownLanguage(String),
    #[error("a part has {0} samples, which is more than {SOUND_S_MAX} s")]
    TooLong(usize),
    #[error("there is not enough memory to transcribe; use a smaller model or unload others")]
    Memory,
    #[error("the graphics card failed; send the request again: hob loads the model again")]
    Card,
    #[error("the request was cancelled")]
    Cancelled,
}

/// Part of the sound that the encoder sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    /// Positions of the encoder; each is 20 ms.
    positions: usize,
    /// Positions with sound.
    sounding: usize,
}

impl Window {
    /// The smallest window for this many samples.
    fn trimmed(samples: usize, positions_max: usize) -> Window {
        let sound_s = samples as f64 / RATE_HZ as f64;
        let seconds = (sound_s + MARGIN_S).max(WINDOW_S_MIN);
        let positions = (seconds * RATE_HZ as f64) as usize / POSITION_SAMPLES;
        let positions = positions.next_multiple_of(POSITIONS_STEP).min(positions_max);
        Window { positions, sounding: samples.div_ceil(POSITION_SAMPLES).min(positions) }
    }

    fn full(self, positions_max: usize) -> Window {
        Window { positions: positions_max, ..self }
    }
}

impl Whisper {
    /// Loads a file in whisper.cpp's format.
    ///
    /// # Errors
    /// The file cannot be read, is damaged or no Whisper file, or the memory does not suffice.
    pub fn load(
        path: &Path,
        threads: u32,
        card_use: &CardUse,
    ) -> Result<Whisper, WhisperLoadError> {
        let (mut file, head) = WhisperFile::open(path)?;
        let backends = Backends::new(threads, card_use)?;
        let threads = threads.max(1) as usize;
        let weights = Weights::load(&mut file, &head.sizes, &backends, threads)?;
        Ok(Whisper {
            weights,
            backends,
            sizes: head.sizes,
            mel: Mel::new(head.filters, head.sizes.mels),
            tokens: Tokens::new(head.vocabulary, head.sizes.vocab),
            random: fastrand::Rng::with_seed(SEED),
        })
    }

    /// Codes of the languages that the model understands.
    pub fn languages(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.tokens.languages()
    }

    /// Bytes of weights and caches on a graphics card, for reports where the driver does not say what the load took.
    pub fn card_bytes(&self) -> u64 {
        if self.backends.has_card() { self.weights.bytes() } else { 0 }
    }

    /// Whether its card has failed, and computes nothing more in this process.
    pub fn is_broken(&self) -> bool {
        self.backends.is_broken
    }

    /// Computes one pass over silence. It is not transcribed: such a text is doubtful, so more passes would follow.
    ///
    /// # Errors
    /// The memory does not suffice.
    pub fn warm_up(&mut self) -> Result<(), TranscribeError> {
        let never = || false;
        let silence = vec![0.0; RATE_HZ];
        let mut window = Window::trimmed(silence.len(), self.sizes.audio_ctx);
        if self.backends.has_card() {
            // What the largest window takes of a card's memory shows after the load.
            window = window.full(self.sizes.audio_ctx);
        }
        self.encode(&silence, window, &never)?;
        let mut plan = self.plan(&WhisperOptions::default(), "en", 1.0, &never);
        plan.positions = window.positions;
        self.pass(&plan).map(drop)
    }

    /// Transcribes at most 30 s of mono sound at 16 kHz. Silence has no text.
    ///
    /// # Errors
    /// See [`TranscribeError`]; [`TranscribeError::Cancelled`] soon after `cancelled` says so.
    pub fn transcribe(
        &mut self,
        samples: &[f32],
        options: &WhisperOptions,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<WhisperText, TranscribeError> {
        if samples.len() > SOUND_S_MAX * RATE_HZ {
            return Err(TranscribeError::TooLong(samples.len()));
        }
        self.random.seed(SEED);
        let (mut whole, mut rest) = self.transcribe_from(samples, options, cancelled)?;
        // Dense speech, and most of all that of other scripts, has more tokens than the decoder has room for.
        while let Some(from_s) = rest {
            let from = ((from_s * RATE_HZ as f64) as usize).min(samples.len());
            // The rest may be too short to detect its language, and the draft is that of the beginning.
            let language = Some(whole.language.clone());
            let options = WhisperOptions { language, draft: Vec::new(), ..options.clone() };
            let next = self.transcribe_from(&samples[from..], &options, cancelled)?;
            whole.append(next.0, from_s);
            rest = next.1.map(|further_s| from_s + further_s);
        }
        Ok(whole)
    }

    /// The text of the sound, or of its beginning, and then where the rest begins in seconds.
    fn transcribe_from(
        &mut self,
        samples: &[f32],
        options: &WhisperOptions,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(WhisperText, Option<f64>), TranscribeError> {
        let mut window = Window::trimmed(samples.len(), self.sizes.audio_ctx);
        self.encode(samples, window, cancelled)?;
        let likely = self.likely_language(options);
        let mut language = match likely {
            Some(likely) => likely.to_owned(),
            None => self.language(options, window, cancelled)?,
        };
        let sound_s = samples.len() as f64 / RATE_HZ as f64;
        let temperature = options.temperature.unwrap_or(0.0);
        let mut plan = self.plan(options, &language, sound_s, cancelled);
        (plan.positions, plan.temperature) = (window.positions, temperature);
        plan.has_beams = noise::is_noisy(samples);
        plan.likely_language = likely;
        let mut pass = self.pass(&plan)?;
        plan.likely_language = None;
        if likely.is_some() && pass.language != likely {
            language = self.language(options, window, cancelled)?;
            plan.prompt = self.plan(options, &language, sound_s, cancelled).prompt;
            pass = self.pass(&plan)?;
        }
        pass = self.timed_if_full(&mut plan, pass)?;
        if pass.is_unsure() && !pass.is_silence() && !plan.has_beams && temperature <= 0.0 {
            plan.has_beams = true;
            pass = self.pass(&plan)?;
            pass = self.timed_if_full(&mut plan, pass)?;
        }
        if pass.needs_full_window(sound_s) {
            window = window.full(self.sizes.audio_ctx);
            self.encode(samples, window, cancelled)?;
            plan.positions = window.positions;
            pass = self.best_pass(&mut plan, pass)?;
        }
        let rest = self.rest_of(&mut pass);
        if pass.is_silence() || self.tokens.text(&pass.tokens).trim().is_empty() {
            return Ok((WhisperText { language, ..WhisperText::default() }, None));
        }
        // A text without times gets those of its words: other tokens would change the text.
        let is_cut_at_sentences = options.segments && !plan.has_times;
        let mut words = Vec::new();
        if options.words || is_cut_at_sentences {
            words = self.words((&language, options.task), &pass.tokens, window, cancelled)?;
        }
        let segments = match is_cut_at_sentences {
            true => self.sentences(&pass, &words, text_language(&language, options.task), sound_s),
            false => self.segments(&pass, sound_s),
        };
        let words = words.into_iter().filter(|_| options.words).map(|placed| placed.word);
        let words = words.collect();
        Ok((WhisperText { language, segments, words, tokens: pass.tokens }, rest))
    }

    /// Where the text goes on, in seconds, if there was no room for all of it. What follows the last complete segment is
    /// removed, and heard again with the rest.
    fn rest_of(&self, pass: &mut Pass) -> Option<f64> {
        let first_time = self.tokens.first_timestamp();
        let is_end = |pair: &[u32]| pair[0] < first_time && pair[1] >= first_time;
        let end = pass.tokens.windows(2).rposition(is_end).filter(|_| pass.is_full)? + 1;
        let rest_s = f64::from(pass.tokens[end] - first_time) * TIMESTAMP_S;
        if rest_s < REST_FROM_S_MIN {
            return None;
        }
        pass.tokens.truncate(end + 1);
        Some(rest_s)
    }

    /// Passes at rising temperatures until one is beyond doubt; otherwise the likeliest.
    fn best_pass(&mut self, plan: &mut PassPlan<'_>, first: Pass) -> Result<Pass, TranscribeError> {
        let mut best = first;
        let lowest = plan.temperature;
        for temperature in TEMPERATURES.into_iter().filter(|temperature| *temperature >= lowest) {
            plan.temperature = temperature;
            let pass = self.pass(plan)?;
            let pass = self.timed_if_full(plan, pass)?;
            if !pass.is_doubted() || pass.is_silence() {
                return Ok(pass);
            }
            if best.has_loop || pass.avg_logprob > best.avg_logprob {
                best = pass;
            }
        }
        Ok(best)
    }

    fn encode(
        &mut self,
        samples: &[f32],
        window: Window,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), TranscribeError> {
        if cancelled() {
            return Err(TranscribeError::Cancelled);
        }
        let frames = window.positions * 2;
        let mut mel = self.mel.spectrogram(samples, frames);
        noise::fill_silence_after(samples, &mut mel, frames);
        encoder::encode(&self.weights, &self.sizes, &mut self.backends, &mel, cancelled)
    }

    /// The language with which the first pass begins. The pass itself says whether that is right. `None` if a prompt is before
    /// "start of transcript": the language is detected without it.
    fn likely_language<'a>(&self, options: &'a WhisperOptions) -> Option<&'a str> {
        let is_open = options.language.is_none() && options.prompt.is_none();
        let likely = options.likely_language.as_deref();
        let likely = likely.filter(|likely| self.tokens.language(likely).is_some());
        likely.filter(|_| is_open && self.tokens.is_multilingual())
    }

    /// The named language, or the likeliest.
    fn language(
        &mut self,
        options: &WhisperOptions,
        window: Window,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<String, TranscribeError> {
        if let Some(named) = &options.language {
            let known = self.tokens.language(named);
            return known
                .map(|_| named.clone())
                .ok_or_else(|| TranscribeError::UnknownLanguage(named.clone()));
        }
        if !self.tokens.is_multilingual() {
            return Ok("en".to_owned());
        }
        let start = [self.tokens.start()];
        let positions = window.positions;
        let step = decoder::Step { tokens: &start, past: 0, branches: None, positions, cancelled };
        let logits = decoder::logits(&self.weights, &self.sizes, &mut self.backends, step, &[0])?;
        let languages = &logits[self.tokens.language_range()];
        let best = languages.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        Ok(self.tokens.language_at(best.map_or(0, |(place, _)| place)).to_owned())
    }

    fn plan<'a>(
        &self,
        options: &WhisperOptions,
        language: &str,
        sound_s: f64,
        cancelled: &'a dyn Fn() -> bool,
    ) -> PassPlan<'a> {
        let mut prompt = Vec::new();
        if let Some(text) = options.prompt.as_deref().filter(|text| !text.trim().is_empty()) {
            let before = self.tokens.encode(&format!(" {}", text.trim()));
            // The prompt gets half of the context, as in OpenAI's decoder. Its beginning is dropped.
            let kept = before.len().saturating_sub(self.sizes.text_ctx / 2 - 1);
            prompt.push(self.tokens.previous());
            prompt.extend(&before[kept..]);
        }
        let start = prompt.len();
        prompt.extend(self.tokens.opening(language, options.task));
        let has_times = sound_s > UNTIMED_S_MAX;
        if !has_times {
            prompt.push(self.tokens.no_timestamps());
        }
        PassPlan {
            prompt,
            start,
            has_times,
            temperature: 0.0,
            has_beams: false,
            positions: 0,
            draft: options.draft.clone(),
            likely_language: None,
            sound_s,
            cancelled,
        }
    }
}

/// The language of the text of sound in this language.
fn text_language(language: &str, task: TranscriptTask) -> &str {
    match task {
        TranscriptTask::Transcribe => language,
        TranscriptTask::Translate => "en",
    }
}

#[cfg(test)]
mod tests;
