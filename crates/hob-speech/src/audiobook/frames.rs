//! Cuts encoded sound into its frames: MP3 frames, and AAC frames with their ADTS headers.
//! Reads what hob's own encoders write, and refuses everything else.

use rusty_mp3::header::FrameHeader;

use super::BookFormat;

/// Sample rates of AAC by their index.
const AAC_RATES_HZ: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// Samples of one AAC frame.
pub(super) const AAC_SAMPLES: u32 = 1_024;

/// Bytes of an ADTS header without a checksum.
const ADTS_BYTES: usize = 7;

/// What all frames of a file share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameKind {
    pub(super) rate_hz: u32,
    pub(super) samples: u32,
    /// AAC's AudioSpecificConfig; 0 for MP3.
    pub(super) config: u16,
}

/// A frame as the file contains it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoundFrame<'p> {
    pub(super) body: &'p [u8],
    pub(super) kind: FrameKind,
}

/// The first frame, and the bytes after it. `None` if the bytes do not begin with a whole frame.
pub(super) fn split_frame(format: BookFormat, bytes: &[u8]) -> Option<(SoundFrame<'_>, &[u8])> {
    match format {
        BookFormat::M4b => split_aac(bytes),
        BookFormat::Mp3 => split_mp3(bytes),
    }
}

fn split_mp3(bytes: &[u8]) -> Option<(SoundFrame<'_>, &[u8])> {
    let header = FrameHeader::parse(*bytes.first_chunk()?).ok()?;
    let (body, rest) = bytes.split_at_checked(header.frame_size())?;
    let samples = header.version.samples_per_frame() as u32;
    Some((
        SoundFrame { body, kind: FrameKind { rate_hz: header.sample_rate, samples, config: 0 } },
        rest,
    ))
}

/// ADTS: 12 bits of sync, version and layer, "no checksum", profile (2 bits), rate (4), private, channels (3), 4 flags,
/// length with the header (13), fullness (11), further blocks (2).
fn split_aac(bytes: &[u8]) -> Option<(SoundFrame<'_>, &[u8])> {
    let [sync, flags, sound, channels, length, lengths, blocks] =
        *bytes.first_chunk::<ADTS_BYTES>()?;
    let has_no_checksum = flags & 1 == 1;
    if sync != 0xFF || flags & 0xF6 != 0xF0 || !has_no_checksum || blocks & 3 != 0 {
        return None;
    }
    let rate_index = (sound >> 2) & 0xF;
    let rate_hz = *AAC_RATES_HZ.get(usize::from(rate_index))?;
    let channel_count = ((sound & 1) << 2) | (channels >> 6);
    let config = (u16::from((sound >> 6) + 1) << 11)
        | (u16::from(rate_index) << 7)
        | (u16::from(channel_count) << 3);
    let bytes_all =
        (usize::from(channels & 3) << 11) | (usize::from(length) << 3) | usize::from(lengths >> 5);
    let (frame, rest) = bytes.split_at_checked(bytes_all)?;
    let body = frame.get(ADTS_BYTES..).filter(|body| !body.is_empty())?;
    Some((SoundFrame { body, kind: FrameKind { rate_hz, samples: AAC_SAMPLES, config } }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, Length};

    fn encoded(format: BookFormat) -> Option<Vec<u8>> {
        let mut encoder = Encoder::new(format.sound(), 24_000, Length::Unknown).ok()?;
        let mut bytes = encoder.encode(&[0.25; 24_000]).unwrap();
        bytes.extend(encoder.finish().unwrap());
        Some(bytes)
    }

    #[test]
    fn what_the_encoders_write_is_whole_frames() {
        // AAC-LC (2), 24 kHz (6), one channel.
        let aac_config = (2 << 11) | (6 << 7) | (1 << 3);
        for (format, samples, config) in
            [(BookFormat::M4b, 1_024, aac_config), (BookFormat::Mp3, 576, 0)]
        {
            // Without the feature `aac` there is no encoder for M4B.
            let Some(bytes) = encoded(format) else { continue };
            let (mut rest, mut count) = (&bytes[..], 0);
            while !rest.is_empty() {
                let (frame, behind) = split_frame(format, rest).unwrap();
                assert_eq!(frame.kind, FrameKind { rate_hz: 24_000, samples, config });
                (rest, count) = (behind, count + 1);
            }
            let least = 24_000 / samples;
            assert!((least..least + 4).contains(&count), "{format:?}: {count}");
        }
    }

    #[test]
    fn what_is_no_whole_frame_is_refused() {
        for format in [BookFormat::M4b, BookFormat::Mp3] {
            assert!(split_frame(format, b"").is_none());
            assert!(split_frame(format, b"RIFF1234WAVE").is_none());
            assert!(split_frame(format, &[0xFF; 64]).is_none());
            let Some(bytes) = encoded(format) else { continue };
            let (frame, rest) = split_frame(format, &bytes).unwrap();
            let whole = bytes.len() - rest.len();
            assert!(frame.body.len() <= whole);
            assert!(split_frame(format, &bytes[..whole - 1]).is_none());
        }
    }
}
