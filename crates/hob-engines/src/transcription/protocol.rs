//! The messages of a transcription worker, beyond those that every worker understands.
//! The server sends a file undecoded. The worker decodes it, so a crash of a decoder cannot end the server.

use hob_core::{Chunking, Sound, TranscriptEvent, TranscriptTask};
use serde::{Deserialize, Serialize};

use crate::worker::protocol::AnyOrder;

/// Maximum bytes of one [`TranscriptOrder::File`], so that other requests get a turn in between.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// Maximum samples of one [`TranscriptOrder::Samples`].
pub const SAMPLES_MAX: usize = 64 << 10;

/// Maximum samples of live sound that wait for the engine: 60 s. The server waits with the rest. The sound of a microphone
/// cannot wait, so a worker that falls further behind refuses it.
pub const LIVE_UNREAD_SAMPLES_MAX: usize = 60 * Sound::RATE_HZ as usize;

/// To a transcription worker, about one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TranscriptOrder {
    Begin(BeginTranscript),
    /// The next bytes of a file.
    File(#[serde(with = "crate::bytes")] Vec<u8>),
    /// The next samples, 16 kHz mono.
    Samples(#[serde(with = "crate::bytes::samples")] Vec<f32>),
    EndSound,
}

/// Any order to a transcription worker.
pub type AnyTranscriptOrder = AnyOrder<TranscriptOrder>;

/// What a new stream should contain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BeginTranscript {
    pub task: TranscriptTask,
    /// ISO 639-1. `None`: the model detects it.
    pub language: Option<String>,
    pub prompt: Option<String>,
    pub temperature: Option<f32>,
    pub segments: bool,
    pub words: bool,
    /// How to cut sound that is not live.
    pub chunking: Option<Chunking>,
    /// The sound arrives while a person speaks: text is wanted before the end.
    pub is_live: bool,
}

/// From a transcription worker, about one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TranscriptReport {
    /// The sound can be decoded, and the engine begins with it. Sent once, before all events.
    Started,
    /// The sound cannot be decoded. Ends the stream.
    Refused(String),
    /// What one part of the sound contains.
    Events(Vec<TranscriptEvent>),
    /// The engine has read so many more samples of live sound.
    Read(u32),
}

/// What the worker says about its model when it is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutTranscription {
    /// Codes of the languages that the model understands.
    pub languages: Vec<String>,
}

#[cfg(test)]
mod tests {
    use hob_core::{HeardWord, TranscriptSummary};

    use super::*;
    use crate::frame::{Frame, FrameKind};

    #[test]
    fn messages_come_back_unchanged() {
        let begin = BeginTranscript {
            task: TranscriptTask::Translate,
            language: Some("de".to_owned()),
            temperature: Some(0.5),
            words: true,
            chunking: Some(Chunking::ServerVad {
                threshold: Some(0.25),
                prefix_padding_ms: None,
                silence_ms: Some(300),
            }),
            ..BeginTranscript::default()
        };
        for order in [
            TranscriptOrder::Begin(begin),
            TranscriptOrder::File(vec![0, 255]),
            TranscriptOrder::Samples(vec![0.5, -1.0]),
            TranscriptOrder::EndSound,
        ] {
            let frame = Frame::new(FrameKind::Model, 1, &order).expect("small");
            assert_eq!(frame.decode(), Ok(order));
        }
        let word = HeardWord { word: "Größe".to_owned(), start_s: 0.25, end_s: 0.5 };
        let done = TranscriptSummary { duration_s: 1.5, ..TranscriptSummary::default() };
        let events = vec![TranscriptEvent::Word(word), TranscriptEvent::Done(done)];
        for report in [TranscriptReport::Events(events), TranscriptReport::Read(16_000)] {
            let frame = Frame::new(FrameKind::Model, 1, &report).expect("small");
            assert_eq!(frame.decode(), Ok(report));
        }
    }
}
