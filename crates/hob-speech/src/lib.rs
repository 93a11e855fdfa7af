//! Text → spoken units: segmenter, normaliser, phonemes. PCM → bytes: six encoders. Bytes → PCM: a decoder.
//! No engine and no sockets: this crate decides what is said, and the engine computes the sound.

mod abbreviations;
mod accent;
mod alphabet;
mod asian;
pub mod audiobook;
mod chapters;
pub mod decode;
mod dictionary_error;
pub mod encode;
mod espeak;
mod g711;
mod ipa;
mod japanese;
mod letters;
mod lexicon;
pub mod live;
mod mandarin;
mod markdown;
mod normalise;
mod phonemes;
mod reader;
mod reading;
mod scripts;
mod segment;
mod shown_text;
mod spelling;
pub mod spoken;
mod unit;
mod unknown;
mod word_table;

pub use alphabet::{ALPHABET, UNIT_PHONEMES_MAX, is_phoneme};
pub use chapters::{BookChapter, BookPart, PartEnd, book_chapters, book_parts};
pub use espeak::{espeak_languages, needs_espeak};
pub use lexicon::{LEXICON_WORDS_MAX, Lexicon, LexiconError};
pub use phonemes::{Phonemizer, PhonemizerOptions};
pub use reader::{Reader, is_speakable};
pub use segment::is_sentence_end;
pub use shown_text::ShownText;
pub use spoken::{SpokenUnit, SpokenWord};
