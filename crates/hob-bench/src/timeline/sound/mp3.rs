//! Frames of MPEG layer III: where the first that can be heard ends, and how long all of them last.
//! Every frame's head is read, so that a variable bit rate is no matter; nothing is decoded.

/// Of a tag before the first frame, whose length is said in it.
const TAG_HEAD_BYTES: usize = 10;
/// Two frames that follow each other are none by accident.
const FRAMES_SURE: usize = 2;

/// What is known of a file without decoding it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mpeg {
    /// The first frame of sound.
    pub(super) begin: usize,
    pub(super) first_end: usize,
    pub(super) rate_hz: u32,
    pub(super) seconds: f64,
}

/// None of what holds no frame.
pub(super) fn read(body: &[u8]) -> Option<Mpeg> {
    let mut at = first_frame(body, tag_bytes(body))?;
    let first = Frame::of(&body[at..])?;
    // A description of the file in a frame of its own, which is not played.
    if is_description(&body[at..], first) {
        at = first_frame(body, at + first.bytes())?;
    }
    let (begin, first) = (at, Frame::of(&body[at..])?);
    let mut seconds = 0.0;
    while let Some(frame) = body.get(at..).and_then(Frame::of) {
        seconds += f64::from(frame.samples) / f64::from(frame.rate_hz);
        at += frame.bytes();
    }
    Some(Mpeg { begin, first_end: begin + first.bytes(), rate_hz: first.rate_hz, seconds })
}

fn tag_bytes(body: &[u8]) -> usize {
    let Some(head) = body.get(..TAG_HEAD_BYTES).filter(|head| head.starts_with(b"ID3")) else {
        return 0;
    };
    // Seven bits of each byte, so that nothing in it looks like a frame.
    let length = head[6..].iter().fold(0, |length, byte| length << 7 | usize::from(byte & 0x7F));
    TAG_HEAD_BYTES + length
}

/// From `start` on, where a frame is followed by a frame or by the end.
fn first_frame(body: &[u8], start: usize) -> Option<usize> {
    (start..body.len()).find(|at| {
        let mut place = *at;
        (0..FRAMES_SURE).all(|number| match body.get(place..) {
            Some([]) => number > 0,
            Some(rest) => Frame::of(rest).is_some_and(|frame| {
                place += frame.bytes();
                true
            }),
            None => false,
        })
    })
}

fn is_description(bytes: &[u8], frame: Frame) -> bool {
    let inside = &bytes[..frame.bytes().min(bytes.len())];
    [&b"Xing"[..], b"Info"].iter().any(|word| memchr::memmem::find(inside, word).is_some())
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    rate_hz: u32,
    bit_rate: u32,
    samples: u32,
    is_padded: bool,
}

impl Frame {
    fn of(bytes: &[u8]) -> Option<Frame> {
        const FIRST: [u32; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
        const SECOND: [u32; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
        let head = bytes.get(..4).filter(|head| head[0] == 0xFF && head[1] & 0xE0 == 0xE0)?;
        let (version, rates) = (head[1] >> 3 & 3, head[2]);
        let is_third_layer = head[1] >> 1 & 3 == 1;
        let base_hz = [44_100, 48_000, 32_000].get(usize::from(rates >> 2 & 3))?;
        let (rate_hz, samples, table) = match version {
            3 => (*base_hz, 1152, FIRST),
            2 => (base_hz / 2, 576, SECOND),
            0 => (base_hz / 4, 576, SECOND),
            _ => return None,
        };
        let bit_rate = table.get(usize::from(rates >> 4)).filter(|kbit| **kbit > 0)? * 1000;
        let is_padded = rates & 2 != 0;
        is_third_layer.then_some(Frame { rate_hz, bit_rate, samples, is_padded })
    }

    fn bytes(self) -> usize {
        (self.samples / 8 * self.bit_rate / self.rate_hz) as usize + usize::from(self.is_padded)
    }
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
        assert_eq!((got.begin, got.first_end, got.rate_hz), (0, 192, 24_000));
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
    fn what_stands_before_the_sound_is_no_sound() {
        let mut description = quick();
        description[36..40].copy_from_slice(b"Info");
        // A tag in UTF-16, whose mark looks like the beginning of a frame.
        let tag = [&b"ID3\x03\0\0\0\0\0\x06"[..], b"\x01\xFF\xFEabc"].concat();
        let got = read(&[tag.clone(), description, quick(), quick()].concat()).expect("frames");
        assert_eq!((got.begin, got.first_end), (tag.len() + 192, tag.len() + 384));
        assert!((got.seconds - 0.048).abs() < 1e-9);
        for none in [&b"hello"[..], b"\xFF\xF3\x84\xC4 and then something else", b"ID3", &tag] {
            assert_eq!(read(none), None);
        }
    }
}
