//! The sound of the person, from the microphone or from a file.
//! A file is sent at the pace at which it was spoken, as from a microphone.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use hob_core::realtime::SoundEncoding;
use hob_speech::decode::{DECODED_RATE_HZ, decode_all};
use hob_speech::live::LiveSoundWriter;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::failure::{CliResult, Failure};
use crate::recording::Recorder;

const FILE_BYTES_MAX: u64 = 256 << 20;
const FILE_SECONDS_MAX: f64 = 3_600.0;
/// Length of the pieces in which a file is sent.
const PIECE: Duration = Duration::from_millis(40);
const PIECE_SAMPLES: usize = DECODED_RATE_HZ as usize * 40 / 1_000;

/// Samples at 16 kHz at the pace of speech, and their conversion to the format of a session.
pub(super) struct Microphone {
    pub(super) name: String,
    /// A file ends, and has no sound of the loudspeaker in it.
    pub(super) is_file: bool,
    samples: BoxStream<'static, Vec<f32>>,
    writer: LiveSoundWriter,
}

impl Microphone {
    /// # Errors
    /// No program that records sound is installed.
    pub(super) fn open(path: &OsStr) -> CliResult<Microphone> {
        let recorder = Recorder::start(path)?;
        let name = recorder.name().to_owned();
        Microphone::new(name, false, recorder.samples(std::future::pending()))
    }

    /// # Errors
    /// The file cannot be read, or is not sound.
    pub(super) fn of_file(file: &Path) -> CliResult<Microphone> {
        let mut bytes = Vec::new();
        let read = fs_err::File::open(file)
            .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
        let name = file.display().to_string();
        let read = read.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
        if read as u64 > FILE_BYTES_MAX {
            return Err(Failure::usage(format!("{name} is larger than 256 MiB")));
        }
        let samples = decode_all(Bytes::from(bytes), FILE_SECONDS_MAX)
            .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let pieces: Vec<Vec<f32>> = samples.chunks(PIECE_SAMPLES).map(<[f32]>::to_vec).collect();
        let paced = stream::unfold((None::<Interval>, pieces.into_iter()), async |state| {
            let (clock, mut pieces) = state;
            let piece = pieces.next()?;
            // The server may have loaded its models since the file was opened.
            let mut clock = clock.unwrap_or_else(clock_of_pieces);
            clock.tick().await;
            Some((piece, (Some(clock), pieces)))
        });
        Microphone::new(name, true, paced.boxed())
    }

    fn new(
        name: String,
        is_file: bool,
        samples: BoxStream<'static, Vec<f32>>,
    ) -> CliResult<Microphone> {
        let writer = LiveSoundWriter::new(SoundEncoding::Pcm16, DECODED_RATE_HZ);
        let writer = writer.map_err(Failure::internal)?;
        Ok(Microphone { name, is_file, samples, writer })
    }

    /// The next piece: 16 bits, 24 kHz. `None` at its end. Can be dropped while it waits.
    ///
    /// # Errors
    /// The sample rate cannot be changed.
    pub(super) async fn next(&mut self) -> CliResult<Option<Vec<u8>>> {
        let Some(samples) = self.samples.next().await else { return Ok(None) };
        let bytes = self.writer.write(&samples);
        Ok(Some(bytes.map_err(Failure::internal)?))
    }
}

/// Ticks when the next piece has been spoken. Pieces that are late follow at once.
fn clock_of_pieces() -> Interval {
    let mut clock = interval(PIECE);
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    clock
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use hob_speech::encode::{AudioFormat, encode_whole};

    use super::*;

    #[tokio::test]
    async fn a_file_is_spoken_at_its_own_pace_however_long_the_models_load() {
        const PIECES: u32 = 5;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("question.wav");
        let samples = vec![0.0; PIECE_SAMPLES * PIECES as usize];
        let wav = encode_whole(AudioFormat::Wav, DECODED_RATE_HZ, &samples).expect("a file");
        fs_err::write(&file, wav).expect("written");
        let mut microphone = Microphone::of_file(&file).expect("sound");
        tokio::time::sleep(PIECE * PIECES).await;
        let begun = Instant::now();
        while microphone.next().await.expect("sound").is_some() {}
        // The first piece is sent immediately.
        assert!(begun.elapsed() >= PIECE * (PIECES - 1), "{:?}", begun.elapsed());
    }
}
