//! Lines of an answer that is still arriving, each with a size limit.
//! Blocking: it runs on the reading thread.

use std::io::{self, BufRead, BufReader, Read};

use ureq::Body;

/// A line carries one token or one state, and is shorter than an error.
const LINE_BYTES_MAX: u64 = 1 << 20;

pub(super) struct Lines<R>(R);

impl Lines<BufReader<Box<dyn Read>>> {
    pub(super) fn of(body: Body) -> Self {
        Lines(BufReader::new(Box::new(body.into_reader())))
    }
}

#[cfg(test)]
impl<'a> Lines<&'a [u8]> {
    pub(super) fn of_bytes(bytes: &'a [u8]) -> Self {
        Lines(bytes)
    }
}

impl<R: BufRead> Lines<R> {
    /// The next line without its end; `None` after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let read = self.0.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if line.pop_if(|byte| *byte == b'\n').is_none() && read as u64 == LINE_BYTES_MAX {
            return Err(io::Error::other("a line has no end"));
        }
        line.pop_if(|byte| *byte == b'\r');
        String::from_utf8(line).map(Some).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<String>> {
        let mut lines = Lines(bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next()? {
            all.push(line);
        }
        Ok(all)
    }

    #[test]
    fn lines_end_with_or_without_a_carriage_return() {
        assert_eq!(read(b"a\r\n\nb\nc").expect("lines"), ["a", "", "b", "c"]);
        assert_eq!(read(b"").expect("nothing"), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_line_of_text_is_refused() {
        assert!(read(b"\xff\n").is_err());
        let endless = vec![b'a'; LINE_BYTES_MAX as usize + 1];
        assert_eq!(read(&endless).expect_err("no end").to_string(), "a line has no end");
    }
}
