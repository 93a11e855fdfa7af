//! What a speech worker is told and what it says, beyond what every worker understands.
//! Samples travel as `f32`, so that what is heard does not depend on where the engine runs.

use hob_core::{Language, Speed, WordTiming};

use crate::frame::{Frame, FrameError};
use crate::worker::protocol::{MODEL_KINDS, Order};

const BEGIN: u8 = MODEL_KINDS;
const TEXT: u8 = MODEL_KINDS + 1;
const END_TEXT: u8 = MODEL_KINDS + 2;
const AUDIO: u8 = MODEL_KINDS + 16;
const WORDS: u8 = MODEL_KINDS + 17;
const STARTED: u8 = MODEL_KINDS + 18;

/// Text is sent in pieces of at most this many bytes, so that other requests get a turn between.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Sound is sent in frames of at most this many samples.
pub const AUDIO_SAMPLES_MAX: usize = 64 << 10;

/// Word timings are sent in frames of at most this many.
pub const WORDS_MAX: usize = 16 << 10;

/// To a speech worker.
#[derive(Clone, Debug, PartialEq)]
pub enum SpeechOrder {
    Begin { stream: u32, begin: Begin },
    Text { stream: u32, piece: String },
    EndText { stream: u32 },
    Any(Order),
}

/// How a new stream is to be spoken.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    pub language: Language,
    pub speed: Speed,
    /// Samples that may be sent before more are granted.
    pub credit: u32,
    pub voice: String,
}

/// From a speech worker.
#[derive(Clone, Debug, PartialEq)]
pub enum SpeechReport {
    /// The stream waits in line no longer; comes before all else of it.
    Started {
        stream: u32,
    },
    Audio {
        stream: u32,
        samples: Vec<f32>,
    },
    Words {
        stream: u32,
        words: Vec<WordTiming>,
    },
}

/// What the model says of itself when it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    pub sample_rate_hz: u32,
}

impl SpeechOrder {
    pub fn to_frame(&self) -> Frame {
        match self {
            SpeechOrder::Begin { stream, begin } => Frame::new(BEGIN, *stream, begin.to_payload()),
            SpeechOrder::Text { stream, piece } => Frame::new(TEXT, *stream, piece.clone().into()),
            SpeechOrder::EndText { stream } => Frame::new(END_TEXT, *stream, Vec::new()),
            SpeechOrder::Any(order) => order.to_frame(),
        }
    }

    /// # Errors
    /// The kind is unknown or its payload malformed.
    pub fn from_frame(frame: &Frame) -> Result<SpeechOrder, FrameError> {
        let stream = frame.stream;
        if let Some(order) = Order::from_frame(frame)? {
            return Ok(SpeechOrder::Any(order));
        }
        match frame.kind {
            BEGIN => Ok(SpeechOrder::Begin { stream, begin: Begin::from_frame(frame)? }),
            TEXT => Ok(SpeechOrder::Text { stream, piece: frame.fields().text()?.to_owned() }),
            END_TEXT => frame.fields().end().map(|()| SpeechOrder::EndText { stream }),
            kind => Err(FrameError::UnknownKind { kind }),
        }
    }
}

impl Begin {
    fn to_payload(&self) -> Vec<u8> {
        let mut payload = vec![self.language.voice_letter() as u8];
        payload.extend(self.speed.rate().to_le_bytes());
        payload.extend(self.credit.to_le_bytes());
        payload.extend(self.voice.as_bytes());
        payload
    }

    fn from_frame(frame: &Frame) -> Result<Begin, FrameError> {
        let mut fields = frame.fields();
        let language = Language::from_voice_letter(fields.u8()?.into())
            .ok_or_else(|| fields.malformed("no language has this letter"))?;
        let speed = Speed::new(fields.f32()?)
            .map_err(|_| fields.malformed("the speed is out of its range"))?;
        Ok(Begin { language, speed, credit: fields.u32()?, voice: fields.text()?.to_owned() })
    }
}

impl SpeechReport {
    pub fn to_frame(&self) -> Frame {
        match self {
            SpeechReport::Started { stream } => Frame::new(STARTED, *stream, Vec::new()),
            SpeechReport::Audio { stream, samples } => audio_frame(*stream, samples),
            SpeechReport::Words { stream, words } => words_frame(*stream, words),
        }
    }

    /// # Errors
    /// The kind is unknown or its payload malformed.
    pub fn from_frame(frame: &Frame) -> Result<SpeechReport, FrameError> {
        let stream = frame.stream;
        match frame.kind {
            STARTED => frame.fields().end().map(|()| SpeechReport::Started { stream }),
            AUDIO => Ok(SpeechReport::Audio { stream, samples: samples(frame)? }),
            WORDS => Ok(SpeechReport::Words { stream, words: words(frame)? }),
            kind => Err(FrameError::UnknownKind { kind }),
        }
    }
}

/// `samples` are at most [`AUDIO_SAMPLES_MAX`].
pub fn audio_frame(stream: u32, samples: &[f32]) -> Frame {
    Frame::new(AUDIO, stream, samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
}

/// `words` are at most [`WORDS_MAX`].
pub fn words_frame(stream: u32, words: &[WordTiming]) -> Frame {
    let mut payload = Vec::with_capacity(words.len() * 24);
    for word in words {
        payload.extend((word.span.start as u64).to_le_bytes());
        payload.extend((word.span.end as u64).to_le_bytes());
        payload.extend(word.start_s.to_le_bytes());
        payload.extend(word.end_s.to_le_bytes());
    }
    Frame::new(WORDS, stream, payload)
}

fn samples(frame: &Frame) -> Result<Vec<f32>, FrameError> {
    let (samples, rest) = frame.payload.as_chunks::<4>();
    if rest.is_empty() {
        Ok(samples.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    } else {
        Err(frame.fields().malformed("a sample is cut"))
    }
}

fn words(frame: &Frame) -> Result<Vec<WordTiming>, FrameError> {
    let mut fields = frame.fields();
    let mut words = Vec::new();
    while !fields.is_empty() {
        let span = fields.u64()? as usize..fields.u64()? as usize;
        words.push(WordTiming { span, start_s: fields.f32()?, end_s: fields.f32()? });
    }
    Ok(words)
}

impl About {
    pub fn to_payload(self) -> Vec<u8> {
        self.sample_rate_hz.to_le_bytes().to_vec()
    }

    /// None when these are not four bytes that make a rate above zero.
    pub fn from_payload(payload: &[u8]) -> Option<About> {
        let sample_rate_hz = u32::from_le_bytes(payload.try_into().ok()?);
        (sample_rate_hz > 0).then_some(About { sample_rate_hz })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::frame::PAYLOAD_BYTES_MAX;

    #[test]
    fn orders_come_back_as_they_went() {
        let begin = Begin {
            language: Language::BritishEnglish,
            speed: Speed::new(1.25).expect("in range"),
            credit: 720_000,
            voice: "bf_émma".to_owned(),
        };
        for order in [
            SpeechOrder::Begin { stream: 1, begin },
            SpeechOrder::Text { stream: 2, piece: "Größe 🦊".to_owned() },
            SpeechOrder::EndText { stream: 3 },
            SpeechOrder::Any(Order::Ping { stream: 4 }),
        ] {
            assert_eq!(SpeechOrder::from_frame(&order.to_frame()), Ok(order));
        }
    }

    proptest! {
        #[test]
        fn reports_come_back_as_they_went(
            stream: u32,
            samples in vec(-1.0f32..=1.0, 0..500),
            words in vec((0..1_000_000usize, 0..40usize, 0.0f32..1e6, 0.0f32..3.0), 0..40),
        ) {
            let words = words.into_iter().map(|(at, bytes, start_s, length_s)| WordTiming {
                span: at..at + bytes,
                start_s,
                end_s: start_s + length_s,
            });
            let started = SpeechReport::Started { stream };
            prop_assert_eq!(SpeechReport::from_frame(&started.to_frame()), Ok(started));
            let audio = SpeechReport::Audio { stream, samples };
            let words = SpeechReport::Words { stream, words: words.collect() };
            prop_assert_eq!(SpeechReport::from_frame(&audio.to_frame()), Ok(audio));
            prop_assert_eq!(SpeechReport::from_frame(&words.to_frame()), Ok(words));
        }
    }

    #[test]
    fn malformed_frames_are_refused() {
        let check = |kind, payload: &[u8], what| {
            let frame = Frame::new(kind, 1, payload.to_vec());
            let expect = FrameError::Malformed { kind, what };
            let order = SpeechOrder::from_frame(&frame).err();
            let report = SpeechReport::from_frame(&frame).err();
            assert!([order, report].contains(&Some(expect)), "{payload:?}");
        };
        check(BEGIN, b"?\0\0\x80\x3f\0\0\0\0x", "no language has this letter");
        check(BEGIN, b"a\0\0\0\0\0\0\0\0x", "the speed is out of its range");
        check(BEGIN, b"a\0\0", "it is too short");
        check(TEXT, b"\xFF", "it is not UTF-8");
        check(END_TEXT, b"x", "it is too long");
        check(AUDIO, b"12345", "a sample is cut");
        check(WORDS, b"12345", "it is too short");
    }

    #[test]
    fn the_largest_pieces_fit_a_frame() {
        let words = vec![WordTiming { span: 0..1, start_s: 0.0, end_s: 0.1 }; WORDS_MAX];
        for frame in [audio_frame(1, &[0.0; AUDIO_SAMPLES_MAX]), words_frame(1, &words)] {
            assert!(frame.payload.len() <= PAYLOAD_BYTES_MAX);
        }
    }

    #[test]
    fn a_model_without_a_rate_is_not_ready() {
        let about = About { sample_rate_hz: 24_000 };
        assert_eq!(About::from_payload(&about.to_payload()), Some(about));
        assert_eq!(About::from_payload(&[0; 4]), None);
        assert_eq!(About::from_payload(&[1; 5]), None);
    }
}
