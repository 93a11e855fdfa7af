//! The messages of a speech worker, beyond those that every worker understands.
//! Samples travel as `f32`, so the sound does not depend on the process that runs the engine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hob_core::{Language, SpeechPace, Speed, WordTiming};
use serde::{Deserialize, Serialize};

use crate::worker::protocol::AnyOrder;

/// Maximum bytes of one [`SpeechOrder::Text`], so that other requests get a turn in between.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Maximum samples of one [`SpeechReport::Audio`].
pub const AUDIO_SAMPLES_MAX: usize = 64 << 10;

/// Maximum words of one [`SpeechReport::Words`].
pub const WORDS_MAX: usize = 16 << 10;

/// To a speech worker, about one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SpeechOrder {
    Begin(Begin),
    Text(String),
    EndText,
}

/// Any order to a speech worker.
pub type AnySpeechOrder = AnyOrder<SpeechOrder>;

/// How a new stream is spoken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    pub language: Language,
    pub speed: Speed,
    pub pace: SpeechPace,
    /// Samples that may be sent before more credit is granted.
    pub credit: u32,
    pub voice: String,
    /// The user's pronunciations, as `hob_speech::Lexicon` takes them.
    pub lexicon: BTreeMap<String, String>,
    /// The folder of the language's dictionary, if it has one.
    pub dictionary: Option<PathBuf>,
}

/// From a speech worker, about one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SpeechReport {
    /// The stream has its first turn. Comes before all its other reports.
    Started,
    Audio(#[serde(with = "crate::bytes::samples")] Vec<f32>),
    Words(Vec<WordTiming>),
}

/// What the worker says about its model when it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub sample_rate_hz: u32,
}

#[cfg(test)]
mod tests {
    use hob_core::PhonemeTiming;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::frame::{Frame, FrameKind};

    #[test]
    fn orders_come_back_unchanged() {
        let begin = Begin {
            language: Language::BritishEnglish,
            speed: Speed::new(1.25).expect("in range"),
            pace: SpeechPace::Steady,
            credit: 720_000,
            voice: "bf_émma".to_owned(),
            lexicon: [("SQL".to_owned(), "sequel".to_owned())].into(),
            dictionary: Some(PathBuf::from("models/wörter")),
        };
        for order in [
            SpeechOrder::Begin(begin),
            SpeechOrder::Text("Größe 🦊".to_owned()),
            SpeechOrder::EndText,
        ] {
            let frame = Frame::new(FrameKind::Model, 1, &order).expect("small");
            assert_eq!(frame.decode(), Ok(order));
        }
    }

    #[test]
    fn a_speed_outside_its_range_is_refused() {
        let pace = SpeechPace::Live;
        let begin = |speed: f32| {
            (
                Language::BritishEnglish,
                speed,
                pace,
                720_000_u32,
                "bf_emma",
                BTreeMap::<String, String>::new(),
                None::<PathBuf>,
            )
        };
        let decode = |speed| {
            let frame = Frame::new(FrameKind::Model, 1, &begin(speed)).expect("small");
            frame.decode::<Begin>()
        };
        assert!(decode(1.0).is_ok());
        assert!(decode(0.0).is_err() && decode(f32::NAN).is_err());
    }

    #[test]
    fn samples_are_a_block_of_whole_samples() {
        let audio = SpeechReport::Audio(vec![0.5; 1_000]);
        let mut frame = Frame::new(FrameKind::Model, 1, &audio).expect("small");
        // Four bytes for each sample, after the number of the variant and a length of two bytes.
        assert_eq!(frame.payload.len(), 3 + 4_000);
        assert_eq!(frame.payload[3..7], 0.5_f32.to_le_bytes());
        // The length announces a byte less than the last sample needs.
        frame.payload.pop();
        frame.payload[1] -= 1;
        assert!(frame.decode::<SpeechReport>().is_err());
    }

    proptest! {
        #[test]
        fn reports_come_back_unchanged(
            samples in vec(-1.0f32..=1.0, 0..500),
            words in vec((0..1_000_000usize, 0..40usize, 0.0f32..1e6, 0.0f32..3.0), 0..40),
        ) {
            let words = words.into_iter().map(|(at, bytes, start_s, length_s)| WordTiming {
                span: at..at + bytes,
                start_s,
                end_s: start_s + length_s,
                phonemes: vec![PhonemeTiming { phoneme: "ˈO".to_owned(), start_s, end_s: start_s }],
            });
            for report in [
                SpeechReport::Started,
                SpeechReport::Audio(samples),
                SpeechReport::Words(words.collect()),
            ] {
                let frame = Frame::new(FrameKind::Model, 1, &report).expect("small");
                prop_assert_eq!(frame.decode(), Ok(report));
            }
        }
    }
}
