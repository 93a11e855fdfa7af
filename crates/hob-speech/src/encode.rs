//! PCM → bytes: one encoder for a whole response, all formats behind one small trait.
//! No clock, no socket and no flushing policy: bytes are returned as soon as the format allows it.

mod aac;
mod flac;
mod format;
mod frames;
mod mp3;
mod opus;
mod pcm;
mod wav;

pub use format::{AudioFormat, UnknownFormat};

/// What is known about the length of a response before its first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A stream: headers say "unknown", and every byte is returned as early as possible.
    Unknown,
    /// Exactly this many samples. Headers are exact; more or fewer samples are an error.
    Samples(u64),
}

/// Why audio could not be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("{format} does not support {sample_rate_hz} Hz (expected {})", rates(accepted))]
    UnsupportedRate { format: AudioFormat, sample_rate_hz: u32, accepted: &'static [u32] },
    #[error(
        "{samples} samples do not fit into a wav file (at most {samples_max}): use flac, or a stream"
    )]
    TooLongForWav { samples: u64, samples_max: u64 },
    #[error(
        "{format} is not built into this hob: build it with `--features {feature}`, or use mp3 or opus"
    )]
    NotBuilt { format: AudioFormat, feature: &'static str },
    /// The synthesiser produced a value that is infinite or not a number. hob never turns it into silence.
    #[error("sample {index} is not a finite number")]
    NotFinite { index: u64 },
    #[error("the header announced {promised} samples, but the encoder got {given}")]
    WrongLength { promised: u64, given: u64 },
    #[error("the {format} encoder failed: {detail}")]
    Codec { format: AudioFormat, detail: String },
}

fn rates(accepted: &[u32]) -> String {
    accepted.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// One format. Samples arrive clipped to −1..=1, in pieces of any size. Completed bytes are appended to `out`. The
/// bytes must not depend on where the pieces are cut.
trait Codec: Send {
    fn header(&mut self, _out: &mut Vec<u8>) -> Result<(), EncodeError> {
        Ok(())
    }
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError>;
    /// Returns the header with what was unknown before, as long as the first one, or nothing.
    fn finish(self: Box<Self>, _out: &mut Vec<u8>) -> Result<Vec<u8>, EncodeError> {
        Ok(Vec::new())
    }
}

/// Turns the mono PCM of one response into the bytes of one file.
pub struct Encoder {
    codec: Box<dyn Codec>,
    length: Length,
    samples_taken: u64,
    header_written: bool,
}

hob_core::debug_fields!(Encoder: length, samples_taken);

/// What completes a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// The remaining bytes, up to the last sample.
    pub rest: Vec<u8>,
    /// What belongs in the place of the file's first bytes. Empty if they are exact.
    pub header: Vec<u8>,
}

/// Encodes a whole sound as one file with exact headers.
///
/// # Errors
/// The format cannot hold this sound, or a sample is not a finite number.
pub fn encode_whole(
    format: AudioFormat,
    sample_rate_hz: u32,
    samples: &[f32],
) -> Result<Vec<u8>, EncodeError> {
    let length = Length::Samples(samples.len() as u64);
    let mut encoder = Encoder::new(format, sample_rate_hz, length)?;
    let mut bytes = encoder.encode(samples)?;
    bytes.extend(encoder.finish()?);
    Ok(bytes)
}

impl Encoder {
    /// Rejects what the format cannot do, before any byte is sent.
    pub fn new(
        format: AudioFormat,
        sample_rate_hz: u32,
        length: Length,
    ) -> Result<Self, EncodeError> {
        let accepted = format.sample_rates_hz();
        if !accepted.contains(&sample_rate_hz) {
            return Err(EncodeError::UnsupportedRate { format, sample_rate_hz, accepted });
        }
        let codec = start(format, sample_rate_hz, length)?;
        Ok(Self { codec, length, samples_taken: 0, header_written: false })
    }

    /// Takes mono samples and clips them to −1..=1. Returns the bytes that are ready, possibly none. The header comes
    /// with the first call. In a flac of known length the header is exact only at the end, so all bytes come from
    /// [`Encoder::finish`].
    pub fn encode(&mut self, samples: &[f32]) -> Result<Vec<u8>, EncodeError> {
        let clipped = self.clip(samples)?;
        self.count(samples.len())?;
        let mut out = Vec::new();
        self.write_header(&mut out)?;
        self.codec.encode(&clipped, &mut out)?;
        Ok(out)
    }

    /// Returns the remaining bytes, up to the last sample.
    pub fn finish(self) -> Result<Vec<u8>, EncodeError> {
        self.finish_file().map(|end| end.rest)
    }

    /// For a file whose beginning can be written again.
    pub fn finish_file(mut self) -> Result<FileEnd, EncodeError> {
        if let Length::Samples(promised) = self.length
            && promised != self.samples_taken
        {
            return Err(EncodeError::WrongLength { promised, given: self.samples_taken });
        }
        let mut rest = Vec::new();
        self.write_header(&mut rest)?;
        let header = self.codec.finish(&mut rest)?;
        Ok(FileEnd { rest, header })
    }

    fn clip(&self, samples: &[f32]) -> Result<Vec<f32>, EncodeError> {
        match samples.iter().position(|sample| !sample.is_finite()) {
            Some(at) => Err(EncodeError::NotFinite { index: self.samples_taken + at as u64 }),
            None => Ok(samples.iter().map(|sample| sample.clamp(-1.0, 1.0)).collect()),
        }
    }

    fn count(&mut self, samples: usize) -> Result<(), EncodeError> {
        let given = self.samples_taken + samples as u64;
        match self.length {
            Length::Samples(promised) if given > promised => {
                Err(EncodeError::WrongLength { promised, given })
            }
            _ => {
                self.samples_taken = given;
                Ok(())
            }
        }
    }

    fn write_header(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if self.header_written {
            return Ok(());
        }
        self.header_written = true;
        self.codec.header(out)
    }
}

fn start(
    format: AudioFormat,
    sample_rate_hz: u32,
    length: Length,
) -> Result<Box<dyn Codec>, EncodeError> {
    Ok(match format {
        AudioFormat::Mp3 => Box::new(mp3::Mp3::new(sample_rate_hz)?),
        AudioFormat::Wav => Box::new(wav::Wav::new(sample_rate_hz, length)?),
        AudioFormat::Pcm => Box::new(pcm::Pcm),
        AudioFormat::Opus => Box::new(opus::OggOpus::new(sample_rate_hz)?),
        AudioFormat::Flac => Box::new(flac::Flac::new(sample_rate_hz, length)?),
        AudioFormat::Aac => aac::start(sample_rate_hz)?,
    })
}
