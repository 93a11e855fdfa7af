//! Frames: the bytes between a supervisor and its worker, each with a kind, a stream and a payload.
//! What a kind means is said by the protocols on top; no I/O happens here.

/// No payload is longer; a header that announces more is taken for garbage, not for memory to get.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Kind (1 byte), stream (4) and payload length (4), little-endian.
const HEADER_BYTES: usize = 9;

/// One message. Stream 0 belongs to the connection itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of kind {kind} announces {bytes} bytes and the limit is {PAYLOAD_BYTES_MAX}")]
    TooLarge { kind: u8, bytes: usize },
    #[error("a frame of kind {kind} is malformed: {what}")]
    Malformed { kind: u8, what: &'static str },
    #[error("no frame has kind {kind}")]
    UnknownKind { kind: u8 },
}

impl Frame {
    pub fn new(kind: u8, stream: u32, payload: Vec<u8>) -> Frame {
        Frame { kind, stream, payload }
    }

    /// Appends the frame's bytes to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`]; `out` is then as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        let bytes = self.payload.len();
        let length = announced(self.kind, bytes)?;
        out.reserve(HEADER_BYTES + bytes);
        out.push(self.kind);
        out.extend(self.stream.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(&self.payload);
        Ok(())
    }

    /// Reads the payload from its beginning.
    pub fn fields(&self) -> Fields<'_> {
        Fields { kind: self.kind, rest: &self.payload }
    }
}

fn announced(kind: u8, bytes: usize) -> Result<u32, FrameError> {
    match u32::try_from(bytes) {
        Ok(length) if bytes <= PAYLOAD_BYTES_MAX => Ok(length),
        _ => Err(FrameError::TooLarge { kind, bytes }),
    }
}

/// Turns bytes, cut anywhere, back into frames. Holds at most one frame and what was pushed last.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were already given out as frames.
    taken: usize,
}

impl FrameDecoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend(bytes);
    }

    /// The next whole frame, or none until more bytes are pushed.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`]; the connection is then of no further use.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [kind, s0, s1, s2, s3, length @ ..] = *header;
        let bytes = u32::from_le_bytes(length) as usize;
        announced(kind, bytes)?;
        let Some(payload) = rest.get(..bytes) else {
            return Ok(None);
        };
        let frame = Frame::new(kind, u32::from_le_bytes([s0, s1, s2, s3]), payload.to_vec());
        self.taken += HEADER_BYTES + bytes;
        Ok(Some(frame))
    }
}

/// The fields of a payload, in the order they were written.
#[derive(Debug)]
pub struct Fields<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// # Errors
    /// The payload ends too early.
    pub fn u8(&mut self) -> Result<u8, FrameError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// # Errors
    /// The payload ends too early.
    pub fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    /// # Errors
    /// The payload ends too early.
    pub fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }

    /// # Errors
    /// The payload ends too early.
    pub fn f32(&mut self) -> Result<f32, FrameError> {
        self.array().map(f32::from_le_bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub fn bytes(self) -> &'a [u8] {
        self.rest
    }

    /// All that is left, as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(self) -> Result<&'a str, FrameError> {
        std::str::from_utf8(self.rest).map_err(|_| self.malformed("it is not UTF-8"))
    }

    /// # Errors
    /// Something is left.
    pub fn end(self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed("it is too long")) }
    }

    pub fn malformed(&self, what: &'static str) -> FrameError {
        FrameError::Malformed { kind: self.kind, what }
    }

    /// The next `bytes` bytes.
    ///
    /// # Errors
    /// The payload ends too early.
    pub fn slice(&mut self, bytes: usize) -> Result<&'a [u8], FrameError> {
        let split = self.rest.split_at_checked(bytes);
        let (head, rest) = split.ok_or_else(|| self.malformed("it is too short"))?;
        self.rest = rest;
        Ok(head)
    }

    /// # Errors
    /// The payload ends too early.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (head, rest) =
            self.rest.split_first_chunk().ok_or_else(|| self.malformed("it is too short"))?;
        self.rest = rest;
        Ok(*head)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        let frame = (any::<u8>(), any::<u32>(), vec(any::<u8>(), 0..200))
            .prop_map(|(kind, stream, payload)| Frame::new(kind, stream, payload));
        vec(frame, 0..8)
    }

    /// Pushes `bytes` in pieces that end at `cuts`, and collects what comes out.
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
        fn garbage_is_refused_or_awaits_more_and_never_panics(bytes in vec(any::<u8>(), 0..400)) {
            let mut decoder = FrameDecoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next_frame() {}
        }
    }

    #[test]
    fn the_largest_payload_passes_and_one_byte_more_does_not() {
        let mut bytes = Vec::new();
        let largest = Frame::new(7, 1, vec![1; PAYLOAD_BYTES_MAX]);
        largest.encode(&mut bytes).expect("at the limit");
        assert_eq!(decode_in_pieces(&bytes, &[]), [largest]);

        let too_large = FrameError::TooLarge { kind: 7, bytes: PAYLOAD_BYTES_MAX + 1 };
        let mut out = Vec::new();
        let frame = Frame::new(7, 1, vec![1; PAYLOAD_BYTES_MAX + 1]);
        assert_eq!(frame.encode(&mut out), Err(too_large.clone()));
        assert_eq!(out, Vec::<u8>::new());

        let mut header = vec![7, 1, 0, 0, 0];
        header.extend((PAYLOAD_BYTES_MAX as u32 + 1).to_le_bytes());
        let mut decoder = FrameDecoder::default();
        decoder.push(&header);
        assert_eq!(decoder.next_frame(), Err(too_large));
    }

    #[test]
    fn fields_say_what_is_wrong_with_them() {
        let frame = Frame::new(9, 0, vec![1, 2, 3, 0xFF]);
        let malformed = |what| FrameError::Malformed { kind: 9, what };
        let mut fields = frame.fields();
        assert_eq!(fields.u8(), Ok(1));
        assert_eq!(fields.u32(), Err(malformed("it is too short")));
        assert_eq!(fields.end(), Err(malformed("it is too long")));
        assert_eq!(frame.fields().text(), Err(malformed("it is not UTF-8")));
    }
}
