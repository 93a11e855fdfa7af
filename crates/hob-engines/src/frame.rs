//! Frames: the messages between a supervisor and its worker. Each has a kind, a stream and a payload.
//! A payload is one value in postcard's format. No I/O happens here.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum bytes of a payload. A request with its pictures is one frame, and the server accepts bodies of
/// 32 MiB. A header that announces more is garbage.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// Kind (1 byte), stream (4) and payload length (4), little-endian.
const HEADER_BYTES: usize = 9;

/// A decoder's buffer that grew beyond this for one large frame is freed after it.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Which protocol a frame's payload belongs to. The numbers are the kinds on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// The handshake: the version of the protocol as four bytes. Every version writes it like this.
    Hello = 1,
    /// What every worker understands, whatever its model does.
    Common = 2,
    /// The model's own protocol.
    Model = 3,
}

/// One message. Stream 0 belongs to the connection itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: FrameKind,
    pub stream: u32,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame has {bytes} bytes, and the limit is {PAYLOAD_BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("a frame has the unknown kind {kind}")]
    UnknownKind { kind: u8 },
    #[error("a frame of kind {kind:?} is malformed: {reason}")]
    Malformed { kind: FrameKind, reason: String },
}

impl FrameKind {
    fn from_byte(kind: u8) -> Result<FrameKind, FrameError> {
        match kind {
            1 => Ok(FrameKind::Hello),
            2 => Ok(FrameKind::Common),
            3 => Ok(FrameKind::Model),
            kind => Err(FrameError::UnknownKind { kind }),
        }
    }
}

impl Frame {
    /// Encodes `message` as the payload.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`]. [`FrameError::Malformed`] if the message has a list of unknown length.
    pub fn new(
        kind: FrameKind,
        stream: u32,
        message: &impl Serialize,
    ) -> Result<Frame, FrameError> {
        let payload = postcard::to_allocvec(message)
            .map_err(|error| FrameError::Malformed { kind, reason: error.to_string() })?;
        payload_length(payload.len())?;
        Ok(Frame { kind, stream, payload })
    }

    /// The payload as one value.
    ///
    /// # Errors
    /// [`FrameError::Malformed`] if the payload is not a `T`, or is longer than one.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        let malformed = |reason: String| FrameError::Malformed { kind: self.kind, reason };
        match postcard::take_from_bytes(&self.payload) {
            Ok((message, [])) => Ok(message),
            Ok((_, rest)) => Err(malformed(format!("{} bytes too many", rest.len()))),
            Err(error) => Err(malformed(error.to_string())),
        }
    }

    /// Appends the frame's bytes to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`]. `out` is unchanged then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        let length = payload_length(self.payload.len())?;
        out.reserve(HEADER_BYTES + self.payload.len());
        out.push(self.kind as u8);
        out.extend(self.stream.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(&self.payload);
        Ok(())
    }
}

fn payload_length(bytes: usize) -> Result<u32, FrameError> {
    match u32::try_from(bytes) {
        Ok(length) if bytes <= PAYLOAD_BYTES_MAX => Ok(length),
        _ => Err(FrameError::TooLarge { bytes }),
    }
}

/// Turns bytes, cut anywhere, back into frames. Holds at most one frame and the bytes of the last push.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Bytes at the start of `buffer` that were already returned as frames.
    consumed: usize,
}

impl FrameDecoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        if self.buffer.is_empty() {
            self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        }
        self.buffer.extend(bytes);
    }

    /// The next whole frame, or `None` until more bytes are pushed.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] and [`FrameError::UnknownKind`]. The connection is then of no further use.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.consumed..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [kind, s0, s1, s2, s3, length @ ..] = *header;
        let kind = FrameKind::from_byte(kind)?;
        let bytes = u32::from_le_bytes(length) as usize;
        payload_length(bytes)?;
        let Some(payload) = rest.get(..bytes) else {
            return Ok(None);
        };
        let stream = u32::from_le_bytes([s0, s1, s2, s3]);
        let frame = Frame { kind, stream, payload: payload.to_vec() };
        self.consumed += HEADER_BYTES + bytes;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        let frame = (any::<u32>(), vec(any::<u8>(), 0..200)).prop_map(|(stream, payload)| Frame {
            kind: FrameKind::Model,
            stream,
            payload,
        });
        vec(frame, 0..8)
    }

    /// Pushes `bytes` in pieces that end at `cuts`, and collects the frames.
    fn decode_in_pieces(bytes: &[u8], cuts: &[usize]) -> Vec<Frame> {
        let mut decoder = FrameDecoder::default();
        let mut decoded = Vec::new();
        let mut from = 0;
        for &to in cuts.iter().chain([&bytes.len()]) {
            decoder.push(&bytes[from..to]);
            from = to;
            while let Some(frame) = decoder.next_frame().expect("well-formed") {
                decoded.push(frame);
            }
        }
        decoded
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_does_not_matter(
            frames in frames(),
            cuts in vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut bytes = Vec::new();
            for frame in &frames {
                frame.encode(&mut bytes).expect("small");
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(decode_in_pieces(&bytes, &cuts), frames);
        }

        #[test]
        fn garbage_is_refused_or_needs_more_bytes_and_never_panics(bytes in vec(any::<u8>(), 0..400)) {
            let mut decoder = FrameDecoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next_frame() {}
        }
    }

    #[test]
    fn the_largest_payload_passes_and_one_byte_more_does_not() {
        let large = |bytes| Frame { kind: FrameKind::Model, stream: 1, payload: vec![1; bytes] };
        let mut bytes = Vec::new();
        large(PAYLOAD_BYTES_MAX).encode(&mut bytes).expect("at the limit");
        assert_eq!(decode_in_pieces(&bytes, &[]), [large(PAYLOAD_BYTES_MAX)]);

        let too_large = FrameError::TooLarge { bytes: PAYLOAD_BYTES_MAX + 1 };
        let mut out = Vec::new();
        assert_eq!(large(PAYLOAD_BYTES_MAX + 1).encode(&mut out), Err(too_large.clone()));
        assert_eq!(out, Vec::<u8>::new());
        let text = "x".repeat(PAYLOAD_BYTES_MAX);
        assert!(matches!(
            Frame::new(FrameKind::Model, 1, &text),
            Err(FrameError::TooLarge { bytes }) if bytes > PAYLOAD_BYTES_MAX
        ));

        let mut header = vec![3, 1, 0, 0, 0];
        header.extend((PAYLOAD_BYTES_MAX as u32 + 1).to_le_bytes());
        let mut decoder = FrameDecoder::default();
        decoder.push(&header);
        assert_eq!(decoder.next_frame(), Err(too_large));
    }

    #[test]
    fn a_payload_is_one_value_and_nothing_else() {
        let frame = Frame::new(FrameKind::Common, 1, &(7_u32, "é")).expect("small");
        assert_eq!(frame.decode::<(u32, String)>(), Ok((7, "é".to_owned())));
        let malformed = |frame: Frame| frame.decode::<(u32, String)>().expect_err("no such value");
        let mut long = frame.clone();
        long.payload.push(0);
        assert_eq!(
            malformed(long).to_string(),
            "a frame of kind Common is malformed: 1 bytes too many"
        );
        let short = Frame { payload: frame.payload[..2].to_vec(), ..frame };
        assert!(matches!(malformed(short), FrameError::Malformed { kind: FrameKind::Common, .. }));
    }

    /// A list whose announced length is larger than the payload takes no memory in advance.
    #[test]
    fn an_announced_length_takes_no_memory() {
        let payload = vec![0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
        let frame = Frame { kind: FrameKind::Model, stream: 1, payload };
        assert!(frame.decode::<Vec<f32>>().is_err());
        assert!(frame.decode::<String>().is_err());
    }
}
