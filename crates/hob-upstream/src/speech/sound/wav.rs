//! Reads a WAV header and its samples: 16-bit integers or 32-bit floats, with any number of channels.
//! Pieces may be cut anywhere. An incomplete sample waits for its remaining bytes.

use hob_core::speech::SAMPLE_RATES_HZ;

/// Lengths that a writer sets when it does not know the length yet.
const UNKNOWN: [u32; 3] = [0, 0x7fff_ffff, u32::MAX];
const PCM: u16 = 1;
const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xfffe;

/// The number format of a sample; little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    S16,
    F32,
}

impl Coding {
    fn bytes(self) -> usize {
        match self {
            Coding::S16 => 2,
            Coding::F32 => 4,
        }
    }

    fn sample(self, bytes: &[u8]) -> f32 {
        match (self, bytes) {
            (Coding::S16, &[a, b]) => f32::from(i16::from_le_bytes([a, b])) / 32768.0,
            (Coding::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            _ => 0.0,
        }
    }
}

/// Turns bytes into samples.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Samples {
    pub(super) rate_hz: u32,
    channels: usize,
    coding: Coding,
    /// Bytes of sound that are still to come. `None`: the header states no length.
    left: Option<u64>,
    /// The first bytes of an incomplete sample.
    rest: Vec<u8>,
}

impl Samples {
    pub(super) fn new(rate_hz: u32, channels: usize, coding: Coding) -> Samples {
        Samples { rate_hz, channels, coding, left: None, rest: Vec::new() }
    }

    /// The samples that are complete now. Several channels are mixed to one.
    pub(super) fn of(&mut self, bytes: &[u8]) -> Vec<f32> {
        // A WAV file may have metadata after the sound.
        let sound = self.left.map_or(bytes.len(), |left| bytes.len().min(left as usize));
        self.left = self.left.map(|left| left - sound as u64);
        self.rest.extend_from_slice(&bytes[..sound]);
        let (coding, frame) = (self.coding, self.coding.bytes() * self.channels);
        let frames = self.rest.chunks_exact(frame);
        let mean = |frame: &[u8]| {
            let samples = frame.chunks_exact(coding.bytes()).map(|bytes| coding.sample(bytes));
            samples.sum::<f32>() / self.channels as f32
        };
        let samples = frames.map(mean).collect();
        self.rest.drain(..self.rest.len() / frame * frame);
        samples
    }

    /// Whether the body ended before the sound did.
    pub(super) fn are_missing(&self) -> bool {
        self.left.is_some_and(|left| left > 0)
    }
}

/// The sample format and the offset of the first sample. `None` while the header is incomplete.
///
/// # Errors
/// The bytes are not a WAV file, or a variant that hob cannot read.
pub(super) fn header(bytes: &[u8]) -> Result<Option<(Samples, usize)>, String> {
    if bytes.len() < 12 {
        return Ok(None);
    }
    if &bytes[8..12] != b"WAVE" {
        return Err("a RIFF that is not a wav".to_owned());
    }
    let (mut at, mut format) = (12, None);
    loop {
        let Some(chunk) = bytes.get(at..at + 8) else { return Ok(None) };
        let length = u32_at(chunk, 4);
        at += 8;
        match &chunk[..4] {
            b"data" => {
                let mut samples: Samples = format.ok_or("a wav without a format")?;
                samples.left = (!UNKNOWN.contains(&length)).then_some(length.into());
                return Ok(Some((samples, at)));
            }
            b"fmt " => {
                let Some(fields) = bytes.get(at..at + length as usize) else { return Ok(None) };
                format = Some(format_of(fields)?);
            }
            _ => {}
        }
        // Chunks start at even offsets.
        at += length as usize + length as usize % 2;
    }
}

fn format_of(fields: &[u8]) -> Result<Samples, String> {
    if fields.len() < 16 {
        return Err("a wav whose format is too short".to_owned());
    }
    let (channels, rate_hz, bits) = (u16_at(fields, 2), u32_at(fields, 4), u16_at(fields, 14));
    let tag = match u16_at(fields, 0) {
        // The real format is in the first bytes of a GUID that follows.
        EXTENSIBLE if fields.len() >= 26 => u16_at(fields, 24),
        tag => tag,
    };
    let coding = match (tag, bits) {
        (PCM, 16) => Coding::S16,
        (FLOAT, 32) => Coding::F32,
        _ => return Err(format!("a wav of {bits} bits (format {tag}), which hob does not read")),
    };
    if !(1..=8).contains(&channels) || !SAMPLE_RATES_HZ.contains(&rate_hz) {
        return Err(format!(
            "a wav of {channels} channels at {rate_hz} Hz; hob takes 1 to 8 channels at {SAMPLE_RATES_HZ:?}"
        ));
    }
    Ok(Samples::new(rate_hz, channels.into(), coding))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wav(tag: u16, channels: u16, rate_hz: u32, bits: u16, length: u32) -> Vec<u8> {
        let mut bytes = b"RIFF\xff\xff\xff\xffWAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
        bytes.extend(tag.to_le_bytes());
        bytes.extend(channels.to_le_bytes());
        bytes.extend(rate_hz.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(bits.to_le_bytes());
        bytes.extend(b"data");
        bytes.extend(length.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_says_what_follows_wherever_it_is_cut() {
        let bytes = wav(PCM, 2, 44_100, 16, 8);
        for cut in 0..bytes.len() {
            assert_eq!(header(&bytes[..cut]), Ok(None), "{cut}");
        }
        let (samples, start) = header(&bytes).expect("a wav").expect("whole");
        assert_eq!((samples.rate_hz, samples.channels, samples.left), (44_100, 2, Some(8)));
        assert_eq!(start, bytes.len());
        for length in UNKNOWN {
            let (samples, _) =
                header(&wav(FLOAT, 1, 24_000, 32, length)).expect("a wav").expect("");
            assert_eq!((samples.coding, samples.left), (Coding::F32, None));
        }
    }

    #[test]
    fn unknown_formats_are_rejected() {
        for (tag, channels, rate_hz, bits) in [
            (PCM, 1, 24_000, 24),
            (7, 1, 8_000, 8),
            (PCM, 0, 24_000, 16),
            (PCM, 1, 1, 16),
            (PCM, 1, 192_000, 16),
        ] {
            assert!(header(&wav(tag, channels, rate_hz, bits, 0)).is_err(), "{tag} {bits}");
        }
        assert!(header(b"RIFF\0\0\0\0AVI LIST").is_err());
    }

    #[test]
    fn samples_are_the_same_wherever_they_are_cut() {
        let bytes: Vec<u8> =
            [0i16, 16384, -32768, 8192].iter().flat_map(|s| s.to_le_bytes()).collect();
        for cut in 0..=bytes.len() {
            let mut mono = Samples::new(24_000, 1, Coding::S16);
            let read = [mono.of(&bytes[..cut]), mono.of(&bytes[cut..])].concat();
            assert_eq!(read, [0.0, 0.5, -1.0, 0.25], "{cut}");
            let mut stereo = Samples { left: Some(8), ..Samples::new(24_000, 2, Coding::S16) };
            let read = [stereo.of(&bytes[..cut]), stereo.of(&bytes[cut..])].concat();
            assert_eq!(read, [0.25, -0.375], "{cut}");
            assert!(!stereo.are_missing());
            assert!(stereo.of(b"notes").is_empty(), "they are not sound");
        }
    }
}
