//! Voices on disk: a style per length of text, and the names by which voices are known.
//! Only the row for one length is read, because a voice is half a megabyte.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use hob_core::{Gender, Language, Voice, VoiceBlend};

use super::{KokoroLoadError, TOKENS_MAX, files};
use crate::speech::synthesiser::SynthesisError;

/// Values per style.
const STYLE: usize = 256;
const STYLE_BYTES: usize = 4 * STYLE;
/// The 54 published voices have values up to 3.2. A flipped exponent bit is beyond this in most cases.
const STYLE_MAX: f32 = 16.0;

#[derive(Debug)]
pub(super) struct Voices {
    folder: PathBuf,
}

impl Voices {
    pub(super) fn new(model: &Path) -> Voices {
        Voices { folder: model.join(files::VOICES) }
    }

    /// The style of a voice or a blend for a text of `tokens` tokens.
    pub(super) fn style(&self, voice: &str, tokens: usize) -> Result<Vec<f32>, SynthesisError> {
        let Some(Ok(blend)) = VoiceBlend::parse(voice) else { return self.own(voice, tokens) };
        let mut style = vec![0.0; STYLE];
        for (id, share) in blend.parts() {
            let own = self.own(id, tokens)?;
            style.iter_mut().zip(own).for_each(|(sum, value)| *sum += share * value);
        }
        Ok(style)
    }

    /// The style of one voice: row `tokens − 1` of 510.
    fn own(&self, voice: &str, tokens: usize) -> Result<Vec<f32>, SynthesisError> {
        let row = tokens.clamp(1, TOKENS_MAX) - 1;
        let path = self.path(voice)?;
        let bytes = read_row(&path, row).map_err(|error| unusable(&path, error))?;
        let style: Vec<f32> =
            bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
        match style.iter().find(|value| !value.is_finite() || value.abs() > STYLE_MAX) {
            None => Ok(style),
            Some(value) => {
                let why = "so it is damaged; pull the model again with `hob pull`";
                Err(unusable(&path, format_args!("it has the value {value}, {why}")))
            }
        }
    }

    /// A name is a file name only if it looks like a voice, so that it cannot lead elsewhere.
    fn path(&self, voice: &str) -> Result<PathBuf, SynthesisError> {
        let is_plain = voice.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let path = self.folder.join(format!("{voice}.bin"));
        if !is_plain || !path.exists() {
            return Err(SynthesisError::UnknownVoice(voice.to_owned()));
        }
        Ok(path)
    }
}

fn read_row(path: &Path, row: usize) -> io::Result<[u8; STYLE_BYTES]> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start((row * STYLE_BYTES) as u64))?;
    let mut bytes = [0; STYLE_BYTES];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn unusable(path: &Path, reason: impl fmt::Display) -> SynthesisError {
    SynthesisError::Graph(format!("{} cannot be used: {reason}", path.display()))
}

/// The voices of a stored model, by name. Kokoro's first letter is the language, the second the gender: `bf_emma`.
///
/// # Errors
/// The folder cannot be read.
pub fn voice_list(model: &Path) -> Result<Vec<Voice>, KokoroLoadError> {
    let path = model.join(files::VOICES);
    let read = |source| KokoroLoadError::Read { path: path.clone(), source };
    let mut voices = Vec::new();
    for entry in fs::read_dir(&path).map_err(read)? {
        let file = entry.map_err(read)?.path();
        voices.extend(file.file_stem().and_then(|stem| stem.to_str()).and_then(voice_named));
    }
    voices.sort_by(|a: &Voice, b: &Voice| a.id.cmp(&b.id));
    Ok(voices)
}

fn voice_named(id: &str) -> Option<Voice> {
    let (kind, name) = id.split_once('_')?;
    let mut letters = kind.chars();
    let language = Language::from_voice_letter(letters.next()?)?;
    let gender = match (letters.next()?, letters.next()) {
        ('f', None) => Gender::Female,
        ('m', None) => Gender::Male,
        _ => return None,
    };
    let mut first = name.chars();
    let capital = first.next()?.to_uppercase();
    Some(Voice { id: id.to_owned(), name: capital.chain(first).collect(), language, gender })
}

pub(super) fn read_vocabulary(path: &Path) -> Result<HashMap<char, i32>, KokoroLoadError> {
    let text = fs::read_to_string(path)
        .map_err(|source| KokoroLoadError::Read { path: path.to_owned(), source })?;
    let file: Vocabulary =
        serde_json::from_str(&text).map_err(|error| KokoroLoadError::damaged(path, error))?;
    Ok(file.vocab)
}

#[derive(serde::Deserialize)]
struct Vocabulary {
    vocab: HashMap<char, i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_says_language_gender_and_name() {
        let emma = Voice {
            id: "bf_emma".to_owned(),
            name: "Emma".to_owned(),
            language: Language::BritishEnglish,
            gender: Gender::Female,
        };
        assert_eq!(voice_named("bf_emma"), Some(emma));
        for other in ["emma", "xf_emma", "bx_emma", "bff_emma", "bf_"] {
            assert_eq!(voice_named(other), None, "{other}");
        }
    }

    #[test]
    fn a_damaged_voice_is_not_spoken() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(files::VOICES)).expect("a folder");
        let path = folder.path().join(files::VOICES).join("af_heart.bin");
        let styles = |value: f32| [0.5, value].map(f32::to_le_bytes).concat().repeat(STYLE / 2);
        let voices = Voices::new(folder.path());
        let style = |value| {
            fs::write(&path, styles(value)).expect("written");
            voices.style("af_heart", 1)
        };
        assert!(style(-3.2).is_ok());
        for value in [f32::NAN, f32::INFINITY, -1e30] {
            let error = style(value).expect_err("damaged").to_string();
            assert!(error.contains("so it is damaged"), "{error}");
        }
    }

    #[test]
    fn a_blend_is_the_weighted_sum_of_its_voices() {
        let folder = tempfile::tempdir().expect("a folder");
        let voices = folder.path().join(files::VOICES);
        fs::create_dir(&voices).expect("a folder");
        for (id, value) in [("af_one", 1.0_f32), ("af_two", 3.0)] {
            let styles = value.to_le_bytes().repeat(STYLE);
            fs::write(voices.join(format!("{id}.bin")), styles).expect("written");
        }
        let voices = Voices::new(folder.path());
        assert_eq!(voices.style("af_one(3)+af_two(1)", 1), Ok(vec![1.5; STYLE]));
        assert_eq!(voices.style("af_two(3)-af_one(1)", 1), Ok(vec![4.0; STYLE]));
        let missing = voices.style("af_one+af_three", 1);
        assert_eq!(missing, Err(SynthesisError::UnknownVoice("af_three".to_owned())));
    }

    #[test]
    fn a_voice_cannot_lead_out_of_its_folder() {
        let voices = Voices::new(Path::new("."));
        let refused = voices.style("../../secret", 5).expect_err("not a voice");
        assert_eq!(refused, SynthesisError::UnknownVoice("../../secret".to_owned()));
    }
}
