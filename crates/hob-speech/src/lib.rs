//! Text → spoken units: segmenter, normaliser, phonemes. PCM → bytes: the six encoders.
//! No engine and no sockets: what is heard is decided elsewhere, what is said is decided here.

mod abbreviations;
mod alphabet;
pub mod encode;
mod espeak;
mod ipa;
mod letters;
mod markdown;
mod normalise;
mod phonemes;
mod reader;
mod reading;
mod scripts;
mod segment;
mod spelling;
pub mod spoken;
mod unit;
mod unknown;

pub use alphabet::{ALPHABET, UNIT_PHONEMES_MAX, is_phoneme};
pub use phonemes::{Phonemizer, PhonemizerOptions};
pub use reader::{Reader, is_speakable};
pub use spoken::{SpokenUnit, SpokenWord};
