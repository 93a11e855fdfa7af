//! As much of an event stream as is counted: how many events, which say something, and how it ends.
//! Deliberately absent: JSON. Events are searched for the one field that tells, wherever bytes are cut.

use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;

static CONTENT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"content\":"));

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// All of them, `[DONE]` too.
    pub(super) all: usize,
    pub(super) with_content: usize,
    pub(super) has_error: bool,
    pub(super) is_done: bool,
    /// A line whose end is not here yet.
    cut: Vec<u8>,
}

impl Events {
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.cut.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.cut);
                whole.extend_from_slice(line);
                self.line(&whole);
            }
            bytes = rest;
        }
        self.cut.extend_from_slice(bytes);
    }

    fn line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:") else { return };
        let data = data.trim_ascii();
        self.all += 1;
        self.is_done |= data == b"[DONE]";
        self.has_error |= data.starts_with(b"{\"error\"");
        self.with_content += usize::from(says_something(data));
    }
}

/// Its content is a text, and not an empty one.
fn says_something(data: &[u8]) -> bool {
    let Some(at) = CONTENT.find(data) else { return false };
    let value = data[at + CONTENT.needle().len()..].trim_ascii_start();
    value.starts_with(b"\"") && !value.starts_with(b"\"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b": a comment\n\n\
        data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm\"}}]}\r\n\r\n\
        data: {\"choices\": [{\"delta\": {\"content\": \" one\"}}]}\n\n\
        data:{\"choices\":[{\"delta\":{\"content\":\"two\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":null},\"finish_reason\":\"stop\"}]}\n\n\
        data: [DONE]\n\n";

    fn events(pieces: &[&[u8]]) -> Events {
        let mut events = Events::default();
        pieces.iter().for_each(|piece| events.take(piece));
        events
    }

    #[test]
    fn where_the_bytes_are_cut_does_not_matter() {
        let expected =
            Events { all: 6, with_content: 2, has_error: false, is_done: true, cut: Vec::new() };
        for cut in 0..STREAM.len() {
            let (before, after) = STREAM.split_at(cut);
            assert_eq!(events(&[before, after]), expected, "{cut}");
        }
        let single: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(events(&single), expected);
    }

    #[test]
    fn an_error_is_seen() {
        let broken = events(&[b"data: {\"error\":{\"message\":\"gone\"}}\n\n"]);
        assert!(broken.has_error && !broken.is_done && broken.with_content == 0);
    }
}
