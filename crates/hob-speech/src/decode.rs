//! Bytes of an uploaded file → mono samples at 16 kHz: wav, flac, mp3, m4a, ogg, opus and webm, in any rate and layout.
//! The content decides the format, never a name. Only the next piece is held decoded. `pcm.rs` decodes raw samples.

mod channels;
mod codec;
mod cut;
mod mp4;
mod ogg_pages;
mod opus;
mod pcm;
mod resample;
mod riff;
mod track;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

pub use pcm::PcmDecoder;
pub use resample::Resampler;

use track::SoundTrack;

/// The sample rate of decoded sound, in Hz: what speech recognition models read.
pub const DECODED_RATE_HZ: u32 = 16_000;
/// One second: the most samples that [`SoundDecoder::next_piece`] returns in one piece.
const PIECE_SAMPLES: usize = DECODED_RATE_HZ as usize;
/// The formats that error messages name.
const ACCEPTED: &str = "wav, flac, mp3, m4a, mp4, ogg, opus and webm";

/// Why an upload could not be decoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    #[error("the file is empty: send a sound file ({ACCEPTED} are accepted)")]
    Empty,
    #[error("the file's {bytes} bytes are not a sound format that hob reads (expected {ACCEPTED})")]
    NotSound { bytes: usize },
    #[error("the {format} file has no sound track: send a file with sound ({ACCEPTED})")]
    NoTrack { format: &'static str },
    #[error("the {format} file holds no samples: send a file with sound ({ACCEPTED})")]
    NoSamples { format: &'static str },
    #[error(
        "hob cannot decode the codec {codec}: convert the file, for example to wav, flac, mp3 or opus"
    )]
    UnsupportedCodec { codec: String },
    #[error(
        "the sound has {rate_hz} Hz and {channels} channels (expected {} to {} Hz and 1 to {} channels)",
        channels::RATE_HZ_MIN,
        channels::RATE_HZ_MAX,
        channels::CHANNELS_MAX
    )]
    UnsupportedLayout { rate_hz: u32, channels: usize },
    #[error("a sample of raw sound has {bytes} bytes (expected 1 to 4)")]
    UnsupportedSampleSize { bytes: usize },
    /// Nothing could be decoded. If some sound comes before the damage, the decoder returns that sound and no error.
    #[error("the sound is damaged at {at_s:.1} s: {detail}")]
    Damaged { at_s: f64, detail: String },
    #[error("the sound is longer than {seconds_max} s: send it in parts")]
    TooLong { seconds_max: f64 },
}

/// Decodes one file piece by piece. Holds the file's bytes, a packet, and at most about two seconds of samples.
pub struct SoundDecoder {
    /// `None` after the last packet and after an error.
    open_track: Option<SoundTrack>,
    resampler: Option<Resampler>,
    /// Samples at 16 kHz that no piece has carried yet.
    resampled: Vec<f32>,
    pieces: u64,
    damage: Option<DecodeError>,
}

hob_core::debug_fields!(SoundDecoder: pieces, damage);

impl SoundDecoder {
    /// Finds the format and the sound track. Fails if the bytes are not sound, or if hob lacks the codec.
    pub fn open(bytes: Bytes) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Err(DecodeError::Empty);
        }
        let track = catch_panic(0.0, || SoundTrack::open(bytes))?;
        let ready = Vec::with_capacity(2 * PIECE_SAMPLES);
        Ok(Self {
            open_track: Some(track),
            resampler: None,
            resampled: ready,
            pieces: 0,
            damage: None,
        })
    }

    /// Returns the next piece: one second at 16 kHz, mono, −1..=1, or what is left. `None` at the end.
    /// Fails only if no sound at all can be decoded. A file that is cut or damaged ends early, or has silence in place
    /// of the damage. [`SoundDecoder::damage`] then has the reason.
    pub fn next_piece(&mut self) -> Result<Option<Vec<f32>>, DecodeError> {
        while self.resampled.len() < PIECE_SAMPLES && self.open_track.is_some() {
            self.decode_block()?;
        }
        if self.resampled.is_empty() {
            return Ok(None);
        }
        let rest = self.resampled.split_off(self.resampled.len().min(PIECE_SAMPLES));
        self.pieces += 1;
        Ok(Some(std::mem::replace(&mut self.resampled, rest)))
    }

    /// The first damage that was skipped, if any.
    pub fn damage(&self) -> Option<&DecodeError> {
        self.damage.as_ref()
    }

    fn decode_block(&mut self) -> Result<(), DecodeError> {
        let Some(mut track) = self.open_track.take() else { return Ok(()) };
        let at_s = track.heard_s();
        // The decoders are libraries that read hostile bytes. After a panic, the track is dropped and never used again.
        let outcome = catch_panic(at_s, || {
            let block = track.next_block()?;
            let rate_hz = block.map_or(0, |block| block.rate_hz);
            self.resample(rate_hz, block.map_or(&[], |block| block.samples))?;
            let has_ended = block.is_none();
            let is_cut = has_ended && track.is_cut();
            Ok((is_cut, has_ended, track))
        });
        match outcome {
            Ok((is_cut, has_ended, track)) => {
                if is_cut {
                    let detail = "the file ends before its sound does".to_owned();
                    self.damage.get_or_insert(DecodeError::Damaged { at_s, detail });
                }
                if self.damage.is_none() {
                    self.damage = track.damage().cloned();
                }
                self.open_track = (!has_ended).then_some(track);
                Ok(())
            }
            Err(damage @ DecodeError::Damaged { .. }) if at_s > 0.0 => {
                self.damage.get_or_insert(damage);
                catch_panic(at_s, || self.resample(0, &[]))
            }
            Err(error) => Err(error),
        }
    }

    /// Resamples a block. If its rate differs from the one before, the old resampler is emptied first. A rate of 0 means the end of the sound.
    fn resample(&mut self, rate_hz: u32, samples: &[f32]) -> Result<(), DecodeError> {
        if self.resampler.as_ref().is_some_and(|resampler| resampler.rate_hz() != rate_hz)
            && let Some(resampler) = self.resampler.take()
        {
            resampler.finish(&mut self.resampled)?;
        }
        if rate_hz == 0 {
            return Ok(());
        }
        let resampler = match &mut self.resampler {
            Some(resampler) => resampler,
            none => none.insert(Resampler::new(rate_hz, DECODED_RATE_HZ)?),
        };
        resampler.push(samples, &mut self.resampled)
    }
}

/// Decodes a whole file. Fails with [`DecodeError::TooLong`] as soon as more than `seconds_max` seconds come out.
pub fn decode_all(bytes: Bytes, seconds_max: f64) -> Result<Vec<f32>, DecodeError> {
    let samples_max = (seconds_max * f64::from(DECODED_RATE_HZ)) as usize;
    let mut decoder = SoundDecoder::open(bytes)?;
    let mut samples = Vec::new();
    while let Some(piece) = decoder.next_piece()? {
        samples.extend(piece);
        if samples.len() > samples_max {
            return Err(DecodeError::TooLong { seconds_max });
        }
    }
    Ok(samples)
}

/// Turns a panic of a decoder into an error of this file, so that the process continues with other files.
fn catch_panic<T>(
    at_s: f64,
    work: impl FnOnce() -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(DecodeError::Damaged {
            at_s,
            detail: "the decoder stopped on malformed data".to_owned(),
        })
    })
}
