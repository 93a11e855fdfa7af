//! Reads what measuring needs of an HTTP/1.1 header: its length, and single fields.
//! It is not a full parser, because parsing would take time on both ends of a measured connection.

use memchr::memmem;

/// Maximum length of a header; no benchmarked server sends more.
pub(crate) const BYTES_MAX: usize = 64 << 10;

/// Length of the header, with the empty line.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4)
}

/// The value of the first field with this name.
pub(crate) fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (field, value) = line.split_at_checked(name.len())?;
        let value =
            value.strip_prefix(b":").filter(|_| field.eq_ignore_ascii_case(name.as_bytes()));
        value.map(<[u8]>::trim_ascii)
    })
}

/// The body's length, if the header has it.
pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    std::str::from_utf8(field(head, "content-length")?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 12\r\nX-Content-Length: 9\r\n\r\nbody";

    #[test]
    fn the_end_of_a_head() {
        assert_eq!(length(HEAD), Some(HEAD.len() - 4));
        assert_eq!(length(&HEAD[..HEAD.len() - 5]), None);
    }

    #[test]
    fn the_case_of_a_field_name_does_not_matter() {
        assert_eq!(content_length(HEAD), Some(12));
        assert_eq!(field(HEAD, "X-Content-Length"), Some(&b"9"[..]));
        assert_eq!(field(HEAD, "Length"), None);
    }
}
