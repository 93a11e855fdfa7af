//! A dictionary of a few words, written as MeCab writes it: how sentences are cut, and which files are refused.

use std::path::Path;

use super::{Dictionary, DictionaryError};
use crate::japanese::lattice::words;

/// Unknown words of this class may have two characters.
const CLASS_BITS: u32 = 1 | (2 << 26);

/// A word of the dictionary: its cost, and its description.
type Row = (&'static str, i16, &'static str);

const ROWS: [Row; 4] =
    [("猫", 10, "cat"), ("猫の", 900, "cat of"), ("の", 10, "of"), ("のの", 15, "twice of")];

/// A double array in which each state has a block of its own.
fn index(keys: &[(&str, u32)]) -> Vec<u8> {
    let mut states: Vec<Vec<u8>> = vec![Vec::new()];
    for (key, _) in keys {
        for length in 1..=key.len() {
            let prefix = key.as_bytes()[..length].to_vec();
            if !states.contains(&prefix) {
                states.push(prefix);
            }
        }
    }
    let base = |state: usize| 1 + 257 * state;
    let mut nodes = vec![(0_i32, u32::MAX); base(states.len())];
    nodes[0] = (1, 0);
    for (at, state) in states.iter().enumerate().skip(1) {
        let parent = states.iter().position(|other| *other == state[..state.len() - 1]);
        let parent = base(parent.expect("a prefix"));
        let byte = usize::from(*state.last().expect("a byte"));
        nodes[parent + byte + 1] = (base(at) as i32, parent as u32);
    }
    for (at, state) in states.iter().enumerate() {
        if let Some((_, value)) = keys.iter().find(|(key, _)| key.as_bytes() == state) {
            nodes[base(at)] = (-(*value as i32) - 1, base(at) as u32);
        }
    }
    nodes
        .into_iter()
        .flat_map(|(base, check)| [base.to_le_bytes(), check.to_le_bytes()].concat())
        .collect()
}

/// One meaning for each word.
fn word_file(rows: &[Row]) -> Vec<u8> {
    let keys: Vec<(&str, u32)> =
        rows.iter().zip(0..).map(|((word, ..), at)| (*word, (at << 8) | 1)).collect();
    let index = index(&keys);
    let (mut tokens, mut features) = (Vec::new(), Vec::new());
    for (_, cost, feature) in rows {
        tokens.extend([0; 6]);
        tokens.extend(cost.to_le_bytes());
        tokens.extend((features.len() as u32).to_le_bytes());
        tokens.extend([0; 4]);
        features.extend(feature.as_bytes());
        features.push(0);
    }
    let length = 72 + index.len() + tokens.len() + features.len();
    let sizes = [index.len(), tokens.len(), features.len(), 0].map(|size| size as u32);
    let header = [length as u32 ^ 0xef71_8f77, 102, 0, rows.len() as u32, 1, 1];
    let mut bytes: Vec<u8> =
        header.iter().chain(&sizes).flat_map(|field| field.to_le_bytes()).collect();
    let mut charset = [0; 32];
    charset[..5].copy_from_slice(b"utf-8");
    bytes.extend(charset);
    bytes.extend([index, tokens, features].concat());
    bytes
}

fn write(folder: &Path, file: &str, bytes: &[u8]) {
    std::fs::write(folder.join(file), bytes).expect("a file");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "sys.dic", &word_file(&ROWS));
    write(folder.path(), "unk.dic", &word_file(&[("DEFAULT", 5_000, "unknown")]));
    let mut characters = 1_u32.to_le_bytes().to_vec();
    let mut name = [0; 32];
    name[..7].copy_from_slice(b"DEFAULT");
    characters.extend(name);
    characters.extend(CLASS_BITS.to_le_bytes().repeat(0xffff));
    write(folder.path(), "char.bin", &characters);
    write(folder.path(), "matrix.bin", &[1, 0, 1, 0, 0, 0]);
    folder
}

fn cut(text: &str) -> Vec<(String, String)> {
    let folder = folder();
    let dictionary = Dictionary::load(folder.path()).expect("a dictionary");
    let found = words(&dictionary, text).into_iter();
    found.map(|word| (word.surface.to_owned(), word.feature)).collect()
}

fn check(text: &str, expect: &[(&str, &str)]) {
    let owned = expect.iter().map(|(word, feature)| ((*word).to_owned(), (*feature).to_owned()));
    assert_eq!(cut(text), owned.collect::<Vec<_>>(), "{text}");
}

#[test]
fn the_cheapest_words_are_chosen() {
    check("猫の", &[("猫", "cat"), ("の", "of")]);
    check("猫のの", &[("猫", "cat"), ("のの", "twice of")]);
    check("", &[]);
}

#[test]
fn unknown_characters_are_words_too() {
    check("猫xyの", &[("猫", "cat"), ("xy", "unknown"), ("の", "of")]);
    check("𠮷", &[("𠮷", "unknown")]);
}

#[test]
fn files_that_are_no_dictionary_are_refused() {
    for file in ["sys.dic", "unk.dic", "char.bin", "matrix.bin"] {
        let folder = folder();
        let path = folder.path().join(file);
        let whole = std::fs::read(&path).expect("written");
        for length in [0, 3, 40, whole.len() - 1] {
            // The table of characters may end early.
            if file == "char.bin" && length > 36 {
                continue;
            }
            write(folder.path(), file, &whole[..length.min(whole.len() - 1)]);
            let refused = Dictionary::load(folder.path()).expect_err(file).to_string();
            assert!(refused.contains(file), "{refused}");
        }
        std::fs::remove_file(&path).expect("removed");
        let missing = Dictionary::load(folder.path()).expect_err(file);
        assert!(matches!(missing, DictionaryError::Unreadable { .. }), "{missing}");
    }
}

#[test]
fn any_changed_byte_is_an_error_or_other_words_and_never_a_panic() {
    let folder = folder();
    let whole = word_file(&ROWS);
    for at in (0..whole.len()).filter(|at| *at < 400 || at % 97 == 0) {
        let mut changed = whole.clone();
        changed[at] ^= 0xff;
        write(folder.path(), "sys.dic", &changed);
        if let Ok(dictionary) = Dictionary::load(folder.path()) {
            let found = words(&dictionary, "猫のxの猫");
            assert_eq!(found.iter().map(|word| word.surface).collect::<String>(), "猫のxの猫");
        }
    }
}
