//! A scripted engine and unit source, for tests of the worker and of all layers above it.
//! The sound of a stream depends only on its text, voice and speed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use hob_core::{Language, Speed, WordTiming};
use hob_speech::{Lexicon, SpokenUnit, SpokenWord};

use super::synthesiser::{SynthesisError, Synthesiser};
use super::units::UnitSource;

pub const SAMPLE_RATE_HZ: u32 = 24_000;

/// Samples of one phoneme at normal speed: 10 ms.
pub const PHONEME_SAMPLES: usize = 240;

/// Silence after each unit, in ms.
pub const PAUSE_MS: u32 = 100;

/// What rendering a window does in addition to its sound.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Fail,
    Panic,
    /// Panics with a message that quotes what the user asked for.
    PanicQuoting,
    /// Ends the process without any output.
    Abort,
    /// Takes this long.
    Take(Duration),
    /// Writes "hanging" to standard error and never returns.
    Hang,
}

/// An engine whose phonemes are known samples. A voice can be scripted to misbehave.
#[derive(Clone, Debug, Default)]
pub struct ScriptedSynthesiser {
    always: BTreeMap<String, Act>,
    /// By voice, with the number of the window in its unit, counted from 1.
    once: BTreeMap<String, (u32, Act)>,
}

impl ScriptedSynthesiser {
    /// Every window of `voice` does this.
    #[must_use]
    pub fn always(mut self, voice: &str, act: Act) -> ScriptedSynthesiser {
        self.always.insert(voice.to_owned(), act);
        self
    }

    /// This window of every unit of `voice` does this.
    #[must_use]
    pub fn at(mut self, voice: &str, window: u32, act: Act) -> ScriptedSynthesiser {
        self.once.insert(voice.to_owned(), (window, act));
        self
    }

    #[expect(clippy::panic, reason = "tests need an engine that panics")]
    fn act(&self, voice: &str, window: u32) -> Result<(), SynthesisError> {
        let once = self.once.get(voice).filter(|(at, _)| *at == window).map(|(_, act)| act);
        match self.always.get(voice).or(once) {
            None => Ok(()),
            Some(Act::Fail) => Err(SynthesisError::Graph(format!("scripted at window {window}"))),
            Some(Act::Panic) => panic!("a scripted panic"),
            Some(Act::PanicQuoting) => panic!("this was asked for: {voice}"),
            Some(Act::Abort) => std::process::abort(),
            Some(Act::Take(time)) => {
                std::thread::sleep(*time);
                Ok(())
            }
            Some(Act::Hang) => {
                // A closed standard error has no reader who waits for the line.
                let _ = writeln!(io::stderr(), "hanging");
                loop {
                    std::thread::park();
                }
            }
        }
    }
}

/// The part of a unit that is not rendered yet.
#[derive(Debug)]
pub struct ScriptedUtterance {
    voice: String,
    sound: Sound,
    /// Samples that were rendered.
    taken: usize,
    windows: u32,
    words: Vec<WordTiming>,
}

impl Synthesiser for ScriptedSynthesiser {
    type Utterance = ScriptedUtterance;

    fn sample_rate_hz(&self) -> u32 {
        SAMPLE_RATE_HZ
    }

    fn begin(
        &mut self,
        unit: &SpokenUnit,
        voice: &str,
        speed: Speed,
    ) -> Result<ScriptedUtterance, SynthesisError> {
        if voice == "unknown" {
            return Err(SynthesisError::UnknownVoice(voice.to_owned()));
        }
        let sound = Sound::new(&unit.phonemes, voice, speed);
        let phoneme_s = sound.phoneme_samples as f32 / SAMPLE_RATE_HZ as f32;
        let timing = |word: &SpokenWord| WordTiming {
            span: word.span.clone(),
            start_s: word.phonemes.start as f32 * phoneme_s,
            end_s: word.phonemes.end as f32 * phoneme_s,
            phonemes: Vec::new(),
        };
        Ok(ScriptedUtterance {
            voice: voice.to_owned(),
            sound,
            taken: 0,
            windows: 0,
            words: unit.words.iter().map(timing).collect(),
        })
    }

    fn words(&self, utterance: &ScriptedUtterance) -> Vec<WordTiming> {
        utterance.words.clone()
    }

    fn seconds_left(&self, utterance: &ScriptedUtterance) -> f32 {
        (utterance.sound.len() - utterance.taken) as f32 / SAMPLE_RATE_HZ as f32
    }

    fn render(
        &mut self,
        utterance: &mut ScriptedUtterance,
        seconds: f32,
    ) -> Result<Vec<f32>, SynthesisError> {
        utterance.windows += 1;
        self.act(&utterance.voice, utterance.windows)?;
        let window = (seconds * SAMPLE_RATE_HZ as f32) as usize;
        let end = (utterance.taken + window).min(utterance.sound.len());
        let samples = (utterance.taken..end).map(|at| utterance.sound.sample(at)).collect();
        utterance.taken = end;
        Ok(samples)
    }

    fn can_pair(&self) -> bool {
        true
    }
}

/// The samples of a unit, computed when they are rendered. Each value depends on the phoneme, the position in it, and the
/// voice.
#[derive(Debug)]
struct Sound {
    phonemes: Vec<char>,
    phoneme_samples: usize,
    timbre: u32,
}

impl Sound {
    fn new(phonemes: &str, voice: &str, speed: Speed) -> Sound {
        Sound {
            phonemes: phonemes.chars().collect(),
            phoneme_samples: (PHONEME_SAMPLES as f32 / speed.rate()) as usize,
            timbre: voice.bytes().map(u32::from).sum::<u32>() % 97,
        }
    }

    fn len(&self) -> usize {
        self.phonemes.len() * self.phoneme_samples
    }

    fn sample(&self, at: usize) -> f32 {
        let phoneme = self.phonemes[at / self.phoneme_samples];
        let tone = (phoneme as u32 + self.timbre) % 251 + 1;
        tone as f32 / 256.0 - (at % self.phoneme_samples) as f32 / 100_000.0
    }
}

/// Turns text up to and including a full stop into a unit. Its characters are its phonemes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptedUnits;

#[derive(Debug, Default)]
pub struct ScriptedText {
    text: String,
    /// Bytes of the whole text before `text`.
    taken: usize,
    is_finished: bool,
}

impl UnitSource for ScriptedUnits {
    type Text = ScriptedText;

    fn warm(&mut self, _language: Language) {}

    fn use_dictionary(&mut self, _language: Language, _folder: PathBuf) {}

    fn open(&mut self, _language: Language, _lexicon: Lexicon) -> ScriptedText {
        ScriptedText::default()
    }

    fn push(&mut self, text: &mut ScriptedText, piece: &str) {
        text.text.push_str(piece);
    }

    fn finish(&mut self, text: &mut ScriptedText) {
        text.is_finished = true;
    }

    fn next_unit(&mut self, text: &mut ScriptedText) -> Option<SpokenUnit> {
        let end = match text.text.find('.') {
            Some(stop) => stop + 1,
            None if text.is_finished => text.text.len(),
            None => return None,
        };
        let phonemes: String = text.text.drain(..end).collect();
        let words = words(&phonemes, text.taken);
        text.taken += end;
        (!words.is_empty()).then_some(SpokenUnit { phonemes, words, pause_after_ms: PAUSE_MS })
    }

    fn is_done(&self, text: &ScriptedText) -> bool {
        text.is_finished && text.text.trim().is_empty()
    }
}

fn words(phonemes: &str, taken: usize) -> Vec<SpokenWord> {
    let at = |word: &str| word.as_ptr() as usize - phonemes.as_ptr() as usize;
    let chars = |bytes: usize| phonemes[..bytes].chars().count();
    let word = |word: &str| {
        let (start, end) = (at(word), at(word) + word.len());
        SpokenWord { span: taken + start..taken + end, phonemes: chars(start)..chars(end) }
    };
    phonemes.split_whitespace().map(word).collect()
}

/// All samples of `text` without any scripted fault.
pub fn expected(text: &str, voice: &str, speed: Speed) -> Vec<f32> {
    let pause_s = f64::from(PAUSE_MS) / 1000.0 / f64::from(speed.rate());
    let pause = vec![0.0; (pause_s * f64::from(SAMPLE_RATE_HZ)).round() as usize];
    let units = text.split_inclusive('.').filter(|unit| !unit.trim().is_empty());
    let samples = |unit: &str| -> Vec<f32> {
        let sound = Sound::new(unit, voice, speed);
        (0..sound.len()).map(|at| sound.sample(at)).collect()
    };
    units.map(samples).collect::<Vec<_>>().join(&pause[..])
}
