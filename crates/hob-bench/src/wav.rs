//! WAV files of 16-bit samples: finds their samples, reads them, and writes files with one channel.
//! Streams have no length in their header, so the length is that of the bytes.

use bytes::Bytes;
use hob_core::wav_header;

const PCM: u16 = 1;
/// The format is in a later field; the sample width is checked all the same.
const EXTENSIBLE: u16 = 0xFFFE;
const CHANNELS_MAX: u16 = 8;

/// Decoded sound, its channels mixed into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wav {
    pub(crate) rate_hz: u32,
    pub(crate) samples: Vec<i16>,
}

/// Where the samples of a WAV file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WavSamples {
    pub(crate) begin: usize,
    end: usize,
    pub(crate) channels: u16,
    pub(crate) rate_hz: u32,
}

impl WavSamples {
    /// None if the bytes are not a WAV of 16-bit samples.
    pub(crate) fn find(bytes: &[u8]) -> Option<WavSamples> {
        if bytes.get(..4)? != b"RIFF" || bytes.get(8..12)? != b"WAVE" {
            return None;
        }
        let (mut at, mut format) = (12, None);
        loop {
            let (name, length) = (bytes.get(at..at + 4)?, number(bytes, at + 4)? as usize);
            let begin = at + 8;
            if name == b"fmt " {
                let (kind, bits) = (half(bytes, begin)?, half(bytes, begin + 14)?);
                let is_read = [PCM, EXTENSIBLE].contains(&kind) && bits == 16;
                format = Some((half(bytes, begin + 2)?, number(bytes, begin + 4)?));
                format = format.filter(|(channels, rate_hz)| {
                    is_read && (1..=CHANNELS_MAX).contains(channels) && *rate_hz > 0
                });
            } else if name == b"data" {
                let (channels, rate_hz) = format?;
                let end = begin.saturating_add(length).min(bytes.len());
                return Some(WavSamples { begin, end, channels, rate_hz });
            }
            at = begin.checked_add(length)?.checked_add(length % 2)?;
        }
    }
}

impl Wav {
    /// None if the bytes are not a WAV of 16-bit samples, or have no sample.
    pub(crate) fn read(bytes: &[u8]) -> Option<Wav> {
        let WavSamples { begin, end, channels, rate_hz } = WavSamples::find(bytes)?;
        let mixed = |frame: &[u8]| {
            let all =
                frame.chunks_exact(2).map(|pair| i32::from(i16::from_le_bytes([pair[0], pair[1]])));
            (all.sum::<i32>() / i32::from(channels)) as i16
        };
        let frames = bytes[begin..end].chunks_exact(2 * usize::from(channels));
        let samples: Vec<i16> = frames.map(mixed).collect();
        (!samples.is_empty()).then_some(Wav { rate_hz, samples })
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate_hz)
    }

    /// A file with one channel.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let data = u32::try_from(self.samples.len() * 2).unwrap_or(u32::MAX);
        let mut file = wav_header(self.rate_hz, data);
        file.extend(self.samples.iter().flat_map(|sample| sample.to_le_bytes()));
        file.into()
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_read_again() {
        let wav = Wav { rate_hz: 16_000, samples: vec![1, -2, 300, -32_768] };
        let file = wav.to_bytes();
        assert_eq!(Wav::read(&file), Some(wav.clone()));
        let mut streamed = file.to_vec();
        streamed[40..44].copy_from_slice(&[0xFF; 4]);
        assert_eq!(Wav::read(&streamed), Some(wav.clone()), "a stream has no length");
        let mut stereo = file.to_vec();
        stereo[22] = 2;
        assert_eq!(Wav::read(&stereo).map(|wav| wav.samples), Some(vec![0, -16_234]));
        // Other chunks may stand before the samples.
        let listed = [&file[..36], b"LIST\x03\0\0\0abc\0", &file[36..]].concat();
        assert_eq!(Wav::read(&listed), Some(wav));
    }

    #[test]
    fn other_bytes_are_not_read() {
        let file = Wav { rate_hz: 8_000, samples: vec![1] }.to_bytes();
        let with = |at: usize, byte: u8| {
            let mut file = file.to_vec();
            file[at] = byte;
            file
        };
        let rows = [with(0, b'X'), with(20, 3), with(34, 24), with(22, 0), file[..44].to_vec()];
        for (number, bytes) in rows.iter().enumerate() {
            assert_eq!(Wav::read(bytes), None, "row {number}");
        }
        for end in 0..file.len() - 2 {
            assert_eq!(Wav::read(&file[..end]), None, "{end} bytes");
        }
    }
}
