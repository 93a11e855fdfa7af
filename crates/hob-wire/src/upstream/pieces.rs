//! Bytes as they come from a socket to the pieces of a streamed answer, however they were cut.
//! A piece without an end is given up before it fills the memory.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Bytes of a piece that are kept for the next one. Few pieces are longer.
const REUSED_BYTES_MAX: usize = 4 << 10;

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// The joined `data:` lines of a server-sent event; comments and other fields are not handed out.
    Event,
    /// A line of JSON.
    Line,
}

/// A line, or the lines of one event, longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a piece of the answer is longer than {bytes_max} bytes")]
pub struct PieceTooLong {
    pub bytes_max: usize,
}

/// Collects bytes and hands out pieces.
#[derive(Debug)]
pub struct Pieces {
    kind: PieceKind,
    bytes_max: usize,
    /// Bytes that came; those before `read` were handed out.
    bytes: Vec<u8>,
    read: usize,
    /// Up to here there is no line break: searched before.
    searched: usize,
    /// The last line ended with a carriage return, whose line feed may follow.
    after_return: bool,
    /// `data:` lines of the event that is being read.
    data: String,
    has_data: bool,
}

impl Pieces {
    /// Pieces of at most `bytes_max` bytes.
    pub fn new(kind: PieceKind, bytes_max: usize) -> Pieces {
        Pieces {
            kind,
            bytes_max,
            bytes: Vec::new(),
            read: 0,
            searched: 0,
            after_return: false,
            data: String::new(),
            has_data: false,
        }
    }

    /// # Errors
    /// Nothing more is read after [`PieceTooLong`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), PieceTooLong> {
        if self.read > 0 {
            self.bytes.drain(..self.read);
            self.searched -= self.read;
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
        let is_endless = self.bytes.len() > self.bytes_max && self.line_end().is_none();
        if is_endless || self.data.len() > self.bytes_max {
            return Err(PieceTooLong { bytes_max: self.bytes_max });
        }
        Ok(())
    }

    /// The next piece that is complete. Bytes that are not UTF-8 become U+FFFD.
    pub fn next_piece(&mut self) -> Option<String> {
        loop {
            if self.after_return && self.read < self.bytes.len() {
                self.after_return = false;
                self.read += usize::from(self.bytes[self.read] == b'\n');
                self.searched = self.read;
            }
            let Some(end) = self.line_end() else { break };
            let start = self.read;
            self.read = end + 1;
            self.searched = self.read;
            self.after_return = self.bytes[end] == b'\r';
            if let Some(piece) = self.line(start, end) {
                return Some(piece);
            }
        }
        self.searched = self.bytes.len();
        None
    }

    /// Takes back a piece that was read, so that the next one uses its memory.
    pub fn reuse(&mut self, mut piece: String) {
        if !self.has_data && piece.capacity() <= REUSED_BYTES_MAX {
            piece.clear();
            self.data = piece;
        }
    }

    /// What is left when the bytes have ended: a last line without its break.
    pub fn rest(&mut self) -> Option<String> {
        let (start, end) = (self.read, self.bytes.len());
        self.read = end;
        self.searched = end;
        let last = self.line(start, end);
        last.or_else(|| self.event())
    }

    /// Where the line that is being read ends. Server-sent events may end theirs with a carriage return alone.
    fn line_end(&self) -> Option<usize> {
        let unread = &self.bytes[self.searched..];
        let length = match self.kind {
            PieceKind::Line => memchr(b'\n', unread),
            PieceKind::Event => memchr2(b'\n', b'\r', unread),
        };
        Some(self.searched + length?)
    }

    fn line(&mut self, start: usize, end: usize) -> Option<String> {
        let line = &self.bytes[start..end];
        match self.kind {
            PieceKind::Line => {
                let line = line.trim_ascii();
                (!line.is_empty()).then(|| lossy(line).into_owned())
            }
            PieceKind::Event if line.is_empty() => self.event(),
            PieceKind::Event => {
                if let Some(value) = line.strip_prefix(b"data:") {
                    let value = value.strip_prefix(b" ").unwrap_or(value);
                    if self.has_data {
                        self.data.push('\n');
                    }
                    self.has_data = true;
                    self.data.push_str(&lossy(value));
                }
                None
            }
        }
    }

    fn event(&mut self) -> Option<String> {
        self.has_data.then(|| {
            self.has_data = false;
            std::mem::take(&mut self.data)
        })
    }
}

/// Almost all texts are valid, and checking that is much faster than the lossy conversion.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES_MAX: usize = 1 << 20;

    fn read(kind: PieceKind, packets: &[&[u8]]) -> Vec<String> {
        let mut pieces = Pieces::new(kind, BYTES_MAX);
        let mut read = Vec::new();
        for packet in packets {
            pieces.push(packet).expect("short");
            read.extend(std::iter::from_fn(|| pieces.next_piece()));
        }
        read.extend(pieces.rest());
        read
    }

    #[test]
    fn events_are_their_data_and_comments_are_nothing() {
        let text = ": hello\r\nevent: x\r\ndata: {\"a\":1}\r\n\r\ndata:{}\n\n\n: ping\n\ndata: two\ndata: lines\n\n\
            id: 7\n\ndata: [DONE]";
        let expected = ["{\"a\":1}", "{}", "two\nlines", "[DONE]"];
        assert_eq!(read(PieceKind::Event, &[text.as_bytes()]), expected);
    }

    #[test]
    fn lines_are_themselves_without_blanks() {
        assert_eq!(read(PieceKind::Line, &[b"{}\r\n\n  {\"b\":2} \n{"]), ["{}", "{\"b\":2}", "{"]);
    }

    #[test]
    fn what_never_ends_is_given_up() {
        let mut pieces = Pieces::new(PieceKind::Event, 100);
        let refused = (0..20).map_while(|_| pieces.push(b"0123456789").err()).next();
        assert_eq!(refused, None, "the first ten are within the limit");
        let mut pieces = Pieces::new(PieceKind::Event, 100);
        let pushed = (0..20).filter(|_| pieces.push(b"0123456789").is_ok()).count();
        assert_eq!(pushed, 10);
        let mut pieces = Pieces::new(PieceKind::Event, 100);
        let pushed = (0..1000).take_while(|_| {
            let taken = pieces.push(b"0123456789").is_ok();
            assert_eq!(pieces.next_piece(), None, "the line has not ended");
            taken
        });
        assert_eq!(pushed.count(), 10, "also with a look in between");
        let mut pieces = Pieces::new(PieceKind::Event, 100);
        let pushed = (0..1000).take_while(|_| {
            let taken = pieces.push(b"data: 0123456789\n").is_ok();
            assert_eq!(pieces.next_piece(), None, "the event has not ended");
            taken
        });
        assert!((9..=11).contains(&pushed.count()), "one event of endless lines");
    }

    #[test]
    fn a_reused_piece_leaves_nothing_behind() {
        let mut pieces = Pieces::new(PieceKind::Event, BYTES_MAX);
        pieces.push(b"data: longer than both\n\ndata: one\ndata:").expect("short");
        let first = pieces.next_piece().expect("an event");
        let (memory, text) = (first.as_ptr(), first.clone());
        pieces.reuse(first);
        assert_eq!((text.as_str(), pieces.next_piece()), ("longer than both", None));
        // The next event has begun.
        pieces.reuse("too late".to_owned());
        pieces.push(b" two\n\n").expect("short");
        let second = pieces.next_piece().expect("an event");
        assert_eq!((second.as_str(), second.as_ptr()), ("one\ntwo", memory));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_does_not_matter(
            texts in prop::collection::vec("[a-zé世\u{1f600} :]{0,20}", 0..8),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in prop::collection::vec(0usize..400, 0..12),
        ) {
            let body: String = texts.iter().map(|text| format!("data: {text}{end}{end}")).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (body.len() + 1)).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let packets: Vec<&[u8]> =
                cuts.windows(2).map(|cut| &body.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(PieceKind::Event, &packets), texts);
        }
    }
}
