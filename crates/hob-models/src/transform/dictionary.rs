//! Stored form of a dictionary: its files as published, except that pypinyin's tables become lines of text.
//! `readings.txt` has a character or a phrase on each line, and `zhong1`, with a number for the tone, for each character.

use std::collections::BTreeMap;
use std::path::Path;

use super::{RawFiles, Transform, TransformError, Transformed, write};
use crate::progress::Watch;

/// Increases with every change of the stored form.
const TRANSFORM_VERSION: u32 = 2;

/// Unicode number of a character → its readings, the usual one first.
const CHARACTERS: &str = "characters.json";
/// Phrase → the readings of each of its characters.
const PHRASES: &str = "phrases.json";
const READINGS: &str = "readings.txt";

/// The transformation that `hob pull japanese` and `hob pull mandarin` apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct DictionaryTransform;

impl Transform for DictionaryTransform {
    fn version(&self) -> u32 {
        TRANSFORM_VERSION
    }

    fn apply(&self, raw: &RawFiles, out: &Path, _: &mut Watch<'_>) -> Transformed {
        let is_table = |path: &&str| matches!(*path, CHARACTERS | PHRASES);
        for path in raw.paths().filter(|path| !is_table(path)) {
            raw.place(path, &out.join(path))?;
        }
        if raw.paths().any(|path| is_table(&path)) {
            write(&out.join(READINGS), readings(raw)?.as_bytes())?;
        }
        Ok(())
    }
}

fn readings(raw: &RawFiles) -> Result<String, TransformError> {
    let characters: BTreeMap<String, String> = table(raw, CHARACTERS)?;
    let phrases: BTreeMap<String, Vec<Vec<String>>> = table(raw, PHRASES)?;
    let mut lines = String::new();
    for (code, readings) in &characters {
        let character = code.parse::<u32>().ok().and_then(char::from_u32);
        let first = readings.split(',').next().and_then(numbered);
        if let Some((character, reading)) = character.zip(first) {
            lines.push_str(&format!("{character} {reading}\n"));
        }
    }
    for (phrase, readings) in &phrases {
        let syllables: Option<Vec<String>> =
            readings.iter().map(|readings| numbered(readings.first()?)).collect();
        if let Some(syllables) = syllables.filter(|all| all.len() == phrase.chars().count()) {
            lines.push_str(&format!("{phrase} {}\n", syllables.join(" ")));
        }
    }
    if lines.is_empty() {
        return Err(TransformError::refused(CHARACTERS, "it has no readings"));
    }
    Ok(lines)
}

fn table<T: serde::de::DeserializeOwned>(raw: &RawFiles, file: &str) -> Result<T, TransformError> {
    serde_json::from_slice(&raw.read(file)?).map_err(|error| TransformError::refused(file, error))
}

/// `zhōng` → `zhong1`, `lǜ` → `lv4`. `None` if it is written in another way.
fn numbered(marked: &str) -> Option<String> {
    let (mut letters, mut tone) = (String::new(), '5');
    for c in marked.chars() {
        if c.is_ascii_lowercase() {
            letters.push(c);
        } else if c == 'ü' {
            letters.push('v');
        } else {
            let (letter, number) =
                MARKED.iter().zip("aeiouvnm".chars()).find_map(|(marked, l)| {
                    let at = marked.chars().position(|other| other == c)?;
                    Some((l, char::from(b"1234"[at])))
                })?;
            letters.push(letter);
            tone = number;
        }
    }
    (!letters.is_empty()).then(|| format!("{letters}{tone}"))
}

/// The letters of pinyin with the marks of the four tones; a dot where there is no such letter.
const MARKED: [&str; 8] = ["āáǎà", "ēéěè", "īíǐì", "ōóǒò", "ūúǔù", "ǖǘǚǜ", "·ńňǹ", "·ḿ··"];

#[cfg(test)]
mod tests {
    use super::super::apply_to;
    use super::*;

    #[test]
    fn readings_become_lines_and_other_files_stay() {
        let out = tempfile::tempdir().expect("a folder");
        let characters = r#"{"20013": "zhōng,zhòng", "32511": "lǜ", "35830": "ê̄", "21527": "ma", "21999": "ńg"}"#;
        let phrases =
            r#"{"中国": [["zhōng"], ["guó"]], "儿女": [["ér"], ["nǚ"]], "短": [["a"], ["b"]]}"#;
        let files: [(&str, &[u8]); 3] = [
            (CHARACTERS, characters.as_bytes()),
            (PHRASES, phrases.as_bytes()),
            ("words.txt", b"words"),
        ];
        assert_eq!(apply_to(&DictionaryTransform, &files, out.path()), Ok(()));
        let stored = |file| std::fs::read_to_string(out.path().join(file)).expect("stored");
        assert_eq!(stored("words.txt"), "words");
        let expect = "中 zhong1\n吗 ma5\n嗯 ng2\n绿 lv4\n中国 zhong1 guo2\n儿女 er2 nv3\n";
        assert_eq!(stored(READINGS), expect);
        assert!(!out.path().join(CHARACTERS).exists());
    }

    #[test]
    fn a_dictionary_without_tables_is_stored_as_published() {
        let out = tempfile::tempdir().expect("a folder");
        let files: [(&str, &[u8]); 2] = [("sys.dic", b"words"), ("COPYING", b"free")];
        assert_eq!(apply_to(&DictionaryTransform, &files, out.path()), Ok(()));
        assert_eq!(std::fs::read(out.path().join("sys.dic")).expect("stored"), b"words");
        assert!(!out.path().join(READINGS).exists());
    }

    #[test]
    fn a_table_that_is_no_json_or_has_no_readings_is_refused() {
        for (characters, phrases) in [("{", "{}"), ("{}", "{}"), ("{}", "[1]")] {
            let out = tempfile::tempdir().expect("a folder");
            let files: [(&str, &[u8]); 2] =
                [(CHARACTERS, characters.as_bytes()), (PHRASES, phrases.as_bytes())];
            let refused = apply_to(&DictionaryTransform, &files, out.path());
            assert!(matches!(refused, Err(TransformError::Refused { .. })), "{characters}");
        }
    }
}
