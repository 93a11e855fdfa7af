//! Text → spoken units: segmenter, normaliser, phonemes. PCM → bytes: the six encoders.
//! No engine and no sockets: what is heard is decided elsewhere, what is said is decided here.

pub mod spoken;

pub use spoken::{SpokenUnit, SpokenWord};
