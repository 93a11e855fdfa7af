//! Reads MPEG layer III: how long all frames last, and where the first frame ends whose samples can be heard.
//! It reads the header of each frame, so the bit rate may vary. It decodes frames only up to the first audible one.

use rusty_mp3::Mp3Decode;
use rusty_mp3::header::FrameHeader;

use super::AUDIBLE;

/// Length of the header of an ID3 tag, which contains the length of the tag.
const TAG_HEAD_BYTES: usize = 10;
const HEADER_BYTES: usize = 4;
/// A checksum between header and side information.
const CRC_BYTES: usize = 2;
/// Number of consecutive valid frames that prove the position of the first one.
const FRAMES_SURE: usize = 2;
/// `AUDIBLE` for samples between −1 and 1.
const AUDIBLE_LEVEL: f32 = AUDIBLE as f32 / 32_768.0;

/// A file whose frames were read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mpeg {
    /// Position of the first frame of sound.
    pub(super) begin: usize,
    /// The end of the first audible frame. None if all frames are silence.
    pub(super) audible_end: Option<usize>,
    pub(super) rate_hz: u32,
    pub(super) seconds: f64,
}

/// Returns None if the bytes contain no frame, or no frame that can be decoded.
pub(super) fn read(body: &[u8]) -> Option<Mpeg> {
    let mut begin = first_frame(body, tag_bytes(body))?;
    let first = header(&body[begin..])?;
    // This frame describes the file and is not played.
    if is_description(&body[begin..], &first) {
        begin = first_frame(body, begin + first.frame_size())?;
    }
    let rate_hz = header(&body[begin..])?.sample_rate;
    let (mut decoder, mut is_decoded) = (Mp3Decode::new(), false);
    let (mut at, mut seconds, mut audible_end) = (begin, 0.0, None);
    while let Some(frame) = body.get(at..).and_then(header) {
        seconds += frame.version.samples_per_frame() as f64 / f64::from(frame.sample_rate);
        let bytes = &body[at..body.len().min(at + frame.frame_size())];
        at += frame.frame_size();
        if audible_end.is_none()
            && let Some(samples) = decoded(&mut decoder, &frame, bytes)
        {
            is_decoded = true;
            audible_end = samples.iter().any(|sample| sample.abs() > AUDIBLE_LEVEL).then_some(at);
        }
    }
    is_decoded.then_some(Mpeg { begin, audible_end, rate_hz, seconds })
}

/// Returns None if the frame is cut off or damaged, because a player skips it.
fn decoded(decoder: &mut Mp3Decode, frame: &FrameHeader, bytes: &[u8]) -> Option<Vec<f32>> {
    let side = HEADER_BYTES + if frame.crc_protected { CRC_BYTES } else { 0 };
    let main = side + frame.side_info_len();
    let is_whole = bytes.len() == frame.frame_size() && main <= bytes.len();
    is_whole.then(|| decoder.decode_frame(frame, &bytes[side..main], &bytes[main..]).ok())?
}

fn tag_bytes(body: &[u8]) -> usize {
    let Some(head) = body.get(..TAG_HEAD_BYTES).filter(|head| head.starts_with(b"ID3")) else {
        return 0;
    };
    // The length uses seven bits of each byte, so that it never looks like a frame.
    let length = head[6..].iter().fold(0, |length, byte| length << 7 | usize::from(byte & 0x7F));
    TAG_HEAD_BYTES + length
}

/// The first frame at or after `start` that is followed by another frame or by the end.
fn first_frame(body: &[u8], start: usize) -> Option<usize> {
    (start..body.len()).find(|at| {
        let mut place = *at;
        (0..FRAMES_SURE).all(|number| match body.get(place..) {
            Some([]) => number > 0,
            Some(rest) => header(rest).is_some_and(|frame| {
                place += frame.frame_size();
                true
            }),
            None => false,
        })
    })
}

fn is_description(bytes: &[u8], frame: &FrameHeader) -> bool {
    let inside = &bytes[..frame.frame_size().min(bytes.len())];
    [&b"Xing"[..], b"Info"].iter().any(|word| memchr::memmem::find(inside, word).is_some())
}

fn header(bytes: &[u8]) -> Option<FrameHeader> {
    let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
    FrameHeader::parse(*bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(head: [u8; 4], bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; bytes];
        frame[..4].copy_from_slice(&head);
        frame
    }

    /// 24 ms at 64 kbit/s, and at 32.
    fn quick() -> Vec<u8> {
        frame([0xFF, 0xF3, 0x84, 0xC4], 192)
    }

    fn slow() -> Vec<u8> {
        frame([0xFF, 0xF3, 0x44, 0xC4], 96)
    }

    #[test]
    fn frames_are_counted_whatever_their_bit_rate() {
        let got = read(&[quick(), slow(), quick(), slow()].concat()).expect("frames");
        assert_eq!((got.begin, got.audible_end, got.rate_hz), (0, None, 24_000));
        assert!((got.seconds - 0.096).abs() < 1e-9, "{}", got.seconds);
    }

    #[test]
    fn a_padded_frame_is_a_byte_longer() {
        // 44.1 kHz and 128 kbit/s: 417 bytes, and 418 with padding.
        let plain = frame([0xFF, 0xFB, 0x90, 0xC4], 417);
        let padded = frame([0xFF, 0xFB, 0x92, 0xC4], 418);
        let got = read(&[plain, padded.clone(), padded].concat()).expect("frames");
        assert!((got.seconds - 3.0 * 1152.0 / 44_100.0).abs() < 1e-9, "{}", got.seconds);
    }

    #[test]
    fn bytes_before_the_sound_are_not_counted() {
        let mut description = quick();
        description[36..40].copy_from_slice(b"Info");
        // A tag in UTF-16, whose mark looks like the beginning of a frame.
        let tag = [&b"ID3\x03\0\0\0\0\0\x06"[..], b"\x01\xFF\xFEabc"].concat();
        let got = read(&[tag.clone(), description, quick(), quick()].concat()).expect("frames");
        assert_eq!(got.begin, tag.len() + 192);
        assert!((got.seconds - 0.048).abs() < 1e-9);
        for none in [&b"hello"[..], b"\xFF\xF3\x84\xC4 and then something else", b"ID3", &tag] {
            assert_eq!(read(none), None);
        }
    }

    /// Frames of 24 ms, independent of each other: silence, then a tone.
    fn encoded(silent: usize, loud: usize) -> Vec<u8> {
        let header = rusty_mp3::encoder_header(24_000, 1, 64).expect("a header");
        let mut encoder = rusty_mp3::Mp3Encode::new();
        let tone = |at: usize| 0.3 * (at as f32 * 0.1).sin();
        let frames = (0..silent + loud).map(|frame| {
            let level = |at: usize| if frame < silent { 0.0 } else { tone(frame * 576 + at) };
            let samples: Vec<f32> = (0..576).map(level).collect();
            encoder.encode_frame(&header, &[&samples], None).expect("a frame")
        });
        frames.collect::<Vec<_>>().concat()
    }

    #[test]
    fn silence_at_the_beginning_is_not_audible() {
        let got = read(&encoded(40, 10)).expect("frames");
        // A decoder is up to two frames late.
        let heard = got.audible_end.expect("a tone") / 192;
        assert!((41..=43).contains(&heard), "frame {heard}");
        assert!(read(&encoded(0, 10)).and_then(|got| got.audible_end).expect("a tone") <= 3 * 192);
        assert_eq!(read(&encoded(40, 0)).expect("frames").audible_end, None);
    }

    #[test]
    fn damaged_frames_are_skipped() {
        let mut bytes = encoded(10, 10);
        bytes[5 * 192 + 4..6 * 192].fill(0xFF);
        let got = read(&bytes).expect("frames");
        assert!((got.seconds - 0.48).abs() < 1e-9 && got.audible_end.is_some(), "{got:?}");
    }
}
