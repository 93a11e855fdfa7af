//! Whisper's tokens: text as byte-level BPE, and the special tokens after it.
//! The numbers of the special tokens follow from the size of the vocabulary.

use std::collections::HashMap;
use std::sync::LazyLock;

use hob_core::TranscriptTask;

/// Codes (ISO 639-1 where there is one) and English names, in the order of the language tokens.
static LANGUAGES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    include_str!("languages.csv").lines().filter_map(|line| line.split_once(',')).collect()
});

/// A model with so many tokens understands other languages than English.
const MULTILINGUAL_TOKENS: usize = 51_865;

/// The codes of the languages that a model with `size` tokens understands.
pub fn languages(size: usize) -> impl Iterator<Item = &'static str> + use<> {
    let count = if size >= MULTILINGUAL_TOKENS { language_tokens(size) } else { 1 };
    LANGUAGES.iter().take(count).map(|(code, _)| *code)
}

/// Models for English alone have these tokens, too.
fn language_tokens(size: usize) -> usize {
    let others = 51_765 + usize::from(size >= MULTILINGUAL_TOKENS);
    size.saturating_sub(others).min(LANGUAGES.len())
}

/// The name of a language in Whisper's answers: `en` is `english`.
pub fn language_name(code: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name)
}

/// Seconds between two timestamp tokens.
pub(super) const TIMESTAMP_S: f64 = 0.02;

#[derive(Debug)]
pub(super) struct Tokens {
    texts: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    is_multilingual: bool,
    /// All tokens, with the special ones.
    size: usize,
    languages: usize,
    pub(super) end: u32,
    /// Tokens that describe sounds and notes, not speech.
    pub(super) non_speech: Vec<u32>,
}

impl Tokens {
    /// `vocabulary` holds the tokens of text; the model has `size` tokens. An English model has 50,256 text tokens, a
    /// multilingual one 50,257. Then follow: end of text, start of transcript, the languages, translate, transcribe, start
    /// of LM, previous text, no speech, no timestamps, and 1,501 timestamps.
    pub(super) fn new(mut vocabulary: Vec<Vec<u8>>, size: usize) -> Tokens {
        let is_multilingual = size >= MULTILINGUAL_TOKENS;
        let end = 50_256 + u32::from(is_multilingual);
        // Some files list special tokens, too.
        vocabulary.truncate(end as usize);
        let numbers = vocabulary.iter().cloned().zip(0..).collect();
        let mut tokens = Tokens {
            texts: vocabulary,
            numbers,
            is_multilingual,
            size,
            languages: language_tokens(size),
            end,
            non_speech: Vec::new(),
        };
        tokens.non_speech = tokens.find_non_speech();
        tokens
    }

    pub(super) fn start(&self) -> u32 {
        self.end + 1
    }

    fn after_languages(&self, number: u32) -> u32 {
        self.end + 2 + self.languages as u32 + number
    }

    pub(super) fn translate(&self) -> u32 {
        self.after_languages(0)
    }

    pub(super) fn transcribe(&self) -> u32 {
        self.after_languages(1)
    }

    pub(super) fn previous(&self) -> u32 {
        self.after_languages(3)
    }

    pub(super) fn no_speech(&self) -> u32 {
        self.after_languages(4)
    }

    pub(super) fn no_timestamps(&self) -> u32 {
        self.after_languages(5)
    }

    /// The token of time 0. Later times have higher numbers, in steps of [`TIMESTAMP_S`].
    pub(super) fn first_timestamp(&self) -> u32 {
        self.after_languages(6)
    }

    pub(super) fn is_multilingual(&self) -> bool {
        self.is_multilingual
    }

    /// The codes of the languages that the model understands.
    pub(super) fn languages(&self) -> impl Iterator<Item = &'static str> + use<> {
        languages(self.size)
    }

    pub(super) fn language(&self, code: &str) -> Option<u32> {
        self.languages().position(|known| known == code).map(|at| self.start() + 1 + at as u32)
    }

    /// The first and the end of the language tokens.
    pub(super) fn language_range(&self) -> std::ops::Range<usize> {
        let first = self.start() as usize + 1;
        first..first + self.languages
    }

    pub(super) fn language_at(&self, place: usize) -> &'static str {
        LANGUAGES.get(place).map_or("en", |(code, _)| *code)
    }

    /// The tokens with which every answer begins.
    pub(super) fn opening(&self, language: &str, task: TranscriptTask) -> Vec<u32> {
        let mut opening = vec![self.start()];
        if self.is_multilingual {
            opening.extend(self.language(language));
            opening.push(match task {
                TranscriptTask::Transcribe => self.transcribe(),
                TranscriptTask::Translate => self.translate(),
            });
        }
        opening
    }

    /// The bytes of text tokens; others have none.
    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        self.texts.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// The text of tokens. Bytes that are not UTF-8 are left out.
    pub(super) fn text(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| self.bytes(*token)).copied().collect();
        String::from_utf8_lossy(&bytes).replace(char::REPLACEMENT_CHARACTER, "")
    }

    /// Characters of the text of tokens. One that is cut counts where it begins.
    pub(super) fn characters(&self, tokens: &[u32]) -> usize {
        let bytes = tokens.iter().flat_map(|token| self.bytes(*token));
        bytes.filter(|byte| **byte & 0xC0 != 0x80).count()
    }

    /// The tokens of a text. The pair with the lowest token id is merged first, as in training.
    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        pieces(text).flat_map(|piece| self.encode_piece(piece.as_bytes())).collect()
    }

    fn encode_piece(&self, piece: &[u8]) -> Vec<u32> {
        let mut parts: Vec<&[u8]> = piece.chunks(1).collect();
        loop {
            let merged = |at: usize| {
                let start = parts[..at].iter().map(|part| part.len()).sum::<usize>();
                let bytes = &piece[start..start + parts[at].len() + parts[at + 1].len()];
                self.numbers.get(bytes).map(|number| (*number, at, bytes))
            };
            let best = (0..parts.len().saturating_sub(1)).filter_map(merged).min();
            let Some((_, at, bytes)) = best else { break };
            parts[at] = bytes;
            parts.remove(at + 1);
        }
        parts.iter().filter_map(|part| self.numbers.get(*part)).copied().collect()
    }

    /// The symbols that OpenAI's decoder suppresses, because they mark speakers, sounds and music.
    fn find_non_speech(&self) -> Vec<u32> {
        const SYMBOLS: &str = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ 「 」 『 』 << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪";
        const MUSIC: &str = "♩ ♪ ♫ ♬ ♭ ♮ ♯";
        let mut found: Vec<u32> =
            [" -", " '"].iter().filter_map(|text| self.encode(text).first().copied()).collect();
        for symbol in SYMBOLS.split(' ') {
            for text in [symbol.to_owned(), format!(" {symbol}")] {
                if let [only] = self.encode_piece(text.as_bytes())[..] {
                    found.push(only);
                }
            }
        }
        for note in MUSIC.split(' ') {
            for text in [note.to_owned(), format!(" {note}")] {
                found.extend(self.encode_piece(text.as_bytes()).first());
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Words, numbers and symbols, each with the space before it. Tokens never cross them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let class = |c: char| match c {
        c if c.is_alphabetic() => 1,
        c if c.is_numeric() => 2,
        c if c.is_whitespace() => 3,
        _ => 4,
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut chars = rest.char_indices();
        let (_, first) = chars.next()?;
        let mut kind = class(first);
        let mut end = rest.len();
        for (at, c) in chars {
            let is_lead = first == ' ' && at == 1 && class(c) != 3;
            if is_lead {
                kind = class(c);
            } else if class(c) != kind {
                end = at;
                break;
            }
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// All bytes, and a few longer tokens.
    pub(in super::super) fn small_vocabulary() -> Vec<Vec<u8>> {
        let longer = ["he", "ll", "hell", "hello", " w", " wo", "ld", "rld", " world", "♪"];
        (0..=255)
            .map(|byte| vec![byte])
            .chain(longer.map(|text| text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn special_tokens_follow_from_the_vocabulary() {
        let base = Tokens::new(small_vocabulary(), 51_865);
        assert_eq!((base.start(), base.transcribe(), base.translate()), (50_258, 50_359, 50_358));
        assert_eq!((base.no_speech(), base.first_timestamp()), (50_362, 50_364));
        assert_eq!(base.language("de"), Some(50_261));
        let turbo = Tokens::new(small_vocabulary(), 51_866);
        assert_eq!((turbo.transcribe(), turbo.first_timestamp()), (50_360, 50_365));
        assert_eq!((turbo.language("yue"), base.language("yue")), (Some(50_358), None));
        let english = Tokens::new(small_vocabulary(), 51_864);
        assert_eq!((english.end, english.first_timestamp()), (50_256, 50_363));
        assert_eq!(english.languages().collect::<Vec<_>>(), ["en"]);
        assert_eq!(english.opening("en", TranscriptTask::Translate), [50_257]);
        assert_eq!(base.opening("de", TranscriptTask::Translate), [50_258, 50_261, 50_358]);
    }

    #[test]
    fn texts_are_merged_in_the_order_of_the_numbers_and_come_back() {
        let tokens = Tokens::new(small_vocabulary(), 51_865);
        let texts = |text: &str| -> Vec<String> {
            tokens.encode(text).iter().map(|token| tokens.text(&[*token])).collect()
        };
        assert_eq!(texts("hello world"), ["hello", " world"]);
        assert_eq!(texts("hell 12!"), ["hell", " ", "1", "2", "!"]);
        for text in ["", "Größe, 42 €", "  two  spaces ", "日本"] {
            assert_eq!(tokens.text(&tokens.encode(text)), text);
        }
        // A cut character is left out.
        assert_eq!(tokens.text(&[b'a'.into(), 0xC3]), "a");
    }

    #[test]
    fn music_symbols_are_suppressed() {
        let tokens = Tokens::new(small_vocabulary(), 51_865);
        let note = tokens.encode("♪")[0];
        assert!(tokens.non_speech.contains(&note) && tokens.non_speech.contains(&b'('.into()));
        assert!(!tokens.non_speech.contains(&b'a'.into()));
    }
}
