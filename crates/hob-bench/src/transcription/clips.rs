//! A set of clips with their reference texts: read from a file, or spoken by the server's own speech model.
//! It also adds noise. The noise of a clip is always the same, so that figures can be compared.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hob_core::statistics::SeededRandom;
use serde::Deserialize;
use serde_saphyr::{budget, options};
use sha2::{Digest as _, Sha256};

use super::normalise::{normalised_chars, normalised_words};
use crate::record::{hex, sha256_hex, yaml_line, yaml_message};
use crate::wav::Wav;

/// Most clips of a set, so that its record stays readable.
const CLIPS_MAX: usize = 5_000;
/// Most bytes of all sounds of a set, which are in memory together.
const SOUND_BYTES_MAX: u64 = 1 << 30;
/// Most bytes of the file of a set.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Most YAML nodes in the file of a set.
const NODES_MAX: usize = 100_000;

/// Clips that are transcribed together.
#[derive(Clone, Debug, PartialEq)]
pub struct ClipSet {
    /// The file's name without its ending, or `spoken`.
    pub name: String,
    pub clips: Vec<Clip>,
    /// Added white noise, in dB below the mean power of each clip.
    pub snr_db: Option<f64>,
    /// The model that spoke the texts; None for recordings.
    pub synthetic_by: Option<String>,
}

/// A recording, and what is said in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Clip {
    pub name: String,
    /// The WAV file as it is sent.
    pub wav: Bytes,
    pub audio_s: f64,
    pub text: String,
    /// ISO 639-1
    pub language: String,
    pub speaker: Option<String>,
    pub origin: Option<String>,
    /// Noise that the recording already has.
    pub noise: Option<String>,
    /// The normalised text.
    pub words: Vec<String>,
}

/// Why a set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    #[error("cannot read {file}: {source}")]
    Io { file: String, source: std::io::Error },
    #[error("{file}:{line}: {reason}")]
    Invalid { file: String, line: u64, reason: String },
    #[error("{file} lists {count} clips (expected 1 to {CLIPS_MAX})")]
    Count { file: String, count: usize },
    #[error(
        "{file} has {bytes} bytes, and {bytes_max} bytes are left for it (a set file has at most 16 MiB, all its sounds together 1 GiB)"
    )]
    TooLarge { file: String, bytes: u64, bytes_max: u64 },
    #[error(
        "{file} is not a WAV file of 16-bit samples; convert it: ffmpeg -i INPUT -ac 1 -c:a pcm_s16le OUTPUT.wav"
    )]
    NotWav { file: String },
}

/// The file of a set, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetFile {
    clips: Vec<ListedClip>,
}

/// A clip in the file of a set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedClip {
    /// Relative to the set's file.
    file: PathBuf,
    text: String,
    #[serde(default = "english")]
    language: String,
    speaker: Option<String>,
    origin: Option<String>,
    noise: Option<String>,
}

fn english() -> String {
    "en".to_owned()
}

impl ClipSet {
    /// Reads a YAML file and all clips in it.
    ///
    /// # Errors
    /// A file cannot be read or is too large, the YAML is invalid, the number of clips is not allowed, or a sound is not a WAV
    /// of 16-bit samples.
    pub fn read(file: &Path) -> Result<ClipSet, ClipError> {
        let file_name = file.display().to_string();
        let bytes = read_up_to(file, FILE_BYTES_MAX)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
            let reason = format!("byte {} of the file is not UTF-8", good + 1);
            ClipError::Invalid { file: file_name.clone(), line: line as u64, reason }
        })?;
        let listed = parse(&file_name, &text)?;
        if !(1..=CLIPS_MAX).contains(&listed.len()) {
            return Err(ClipError::Count { file: file_name, count: listed.len() });
        }
        let mut bytes_left = SOUND_BYTES_MAX;
        let mut clips = Vec::with_capacity(listed.len());
        for clip in listed {
            let sound = file.with_file_name("").join(&clip.file);
            let wav = Bytes::from(read_up_to(&sound, bytes_left)?);
            bytes_left -= wav.len() as u64;
            clips.push(clip.with_sound(wav)?);
        }
        let stem = file.file_stem().map_or("set".into(), |stem| stem.to_string_lossy());
        Ok(ClipSet { name: stem.into_owned(), clips, snr_db: None, synthetic_by: None })
    }

    /// SHA-256 of all sounds, languages and texts, which identifies the set in a record.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for clip in &self.clips {
            hash.update(format!("{}\n{}\n", sha256_hex(&clip.wav), clip.language));
            hash.update(sha256_hex(clip.text.as_bytes()));
        }
        hex(&hash.finalize())
    }

    pub fn audio_s(&self) -> f64 {
        self.clips.iter().map(|clip| clip.audio_s).sum()
    }

    /// The name in records, with the added noise.
    pub fn workload_name(&self) -> String {
        let noise = self.snr_db.map_or(String::new(), |db| format!(" at {db} dB"));
        format!("{}{noise}", self.name)
    }

    /// A set of these clips with white noise.
    pub fn with_noise(&self, snr_db: f64) -> ClipSet {
        let with_noise = |(seed, clip): (u64, &Clip)| match Wav::read(&clip.wav) {
            Some(wav) => Clip { wav: add_noise(wav, snr_db, seed).to_bytes(), ..clip.clone() },
            None => clip.clone(),
        };
        let clips = (1..).zip(&self.clips).map(with_noise).collect();
        ClipSet { clips, snr_db: Some(snr_db), ..self.clone() }
    }
}

impl Clip {
    /// None if the bytes are not a WAV of 16-bit samples.
    pub fn new(name: &str, wav: Bytes, text: &str, language: &str) -> Option<Clip> {
        let audio_s = Wav::read(&wav)?.seconds();
        Some(Clip {
            name: name.to_owned(),
            wav,
            audio_s,
            text: text.to_owned(),
            language: language.to_owned(),
            speaker: None,
            origin: None,
            noise: None,
            words: normalised_words(text, language),
        })
    }

    /// The characters of the normalised text.
    pub(super) fn chars(&self) -> Vec<char> {
        normalised_chars(&self.words, &self.language)
    }
}

impl ListedClip {
    fn with_sound(self, wav: Bytes) -> Result<Clip, ClipError> {
        let name = self.file.display().to_string();
        let clip = Clip::new(&name, wav, &self.text, &self.language);
        let clip = clip.ok_or(ClipError::NotWav { file: name })?;
        Ok(Clip { speaker: self.speaker, origin: self.origin, noise: self.noise, ..clip })
    }
}

fn parse(file: &str, text: &str) -> Result<Vec<ListedClip>, ClipError> {
    let options = options! { budget: budget! { max_nodes: NODES_MAX }, with_snippet: false };
    let set: Result<SetFile, _> = serde_saphyr::from_str_with_options(text, options);
    set.map(|set| set.clips).map_err(|error| {
        let (line, reason) = (yaml_line(&error), yaml_message(&error));
        ClipError::Invalid { file: file.to_owned(), line, reason }
    })
}

fn read_up_to(file: &Path, bytes_max: u64) -> Result<Vec<u8>, ClipError> {
    let file_name = || file.display().to_string();
    let failed = |source| ClipError::Io { file: file_name(), source };
    let too_large = |bytes| Err(ClipError::TooLarge { file: file_name(), bytes, bytes_max });
    let bytes = fs_err::metadata(file).map_err(failed)?.len();
    if bytes > bytes_max {
        return too_large(bytes);
    }
    // A device, or a file that grows, has more bytes than the system says.
    let mut read = Vec::new();
    let opened = fs_err::File::open(file).map_err(failed)?;
    opened.take(bytes_max.saturating_add(1)).read_to_end(&mut read).map_err(failed)?;
    if read.len() as u64 > bytes_max { too_large(read.len() as u64) } else { Ok(read) }
}

/// Adds noise of a normal distribution. The same seed gives the same noise.
fn add_noise(wav: Wav, snr_db: f64, seed: u64) -> Wav {
    let squares = wav.samples.iter().map(|sample| f64::from(*sample).powi(2));
    let power = squares.sum::<f64>() / wav.samples.len().max(1) as f64;
    let level = (power / 10_f64.powf(snr_db / 10.0)).sqrt();
    let mut random = SeededRandom::new(seed);
    let mut normal = || {
        // 1 − unit is never 0, so its logarithm is finite.
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.unit()).cos()
    };
    let samples = wav.samples.iter().map(|sample| (f64::from(*sample) + level * normal()) as i16);
    Wav { samples: samples.collect(), ..wav }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone() -> Wav {
        let samples = (0..16_000).map(|at| if at % 40 < 20 { 8_000 } else { -8_000 }).collect();
        Wav { rate_hz: 16_000, samples }
    }

    /// A folder with two clips and the file of their set.
    fn set(yaml: impl AsRef<[u8]>) -> Result<ClipSet, ClipError> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("wav")).expect("a folder");
        std::fs::write(folder.path().join("wav/a.wav"), tone().to_bytes()).expect("a file");
        std::fs::write(folder.path().join("b.wav"), "hello").expect("a file");
        let file = folder.path().join("few.yaml");
        std::fs::write(&file, yaml).expect("a file");
        ClipSet::read(&file)
    }

    #[test]
    fn a_set_is_read_with_its_clips() {
        let set = set(
            "clips:\n- {file: wav/a.wav, text: \"Two, please.\", speaker: ada}\n- {file: wav/a.wav, text: Zwei, language: de}\n",
        );
        let set = set.expect("a set");
        let clips: Vec<_> = set
            .clips
            .iter()
            .map(|clip| (clip.words.join(" "), clip.language.as_str(), clip.speaker.as_deref()))
            .collect();
        let expected =
            [("2 please".to_owned(), "en", Some("ada")), ("zwei".to_owned(), "de", None)];
        assert_eq!(clips, expected);
        assert_eq!((set.workload_name().as_str(), set.audio_s()), ("few", 2.0));
        let other = ClipSet { clips: set.clips[..1].to_vec(), ..set.clone() };
        assert_ne!(set.sha256(), other.sha256());
    }

    #[test]
    fn a_wrong_set_is_rejected_with_file_and_line() {
        let rows = [
            ("clips: []\n", "lists 0 clips (expected 1 to 5000)"),
            ("clips:\n- {file: b.wav, text: a}\n", "b.wav is not a WAV file of 16-bit samples"),
            ("clips:\n- {file: c.wav, text: a}\n", "cannot read"),
            ("clips:\n- {file: wav/a.wav}\n", "few.yaml:2: missing field `text`"),
            ("clips:\n- {file: wav/a.wav, text: a, mood: b}\n", "few.yaml:2: unknown field `mood`"),
        ];
        for (yaml, expected) in rows {
            let error = set(yaml).expect_err(yaml).to_string();
            assert!(error.contains(expected), "{error}");
        }
        let latin = set(b"clips:\n- {file: wav/a.wav, text: \xfcber}\n").expect_err("Latin-1");
        let latin = latin.to_string();
        assert!(latin.ends_with("few.yaml:2: byte 34 of the file is not UTF-8"), "{latin}");
    }

    #[test]
    fn a_file_that_is_longer_than_it_says_is_rejected() {
        let error = read_up_to(Path::new("/dev/zero"), 10).expect_err("an endless file");
        assert!(matches!(error, ClipError::TooLarge { bytes: 11, bytes_max: 10, .. }), "{error}");
    }

    #[test]
    fn noise_has_the_requested_level_and_is_repeatable() {
        let clip = Clip::new("a", tone().to_bytes(), "a", "en").expect("a clip");
        let clean =
            ClipSet { name: "few".to_owned(), clips: vec![clip], snr_db: None, synthetic_by: None };
        let at_10 = clean.with_noise(10.0);
        assert_eq!(at_10.workload_name(), "few at 10 dB");
        assert_eq!(at_10, clean.with_noise(10.0));
        let noisy = Wav::read(&at_10.clips[0].wav).expect("a file");
        let difference = |(a, b): (&i16, &i16)| f64::from(a - b).powi(2);
        let power =
            noisy.samples.iter().zip(&tone().samples).map(difference).sum::<f64>() / 16_000.0;
        let snr_db = 10.0 * (8_000_f64.powi(2) / power).log10();
        assert!((snr_db - 10.0).abs() < 0.2, "{snr_db}");
    }
}
