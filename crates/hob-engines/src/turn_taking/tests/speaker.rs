//! Sentences spoken by Kokoro, with pauses where a person would search for a word.
//! Made for each run, so that no recording is in the repository.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use hob_core::{Language, Speed};
use hob_speech::decode::decode_all;
use hob_speech::{Phonemizer, PhonemizerOptions, Reader};

use crate::speech::kokoro::{Kokoro, KokoroOptions, SAMPLE_RATE_HZ};
use crate::speech::synthesiser::Synthesiser;
use crate::test_home::stored;

/// Marks a pause in a text.
pub(super) const PAUSE: char = '|';
/// Level of the room: white noise at -66 dB.
const NOISE: f32 = 5e-4;
/// Silence before and after the speech. The second is longer than any silence that a turn may contain.
const LEAD_S: f32 = 0.5;
const TAIL_S: f32 = 4.6;
/// Quieter than this part of the loudest 10 ms is silence.
const AUDIBLE: f32 = 0.01;

/// Where a pause begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Two frames of the detector after the sound of the next word begins, as if the person stopped in it.
    InNextWord,
    /// In the quietest 10 ms where the voice says that the next word begins. Its times are exact to 50 ms.
    BetweenWords,
}

/// Shared, because two tests record some of the same sentences.
static SPEAKER: LazyLock<Mutex<Speaker>> = LazyLock::new(|| Mutex::new(Speaker::new()));

#[derive(Debug)]
struct Speaker {
    kokoro: Kokoro,
    phonemizer: Phonemizer,
    /// By text and voice.
    spoken: HashMap<(String, String), Spoken>,
}

#[derive(Clone, Debug, Default)]
struct Spoken {
    sound: Vec<f32>,
    /// For each word its place in the text and the second where it begins.
    starts: Vec<(usize, f32)>,
}

/// Speech in a quiet room, at 16 kHz.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) samples: Vec<f32>,
    /// Where the last sound of the voice ends.
    pub(super) speech_end_s: f32,
}

/// Speaks the text. Each [`PAUSE`] before a word becomes `pause_s` of silence.
pub(super) fn record(text: &str, voice: &str, pause_s: f32, cut: Cut) -> Recording {
    let words: String = text.chars().filter(|c| *c != PAUSE).collect();
    let before = text.match_indices(PAUSE).enumerate().map(|(pauses, (at, _))| at - pauses);
    let pauses: Vec<usize> = before.collect();
    let Spoken { sound: voiced, starts } = SPEAKER.lock().expect("no panic").spoken(&words, voice);
    let silence = |seconds: f32| vec![0.0; (seconds * SAMPLE_RATE_HZ as f32) as usize];
    let mut sound = silence(LEAD_S);
    let mut from = 0;
    for pause in pauses {
        let word = starts.iter().find(|(at, _)| *at >= pause).expect("a word after the pause");
        let to = cut.place(&voiced, word.1);
        sound.extend(faded(&voiced[from..to]));
        sound.extend(silence(pause_s));
        from = to;
    }
    sound.extend(faded(&voiced[from..]));
    let speech_end_s = audible_end(&sound) as f32 / SAMPLE_RATE_HZ as f32;
    sound.truncate(audible_end(&sound));
    sound.extend(silence(TAIL_S));
    in_a_room(&mut sound);
    let samples = decode_all(wav(&sound).into(), 600.0).expect("a WAV file");
    Recording { samples, speech_end_s }
}

impl Cut {
    /// The sample where a pause before the word begins that begins at this second.
    fn place(self, sound: &[f32], second: f32) -> usize {
        let sample = |second: f32| ((second * SAMPLE_RATE_HZ as f32) as usize).min(sound.len());
        if self == Cut::InNextWord {
            return sample(second + 0.0625);
        }
        let (from, to) = (sample(second - 0.05), sample(second + 0.05));
        let length = (SAMPLE_RATE_HZ / 100) as usize;
        let pieces = sound[from..to].windows(length).enumerate();
        let quietest = pieces.min_by(|(_, one), (_, other)| power(one).total_cmp(&power(other)));
        from + quietest.map_or(0, |(at, _)| at + length / 2)
    }
}

impl Speaker {
    /// With one thread, because another test computes at the same time.
    fn new() -> Speaker {
        let kokoro = Kokoro::load(&stored("kokoro"), KokoroOptions { threads: 1 });
        let phonemizer = Phonemizer::new(PhonemizerOptions::default());
        let kokoro = kokoro.expect("the stored model loads");
        Speaker { kokoro, phonemizer, spoken: HashMap::new() }
    }

    fn spoken(&mut self, text: &str, voice: &str) -> Spoken {
        let key = (text.to_owned(), voice.to_owned());
        if let Some(spoken) = self.spoken.get(&key) {
            return spoken.clone();
        }
        let spoken = self.speak(text, voice);
        self.spoken.insert(key, spoken.clone());
        spoken
    }

    fn speak(&mut self, text: &str, voice: &str) -> Spoken {
        let mut reader = Reader::new(Language::AmericanEnglish);
        reader.push(text);
        reader.finish();
        let Spoken { mut sound, mut starts } = Spoken::default();
        while let Some(unit) = reader.next_unit(&mut self.phonemizer) {
            let begun = sound.len() as f32 / SAMPLE_RATE_HZ as f32;
            let utterance = self.kokoro.begin(&unit, voice, Speed::NORMAL);
            let mut utterance = utterance.expect("phonemes of the model");
            let words = self.kokoro.words(&utterance);
            starts.extend(words.iter().map(|word| (word.span.start, begun + word.start_s)));
            loop {
                let window = self.kokoro.render(&mut utterance, 30.0).expect("sound");
                if window.is_empty() {
                    break;
                }
                sound.extend(window);
            }
            sound.extend(vec![0.0; (unit.pause_after_ms * SAMPLE_RATE_HZ / 1000) as usize]);
        }
        Spoken { sound, starts }
    }
}

/// With soft ends of 5 ms, so that a cut inside a sound is not a click.
fn faded(piece: &[f32]) -> Vec<f32> {
    let length = (SAMPLE_RATE_HZ / 200) as usize;
    let gain = |at: usize| (at.min(piece.len() - 1 - at) as f32 / length as f32).min(1.0);
    piece.iter().enumerate().map(|(at, sample)| sample * gain(at)).collect()
}

/// The end of the last 10 ms that can be heard.
fn audible_end(sound: &[f32]) -> usize {
    let length = (SAMPLE_RATE_HZ / 100) as usize;
    let loudest = sound.chunks(length).map(power).fold(0.0, f32::max);
    let is_audible = |piece: &[f32]| power(piece) > loudest * AUDIBLE * AUDIBLE;
    let last = sound.chunks(length).rposition(is_audible).unwrap_or(0);
    ((last + 1) * length).min(sound.len())
}

fn power(piece: &[f32]) -> f32 {
    piece.iter().map(|sample| sample * sample).sum()
}

fn in_a_room(sound: &mut [f32]) {
    let mut random = fastrand::Rng::with_seed(1);
    sound.iter_mut().for_each(|sample| *sample += (random.f32() - 0.5) * 2.0 * NOISE);
}

/// A WAV file of 32-bit floats, which hob's decoder resamples to 16 kHz.
fn wav(sound: &[f32]) -> Vec<u8> {
    let bytes = (sound.len() * 4) as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x03\0\x01\0");
    file.extend(SAMPLE_RATE_HZ.to_le_bytes());
    file.extend((SAMPLE_RATE_HZ * 4).to_le_bytes());
    file.extend(b"\x04\0\x20\0data");
    file.extend(bytes.to_le_bytes());
    file.extend(sound.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}
