//! Reads the dictionary of Open JTalk in MeCab's binary form: words, their costs, and the classes of unknown characters.
//! The index is in memory (about 27 MB). Words stay in the file and are read when a sentence needs them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::dictionary_error::DictionaryError;

/// The files of the dictionary in its folder.
const WORDS: &str = "sys.dic";
const UNKNOWN_WORDS: &str = "unk.dic";
const CHARACTERS: &str = "char.bin";
const COSTS: &str = "matrix.bin";

/// The version of MeCab's format.
const VERSION: u32 = 102;
const MAGIC: u32 = 0xef71_8f77;
const HEADER_BYTES: u64 = 72;
const TOKEN_BYTES: usize = 16;
/// Bytes of a node of the index: its base and its check.
const NODE_BYTES: usize = 8;
const CLASS_NAME_BYTES: usize = 32;
const CLASSES_MAX: usize = 32;

/// Limits of what hob loads from one file. The published dictionary needs a third of each.
const INDEX_BYTES_MAX: u64 = 96 << 20;
const TOKENS_BYTES_MAX: u64 = 64 << 20;
const SMALL_FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum bytes of the description of a word.
const FEATURE_BYTES_MAX: usize = 1024;

/// A meaning of a word, as MeCab stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) left: u16,
    pub(super) right: u16,
    pub(super) cost: i16,
    /// Where its description begins among the descriptions.
    feature: u32,
}

/// How words are formed from characters that no word of the dictionary has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CharClass {
    /// One bit for each class that the character belongs to.
    pub(super) classes: u32,
    pub(super) default_class: usize,
    /// Unknown words of up to this many characters are considered.
    pub(super) length: usize,
    /// All characters of a class together are considered one word.
    pub(super) has_groups: bool,
    /// Unknown words are considered even where the dictionary has a word.
    pub(super) is_always: bool,
}

#[derive(Debug)]
pub(super) struct Dictionary {
    words: WordFile,
    unknown: WordFile,
    /// The meanings of an unknown word, by class.
    class_tokens: Vec<Vec<Token>>,
    classes: Vec<CharClass>,
    costs: Vec<i16>,
    left_size: usize,
    right_size: usize,
}

impl Dictionary {
    /// Loads the index. Takes about 30 ms when the files are in the system's cache.
    pub(super) fn load(folder: &Path) -> Result<Dictionary, DictionaryError> {
        let words = WordFile::open(&folder.join(WORDS))?;
        let unknown = WordFile::open(&folder.join(UNKNOWN_WORDS))?;
        let (names, classes) = characters(&folder.join(CHARACTERS))?;
        let (costs, left_size, right_size) = costs(&folder.join(COSTS))?;
        let tokens = |name: &String| {
            let exact = unknown.prefixes(name.as_bytes()).into_iter();
            let found = exact.filter(|(length, _)| *length == name.len());
            found.flat_map(|(_, range)| unknown.tokens(range)).collect()
        };
        let class_tokens = names.iter().map(tokens).collect();
        Ok(Dictionary { words, unknown, class_tokens, classes, costs, left_size, right_size })
    }

    /// The words that `text` begins with: each meaning with its length in bytes.
    pub(super) fn words_at(&self, text: &str) -> Vec<(usize, Token)> {
        let mut found = Vec::new();
        let is_word = |length: &usize| *length > 0 && text.is_char_boundary(*length);
        let prefixes = self.words.prefixes(text.as_bytes()).into_iter();
        for (length, range) in prefixes.filter(|(length, _)| is_word(length)) {
            found.extend(self.words.tokens(range).into_iter().map(|token| (length, token)));
        }
        found
    }

    pub(super) fn class_of(&self, c: char) -> CharClass {
        let code = usize::try_from(u32::from(c)).unwrap_or(0);
        let class = self.classes.get(code).or_else(|| self.classes.first());
        class.copied().unwrap_or_default()
    }

    pub(super) fn unknown_tokens(&self, class: usize) -> &[Token] {
        self.class_tokens.get(class).map_or(&[], Vec::as_slice)
    }

    /// The cost of a word after another one.
    pub(super) fn connection(&self, before: u16, after: u16) -> i32 {
        let (before, after) = (usize::from(before), usize::from(after));
        if before >= self.left_size || after >= self.right_size {
            return i32::from(i16::MAX);
        }
        self.costs.get(before + self.left_size * after).map_or(0, |cost| i32::from(*cost))
    }

    /// The description of a word of the dictionary: part of speech, reading, accent.
    pub(super) fn feature(&self, token: Token) -> String {
        self.words.feature(token)
    }

    pub(super) fn unknown_feature(&self, token: Token) -> String {
        self.unknown.feature(token)
    }
}

/// Words by their bytes: an index (a double array), meanings, and descriptions.
#[derive(Debug)]
struct WordFile {
    file: File,
    index: Vec<u8>,
    tokens: Range<u64>,
    features: Range<u64>,
}

impl WordFile {
    fn open(path: &Path) -> Result<WordFile, DictionaryError> {
        let file = File::open(path).map_err(DictionaryError::at(path))?;
        let bytes = file.metadata().map_err(DictionaryError::at(path))?.len();
        let mut header = [0; HEADER_BYTES as usize];
        file.read_exact_at(&mut header, 0).map_err(DictionaryError::at(path))?;
        let field = |at: usize| u32_at(&header, at * 4);
        let malformed = |what| DictionaryError::malformed(path, what);
        if u64::from(field(0) ^ MAGIC) != bytes || field(1) != VERSION {
            return Err(malformed(
                "its header has another version, or a size that is not the file's",
            ));
        }
        if !header[40..].starts_with(b"utf-8\0") && !header[40..].starts_with(b"UTF-8\0") {
            return Err(malformed("its words are not UTF-8"));
        }
        let [index_bytes, token_bytes, feature_bytes] = [6, 7, 8].map(|at| u64::from(field(at)));
        let tokens = HEADER_BYTES + index_bytes..HEADER_BYTES + index_bytes + token_bytes;
        let features = tokens.end..tokens.end + feature_bytes;
        if features.end != bytes || index_bytes > INDEX_BYTES_MAX || token_bytes > TOKENS_BYTES_MAX
        {
            return Err(malformed(
                "the sizes of its parts do not add up to its own, or are too large",
            ));
        }
        let mut index = vec![0; usize::try_from(index_bytes).unwrap_or(0)];
        file.read_exact_at(&mut index, HEADER_BYTES).map_err(DictionaryError::at(path))?;
        Ok(WordFile { file, index, tokens, features })
    }

    /// Base and check of a node.
    fn node(&self, at: i64) -> Option<(i32, u32)> {
        let at = usize::try_from(at).ok()?.checked_mul(NODE_BYTES)?;
        let bytes = self.index.get(at..at + NODE_BYTES)?;
        Some((u32_at(bytes, 0).cast_signed(), u32_at(bytes, 4)))
    }

    /// The words that begin the key: their lengths, and the positions of their meanings.
    fn prefixes(&self, key: &[u8]) -> Vec<(usize, Range<u32>)> {
        let mut found = Vec::new();
        let Some((mut base, _)) = self.node(0) else { return found };
        for length in 0..=key.len() {
            let ends = self.node(i64::from(base));
            if let Some((value, check)) = ends
                && check.cast_signed() == base
                && value < 0
            {
                let value = value.unsigned_abs() - 1;
                let first = value >> 8;
                found.push((length, first..first + (value & 0xff)));
            }
            let Some(byte) = key.get(length) else { break };
            match self.node(i64::from(base) + i64::from(*byte) + 1) {
                Some((next, check)) if check.cast_signed() == base => base = next,
                _ => break,
            }
        }
        found
    }

    /// The meanings at these positions. After a disk error there are none, and the characters count as unknown.
    fn tokens(&self, range: Range<u32>) -> Vec<Token> {
        let from = self.tokens.start + u64::from(range.start) * TOKEN_BYTES as u64;
        let mut bytes = vec![0; range.len() * TOKEN_BYTES];
        let end = from + bytes.len() as u64;
        if end > self.tokens.end || self.file.read_exact_at(&mut bytes, from).is_err() {
            return Vec::new();
        }
        bytes.chunks_exact(TOKEN_BYTES).map(token).collect()
    }

    fn feature(&self, token: Token) -> String {
        let from = self.features.start + u64::from(token.feature);
        let length = self.features.end.saturating_sub(from).min(FEATURE_BYTES_MAX as u64);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        if self.file.read_exact_at(&mut bytes, from).is_err() {
            return String::new();
        }
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

fn token(bytes: &[u8]) -> Token {
    Token {
        left: u16_at(bytes, 0),
        right: u16_at(bytes, 2),
        cost: u16_at(bytes, 6).cast_signed(),
        feature: u32_at(bytes, 8),
    }
}

/// The names of the classes, and the class of each character of the first plane.
fn characters(path: &Path) -> Result<(Vec<String>, Vec<CharClass>), DictionaryError> {
    let bytes = small_file(path)?;
    let malformed = |what| DictionaryError::malformed(path, what);
    let count = u32_at(&bytes, 0) as usize;
    if count == 0 || count > CLASSES_MAX {
        return Err(malformed("it has no classes, or too many"));
    }
    let names_end = 4 + count * CLASS_NAME_BYTES;
    let names = bytes.get(4..names_end).ok_or_else(|| malformed("it is too short"))?;
    let name = |name: &[u8]| {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    };
    let names = names.chunks_exact(CLASS_NAME_BYTES).map(name).collect();
    let classes = bytes[names_end..].chunks_exact(4).map(|four| char_class(u32_at(four, 0)));
    Ok((names, classes.collect()))
}

/// 18 bits of classes, 8 of the default class, 4 of the length, and two flags.
fn char_class(bits: u32) -> CharClass {
    CharClass {
        classes: bits & 0x3_ffff,
        default_class: ((bits >> 18) & 0xff) as usize,
        length: ((bits >> 26) & 0xf) as usize,
        has_groups: (bits >> 30) & 1 == 1,
        is_always: bits >> 31 == 1,
    }
}

fn costs(path: &Path) -> Result<(Vec<i16>, usize, usize), DictionaryError> {
    let bytes = small_file(path)?;
    let malformed = |what| DictionaryError::malformed(path, what);
    if bytes.len() < 4 {
        return Err(malformed("it is too short"));
    }
    let (left, right) = (usize::from(u16_at(&bytes, 0)), usize::from(u16_at(&bytes, 2)));
    if bytes.len() != 4 + left * right * 2 {
        return Err(malformed("its size does not match its number of costs"));
    }
    let costs = bytes[4..].chunks_exact(2).map(|two| u16_at(two, 0).cast_signed());
    Ok((costs.collect(), left, right))
}

fn small_file(path: &Path) -> Result<Vec<u8>, DictionaryError> {
    let length = std::fs::metadata(path).map_err(DictionaryError::at(path))?.len();
    if length > SMALL_FILE_BYTES_MAX {
        return Err(DictionaryError::malformed(path, "it is too large"));
    }
    std::fs::read(path).map_err(DictionaryError::at(path))
}

/// A little-endian number; 0 after the end of the bytes.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).map_or(0, |four| u32::from_le_bytes(*four))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk::<2>).map_or(0, |two| u16::from_le_bytes(*two))
}

#[cfg(test)]
mod tests;
